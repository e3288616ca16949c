"""Reports, live figures, tuning, and what idling costs."""

import json
import os
import signal
import subprocess
import time
import unittest

from support import HINTERLAND, MIB, PUPPET, FailureTest, Puppet, Server, resident_anonymous

PAGES = 8192


def busy_ns(pid):
    """Processor time of all threads, to the nanosecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


class Report(FailureTest):
    def report_of(self, commands, status):
        done = subprocess.run([HINTERLAND, "run", "--local", "8M", "--far", "mem:", "--report", self.path("r.json"),
                               "--force", "--takeover", "start", "--", PUPPET], input="".join(c + "\n" for c in commands), text=True,
                              env=self.environment, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        with open(self.path("r.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["schema_version"], 1)
        expected = (None, signal.Signals(-status).name) if status < 0 else (status, None)
        self.assertEqual((report["exit_status"], report["death_signal"]), expected)
        return report

    def test_every_end(self):
        ends = {"exit": 5, "_exit": 6, "quick_exit": 7, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL,
                "segv": -signal.SIGSEGV, "term": -signal.SIGTERM}
        for how, status in ends.items():
            with self.subTest(how):
                report = self.report_of([f"fill {PAGES}", f"check 0 {PAGES}", f"end {how}"], status)
                self.assertEqual(report["process_count"], 1)
                counters = report["totals"]["counters"]
                self.assertGreater(counters["pages_out"], PAGES // 2)
                self.assertGreater(counters["pages_in"], PAGES // 2)
                self.assertGreater(report["totals"]["fetch_latency"]["count"], 0)

    def test_children_are_counted(self):
        report = self.report_of([f"fill {PAGES}", "forks 3 kill", "end exit"], 5)
        self.assertEqual(report["process_count"], 4)
        self.assertEqual(sum(p["counters"]["forks"] for p in report["processes"]), 3)
        for process in report["processes"]:
            self.assertGreater(process["counters"]["pages_in"], 0)

    def test_exec_chain(self):
        report = self.report_of([f"fill {PAGES}", "exec", f"fill {PAGES}", "exec", "fill 10", "end exit"], 5)
        self.assertGreaterEqual(report["process_count"], 1)
        self.assertGreater(report["totals"]["counters"]["pages_out"], 0, "what was done before exec is not forgotten")


class Tune(FailureTest):
    def test_budget_followed_down_and_up(self):
        puppet = Puppet(self, far="zmem:", local="256M", takeover="pressure")
        pages = 51200  # 200 MiB
        puppet.do(f"fill {pages}")

        def tune(size):
            done = self.call("tune", str(puppet.pid), "--local", size)
            self.assertEqual(done.returncode, 0, done.stderr)

        def allowed(budget):
            far = self.figures(puppet.pid)["far_bytes"]
            return budget + 48 * MIB + far * 3 // 200

        # The compressed store is memory of the program that is not anonymous: it does not count.
        tune("32M")
        self.wait_until("resident memory below the new budget",
                        lambda: resident_anonymous(puppet.pid) <= allowed(32 * MIB), 2.0)
        self.assertEqual(puppet.do(f"check 0 {pages}"), f"right {pages}")
        self.assertLessEqual(resident_anonymous(puppet.pid), allowed(32 * MIB))
        tune("300M")
        self.assertEqual(puppet.do(f"rewrite 0 {pages}"), f"rewritten {pages}")
        self.assertGreater(resident_anonymous(puppet.pid), 150 * MIB)
        self.assertEqual(self.figures(puppet.pid)["budget_bytes"], 300 * MIB)
        self.assertEqual(puppet.do(f"check 0 {pages}"), f"right {pages}")
        self.assertEqual(puppet.finish(), 0)


HUGE = """import mmap, re
m = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, len(m), 4096): m[at] = 1
print(re.search(r"AnonHugePages: +(\\d+)", open("/proc/self/smaps_rollup").read())[1])
"""


class Takeover(FailureTest):
    def test_huge_pages_until_then(self):
        python = ["/usr/bin/python3", "-c", HUGE]
        native = int(subprocess.run(python, capture_output=True, text=True, check=True).stdout)
        if native < 32 << 10:
            self.skipTest("the kernel gives no huge pages")
        # With 76 MiB paging begins at 60, and nothing has to leave: then huge pages stay, too.
        def huge_with(local):
            done = subprocess.run([HINTERLAND, "run", "--local", local, "--far", "mem:", "--", *python], text=True,
                                  env=self.environment, capture_output=True, timeout=100, check=True)
            return int(done.stdout)

        for local in ("512M", "76M"):
            self.assertGreaterEqual(huge_with(local), 32 << 10)
        # On a busy machine the program may be done before paging begins.
        huge = [huge_with("16M")]
        while huge[-1] >= 16 << 10 and len(huge) < 20:
            huge.append(huge_with("16M"))
        self.assertLess(huge[-1], 16 << 10, "a budget of 16 MiB was exceeded by huge pages")

    def test_what_fits_a_small_budget_is_not_paged(self):
        puppet = Puppet(self, far="mem:", local="40M", takeover="pressure")
        puppet.do("fill 6144")  # 24 MiB of 40
        time.sleep(1.2)  # the housekeeper looks at least once a second when there is that much
        self.assertEqual(self.figures(puppet.pid)["managed"], 0)
        puppet.do("unmap")
        puppet.do("fill 9216")
        self.wait_until("paging", lambda: self.figures(puppet.pid)["managed"] == 1)
        self.assertEqual(puppet.finish(), 0)

    def test_it_says_how_long_it_took(self):
        started_ns = time.monotonic_ns()
        puppet = Puppet(self, far="mem:", local="128M", takeover="pressure")
        puppet.do("fill 1024")
        self.assertEqual(self.figures(puppet.pid)["takeover_ns"], 0)
        puppet.do("unmap")
        puppet.do("fill 51200")  # 200 MiB
        self.wait_until("paging", lambda: self.figures(puppet.pid)["managed"] == 1)
        figures = self.figures(puppet.pid)
        self.assertGreater(figures["takeover_resident_bytes"], 48 * MIB)
        self.assertLessEqual(figures["takeover_resident_bytes"], 208 * MIB)  # where in between, is the scheduler's affair
        self.assertGreater(figures["takeover_ns"], 10_000)
        self.assertLess(figures["takeover_ns"], time.monotonic_ns() - started_ns)  # 5 ms on a quiet machine
        self.assertEqual(puppet.do("check 0 51200"), "right 51200")
        self.assertEqual(puppet.finish(), 0)


class Live(FailureTest):
    def test_figures_of_a_running_program(self):
        puppet = Puppet(self, far="mem:")
        puppet.do(f"fill {PAGES}")
        self.wait_until("gauges that fit the program",
                        lambda: self.figures(puppet.pid)["far_bytes"] > (PAGES * 4096) // 2)
        figures = self.figures(puppet.pid)
        self.assertEqual((figures["managed"], figures["device_lost"]), (1, 0))
        self.assertLessEqual(figures["resident_bytes"], 8 * MIB)
        self.assertGreaterEqual(figures["mapped_bytes"], PAGES * 4096)
        self.assertEqual(puppet.do("unmap"), "unmapped")
        self.assertEqual(puppet.finish(), 0)


class Idle(FailureTest):
    def test_idle_program_and_idle_server_cost_nothing(self):
        server = Server(self)
        puppet = Puppet(self, far=server.url)
        puppet.do(f"fill {PAGES}")
        puppet.do(f"check 0 {PAGES}")
        for name, pid in (("program", puppet.pid), ("server", server.pid)):
            shares = []  # on a busy machine there is something left to do in the first ones
            while len(shares) < 10 and (not shares or shares[-1] >= 0.005):
                time.sleep(0.5)
                before = busy_ns(pid)
                time.sleep(1.5)
                shares.append((busy_ns(pid) - before) / 1.5e9)
            self.assertLess(shares[-1], 0.005, f"the idle {name} uses too much of a core: {shares}")
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        self.assertEqual(puppet.finish(), 0)


if __name__ == "__main__":
    unittest.main()
