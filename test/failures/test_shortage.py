"""What the program's own machine runs out of: memory of its group, descriptors, mappings, time, handlers."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import time
import unittest

from support import HINTERLAND, MIB, PUPPET, FailureTest, Proxy, Puppet, Server, record

PAGES = 8192
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"


class MemoryGroup:
    """A memory cgroup with a limit, of version 1 or 2, and words that run a command in it."""

    def __init__(self, test, limit):
        if os.geteuid() != 0:
            raise unittest.SkipTest("a memory group needs root")
        first = pathlib.Path("/sys/fs/cgroup/memory")
        self._folder = (first if first.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"hinterland-test-{os.getpid()}"
        try:
            self._folder.mkdir()
        except OSError as problem:
            raise unittest.SkipTest(f"no memory group: {problem}") from problem
        test.addCleanup(self._clean_up)
        try:
            for name in ("memory.limit_in_bytes" if first.is_dir() else "memory.max",):
                (self._folder / name).write_text(str(limit))
        except OSError as problem:
            raise unittest.SkipTest(f"no memory limit: {problem}") from problem
        self.words = ("sh", "-c", f'echo $$ > {self._folder}/cgroup.procs && exec "$@"', "sh")

    def _clean_up(self):
        for _ in range(100):
            try:
                return self._folder.rmdir()
            except OSError:  # somebody in it is still ending
                time.sleep(0.05)


class LocalMemory(FailureTest):
    def test_group_smaller_than_the_budget(self):
        group = MemoryGroup(self, 96 * MIB)
        server = Server(self, memory="2G")  # outside; it keeps the memory of those that ended for a while
        pages = 40960  # 160 MiB
        for local, takeover, messages in ((None, "pressure", 0), ("256M", "start", 1)):
            with self.subTest(f"--local {local} from {takeover}"):
                start = time.monotonic()
                puppet = Puppet(self, far=server.url, local=local, takeover=takeover, prefix=group.words)
                self.assertEqual(puppet.do(f"fill {pages}", 60), f"filled {pages}", puppet.errors())
                self.assertEqual(puppet.do(f"check 0 {pages}", 60), f"right {pages}")
                self.assertEqual(puppet.finish(), 0)
                self.assertEqual(len(puppet.messages()), messages, puppet.errors())
                if messages:
                    self.assertRegex(puppet.messages()[0], "--local 256 MiB is more than this memory group may have")
                    record("memory group below the budget", "survives in less, one message", time.monotonic() - start)

    def test_killed_by_the_kernel_leaves_others_alone(self):
        """mem: is memory of the group, too, and no budget can help there: the kernel kills. Others notice nothing."""
        group = MemoryGroup(self, 96 * MIB)
        server = Server(self)
        bystander = Puppet(self, far=server.url)
        self.assertEqual(bystander.do("fill 4096"), "filled 4096")
        puppet = Puppet(self, far="mem:", local="32M", prefix=group.words)
        self.assertIsNone(puppet.do("fill 40960", 60))
        self.assertEqual(puppet.process.wait(10), -signal.SIGKILL)
        self.assertEqual(bystander.do("check 0 4096"), "right 4096")
        self.assertEqual(bystander.finish(), 0)


class Descriptors(FailureTest):
    def test_too_few_for_the_start(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 12; exec "$@"', "sh", HINTERLAND, "run", "--local", "8M", "--far",
                               "mem:", "--", "true"], env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"descriptors.*\n.*ulimit -n")

    def test_used_up_by_the_program(self):
        server = Server(self)
        proxy = Proxy(self, server)
        for url in ("zmem:", f"file:{self.path('far')}?size=64M", proxy.url):
            with self.subTest(url):
                puppet = Puppet(self, far=url)
                self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
                resource.prlimit(puppet.pid, resource.RLIMIT_NOFILE, (1200, 1200))
                self.assertRegex(puppet.do("hoard 1"), r"hoarded \d+ errno 24")
                start = time.monotonic()
                proxy.drop()  # connections that have to be made again, without a descriptor to spare
                self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}", puppet.errors())
                self.assertEqual(puppet.do(f"rewrite 0 {PAGES}"), f"rewritten {PAGES}")
                self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
                if url == proxy.url:
                    record("descriptors used up, connections cut", "survives, all read", time.monotonic() - start)
                    self.assertGreater(self.figures(puppet.pid)["device_reconnects"], 0)
                self.assertRegex(puppet.do("hoard 0"), "hoarded 0")
                self.assertEqual(puppet.do("forks 1 exit"), "children 1 bad 0")
                self.assertEqual(puppet.finish(), 0)
                self.assertEqual(puppet.messages(), [])

    def test_used_up_at_the_server(self):
        server = Server(self)
        first = Puppet(self, far=server.url)
        self.assertEqual(first.do(f"fill {PAGES}"), f"filled {PAGES}")
        used = len(os.listdir(f"/proc/{server.pid}/fd"))
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used, hard))
        start = time.monotonic()
        done = self.call("run", "--local", "8M", "--timeout", "1s", "--far", server.url, "--", "true")
        self.assertNotEqual(done.returncode, 0, "there cannot have been connections enough")
        record("descriptors of the server used up", "refused at the start, one message", time.monotonic() - start)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(first.do(f"check 0 {PAGES}"), f"right {PAGES}")
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
        done = self.call("run", "--local", "8M", "--far", server.url, "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(first.finish(), 0)


class Mappings(FailureTest):
    def test_as_many_as_the_kernel_allows(self):
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            allowed = int(file.read())
        if allowed > 200000:
            self.skipTest(f"vm.max_map_count is {allowed}: too many to reach")
        native = Puppet(self)
        native.do("fill 100")
        natively = int(native.do(f"cut {2 * allowed}", 60).split()[1])
        puppet = Puppet(self, far="mem:", local="64M")
        self.assertEqual(puppet.do("fill 20480"), "filled 20480")  # 80 MiB
        start = time.monotonic()
        words = puppet.do(f"cut {2 * allowed}", 120).split()
        record("mappings used up", "survives, ENOMEM as natively", time.monotonic() - start)
        cuts, error, wrong, unmapped = (int(words[i]) for i in (1, 3, 5, 7))
        self.assertEqual((error, wrong, unmapped), (12, 0, 0))
        self.assertGreater(cuts, natively * 9 // 10, "the runtime's own mappings are few")
        self.assertEqual(puppet.do("check 0 20480"), "right 20480")
        self.assertEqual(puppet.finish(), 0)
        self.assertEqual(puppet.messages(), [])


class Clocks(FailureTest):
    def test_no_clock_that_can_be_set(self):
        """Nobody may set this machine's clock for a test: the code asks no clock that can be set."""
        settable = re.compile(r"CLOCK_(REALTIME|TAI|BOOTTIME)|FUTEX_CLOCK_REALTIME|gettimeofday|system_clock|(?<!sig)timedwait|"
                              r"high_resolution_clock|[^\w.>]time\((nullptr|NULL|0)\)|clock_settime")
        # The date in a trace's head: nothing is done by it. And what the program calls by its own wish.
        others = {"trace/recording.cpp", "signal/futexes.cpp"}
        looked_at = 0
        for path in SOURCES.rglob("*.[ch]pp"):
            if path.stem.endswith(("_test", "_fuzz")):
                continue
            looked_at += 1
            if str(path.relative_to(SOURCES)) in others:
                continue
            found = settable.search(path.read_text(encoding="utf-8"))
            self.assertIsNone(found, f"{path}: {found and found[0]}: a clock jump would change what it does")
        self.assertGreater(looked_at, 100)

    def test_monotonic_clock_far_ahead(self):
        prefix = ("unshare", "--time", "--monotonic", "1000000000", "--boottime", "1000000000", "--fork",
                  "--kill-child")
        probe = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            self.skipTest("no time namespace: " + probe.stderr)
        server = Server(self)  # in another time than its client
        puppet = Puppet(self, far=server.url, prefix=prefix)
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        start = time.monotonic()
        server.kill()
        self.assertIsNone(puppet.do(f"check 0 {PAGES}"))
        self.assertIn(puppet.process.wait(60), (-signal.SIGBUS, 128 + signal.SIGBUS))  # as unshare passes it on
        record("server killed, clock 31 years ahead", "SIGBUS, one message", time.monotonic() - start)
        self.assertLess(time.monotonic() - start, 60)


class Storms(FailureTest):
    def test_more_faults_than_the_handler_can_take(self):
        server = Server(self)
        proxy = Proxy(self, server)
        slow = "sim:latency=2ms,inner=mem:"
        for url in (slow, proxy.url):
            with self.subTest(url):
                puppet = Puppet(self, far=url, timeout="5s")
                self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
                self.assertEqual(puppet.do("storm 300"), "storm 300")
                time.sleep(0.5)
                for number in (signal.SIGSTOP, signal.SIGCONT) * 3:  # the handler stands still, messages wait
                    os.kill(puppet.pid, number)
                    time.sleep(0.1)
                if url == proxy.url:
                    proxy.drop()
                start = time.monotonic()
                accesses = int(puppet.do("calm", 60).split()[1])
                record("300 threads fault at once", "survives, all served", time.monotonic() - start)
                self.assertGreater(accesses, 300)
                self.assertEqual(puppet.do(f"check 0 {PAGES}", 60), f"right {PAGES}")
                self.assertEqual(puppet.finish(), 0)
                self.assertEqual(puppet.messages(), [])


if __name__ == "__main__":
    unittest.main()
