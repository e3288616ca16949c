#!/usr/bin/python3
"""bench/run against a build tree of stand-ins: what it refuses, what it keeps, and that it leaves nothing behind.

Linux swap is never set up here: every run has --no-swap. swap_baseline_test.py tests that part.
"""

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, BENCH, os.path.join(ROOT, "test", "programs")]

from benchlib import disk, machine, plan, progress, results, runner  # noqa: E402
from harness.errors import Failure, Skip  # noqa: E402

FAKE_HINTERLAND = os.path.join(ROOT, "test", "programs", "selftest", "fake_hinterland")
FAKE_ACCESS = """#!/bin/sh
[ -n "$FAKE_COUNT" ] && { echo started >>"$FAKE_COUNT"; sleep 0.3; }
[ "$1" = "$FAKE_BROKEN" ] && { echo "page 7 does not hold what was written to it" >&2; exit 1; }
[ "$1" = "$FAKE_LIAR" ] && sum=$$
echo '{"ns_per_access": 250.5, "seconds": 0.5, "accesses": 8, "resident_anonymous_bytes": 4096, "checksum": '${sum:-7}'}'
"""
FAKE_HELP = """#!/bin/sh
[ "$1" = help ] && { echo "--read-ahead PAGES  --policy NAME, --take HOW --without FEATURE,... read-ahead, batching."; exit 0; }
exec FAKE "$@"
"""
FAKE_FLOOR = """#!/bin/sh
echo '{"figures": [{"name": "paging/random/handler-same-cpu/copy-clean", "unit": "ns/page", "values": [100, 102]},
 {"name": "primitive/uffdio-move/1", "unit": "ns/page", "skipped": "no MOVE here"}]}' >"$2"
"""
RELEASE = "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\nCMAKE_CXX_FLAGS_RELWITHDEBINFO:STRING=-O2 -g -DNDEBUG\n"


class WithBuild(unittest.TestCase):
    script = "run"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build, self.temporary = os.path.join(folder.name, "build"), os.path.join(folder.name, "tmp")
        self.out = os.path.join(folder.name, "out")
        for path in (os.path.join(self.build, "bin"), os.path.join(self.build, "bench"), self.temporary):
            os.makedirs(path)
        self.program("../bin/hinterland", FAKE_HELP.replace("FAKE", FAKE_HINTERLAND))
        self.program("access", FAKE_ACCESS)
        self.program("floor", FAKE_FLOOR)
        self.program("openload", "#!/bin/sh\nexit 1\n")
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
        return subprocess.Popen([os.path.join(BENCH, self.script), "--build", self.build, "--out", self.out, "--no-swap",
                                 "--disk-folder", self.temporary, "--no-plots", "--size", "32M", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
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
        for options in (("--program-scale", "0"), ("--program-scale", "x"), ("--open-load-rate", "-3")):
            self.refused("usage:", *options)

    def test_too_little_disk(self):
        self.refused("no/such/folder.*--disk-folder", "--only", "disk", "--disk-folder", "/no/such/folder")
        with mock.patch.object(disk.Folder, "free_bytes", return_value=1 << 30):
            disk.check_free("/", 100 << 20)
            with self.assertRaisesRegex(disk.Unfit, "1024 MiB free.*smaller --size"):
                disk.check_free("/", 1 << 30)

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
        code, out, errors = self.bench("--busy-ok", "--repeat", "2", "--only", "access", "--only", "disk", "--only",
                                       "floor")
        self.assertEqual(code, 0, errors)
        document = self.result()
        self.assertTrue(document["complete"])
        self.assertEqual([benchmark["name"] for benchmark in document["benchmarks"]],
                         [each.name for each in plan.BENCHMARKS if each.group in ("access", "disk")])
        for benchmark in document["benchmarks"]:
            for series in benchmark["series"]:
                if series["way"].startswith("swap"):
                    self.assertEqual((series["values"], series["skipped"]), ([], "--no-swap"))
                else:
                    self.assertEqual(series["values"], [250.5, 250.5])
        self.assertEqual(document["floor"][0]["values"], [100, 102, 100, 102])
        self.assertIn("random-read", out)
        self.assertIn("bench/compare", out)
        rows = {row["figure"]: row for row in document["targets"]}
        fits = rows["first touch that fits: time against native"]
        self.assertEqual((fits["value"], fits["met"], fits["missing"]), (1.0, True, None))
        self.assertIn("--no-swap", rows["random reads, mem: pages a second against zram swap"]["missing"])
        shown = subprocess.run([os.path.join(BENCH, "targets"), os.path.join(self.out, "results.json")], text=True,
                               capture_output=True, check=False)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("random-read-disk, Linux swap: --no-swap", shown.stdout)
        self.assertIn("redis-open-load was not run", shown.stdout)
        with open(os.path.join(self.out, "table.txt"), encoding="utf-8") as file:
            self.assertIn(file.read(), out)

    def test_a_build_tree_named_from_here(self):
        self.build = os.path.relpath(self.build)
        code, _, errors = self.bench("--busy-ok", "--repeat", "1", "--only", "random-read")
        self.assertEqual(code, 0, errors)

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

    def test_without_each_feature(self):
        code, _, errors = self.bench("--busy-ok", "--repeat", "1", "--only", "random-read", "--far", "mem:", "--ablate")
        self.assertEqual(code, 0, errors)
        by_way = {series["way"]: series for series in self.result()["benchmarks"][0]["series"]}
        self.assertEqual(by_way["mem: without read-ahead"]["values"], [250.5])
        for name, missing in (("waiting for pressure", "--takeover"), ("feedback", "feedback")):
            off = by_way[f"mem: without {name}"]
            self.assertEqual((off["values"], off["skipped"]), ([], f"this hinterland has no {missing}"))

    def test_features_over_a_device_that_is_not_measured(self):
        code, _, errors = self.bench("--only", "random-read", "--far", "mem:", "--ablate", "zmem:")
        self.assertEqual(code, 2)
        self.assertIn("--ablate zmem:: nothing to compare with", errors)

    def test_the_script_for_all_features(self):
        self.script = "ablation"
        code, out, errors = self.bench("--busy-ok", "--repeat", "1")
        self.assertEqual(code, 0, errors)
        document = self.result()
        self.assertEqual([b["name"] for b in document["benchmarks"]],
                         ["random-read", "random-write", "sequential-read", "sequential-write"])
        for benchmark in document["benchmarks"]:
            values = {series["way"]: series["values"] for series in benchmark["series"]}
            for way in ("mem:", "zmem:", "mem: without batched unmapping", "zmem: without read-ahead"):
                self.assertEqual(values[way], [250.5])
        self.assertRegex(out, r"zmem: times as long without +random-read")
        self.assertRegex(out, r"batched unmapping +1\.00x")

    def test_faults_by_signal(self):
        code, _, errors = self.bench("--busy-ok", "--repeat", "1", "--only", "random-read", "--far", "mem:", "--signal")
        self.assertEqual(code, 0, errors)
        by_way = {series["way"]: series for series in self.result()["benchmarks"][0]["series"]}
        self.assertEqual(by_way["mem: by signal"]["skipped"], "this hinterland has no --fault")

    def test_a_program_that_never_paged_is_a_failure(self):
        self.program("../bin/hinterland", FAKE_HELP.replace("exec FAKE", f"""
            [ "$1" = run ] && for word; do [ "$last" = --report ] && report=$word; last=$word; done
            {FAKE_HINTERLAND} "$@"; code=$?
            [ -n "$report" ] && echo '{{"schema_version":1,"pages_in":0,"pages_out":0,"managed":0}}' >"$report"
            exit $code; :"""))
        code, _, errors = self.bench("--busy-ok", "--repeat", "1", "--far", "mem:", "--only", "random-read",
                                     "--only", "first-touch-fits")
        self.assertEqual(code, 1)
        self.assertIn("random-read mem: failed: paging never began", errors)
        self.assertNotIn("first-touch-fits", errors)

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
        self.assertEqual(plan.choose([]), (plan.BENCHMARKS, plan.FIGURE_SETS))
        self.assertEqual(plan.choose(["floor"]), ((), plan.FIGURE_SETS[:1]))
        names = [each.name for each in plan.choose(["programs", "first-touch"])[0]]
        self.assertEqual((names[:2], len(names)), (["first-touch", "redis"], 15))
        self.assertEqual(len(set(plan.NAMES)), len(plan.NAMES))
        with self.assertRaises(plan.Unknown):
            plan.choose(["nothing of ours"])

    def test_what_pages_is_run_by_signal_too(self):
        known = mock.Mock(missing_option=lambda options: None)
        choice = runner.Choice(("mem:",), {"zram": None, "file": None}, known, signal=True)
        benchmarks = plan.choose(["programs", "random-read", "first-touch-fits"])[0]
        by_signal = [job.benchmark.name for job in runner.jobs_of(benchmarks, (), choice) if job.way.name == "mem: by signal"]
        self.assertEqual(by_signal, ["random-read", "redis", "memcached", "sqlite", "sort", "numpy", "permutation", "compile"])

    def test_a_round_turns(self):
        jobs = list(range(7))
        orders = [runner.turned(jobs, number) for number in range(7)]
        self.assertEqual(len({order[0] for order in orders}), 7)
        for order in orders:
            self.assertEqual(sorted(order), jobs)

    def test_estimate(self):
        now = [0.0]
        steps = progress.Progress(["a", "b", "a", "b"], io.StringIO(), lambda: now[0])
        self.assertIsNone(steps.estimate())
        for key, seconds in (("a", 10), ("b", 2)):
            steps.start(key, key)
            now[0] += seconds
            steps.done()
        self.assertEqual(steps.estimate(), 12)


class GettingReady(unittest.TestCase):
    def prepared(self, error):
        """The job of a benchmark whose preparation ends with that error."""
        benchmark = mock.Mock(prepare=mock.Mock(side_effect=error))
        job = runner.Job(benchmark, mock.Mock(), results.Series("native"))
        runner.prepare([job], None, None, 0, progress.Progress([], io.StringIO()))
        return job.series

    def test_what_cannot_be_had_is_left_out(self):
        self.assertEqual(self.prepared(Skip("redis-server is not installed")).skipped, "redis-server is not installed")

    def test_what_does_not_run_natively_has_failed(self):
        self.assertIn("natively, to get ready: exit status 3", self.prepared(Failure("exit status 3")).failure)
        self.assertIsNone(self.prepared(None).failure)


def _command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main()
