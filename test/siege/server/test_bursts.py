"""Many come to a server at once: programs, children of one program, and strangers who only knock."""

import os
import subprocess
import unittest

from support import HINTERLAND, FailureTest, Server

FAMILY = os.environ["HINTERLAND_TEST_FAMILY"]
FLOOD = os.environ["HINTERLAND_TEST_FLOOD"]
TIMEOUT = "60s"  # all are far quicker; a busy machine is no failure


class Bursts(FailureTest):
    def family(self, server, children, mib, *options):
        words = [HINTERLAND, "run", "--local", "4M", "--takeover", "start", "--far", server.url, "--timeout", TIMEOUT,
                 *options, "--", FAMILY, str(children), str(mib)]
        process = subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def assert_right(self, process, children):
        out, err = process.communicate(timeout=500)
        self.assertEqual((process.returncode, out), (0, b"right %d\n" % children), err.decode())

    def flood(self, server, *from_where):
        process = subprocess.Popen([FLOOD, str(server.port), *from_where], stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"flooding\n")

    def test_eighty_programs_that_start_together(self):
        server = Server(self, "--handshakes", "4", memory="2G")
        for process in [self.family(server, 1, 6) for _ in range(80)]:
            self.assert_right(process, 1)

    def test_three_hundred_children_that_live_together(self):
        server = Server(self)
        self.assert_right(self.family(server, 300, 16), 300)

    def test_children_when_connections_are_few(self):
        server = Server(self, "--client-connections", "40")
        self.assert_right(self.family(server, 8, 16), 8)

    def test_a_flood_of_strangers(self):
        for from_where in ((), ("127.0.0.2",)):
            with self.subTest(from_where=from_where):
                server = Server(self)
                self.flood(server, *from_where)
                self.assert_right(self.family(server, 40, 16), 40)


if __name__ == "__main__":
    unittest.main()
