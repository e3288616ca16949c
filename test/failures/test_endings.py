"""Programs that end with faults and write-backs under way: quickly, and with nothing left behind."""

import os
import re
import signal
import time
import unittest

from support import MIB, FailureTest, Puppet, Sampler, Server, record, resident_anonymous

PAGES = 4096  # 16 MiB, twice the budget
# How, and the exit status. quick_exit and segv are in test_figures.
ENDS = {"exit": 5, "_exit": 6, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL, "term": -signal.SIGTERM, "exec": 0}
GRACE = 10  # seconds that a server keeps the memory of a client that went without a word


class Endings(FailureTest):
    def stormy(self, url, **options):
        puppet = Puppet(self, far=url, **options)
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        self.assertEqual(puppet.do("storm 4"), "storm 4")
        return puppet

    def end(self, puppet, how):
        start = time.monotonic()
        if how == "exec":
            self.assertEqual(puppet.do("exec"), "ready")
            record("exec while paging", "the next program runs", time.monotonic() - start)
            self.assertEqual(puppet.do("fill 10"), "filled 10")
            self.assertEqual(puppet.finish(), 0)
        else:
            puppet.tell(f"end {how}")
            self.assertEqual(puppet.process.wait(5), ENDS[how], puppet.errors())
            record(f"{how} while paging", "ended", time.monotonic() - start)
        self.assertFalse(os.path.exists(f"/proc/{puppet.pid}/task"), "threads are left")
        self.assertEqual(puppet.messages(), [])

    @staticmethod
    def open_files(folder):
        """Files in the folder, unlinked ones too, that any process of the machine has open or mapped."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                found += [name for name in (os.readlink(f"/proc/{process}/fd/{fd}") for fd in os.listdir(f"/proc/{process}/fd"))
                          if name.startswith(folder + "/")]
            except OSError:  # it has ended, or is another's
                continue
        return found

    def assert_free_soon(self, server, used, what):
        """Far less than the grace: the client said that it goes."""
        start = time.monotonic()
        self.wait_until(f"the server's memory free after {what}", lambda: resident_anonymous(server.pid) < used + MIB, 3)
        record(f"{what}, at a server", "its memory free", time.monotonic() - start)

    def test_a_server_frees_at_once_what_a_client_leaves_in_order(self):
        server = Server(self)
        used = resident_anonymous(server.pid)
        for how in ("exit", "_exit", "quick_exit", "exec"):
            with self.subTest(how):
                puppet = self.stormy(server.url)
                self.assertGreater(resident_anonymous(server.pid), used + 4 * MIB)
                if how == "exec":
                    self.assertEqual(puppet.do("calm").split()[0], "calm")
                    self.assertEqual(puppet.do("exec"), "ready")
                else:
                    puppet.tell(f"end {how}")
                    puppet.process.wait(5)
                self.assert_free_soon(server, used, how)
                puppet.finish()

    def test_a_child_keeps_what_it_shares_with_a_parent_that_left(self):
        server = Server(self)
        used = resident_anonymous(server.pid)
        puppet = Puppet(self, far=server.url)
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        self.assertEqual(puppet.do("leave"), "child right 1")
        self.assertEqual(puppet.process.wait(5), 5)
        time.sleep(0.5)
        self.assertGreater(resident_anonymous(server.pid), used + 4 * MIB)
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        self.assertEqual(puppet.do(f"rewrite 0 {PAGES}"), f"rewritten {PAGES}")
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        puppet.tell("end _exit")
        self.assertIsNone(puppet.answer())
        self.assert_free_soon(server, used, "parent and child exit")

    def shared_memory(self):
        """Files of ours in /dev/shm, without the folders that all programs of a user share, and those of other tests:
        other programs of the machine come and go meanwhile."""
        return {name for name in os.listdir("/dev/shm")
                if "hinterland" in name and not re.fullmatch(r"hinterland-(\d+|fuzz-.*)", name)}

    def test_nothing_is_left(self):
        before = self.shared_memory()
        server = Server(self)
        bystander = Puppet(self, far=server.url)
        self.assertEqual(bystander.do(f"fill {PAGES}"), f"filled {PAGES}")
        time.sleep(0.2)
        used = resident_anonymous(server.pid)
        os.mkdir(self.path("disk"))
        sampler = Sampler(server.pid)
        for how in ENDS:
            with self.subTest(how):
                far = f"file:{self.path('disk')}/{how}?size=32M"
                puppets = [self.stormy(server.url), self.stormy(far), self.stormy("zmem:")]
                time.sleep(0.1)
                for puppet in puppets:
                    self.end(puppet, how)
        start = time.monotonic()
        self.assertGreater(sampler.stop(), used + MIB, "the server never held anything for them")
        self.wait_until("the server's memory free", lambda: resident_anonymous(server.pid) < used + 8 * MIB, GRACE + 5)
        record("clients gone without a word", "the server freed their memory", time.monotonic() - start)
        self.assertEqual(bystander.do(f"check 0 {PAGES}"), f"right {PAGES}")
        self.assertEqual(bystander.finish(), 0)
        self.assertEqual(os.listdir(self.path("disk")), [], "files of file: are left")
        self.assertEqual(self.open_files(self.path("disk")), [], "space of file: is held by somebody")
        self.assertEqual(self.shared_memory() - before, set())
        self.call("stat")  # takes away what killed programs left
        self.assertEqual(os.listdir(self.figures_folder), [])


if __name__ == "__main__":
    unittest.main()
