#!/usr/bin/python3
"""kv_server under clients that are not ours: libmemcached's tools, and plain sockets. Natively, and with a quarter of its
items local; on fibers, and on threads.

clients_test.py HINTERLAND SERVER SERVER_PLAIN

Exit status: 0, 1 when something is wrong, 77 where userfaultfd is not permitted or libmemcached-tools is missing.
"""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
MEMORY = "8M"  # of the server's items
TOOLS = ("memccapable", "memccp", "memccat", "memcrm", "memcslap", "memcstat")


@contextlib.contextmanager
def served(words):
    """A server, its port; it must end well, and soon, with whoever is connected."""
    with tempfile.TemporaryFile("w+") as errors:
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            line = server.stdout.readline()
            if not line:
                server.wait()
                errors.seek(0)
                text = errors.read()
                if "userfaultfd is not permitted" in text:
                    print(text)
                    sys.exit(SKIPPED)
                raise AssertionError(f"{words}: {text}")
            port = int(line.split()[1])
            with socket.create_connection(("127.0.0.1", port)):  # one that says nothing
                yield port
                server.send_signal(signal.SIGTERM)
                assert server.wait(15) == 0, "exit status after SIGTERM"
        finally:
            server.kill()
            server.wait()


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")

    def say(self, text, lines=1):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())
        return b"".join(self.file.readline() for _ in range(lines))

    def set(self, key, value, expires=0):
        assert self.say(f"set {key} 0 {expires} {len(value)}\r\n{value}\r\n") == b"STORED\r\n"

    def set_many(self, keys, values):
        """Sent at once, and then all answers."""
        text = "".join(f"set {key} 0 0 {len(value)}\r\n{value}\r\n" for key, value in zip(keys, values))
        assert self.say(text, len(keys)) == b"STORED\r\n" * len(keys)

    def which(self, keys):
        """Those that are there."""
        found = set()
        for first in range(0, len(keys), 100):
            line = self.say("get " + " ".join(keys[first:first + 100]) + "\r\n")
            while line != b"END\r\n":
                _, key, _, size = line.decode().split()
                found.add(key)
                self.file.read(int(size) + 2)
                line = self.file.readline()
        return found

    def get(self, key):
        """The value, or None."""
        head = self.say(f"get {key}\r\n")
        if head == b"END\r\n":
            return None
        value = self.file.read(int(head.split()[3]) + 2)[:-2].decode()
        assert self.file.readline() == b"END\r\n"
        return value

    def stats(self):
        found, line = {}, self.say("stats\r\n")
        while line != b"END\r\n":
            _, name, value = line.decode().split(" ", 2)
            found[name], line = value.strip(), self.file.readline()
        return found


def with_tools(port, folder):
    def tool(*words, status=0):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=folder)
        assert done.returncode == status, f"{words}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr
    servers = f"--servers=127.0.0.1:{port}"
    said = tool("memccapable", "-a", "-h", "127.0.0.1", "-p", str(port), "-t", "10")
    assert said.count("[pass]") >= 27 and "FAIL" not in said, said
    text = "some text\n" * 50_000
    with open(os.path.join(folder, "text"), "w", encoding="utf-8") as file:
        file.write(text)
    tool("memccp", servers, "text")
    assert tool("memccat", servers, "text").rstrip("\n") == text.rstrip("\n")
    tool("memcrm", servers, "text")
    tool("memccat", servers, "text", status=1)
    tool("memcslap", servers, "--concurrency=4", "--execute-number=500", "--initial-load=2000", "--test=get")
    assert "curr_items" in tool("memcstat", servers)


def keeps_its_limit(port):
    client = Client(port)
    assert client.say("flush_all\r\n") == b"OK\r\n"
    client.set("used", "kept")
    for first in range(0, 10_000, 100):
        client.set_many([f"key{i}" for i in range(first, first + 100)], [f"{i:05}" * 200 for i in range(first, first + 100)])
        assert client.get("used") == "kept", "what was used all the time has left"
    stats = client.stats()
    assert int(stats["evictions"]) > 1500, stats
    assert int(stats["bytes"]) <= 8 << 20, stats
    found = client.which([f"key{i}" for i in range(10_000)])
    assert 5000 < len(found) < 8500 and "key9999" in found, len(found)
    assert all(client.get(f"key{i}") in (None, f"{i:05}" * 200) for i in range(0, 10_000, 7))


def expires(port):
    client = Client(port)
    client.set("soon", "x", 1)
    client.set("later", "y", 1000)
    assert client.get("soon") == "x"
    end = time.monotonic() + 10
    while client.get("soon") is not None:
        assert time.monotonic() < end, "it does not expire"
        time.sleep(0.1)
    assert client.get("later") == "y"


def takes_bad_input(port):
    noise = Client(port)
    noise.socket.sendall(bytes(range(256)) * 500)  # one line of it is too long
    noise.socket.shutdown(socket.SHUT_WR)
    while noise.socket.recv(65536):
        pass
    for text in (b"set a 0 0 100\r\nhalf of it", b"get ", b"\x80\x00\x00\x00" * 6):  # and gone
        Client(port).socket.sendall(text)
    binary = Client(port)
    assert binary.say(b"\x80\x07" + bytes(22) + b"\r\n") == b"ERROR\r\n"
    assert Client(port).say("version\r\n").startswith(b"VERSION")


def serves_many(port):
    clients = [Client(port) for _ in range(150)]
    for number, client in enumerate(clients):
        client.socket.sendall(f"set many{number} 0 0 5\r\n{number:05}\r\nget many{number}\r\nget none\r\n".encode())
    for number, client in enumerate(clients):
        wanted = f"STORED\r\nVALUE many{number} 0 5\r\n{number:05}\r\nEND\r\nEND\r\n"
        assert client.say(b"", 5).decode() == wanted
    assert int(clients[0].stats()["curr_connections"]) >= 150


def main():
    hinterland, server, plain = sys.argv[1:]
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        print(f"{missing[0]} is missing (apt-get install libmemcached-tools)")
        return SKIPPED
    far = [hinterland, "run", "--local", "6M", "--takeover", "start", "--"]
    options = ["--memory", MEMORY, "--threads", "2"]
    ways = {"natively, fibers": [plain, *options], "far, fibers": [*far, server, *options],
            "far, threads": [*far, server, *options, "--no-fibers"]}
    for way, words in ways.items():
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, served(words) as port:
            with_tools(port, folder)
            keeps_its_limit(port)
            expires(port)
            takes_bad_input(port)
            serves_many(port)
        print(f"{way}: {time.monotonic() - began:.1f} s")
    for words in (["--port", "70000"], ["--memory", "1K"], ["--threads", "0"], ["--address", "nowhere"]):
        done = subprocess.run([plain, *words], capture_output=True, text=True, timeout=20)
        assert done.returncode in (1, 2) and done.stderr and not done.stdout, f"{words}: {done}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
