"""Devices that are full, fail or lose pages; programs that close all descriptors; kernels that lack features."""

import signal
import subprocess
import unittest

from support import CHURN, HINTERLAND, FailureTest, Puppet, Server, has_kernel_feature

PAGES = 8192  # 32 MiB, four times the budget


def caught_of(answer):
    """caught, right, wrong, elsewhere"""
    words = answer.split()
    return tuple(int(words[i]) for i in (1, 3, 5, 7))


class Full(FailureTest):
    def test_device_smaller_than_the_program(self):
        for url in (f"file:{self.path('far')}?size=32M", "mem:?size=32M", "zmem:?size=32M"):
            with self.subTest(url):
                puppet = Puppet(self, far=url)
                pages = 24576  # 96 MiB that do not compress
                self.assertEqual(puppet.do(f"fill {pages}"), f"filled {pages}")
                self.assertEqual(puppet.do(f"check 0 {pages}"), f"right {pages}")
                self.assertEqual(puppet.do(f"rewrite 0 {pages}"), f"rewritten {pages}")
                self.assertEqual(puppet.do(f"check 0 {pages}"), f"right {pages}")
                self.assertEqual(puppet.finish(), 0)
                self.assert_one_message(puppet, url.split("?")[0], "beyond the budget", "No space")

    def test_full_file_system(self):
        script = 'mount -t tmpfs -o size=20M none "$0" && exec "$@"'
        words = ["unshare", "-rm", "sh", "-c", script, self.folder, HINTERLAND, "run", "--local", "8M",
                 "--far", f"file:{self.path('far')}?size=64M", "--", "true"]
        probe = subprocess.run([*words[:5], self.folder, "true"], capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest("no file system can be mounted in a namespace: " + probe.stderr.decode())
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"needs 64.*free.*\n.*smaller \?size=")


class Failing(FailureTest):
    def filled(self, url, *options, pages=PAGES):
        puppet = Puppet(self, *options, far=url)
        self.assertEqual(puppet.do(f"fill {pages}"), f"filled {pages}")
        return puppet

    def test_reads_that_fail_cost_their_pages_and_no_others(self):
        for fault in ("fail_reads=0.01", "corrupt=0.01"):
            with self.subTest(fault):
                puppet = self.filled(f"sim:{fault},inner=mem:", "--read-ahead", "0")
                caught, right, wrong, elsewhere = caught_of(puppet.do(f"catch 0 {PAGES}"))
                self.assertGreater(caught, 0)
                self.assertLess(caught, PAGES // 10)
                self.assertEqual((caught + right, wrong, elsewhere), (PAGES, 0, 0))
                self.assertEqual(len(puppet.messages()), caught)
                self.assertRegex(puppet.messages()[0], r"page 0x[0-9a-f]+ cannot be had from sim:.*SIGBUS")
                self.assertEqual(self.figures(puppet.pid)["pages_lost"], caught)
                # Lost once, lost for good; and the others are still there.
                again = caught_of(puppet.do(f"catch 0 {PAGES}"))
                self.assertGreaterEqual(again[0], caught)  # more: those that left and came back meanwhile
                self.assertEqual(again[2:], (0, 0))
                self.assertEqual(puppet.finish(), 0)

    def test_writes_that_fail_leave_pages_local(self):
        puppet = self.filled("sim:fail_writes=0.05,inner=mem:")
        for _ in range(2):
            self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
            self.assertEqual(puppet.do(f"rewrite 0 {PAGES}"), f"rewritten {PAGES}")
        self.assertEqual(puppet.finish(), 0)
        self.assert_one_message(puppet, "beyond the budget")

    def test_device_lost_in_the_middle(self):
        cases = ((3000, "message"), (8000, "message"), (8000, "signal"))  # while writing, while reading
        for count, fault in cases:
            with self.subTest(count, fault=fault):
                puppet = Puppet(self, "--fault", fault, far=f"sim:lose_after={count},inner=mem:")
                answers = [puppet.do(f"fill {PAGES}")]
                if answers[0] is not None:
                    answers.append(puppet.do(f"check 0 {PAGES}"))
                self.assertIsNone(answers[-1], "lost pages cannot be right")
                self.assertEqual(puppet.process.wait(5), -signal.SIGBUS)
                self.assert_one_message(puppet, r"the far device sim:.* is gone: \d+ pages .*lost")

    def test_poisoning_without_the_kernels_help(self):
        server = Server(self)
        puppet = self.filled(server.url, "--without", "poison")
        server.kill()
        caught, right, wrong, elsewhere = caught_of(puppet.do(f"catch 0 {PAGES}"))
        self.assertGreater(caught, PAGES // 2)
        self.assertEqual((caught + right, wrong, elsewhere), (PAGES, 0, 0))
        self.assertEqual(puppet.do("call 0"), "gave -1 14")
        self.assertEqual(puppet.do("unmap"), "unmapped")
        self.assertEqual(puppet.do("fill 100"), "filled 100")
        self.assertEqual(puppet.finish(), 0)
        self.assert_one_message(puppet, server.url)


class ClosedDescriptors(FailureTest):
    def test_all_closed(self):
        server = Server(self)
        devices = ("mem:", "zmem:", f"file:{self.path('far')}?size=256M", server.url, "sim:latency=1us,inner=mem:")
        for url in devices:
            for how in ("close", "close_range", "closefrom", "fclose"):
                with self.subTest(f"{how} over {url}"):
                    puppet = Puppet(self, far=url)
                    self.assertEqual(puppet.do("fill 4096"), "filled 4096")
                    self.assertEqual(puppet.do(f"close {how}"), "closed 0 open 0")
                    self.assertEqual(puppet.do("check 0 4096"), "right 4096")
                    self.assertEqual(puppet.do("rewrite 0 4096"), "rewritten 4096")
                    self.assertEqual(puppet.do("forks 1 exit"), "children 1 bad 0")
                    self.assertEqual(puppet.do("check 0 4096"), "right 4096")
                    self.assertEqual(puppet.finish(), 0, puppet.errors())
                    self.assertEqual(puppet.messages(), [])


class WithoutFeatures(FailureTest):
    """Every byte is right on kernels that lack what ours may have."""

    def churn(self, features, seconds):
        done = self.call("run", "--local", "8M", "--far", "mem:", "--without", features, "--", CHURN, "--total",
                         "64M", "--threads", "2", "--seconds", str(seconds))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("every byte right", done.stdout)

    def test_one_by_one(self):
        for feature in ("move", "write-protect", "poison", "vectored-discard"):
            if feature == "write-protect" and not has_kernel_feature("MOVE"):
                continue  # then there is neither, see below
            with self.subTest(feature):
                self.churn(feature, 2)

    def test_together(self):
        self.churn("move,vectored-discard,poison", 1.5)
        if has_kernel_feature("MOVE"):
            self.churn("write-protect,vectored-discard,poison", 1.5)

    def test_neither_way_to_take_a_page(self):
        done = self.call("run", "--local", "8M", "--far", "mem:", "--without", "move,write-protect", "--", "true")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "neither protect nor move")


if __name__ == "__main__":
    unittest.main()
