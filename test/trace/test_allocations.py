"""Faults by the place that allocated the memory: shares that the program makes, reused addresses, children."""

import json
import math
import os
import pathlib
import subprocess

import unittest

from support import SUBJECT, TraceTest, marked_lines

ALLOCATING = os.path.join(os.path.dirname(SUBJECT), "allocating")
SOURCE = pathlib.Path(__file__).with_name("allocating.c")
PAGES, ROUNDS = 2048, 1  # 24 MiB exactly known, 96 MiB sampled; 16 MiB of these may be local
PAGE, INTERVAL = 4096, 256 << 10  # bytes; a sampled allocation stands for INTERVAL bytes of them
SAMPLED = {"node": 8 * PAGES, "other": 4 * PAGES}  # pages of small blocks
ONCE_IN_A_MILLION = 5  # standard deviations, and more than that for a sum of so many


def deviation(*names):
    """Of the ratio of what is estimated for these places, relative: of so many samples, drawn independently, one
    standard deviation is a square root. (What a page adds hardly differs: each is touched first, and read, once.)"""
    return math.sqrt(sum(INTERVAL / PAGE / SAMPLED[name] for name in names if name in SAMPLED))


class Allocations(TraceTest):
    def traced(self, *more, options=()):
        self.environment["ALLOCATING_WAITS"] = "1"
        done = self.trace(ALLOCATING, str(PAGES), str(ROUNDS), *more, options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        plain = subprocess.run([ALLOCATING, str(PAGES), str(ROUNDS)], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, plain.stdout)

    def check_samples(self, report, marks):
        """Each byte has the same chance."""
        samples = {site["line"]: site["samples"] for site in report["sites"]}
        for name, pages in SAMPLED.items():
            expected = pages * PAGE / INTERVAL
            self.assertAlmostEqual(samples[marks[name]], expected, delta=ONCE_IN_A_MILLION * math.sqrt(expected),
                                   msg=(name, samples))
        for name in ("latter", "table", "mapped"):
            self.assertEqual(samples[marks[name]], 1, (name, samples))

    def check_shares(self, report):
        """Each place's faults are as its pages: exactly so where each allocation is known, and within what a sample
        can say where it is one."""
        faults = {site["line"]: site["faults"] for site in report["sites"]}
        marks = marked_lines(SOURCE)
        self.check_samples(report, marks)
        self.assertAlmostEqual(sum(site["share"] for site in report["sites"]), 1, delta=0.01)
        for one, other, ratio in (("latter", "table", 1), ("mapped", "table", 1),
                                  ("node", "table", 8), ("other", "table", 4), ("other", "node", 0.5)):
            self.assertAlmostEqual(faults[marks[one]] / faults[marks[other]] / ratio, 1,
                                   delta=0.15 + ONCE_IN_A_MILLION * deviation(one, other), msg=(one, faults, marks))
        exact = sum(faults[marks[name]] for name in ("latter", "table", "mapped")) / report["faults"]
        self.assertAlmostEqual(report["attributed_exactly_share"], exact, delta=0.1, msg=report)
        known = 1 - ONCE_IN_A_MILLION * math.sqrt(INTERVAL / PAGE / sum(SAMPLED.values()))
        self.assertGreater(report["attributed_share"], known, report)
        return faults, marks

    def test_shares(self):
        self.traced()
        report = self.report("t.trace", "--by", "allocation")
        faults, marks = self.check_shares(report)
        self.assertEqual(report["allocations_lost"], 0)
        # Freed before paging began, and its addresses are another's.
        self.assertLess(faults.get(marks["former"], 0), 0.1 * faults[marks["latter"]])
        mapped = next(site for site in report["sites"] if site["line"] == marks["mapped"])
        self.assertIn("mmap", mapped["in_library_functions"])
        text = self.call("report", "t.trace", "--by", "allocation").stdout
        self.assertRegex(text, r"\d+\.\d % of the faults are on memory whose allocation is known: \d+\.\d % for sure")
        self.assertRegex(text, rf"allocating\.c:{marks['mapped']} main  \(in mmap\)\n")
        self.assertIn("(not attributed)", text)

    def test_a_childs_memory_is_its_parents(self):
        """What was allocated before the fork is known in the child's trace, too."""
        self.traced("fork")
        traces = [name for name in os.listdir(self.folder) if name.startswith("t.trace.")]
        self.assertEqual(len(traces), 1, traces)
        self.check_shares(self.report(traces[0], "--by", "allocation"))

    def test_addresses_are_reused(self):
        """With paging from the start, faults on the freed block stay with it."""
        self.traced(options=("--takeover", "start"))
        report = self.report("t.trace", "--by", "allocation")
        faults = {site["line"]: site["faults"] for site in report["sites"]}
        marks = marked_lines(SOURCE)
        self.assertGreater(faults[marks["former"]], 0)
        first_touches = {site["line"]: site["faults_by_kind"].get("first touch", 0) for site in report["sites"]}
        self.assertLess(first_touches[marks["former"]], 1.1 * PAGES)

    def test_not_traced_nothing_is_kept(self):
        done = self.call("run", "--local", "16M", "--far", "mem:", "--", ALLOCATING, str(PAGES), "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.files_left(), [])


if __name__ == "__main__":
    unittest.main()
