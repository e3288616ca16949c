"""Puppets under far memory, servers, and a proxy between them that fails on purpose."""

import json
import os
import queue
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HINTERLAND = os.environ["HINTERLAND_TEST_COMMAND"]
PUPPET = os.environ["HINTERLAND_TEST_PUPPET"]
CHURN = os.environ.get("HINTERLAND_TEST_CHURN", "")
SEED = int(os.environ.get("HINTERLAND_TEST_SEED", "0")) or random.randrange(1, 1 << 32)
MIB = 1 << 20
TICK = os.sysconf("SC_CLK_TCK")


def clean_environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
    kept.pop("LD_PRELOAD", None)
    return kept


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_anonymous(pid):
    """RssAnon in bytes, summed from the page tables: the lazily summed counters of /proc/PID/status are off by a few
    dozen pages a thread, which is small against what is allowed."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"RssAnon:\s+(\d+) kB", file.read())[1]) << 10


def record(failure, outcome, seconds):
    """A measured time to the outcome of a failure: a line on standard error, and one of test/failures/measure's table."""
    print(f"[outcome] {failure}: {outcome} after {seconds * 1000:.0f} ms", file=sys.stderr, flush=True)
    path = os.environ.get("HINTERLAND_TEST_OUTCOMES")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"failure": failure, "outcome": outcome, "seconds": seconds}) + "\n")


class Sampler(threading.Thread):
    """The highest RssAnon of a process, looked at every 10 ms."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.samples, self._stop_it = pid, 0, 0, threading.Event()
        self.start()

    def run(self):
        while not self._stop_it.wait(0.01):
            try:
                self.peak = max(self.peak, resident_anonymous(self.pid))
                self.samples += 1
            except (OSError, TypeError):
                return

    def stop(self):
        self._stop_it.set()
        self.join()
        return self.peak


class Puppet:
    """test/failures/puppet.cpp, natively or under `hinterland run`; `prefix`: words in front of the command. Pages leave
    in the order in which they came, so that a test knows which are far."""

    def __init__(self, test, *options, far=None, local="8M", timeout="1s", takeover="start", prefix=()):
        local_words = ["--local", local] if local else []
        words = [HINTERLAND, "run", *local_words, "--far", far, "--timeout", timeout, "--takeover", takeover,
                 "--policy", "fifo", *options, "--"]
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*prefix, *(words if far else []), PUPPET], env=test.environment, bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        test.addCleanup(self._clean_up)
        self._text = b""
        first = self.answer()
        if first != "ready":
            raise AssertionError(f"the puppet did not start: {first!r} {self.errors()}")

    @property
    def pid(self):
        return self.process.pid

    def _clean_up(self):
        if self.process.poll() is None:
            self.process.kill()
        if self.process.wait() not in (0, -signal.SIGKILL):  # what a test that failed needs to know
            print(f"[ended] {self.process.returncode}: {self.errors()}", file=sys.stderr, flush=True)
        for file in (self.process.stdin, self.process.stdout, self._errors):
            file.close()

    def answer(self, seconds=100):
        """The next line; None when the puppet ended instead."""
        end = time.monotonic() + seconds
        while b"\n" not in self._text:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no answer after {seconds} s; stderr: {self.errors()}")
            data = os.read(self.process.stdout.fileno(), 4096)
            if not data:
                return None
            self._text += data
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    def tell(self, command):
        self.process.stdin.write(command.encode() + b"\n")

    def do(self, command, seconds=100):
        self.tell(command)
        return self.answer(seconds)

    def errors(self):
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def messages(self):
        return [line for line in self.errors().splitlines() if line.startswith("hinterland: ")]

    def finish(self, seconds=100):
        """No more commands: the exit status, negative for a death by signal."""
        self.process.stdin.close()
        return self.process.wait(seconds)


class Server:
    def __init__(self, test, *options, memory="512M", port=0, host="127.0.0.1", prefix=()):
        self.process = subprocess.Popen([*prefix, HINTERLAND, "serve", "--listen", f"{host}:{port}", "--memory", memory,
                                         *options], env=test.environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        test.addCleanup(self._clean_up)
        line = self.process.stdout.readline().decode()
        found = re.search(re.escape(host) + r":(\d+)", line)
        if not found:
            raise AssertionError(f"hinterland serve said {line!r}")
        self.port = int(found[1])
        self.url = f"tcp://{host}:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def send(self, number):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:  # its threads may go on answering for a moment
            os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def _clean_up(self):
        self.send(signal.SIGCONT)
        self.kill()
        self.process.stdout.close()


class Proxy:
    """Stands between a program and its server. Set `corrupt` to the share of pages read in which one bit is flipped,
    `mislead` to N to have each Nth reply carry another page's contents, `delay` to the seconds that a reply is late; with
    `shuffle` replies come in another order. drop() ends all connections, cut() refuses new ones, too."""

    _HELLO, _HEADER, _READ_REPLY = 48, 32, 0x8008

    def __init__(self, test, server, seed=SEED):
        self.corrupt, self.flipped = 0.0, 0
        self.mislead, self.misled, self._replies = 0, 0, 0
        self.delay, self.shuffle, self.shuffled = 0.0, False, 0
        self._other_page = bytes(4096)
        self._target, self._random = ("127.0.0.1", server.port), random.Random(seed)
        self._lock, self._sockets, self._refuse = threading.Lock(), [], False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        test.addCleanup(self._close)

    def _close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._sockets:
            end.close()

    def drop(self):
        with self._lock:
            self._end(*self._sockets)

    def cut(self):
        self._refuse = True
        self.drop()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                if self._refuse:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
            except OSError:
                return
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets += [client, server]
            for work, ends in ((self._forward, (client, server)), (self._answer, (server, client))):
                self._threads.append(threading.Thread(target=work, args=ends, daemon=True))
                self._threads[-1].start()

    def _forward(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        self._end(source, target)

    def _answer(self, source, target):
        """Frame by frame: only the bytes of pages are changed, never a header."""
        frames = queue.SimpleQueue()
        sender = threading.Thread(target=self._send, args=(frames, target), daemon=True)
        sender.start()
        try:
            with source.makefile("rb") as stream:
                frames.put(self._exactly(stream, self._HELLO))
                while True:
                    header = self._exactly(stream, self._HEADER)
                    length, kind = struct.unpack("<IH", header[:6])
                    body = bytearray(self._exactly(stream, length))
                    if kind == self._READ_REPLY and length:
                        self._damage(body)
                        self._exchange(body)
                    frames.put(header + body)
        except (OSError, EOFError):
            pass
        frames.put(None)
        sender.join()
        self._end(source, target)

    def _send(self, frames, target):
        try:
            while (frame := frames.get()) is not None:
                batch = [frame]
                if self.shuffle:
                    time.sleep(0.001)  # so that some gather
                if self.delay:
                    time.sleep(self.delay)
                while self.shuffle and not frames.empty():
                    batch.append(frames.get())
                last = batch[-1] is None
                batch = [each for each in batch if each is not None]
                if len(batch) > 1:
                    self.shuffled += len(batch)
                    self._random.shuffle(batch)
                target.sendall(b"".join(batch))
                if last:
                    return
        except OSError:
            self._end(target)

    def _exchange(self, body):
        """The contents of another page than was asked for, all right in themselves."""
        mine = bytes(body[-4096:])
        self._replies += 1
        if self.mislead and self._replies % self.mislead == 0 and mine != self._other_page:
            body[-4096:] = self._other_page
            self.misled += 1
        else:
            self._other_page = mine

    def _damage(self, body):
        for page in range(0, len(body), 4096):
            if self._random.random() < self.corrupt:
                body[page + self._random.randrange(4096)] ^= 1 << self._random.randrange(8)
                self.flipped += 1

    @staticmethod
    def _exactly(stream, size):
        data = stream.read(size)
        if len(data) != size:
            raise EOFError
        return data

    @staticmethod
    def _end(*ends):
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def has_kernel_feature(name):
    """As `hinterland doctor` names them: MOVE, POISON."""
    done = subprocess.run([HINTERLAND, "doctor", "--json"], env=clean_environment(), capture_output=True, text=True,
                          check=False, timeout=30)
    return any(check["name"] == name and check["state"] == "ok" for check in json.loads(done.stdout)["checks"])


class FailureTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="hinterland-failures-")
        self.addCleanup(self._folder.cleanup)
        self.folder = self._folder.name
        self.environment = clean_environment()
        # In memory: where a disk is slow, programs and commands would wait for it.
        figures = tempfile.TemporaryDirectory(prefix="figures-of-a-test-", dir="/dev/shm")
        self.addCleanup(figures.cleanup)
        self.figures_folder = os.path.join(figures.name, "stats")
        self.environment["HINTERLAND_STAT_DIR"] = self.figures_folder

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([HINTERLAND, "doctor"], env=clean_environment(), capture_output=True, text=True,
                              check=False, timeout=30)
        if done.returncode != 0:
            raise unittest.SkipTest("this machine cannot run programs on far memory: " + done.stdout)

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *words, timeout=200):
        return subprocess.run([HINTERLAND, *words], env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False)

    def figures(self, pid):
        """Counters and gauges of a running program, by name."""
        done = self.call("stat", str(pid), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        program = json.loads(done.stdout)["programs"][0]
        return {**program["counters"], **program["gauges"]}

    def wait_until(self, what, condition, seconds=60.0):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                self.fail(f"not within {seconds} s: {what}")
            time.sleep(0.02)

    def assert_one_message(self, puppet, *words):
        messages = puppet.messages()
        self.assertEqual(len(messages), 1, puppet.errors())
        for word in words:
            self.assertRegex(messages[0], word)
