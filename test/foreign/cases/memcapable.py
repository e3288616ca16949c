"""memccapable (libmemcached's conformance test of the protocol) against memcached, which holds data meanwhile."""

import os
import re
import socket
import subprocess

from harness import endings
from harness.data import Data
from harness.errors import Failure, Skip
from harness.exchange import exchange
from harness.process import environment
from harness.program import ServerProgram, need

from passes import Passes

KEYS = 60_000  # of 1 KiB


class Memcapable(Passes, ServerProgram):
    name = "memcapable"
    help = "memccapable against memcached"

    def prepare(self):
        self._server, self._test = need("memcached"), _test_program()
        data = Data(self.seed)
        keys = [(b"full%d" % n, data.value(1000)) for n in range(int(KEYS * self.scale))]
        self._sets = [b"".join(b"set %s 0 0 1000\r\n%s\r\n" % pair for pair in keys[at:at + 100])
                      for at in range(0, len(keys), 100)]
        self._gets = [b"get " + b" ".join(key for key, _ in keys[at:at + 100]) + b"\r\n"
                      for at in range(0, len(keys), 100)]

    def command(self):
        if os.path.exists(self.path("port")):
            os.unlink(self.path("port"))
        # Port -1: any that is free, written into the file. -A: `shutdown` is allowed.
        return ["/usr/bin/env", "MEMCACHED_PORT_FILENAME=" + self.path("port"), self._server, "-l", "127.0.0.1", "-p",
                "-1", "-U", "0", "-m", 256, "-A", "-t", 2, "-u", "root"]

    def connect(self):
        try:
            with open(self.path("port"), encoding="ascii") as file:
                self._port = int(re.search(r"TCP INET: (\d+)", file.read())[1])
            return socket.create_connection(("127.0.0.1", self._port), 5)
        except (OSError, TypeError):
            return None

    def work(self, link):
        for batch in self._sets:
            exchange(link, batch + b"mn\r\n", b"MN\r\n")
        before = self._values(link)
        answer = self._run_test("-a") | self._run_test("-b")
        answer["values before"] = before
        for batch in self._sets:  # the test empties the cache
            exchange(link, batch + b"mn\r\n", b"MN\r\n")
        answer["values after"] = self._values(link)
        return answer

    def _values(self, link):
        return sum(exchange(link, batch, b"END\r\n").count(b"VALUE ") for batch in self._gets)

    def _run_test(self, protocol):
        with endings.waiting:
            done = subprocess.run([self._test, "-h", "127.0.0.1", "-p", str(self._port), protocol, "-t", "30"],
                                  capture_output=True, text=True, timeout=300, check=False, env=environment(),
                                  cwd=self.folder)
        lines = re.findall(r"^(.*?)\s*\[(pass|FAIL|skip)\]", done.stdout + done.stderr, re.M)
        if not lines:
            raise Failure(f"memccapable: exit status {done.returncode}: {(done.stdout + done.stderr)[:200]!r}")
        return {what.strip(): verdict for what, verdict in lines if verdict == "pass"}

    def stop(self, link):
        link.sendall(b"shutdown\r\n")


def _test_program():
    try:
        return need("memccapable")  # Debian's name for it
    except Skip:
        return need("memcapable")
