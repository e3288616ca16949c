"""The memory server dies, freezes, restarts, fills up or lies, or the network between goes away."""

import signal
import time
import unittest

from support import SEED, FailureTest, Proxy, Puppet, Server

PAGES = 8192  # 32 MiB, four times the budget
LIMIT = 2.0   # --timeout 1s, and one more


class ServerFails(FailureTest):
    def puppet_over_server(self, server, **options):
        puppet = Puppet(self, far=server.url, **options)
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        return puppet

    def assert_dies_of_lost_page(self, puppet, server, reason):
        start = time.monotonic()
        self.assertIsNone(puppet.do(f"check 0 {PAGES // 2}"), "the data of a dead server cannot be right")
        self.assertEqual(puppet.process.wait(5), -signal.SIGBUS)
        self.assertLess(time.monotonic() - start, LIMIT)
        self.assert_one_message(puppet, server.url, r"[1-9]\d* pages .* lost", reason)

    def assert_lives_without_lost_pages(self, puppet):
        """What was touched last is local, and stays so."""
        first = PAGES - 200
        for _ in range(3):
            self.assertEqual(puppet.do(f"check {first} 200"), "right 200")
            self.assertEqual(puppet.do(f"rewrite {first} 200"), "rewritten 200")
        self.assertEqual(puppet.do("recycle 16 2"), "recycled wrong 0")  # beyond the budget, for lack of a device
        self.assertEqual(puppet.do("child"), "child status 0")
        self.assertEqual(puppet.do(f"check {first} 200"), "right 200")
        self.assertEqual(puppet.finish(), 0)
        self.assertLessEqual(len(puppet.messages()), 2, puppet.errors())  # the child may have had to say it, too

    def test_killed_and_a_lost_page_touched(self):
        server = Server(self)
        puppet = self.puppet_over_server(server)
        server.kill()
        self.assert_dies_of_lost_page(puppet, server, "refused|reset")

    def test_killed_and_no_lost_page_touched(self):
        server = Server(self)
        puppet = self.puppet_over_server(server)
        server.kill()
        self.assert_lives_without_lost_pages(puppet)

    def test_lost_pages_can_be_caught_freed_and_met_in_system_calls(self):
        server = Server(self)
        puppet = self.puppet_over_server(server)
        server.kill()
        found = puppet.do(f"catch 0 {PAGES}").split()
        caught, right, wrong, elsewhere = (int(found[i]) for i in (1, 3, 5, 7))
        self.assertGreater(caught, PAGES // 2)
        self.assertEqual((caught + right, wrong, elsewhere), (PAGES, 0, 0))
        self.assertEqual(puppet.do("call 0"), "gave -1 14")
        self.assertEqual(puppet.do("drop 0 100"), "dropped wrong 0")
        self.assert_one_message(puppet, server.url)
        self.assertGreaterEqual(self.figures(puppet.pid)["pages_lost"], caught)
        self.assertEqual(self.figures(puppet.pid)["device_lost"], 1)
        self.assertEqual(puppet.do("unmap"), "unmapped")
        self.assertEqual(puppet.do("recycle 4 2"), "recycled wrong 0")
        self.assertEqual(puppet.finish(), 0)

    def test_frozen(self):
        server = Server(self)
        puppet = self.puppet_over_server(server)
        server.send(signal.SIGSTOP)
        self.assert_dies_of_lost_page(puppet, server, "timed out")

    def test_frozen_for_less_than_the_limit(self):
        server = Server(self)
        puppet = self.puppet_over_server(server)
        server.send(signal.SIGSTOP)
        puppet.tell(f"check 0 {PAGES}")
        time.sleep(0.5)
        server.send(signal.SIGCONT)
        self.assertEqual(puppet.answer(), f"right {PAGES}")
        self.assertEqual(puppet.finish(), 0)
        self.assertEqual(puppet.messages(), [])

    def test_restarted(self):
        server = Server(self)
        puppet = self.puppet_over_server(server)
        server.kill()
        again = Server(self, port=server.port)
        self.assertEqual(again.port, server.port)
        self.assert_dies_of_lost_page(puppet, server, "lost")

    def test_out_of_memory(self):
        server = Server(self, memory="64M")
        puppet = Puppet(self, far=server.url)
        pages = 32768  # 128 MiB
        self.assertEqual(puppet.do(f"fill {pages}"), f"filled {pages}")
        for _ in range(2):
            self.assertEqual(puppet.do(f"check 0 {pages}"), f"right {pages}")
        self.assert_one_message(puppet, server.url, "beyond the budget", "No space")
        self.assertEqual(puppet.do("unmap"), "unmapped")
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        self.assertEqual(puppet.finish(), 0)


class NetworkFails(FailureTest):
    def setUp(self):
        super().setUp()
        self.server = Server(self)
        self.proxy = Proxy(self, self.server)
        self.puppet = Puppet(self, far=self.proxy.url)
        self.assertEqual(self.puppet.do(f"fill {PAGES}"), f"filled {PAGES}")

    def test_pages_damaged_now_and_then_are_read_again(self):
        self.proxy.corrupt = 0.003  # twice in a row, which is an error: once in 100,000 pages
        self.assertEqual(self.puppet.do(f"check 0 {PAGES}"), f"right {PAGES}", f"HINTERLAND_TEST_SEED={SEED}")
        self.assertGreater(self.proxy.flipped, 0)
        self.proxy.corrupt = 0
        self.assertEqual(self.puppet.finish(), 0)

    def test_pages_always_damaged_raise_sigbus_and_only_those(self):
        self.proxy.corrupt = 1.0
        found = self.puppet.do("catch 0 5").split()
        self.assertEqual(found[:2], ["caught", "5"], f"HINTERLAND_TEST_SEED={SEED}")
        self.proxy.corrupt = 0
        rest = PAGES - 200
        self.assertEqual(self.puppet.do(f"check 200 {rest}"), f"right {rest}")
        figures = self.figures(self.puppet.pid)
        self.assertEqual((figures["pages_lost"], figures["device_lost"]), (5, 0))
        self.assertEqual(self.puppet.finish(), 0)

    def test_connections_cut_and_made_again(self):
        for _ in range(3):
            self.puppet.tell(f"check 0 {PAGES}")
            time.sleep(0.05)
            self.proxy.drop()
            self.assertEqual(self.puppet.answer(), f"right {PAGES}")
            self.assertEqual(self.puppet.do(f"rewrite 0 {PAGES}"), f"rewritten {PAGES}")
        self.assertEqual(self.puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        self.assertGreater(self.figures(self.puppet.pid)["device_reconnects"], 0)
        self.assertEqual(self.puppet.finish(), 0)
        self.assertEqual(self.puppet.messages(), [])

    def test_cut_for_good(self):
        self.proxy.cut()
        start = time.monotonic()
        self.assertIsNone(self.puppet.do(f"check 0 {PAGES}"))
        self.assertEqual(self.puppet.process.wait(5), -signal.SIGBUS)
        self.assertLess(time.monotonic() - start, LIMIT)
        self.assert_one_message(self.puppet, self.proxy.url)


if __name__ == "__main__":
    unittest.main()
