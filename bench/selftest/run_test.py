#!/usr/bin/python3
"""bench/run against a build tree of stand-ins: what it refuses, what it keeps, and that it leaves nothing behind.

Linux swap is never set up here: every run has --no-swap. swap_baseline_test.py tests that part.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, BENCH, os.path.join(ROOT, "test", "programs")]

from benchlib import machine, plan, progress, results, runner  # noqa: E402

FAKE_HINTERLAND = os.path.join(ROOT, "test", "programs", "selftest", "fake_hinterland")
FAKE_ACCESS = """#!/bin/sh
[ -n "$FAKE_COUNT" ] && { echo started >>"$FAKE_COUNT"; sleep 0.3; }
[ "$1" = "$FAKE_BROKEN" ] && { echo "page 7 does not hold what was written to it" >&2; exit 1; }
[ "$1" = "$FAKE_LIAR" ] && sum=$$
echo '{"ns_per_access": 250.5, "seconds": 0.5, "accesses": 8, "resident_anonymous_bytes": 4096, "checksum": '${sum:-7}'}'
"""
FAKE_FLOOR = """#!/bin/sh
echo '{"figures": [{"name": "paging/random/handler-same-cpu/copy-clean", "unit": "ns/page", "values": [100, 102]},
 {"name": "primitive/uffdio-move/1", "unit": "ns/page", "skipped": "no MOVE here"}]}' >"$2"
"""
RELEASE = "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\nCMAKE_CXX_FLAGS_RELWITHDEBINFO:STRING=-O2 -g -DNDEBUG\n"


class WithBuild(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build, self.temporary = os.path.join(folder.name, "build"), os.path.join(folder.name, "tmp")
        self.out = os.path.join(folder.name, "out")
        for path in (os.path.join(self.build, "bin"), os.path.join(self.build, "bench"), self.temporary):
            os.makedirs(path)
        os.symlink(FAKE_HINTERLAND, os.path.join(self.build, "bin", "hinterland"))
        self.program("access", FAKE_ACCESS)
        self.program("floor", FAKE_FLOOR)
        self.cache(RELEASE)

    def program(self, name, text):
        path = os.path.join(self.build, "bench", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def cache(self, text):
        with open(os.path.join(self.build, "CMakeCache.txt"), "w", encoding="utf-8") as file:
            file.write("# a comment\n" + text)

    def start(self, *words, **environment):
        return subprocess.Popen([os.path.join(BENCH, "run"), "--build", self.build, "--out", self.out, "--no-swap",
                                 "--no-plots", "--size", "32M", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "TMPDIR": self.temporary, **environment})

    def bench(self, *words, **environment):
        """(exit status, stdout, stderr) of a run; asserts that nothing is left in its folder for temporary files."""
        process = self.start(*words, **environment)
        out, errors = process.communicate(timeout=100)
        self.assertEqual(os.listdir(self.temporary), [], "files left behind")
        return process.returncode, out, errors

    def result(self):
        return results.read(os.path.join(self.out, "results.json"))


class Refusal(WithBuild):
    def refused(self, words, *options):
        code, out, errors = self.bench("--busy-ok", *options)
        self.assertEqual((code, out), (2, ""), errors)
        self.assertRegex(errors, words)
        self.assertFalse(os.path.exists(self.out))

    def test_unknown_name(self):
        self.refused("no benchmark 'flor'; did you mean 'floor'", "--only", "flor")

    def test_wrong_options(self):
        for options in (("--repeat", "0"), ("--repeat", "x"), ("--size", "33M"), ("--size", "-1"), ("--nonsense",)):
            self.refused("usage:", *options)

    def test_builds_whose_figures_mean_nothing(self):
        for cache, words in (("CMAKE_BUILD_TYPE:STRING=Debug\n", "Debug build"), ("\n", "plain build"),
                             ("CMAKE_BUILD_TYPE:STRING=Release\n", "without NDEBUG"),
                             (RELEASE + "HINTERLAND_SANITIZE:STRING=thread\n", "thread sanitizer"),
                             (RELEASE + "HINTERLAND_COVERAGE:BOOL=ON\n", "counts lines")):
            self.cache(cache)
            self.refused(words)
        os.unlink(os.path.join(self.build, "CMakeCache.txt"))
        self.refused("may be a debug build")

    def test_not_built(self):
        os.unlink(os.path.join(self.build, "bench", "access"))
        self.refused("build it first")

    def test_too_little_memory(self):
        self.refused("give a smaller --size", "--size", "1048576G")

    def test_busy_machine(self):
        quiet, busy = {"cpu_share": 0.01, "steal_share": 0.0}, {"cpu_share": 0.6, "steal_share": 0.0}
        self.assertFalse(machine.check_quiet(quiet, False))
        self.assertTrue(machine.check_quiet(busy, True))
        for seen in (busy, {"cpu_share": 0.0, "steal_share": 0.3}):
            with self.assertRaisesRegex(machine.Refused, "busy.*--busy-ok"):
                machine.check_quiet(seen, False)

    def test_cpu_times(self):
        before = machine.CpuTimes("cpu 100 0 100 700 0 0 0 100 5 5")
        after = machine.CpuTimes("cpu 140 5 110 720 10 0 5 110 9 9")
        self.assertEqual(after.shares_since(before), {"cpu_share": 0.6, "steal_share": 0.1})


class Runs(WithBuild):
    def test_everything(self):
        code, out, errors = self.bench("--busy-ok", "--repeat", "2")
        self.assertEqual(code, 0, errors)
        document = self.result()
        self.assertTrue(document["complete"])
        self.assertEqual([benchmark["name"] for benchmark in document["benchmarks"]],
                         [benchmark.name for benchmark in plan.BENCHMARKS])
        for benchmark in document["benchmarks"]:
            for series in benchmark["series"]:
                if series["way"].startswith("swap"):
                    self.assertEqual((series["values"], series["skipped"]), ([], "--no-swap"))
                else:
                    self.assertEqual(series["values"], [250.5, 250.5])
        self.assertEqual(document["floor"][0]["values"], [100, 102, 100, 102])
        self.assertIn("random-read", out)
        self.assertIn("bench/compare", out)
        with open(os.path.join(self.out, "table.txt"), encoding="utf-8") as file:
            self.assertIn(file.read(), out)

    def test_results_are_not_overwritten(self):
        only = ("--busy-ok", "--only", "first-touch", "--repeat", "1")
        self.assertEqual(self.bench(*only)[0], 0)
        code, _, errors = self.bench(*only)
        self.assertEqual(code, 2)
        self.assertIn("--force", errors)
        self.assertEqual(self.bench("--force", *only)[0], 0)

    def test_a_failure_is_told_and_the_others_are_kept(self):
        code, out, errors = self.bench("--busy-ok", "--repeat", "1", "--only", "random-read", "--only",
                                       "sequential-read", FAKE_BROKEN="random-read")
        self.assertEqual(code, 1)
        self.assertIn("random-read native failed: exit status 1: page 7 does not hold", errors)
        self.assertIn("FAILED", out)
        by_name = {benchmark["name"]: benchmark for benchmark in self.result()["benchmarks"]}
        self.assertEqual(by_name["random-read"]["series"][0]["values"], [])
        self.assertEqual(by_name["sequential-read"]["series"][0]["values"], [250.5])

    def test_ways_that_did_not_do_the_same(self):
        code, _, errors = self.bench("--busy-ok", "--repeat", "1", "--only", "random-read", FAKE_LIAR="random-read")
        self.assertEqual(code, 1)
        self.assertIn("it did not do the same", errors)

    def test_lost_pages_are_a_failure(self):
        code, _, errors = self.bench("--busy-ok", "--repeat", "1", "--only", "random-read", FAKE_FAULT="lost")
        self.assertEqual(code, 1)
        self.assertIn("pages_lost: 3", errors)

    def test_ended_half_way(self):
        count = os.path.join(self.build, "count")
        process = self.start("--busy-ok", "--only", "first-touch", FAKE_COUNT=count)
        for _ in range(600):  # the second run has started, so the first one has ended
            if os.path.exists(count) and os.path.getsize(count) >= 2 * len("started\n"):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertIn("ended by SIGINT", errors)
        self.assertEqual(os.listdir(self.temporary), [])
        document = self.result()
        self.assertFalse(document["complete"])
        self.assertTrue(document["benchmarks"][0]["series"][0]["values"])
        mine = [pid for pid in os.listdir("/proc") if pid.isdigit() and self.build in _command_line(pid)]
        self.assertEqual(mine, [], "processes left behind")


class Steps(unittest.TestCase):
    def test_no_names_are_all(self):
        benchmarks, floor = plan.choose([])
        self.assertEqual((benchmarks, floor), (plan.BENCHMARKS, True))
        self.assertEqual(plan.choose(["floor"]), ((), True))
        with self.assertRaises(plan.Unknown):
            plan.choose(["nothing of ours"])

    def test_a_round_turns(self):
        jobs = list(range(7))
        orders = [runner.turned(jobs, number) for number in range(7)]
        self.assertEqual(len({order[0] for order in orders}), 7)
        for order in orders:
            self.assertEqual(sorted(order), jobs)

    def test_estimate(self):
        now = [0.0]
        steps = progress.Progress(["a", "b", "a", "b"], open(os.devnull, "w", encoding="utf-8"), lambda: now[0])
        self.assertIsNone(steps.estimate())
        for key, seconds in (("a", 10), ("b", 2)):
            steps.start(key, key)
            now[0] += seconds
            steps.done()
        self.assertEqual(steps.estimate(), 12)


def _command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main()
