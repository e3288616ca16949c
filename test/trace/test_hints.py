"""Hints in traces: counted by call site, with the share of misses that they cover; followed, or only noted."""

import json
import os
import pathlib
import re
import subprocess
import unittest

from support import PAGES, SUBJECT, TraceTest, marked_lines

HINTED = os.path.join(os.path.dirname(SUBJECT), "hinted")
SOURCE = pathlib.Path(__file__).with_name("hinted.c")
PLAIN = ("--read-ahead", "0", "--takeover", "start")


class Hints(TraceTest):
    def hinted(self, *options, rounds="2"):
        """The run's counters and what the trace says of its hints."""
        done = self.trace(HINTED, str(PAGES), rounds, options=(*PLAIN, "--report", "r.json", "--force", *options))
        self.assertEqual(done.returncode, 0, done.stderr)
        plain = subprocess.run([HINTED, str(PAGES), rounds], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, plain.stdout)
        with open(self.path("r.json"), encoding="utf-8") as file:
            counters = json.load(file)["totals"]["counters"]
        return counters, self.report("t.trace")

    def test_fetches_and_coverage(self):
        counters, report = self.hinted()
        hints = report["hints"]
        self.assertTrue(hints["followed"])
        close = 0.02 if hints["hints_lost"] == 0 else 0.15  # a busy machine: what is lost is estimated
        fetched = sum(counters[name] for name in ("hint_pages_in", "hint_refaults", "hint_protection_cleared"))
        self.assertAlmostEqual(hints["pages"] / fetched, 1, delta=close, msg=(hints, counters))
        left = sum(counters[name] for name in ("faults_read", "faults_write", "faults_write_protect", "faults_refault"))
        self.assertAlmostEqual(hints["coverage_share"], fetched / (fetched + left), delta=close)
        self.assertGreater(hints["coverage_share"], 0.85)  # an eighth as many plain reads as hinted ones
        marks = marked_lines(SOURCE)
        sites = {site["line"]: site for site in hints["sites"]}
        read, row = sites[marks["read"]], sites[marks["row"]]
        self.assertEqual(len(hints["sites"]), 2, hints)
        self.assertEqual((read["function"], read["mut"], row["mut"]), ("hinted_reads", False, True))
        # Three quarters of the pages are far: as many reads fetch one, and nearly all rows fetch three.
        self.assertAlmostEqual(read["hints"] / (1.5 * PAGES), 1, delta=0.1 + close)
        self.assertAlmostEqual(read["pages"] / read["hints"], 1, delta=0.01)
        self.assertAlmostEqual(row["hints"] / (PAGES / 8), 1, delta=0.3 + close)
        self.assertGreater(row["pages"] / row["hints"], 2.5)

    def test_only_noted(self):
        """Not followed: all comes as faults, and the trace says which of them the hints foresaw."""
        counters, report = self.hinted("--hints", "note")
        hints = report["hints"]
        self.assertFalse(hints["followed"])
        self.assertEqual(counters["hint_pages_in"] + counters["hint_refaults"], 0)
        close = 0 if hints["hints_lost"] == 0 else 0.15
        self.assertGreater(hints["coverage_share"], 0.85 - close)
        self.assertLess(hints["coverage_share"], 0.98 + close)
        self.assertGreater(report["faults_by_kind"]["read"], PAGES)

    def test_text_and_pages(self):
        self.hinted()
        text = self.call("report", "t.trace").stdout
        self.assertRegex(text, r"\d+ hints fetched: hint coverage \d+\.\d % of the pages")
        self.assertRegex(text, rf"hinted\.c:{marked_lines(SOURCE)['row']} hinted_rows, mut\n")
        self.assertEqual(self.call("report", "t.trace", "--html", "t.html").returncode, 0)
        page = pathlib.Path(self.path("t.html")).read_text(encoding="utf-8")
        data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.DOTALL).group(1))
        self.assertAlmostEqual(data["hints"]["covered"], self.report("t.trace")["hints"]["coverage_share"], places=6)
        self.drive(page)

    def drive(self, page):
        """In a browser: the table and the bar are drawn, and a click shows the hint's source."""
        script = """
          const row = document.querySelector('#hints tr');
          row.click();
          document.body.dataset.result = JSON.stringify({
            errors: window.errors, note: document.getElementById('hintnote').textContent,
            rows: document.querySelectorAll('#hints tr').length, hidden: document.getElementById('covered').hidden,
            bar: document.getElementById('covered').firstChild.getBoundingClientRect().width /
                 document.getElementById('covered').clientWidth,
            source: row.querySelector('pre b').textContent, shown: !row.querySelector('pre').hidden});
        """
        result = self.driven(page, script)
        self.assertEqual((result["rows"], result["hidden"], result["shown"]), (2, False, True))
        self.assertIn("hint coverage", result["note"])
        self.assertIn("MARK read", result["source"])
        self.assertGreater(result["bar"], 0.8)
        self.assertLess(result["bar"], 1)

    def test_without_hints(self):
        self.use_shared_trace()
        hints = self.report("t.trace")["hints"]
        self.assertEqual((hints["hints"], hints["coverage_share"], hints["sites"]), (0, 0, []))
        self.assertNotIn("hints", self.call("report", "t.trace").stdout)

    def test_bad_choice(self):
        done = self.trace("/bin/true", options=("--hints", "maybe"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("follow", done.stderr)


if __name__ == "__main__":
    unittest.main()
