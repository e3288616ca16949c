#!/usr/bin/python3
"""bench/hermit/run without measuring: which points its figures need, what it makes of them, and wrong options. None of
these figures means anything.
"""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import types
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
TOOL = os.path.join(BENCH, "hermit", "run")
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(BENCH, "hermit"), BENCH, os.path.join(os.path.dirname(BENCH), "test", "programs")]

from harness.errors import Failure  # noqa: E402
from hermitlib import counts, figures, ways  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("hermit_run", TOOL)
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("hermit_run", LOADER))
LOADER.exec_module(tool)


def of_service(p99_us, cpu=1.0):
    return {"p50_us": 10, "p99_us": p99_us, "p999_us": 5 * p99_us, "cpus": cpu, "cpu_seconds": cpu, "in_mib_s": 3,
            "out_mib_s": 2, "direct_share": 0.25, "faults": 1000,
            "answered_share": 1.0}


def measured(points):
    """Ours is ten times as slow as all local, Hermit's twenty times, swap a hundred times."""
    slow = {ways.NATIVE: 1, ways.OURS: 10, ways.HERMIT: 20, ways.SWAP: 100}
    found = {}
    for point in points:
        factor = slow.get(point.way, 30)
        if point.kind == "service":
            found[point] = [of_service(100 * factor, 1 + factor)] * 3
        else:
            found[point] = [{"seconds": float(factor), "cpu_seconds": float(factor), "faults": 1000, "evicted": 2000,
                             "fault_p50_ns": 4000, "fetch_p50_ns": 3000}] * 3
    return found


class Figures(unittest.TestCase):
    def setUp(self):
        self.all = figures.all_of(figures.WHOLE)
        self.found = measured(point for figure in self.all.values() for point in figure.points)

    def rows(self, name):
        lines = list(figures.table(name, self.all[name], self.found))[2:]
        return {line[2:30].strip(): line[30:].split() for line in lines}

    def test_who_fell_behind_is_marked(self):
        for point in self.all["8"].points:
            if point.way == ways.SWAP:
                self.found[point] = [{**of_service(5), "answered_share": 0.9}] * 3
        self.assertEqual(self.rows("8")[ways.SWAP], ["5.000*"] * len(figures.WHOLE.loads))
        self.assertEqual(self.rows("8")[ways.OURS], ["1000.000"] * len(figures.WHOLE.loads))

    def test_the_papers_are_there(self):
        self.assertEqual(list(dict.fromkeys(map(figures.number, self.all))), [*map(str, range(7, 18)), "20"])

    def test_each_has_what_it_is_compared_with(self):
        for name, figure in self.all.items():
            for point in figure.points:
                if point.way != ways.NATIVE:
                    self.assertIn(figures.native_of(point), figure.points, f"figure {name}, {point}")

    def test_latencies_by_share(self):
        rows = self.rows("7")
        self.assertEqual(rows[ways.SWAP], ["10000.000"] * len(figures.WHOLE.shares))
        self.assertEqual(rows[ways.NATIVE], ["100.000"] * len(figures.WHOLE.shares))  # beside each

    def test_time_beside_all_local(self):
        self.assertEqual(self.rows("9")["kmeans " + ways.HERMIT], ["20.000"] * 3)

    def test_costs_of_a_fault(self):
        self.assertEqual(self.rows("10")[ways.OURS], ["9000.000"])
        self.assertEqual(self.rows("10, fetch")[ways.OURS], ["3.000"])
        self.assertEqual(self.rows("17, fault")[ways.OURS], ["9000.000"] * len(figures.WHOLE.loads))
        self.assertEqual(self.rows("12")["no batching"], ["14500.000"])

    def test_what_was_not_measured_is_a_dash(self):
        for point in self.all["8"].points:
            if point.way == ways.SWAP:
                del self.found[point]
        self.assertEqual(self.rows("8")[ways.SWAP], ["-"] * len(figures.WHOLE.loads))
        self.assertEqual(list(figures.verdicts(self.found, figures.WHOLE)), [])

    def test_verdicts(self):
        lines = list(figures.verdicts(self.found, figures.WHOLE))
        self.assertEqual(len(lines), 2 * len(figures.WHOLE.loads))
        self.assertIn("hermit: 0.20 of zram swap's (at most 0.30: met)", lines[0])
        slow = {point: [of_service(10_000)] if point.way == ways.OURS else rounds for point, rounds in self.found.items()}
        self.assertIn("ours: 1.00 of zram swap's (at most 0.30: missed)", list(figures.verdicts(slow, figures.WHOLE))[1])


class Counts(unittest.TestCase):
    def test_share_of_direct_reclaim(self):
        self.assertEqual(counts.direct_share({"direct": 1, "ahead": 3}), 0.25)
        self.assertIsNone(counts.direct_share({"direct": 0, "ahead": 0}))
        self.assertIsNone(counts.direct_share({}))

    def test_since(self):
        self.assertEqual(counts.since({"faults": 3}, {"faults": 10}), {"faults": 7})
        self.assertGreaterEqual(min(counts.since(counts.of_swap(), counts.of_swap()).values()), 0)

    def test_cpu_time_of_ourselves(self):
        self.assertGreater(counts.cpu_seconds(os.getpid()), 0)
        self.assertGreater(counts.anonymous_bytes(os.getpid()), 1 << 20)


class Running(unittest.TestCase):
    def test_one_that_fails_leaves_the_others(self):
        options = types.SimpleNamespace(size=64 << 20, seconds=1, far="mem:", rounds=2)
        wanted = {"9": figures.all_of(figures.QUICK)["9"]}

        def measure(point, *_):
            if point.way == ways.HERMIT:
                raise Failure("no luck")
            return {"seconds": 1.0}
        with unittest.mock.patch.object(tool, "measure", measure), unittest.mock.patch.object(tool, "say"):
            found, failures = tool.measure_all(options, wanted)
        failing = [point for point in wanted["9"].points if point.way == ways.HERMIT]
        self.assertEqual(failures, 2 * len(failing))
        self.assertEqual({len(rounds) for rounds in found.values() if rounds}, {2})

    def test_wrong_options(self):
        for words, why in ((["--only", "7,99"], "there is no figure 99"), (["--rounds", "0"], "from 1 on"),
                           (["--size", "1M"], "less than 64M")):
            done = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
