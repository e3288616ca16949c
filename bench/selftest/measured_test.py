#!/usr/bin/python3
"""What bench/run measures with the real command and real programs, small and short: that it measures what it says, that
what goes wrong is a failure, and that nothing is left running. No figure is looked at.

    measured_test.py FOLDER     the build tree
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, BENCH, os.path.join(BENCH, "hermit"), os.path.join(os.path.dirname(BENCH), "test", "programs")]

from benchlib import figure_sets, machine, openload, programs, runner, ways  # noqa: E402
from harness.errors import Failure, Skip  # noqa: E402
from harness.launcher import Launcher  # noqa: E402
from hermitlib import service  # noqa: E402
from hermitlib import ways as hermit_ways  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 else "build")
MIB = 1 << 20


class WithTools(unittest.TestCase):
    def setUp(self):
        try:
            machine.build_type(BUILD)
            launcher = Launcher(os.path.join(BUILD, "bin", "hinterland"))
            launcher.check()
        except (machine.Refused, Skip) as reason:
            self.skipTest(str(reason))
        self.tools = runner.Tools(launcher, *(os.path.join(BUILD, "bench", name)
                                              for name in ("access", "floor", "openload")),
                                  openload_options=("--rate", "500", "--seconds", "0.3", "--warm-up", "0.1"),
                                  program_scale=0.01, idle_seconds=0.2)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        settle = mock.patch.object(figure_sets, "SETTLE_SECONDS", 0.2)
        settle.start()
        self.addCleanup(settle.stop)

    def assert_nothing_runs(self):
        """No child of ours is left."""
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            self.assertEqual(file.read().split(), [])


class Idle(WithTools):
    def test_figures(self):
        found = figure_sets.Idle().figures(self.tools, self.folder, 32 * MIB)
        self.assertEqual(sorted(found), ["idle/program-cpu", "idle/server-cpu", "idle/server-memory-above-stored"])
        for figure in found.values():
            self.assertEqual(len(figure["values"]), 1)
        for side in ("program", "server"):
            self.assertTrue(0 <= found[f"idle/{side}-cpu"]["values"][0] < 400)
        self.assertGreater(found["idle/server-memory-above-stored"]["values"][0], -1, "it stores what it says")
        self.assert_nothing_runs()

    def test_a_program_that_ends_early(self):
        self.tools.access = "/bin/true"
        with self.assertRaisesRegex(Failure, "did not fill its memory"):
            figure_sets.Idle().figures(self.tools, self.folder, 32 * MIB)
        self.assert_nothing_runs()

    def test_cpu_time_of_all_threads(self):
        with subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) as busy:
            try:
                end = time.monotonic() + 30
                while figure_sets._cpu_ns([busy.pid]) < 20_000_000:
                    self.assertLess(time.monotonic(), end, "its CPU time does not grow")
                    time.sleep(0.01)
            finally:
                busy.kill()
        self.assertEqual(figure_sets._cpu_ns([busy.pid]), 0, "what is gone takes none")


class OpenLoad(WithTools):
    def prepared(self):
        benchmark = openload.OpenLoad()
        try:
            benchmark.prepare(None, self.tools, 16 * MIB)
        except Skip as reason:
            self.skipTest(str(reason))
        return benchmark

    def test_natively_and_far(self):
        benchmark = self.prepared()
        self.assertGreater(benchmark.size_bytes(16 * MIB), 4 * MIB, "the peak of a server with 4 MiB of values")
        samples = [way.run(benchmark, 16 * MIB, self.tools, self.folder)
                   for way in (ways.Native(), ways.Far("mem:"))]
        for sample in samples:
            self.assertEqual(sample["value"], sample["get"]["p99_ns"])
            self.assertGreater(sample["value"], 0)
        self.assertEqual(samples[0]["checksum"], samples[1]["checksum"])
        self.assertIn("pages_in", samples[1]["figures"])
        self.assert_nothing_runs()

    def test_a_load_that_fails(self):
        benchmark = self.prepared()
        self.tools.openload = "/bin/false"
        with self.assertRaisesRegex(Failure, "exit status 1"):
            ways.Native().run(benchmark, 16 * MIB, self.tools, self.folder)
        self.assert_nothing_runs()


class Hermit(WithTools):
    """A server of bench/hermit/run: what it takes and answers, and what is counted while it is loaded."""

    def setUp(self):
        super().setUp()
        for module, name, value in ((hermit_ways, "HINTERLAND", os.path.join(BUILD, "bin", "hinterland")),
                                    (service, "OPENLOAD", self.tools.openload), (service, "OVERLOAD_PER_SECOND", 2000)):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def test_a_server_by_each_feedback(self):
        measured = service.Service(32 * MIB, 1, "mem:")
        try:
            measured.prepare()
        except Skip as reason:
            self.skipTest(str(reason))
        self.assertGreater(measured.peak_bytes, 16 * MIB, "that much is in values")
        self.assertGreater(measured.capacity_per_second, 0)
        local = measured.measure(hermit_ways.NATIVE, 1.0, 0.5)
        self.assertEqual((local["faults"], local["direct_share"]), (0, None))
        for way in (hermit_ways.HERMIT, hermit_ways.OURS):
            found = measured.measure(way, 0.5, 0.5)
            self.assertGreater(found["faults"], 0, "half of it is far")
            self.assertGreater(found["in_mib_s"], 0)
            self.assertTrue(0 < found["p50_us"] <= found["p99_us"] <= found["p999_us"])
        self.assert_nothing_runs()


class Hints(WithTools):
    def test_it_runs(self):
        out = os.path.join(self.folder, "hints.json")
        done = subprocess.run([os.path.join(BENCH, "hints", "run"), "--quick", "--no-swap", "--busy-ok", "--repeat", "1",
                               "--only", "resident-read", "--build", BUILD, "--out", out], capture_output=True, text=True,
                              timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            found = json.load(file)
        self.assertIsInstance(found["summaries"]["resident-read mem:"]["median"], float)  # a difference: of any sign
        self.assertTrue(any(name.startswith("floor ") for name in found["series"]), "with the floor beside it")
        self.assert_nothing_runs()


class RealProgram(WithTools):
    def test_results_are_compared(self):
        subject = programs.Subject("sort")
        quarter, fits = (programs.RealProgram(subject, share) for share in (0.25, 1.5))
        self.assertEqual((quarter.name, fits.name, quarter.swap, fits.swap), ("sort", "sort-fits", "zram", ""))
        with contextlib.ExitStack() as stack:
            quarter.prepare(stack, self.tools, 0)
            folder = subject.program.folder
            sample = ways.Native().run(quarter, 0, self.tools, self.folder)
            self.assertGreater(sample["value"], 0)
            subject.native.answer = {**subject.native.answer, "output": "other"}
            with self.assertRaisesRegex(Failure, "output differs"):
                ways.Native().run(fits, 0, self.tools, self.folder)
            self.assertTrue(os.path.exists(folder))
        self.assertFalse(os.path.exists(folder), "its data is gone at the end")
        self.assert_nothing_runs()


if __name__ == "__main__":
    unittest.main()
