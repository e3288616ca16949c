#!/usr/bin/env python3
"""gdb's word `fibers` on the fiber server of examples/.

test_debugger.py SERVER GDB_SCRIPT
"""
import re
import shutil
import socket
import subprocess
import sys

SKIPPED = 77


def main():
    server, script = sys.argv[1:]
    if shutil.which("gdb") is None:
        print("gdb is not installed")
        return SKIPPED
    process = subprocess.Popen([server, "0"], stdout=subprocess.PIPE)
    try:
        port = int(process.stdout.readline().split()[1])
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.sendall(b"line\n")
            assert peer.recv(100) == b"1 line\n"
            done = subprocess.run(["gdb", "-q", "-batch", "-p", str(process.pid), "-ex", f"source {script}", "-ex", "fibers"],
                                  capture_output=True, text=True, timeout=100)
    finally:
        process.kill()
        process.communicate()
    if "ptrace: Operation not permitted" in done.stderr:
        print(done.stderr)
        return SKIPPED
    fibers = [line.split(maxsplit=3) for line in done.stdout.splitlines() if re.match(r" +\d+ \w+ +waits", line)]
    assert [fiber[:3] for fiber in fibers] == [["1", "main", "waits"], ["2", "connection", "waits"]], done.stdout + done.stderr
    assert "stream_socket::accept" in fibers[0][3] and "stream_socket::read" in fibers[1][3], done.stdout
    return 0


if __name__ == "__main__":
    sys.exit(main())
