"""Faults by the place that allocated the memory: shares that the program makes, reused addresses, children."""

import json
import os
import pathlib
import subprocess

import unittest

from support import SUBJECT, TraceTest, marked_lines

ALLOCATING = os.path.join(os.path.dirname(SUBJECT), "allocating")
SOURCE = pathlib.Path(__file__).with_name("allocating.c")
PAGES, ROUNDS = 4096, 4  # 16 MiB from each place: 72 MiB, of which 16 MiB may be local


class Allocations(TraceTest):
    def traced(self, *more, options=()):
        done = self.trace(ALLOCATING, str(PAGES), str(ROUNDS), *more, options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        plain = subprocess.run([ALLOCATING, str(PAGES), str(ROUNDS)], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, plain.stdout)

    def check_shares(self, report):
        """Each place has its share of the reads of random pages, of which three quarters fault."""
        faults = {site["line"]: site["faults"] for site in report["sites"]}
        marks = marked_lines(SOURCE)
        self.assertGreater(report["attributed_share"], 0.85, report)
        self.assertGreater(report["attributed_exactly_share"], 0.5, report)
        self.assertAlmostEqual(sum(site["share"] for site in report["sites"]), 1, delta=0.01)
        for one, other, ratio, delta in (("latter", "table", 1, 0.25), ("mapped", "table", 1, 0.25),
                                         ("node", "table", 1, 0.5), ("other", "node", 0.5, 0.35)):
            self.assertAlmostEqual(faults[marks[one]] / faults[marks[other]], ratio, delta=delta, msg=(one, faults, marks))
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
