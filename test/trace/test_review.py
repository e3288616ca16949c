"""What `advise` says of the hints that a program has: a program with one of each bad kind and a good one, traced with its
hints followed and only noted."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import FAULTS_RECLAIM, TraceTest, marked_lines

PROGRAMS = pathlib.Path(__file__).with_name("programs")
PROGRAM, HURTING_PRIORITY = PROGRAMS / "bad_hints.c", PROGRAMS / "hurting_priority.c"
INCLUDE = os.environ["HINTERLAND_TEST_INCLUDE"]
MARKS = marked_lines(PROGRAM)
PLAIN = ("--read-ahead", "0", "--takeover", "start", *FAULTS_RECLAIM, "--force")


class Review(TraceTest):
    def setUp(self):
        super().setUp()
        if shutil.which("cc") is None:
            self.skipTest("there is no cc")
        shutil.copy(PROGRAM, self.folder)
        done = subprocess.run(["cc", "-g", "-O2", f"-I{INCLUDE}", "-o", "bad_hints", "bad_hints.c"], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def record(self, *options):
        self.whole_trace("./bad_hints", "4096", "3", local="4M", options=(*PLAIN, *options))

    def review(self, *words):
        """(objections by mark, the review, the text)."""
        text = self.call("advise", "t.trace", *words)
        done = self.call("advise", "t.trace", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        review = json.loads(done.stdout)["hint_review"]
        names = {line: mark for mark, line in MARKS.items()}
        found = {names[hint["line"]]: {each["fault"]: each for each in hint["objections"]} for hint in review["hints"]}
        return found, review, text.stdout

    def test_followed(self):
        """Each line with a hint is known, and those that can be judged by what they fetch are named."""
        self.record()
        found, review, text = self.review()
        self.assertEqual(set(found), {"good", "seldom", "late", "wrong", "small", "ahead", "priority"}, review)
        self.assertTrue(review["followed"])
        self.assertEqual(found["good"], {})
        self.assertEqual(list(found["late"]), ["too late"])
        self.assertIn(f"bad_hints.c:{MARKS['late_fault']}", found["late"]["too late"]["why"])
        self.assertEqual(list(found["small"]), ["too small"])
        self.assertIn(f"bad_hints.c:{MARKS['small_fault']}", found["small"]["too small"]["other_place"])
        self.assertLessEqual(set(found["seldom"]), {"seldom fetches", "never fetched"})
        self.assertTrue(found["seldom"], review)
        self.assertEqual((found["wrong"], found["ahead"]), ({}, {}))  # what is there is used without a trace
        self.assertIn("--hints note", review["remarks"][0])
        self.assertIn(f"bad_hints.c:{MARKS['late']} late: too late\n", text)
        self.assertEqual(self.call("report", "t.trace", "--html", "t.html").returncode, 0)
        page = pathlib.Path(self.path("t.html")).read_text(encoding="utf-8")
        data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.DOTALL).group(1))
        self.assertEqual({each["fault"] for each in data["hints"]["objections"]},
                         {each for objections in found.values() for each in objections})
        shown = self.driven(page, """document.body.dataset.result = JSON.stringify({errors: window.errors,
            items: [...document.querySelectorAll('#objections li')].map(item => item.textContent)});""")
        self.assertEqual(len(shown["items"]), len(data["hints"]["objections"]))
        self.assertNotIn(f"bad_hints.c:{MARKS['good']} good: ", text.split("Hints that the program has")[1])

    def test_a_priority_that_is_heard(self):
        self.record("--policy", "priority")
        found, _, _ = self.review()
        self.assertEqual(list(found["priority"]), ["priority hurts"])
        self.assertEqual(found["good"], {})

    def test_only_noted(self):
        """All uses are faults: what is named, read ahead and sent away is judged by them, with less local memory."""
        self.record("--hints", "note")
        found, review, text = self.review("--local", "10M", "--policy", "priority")
        self.assertFalse(review["followed"])
        self.assertEqual(found["good"], {}, review)
        self.assertEqual(list(found["wrong"]), ["wrong address"])
        self.assertEqual(found["wrong"]["wrong address"]["other_place"], f"bad_hints.c:{MARKS['wrong_fault']}")
        self.assertIn("read-ahead unused", found["ahead"])
        self.assertEqual(list(found["late"]), ["too late"])
        self.assertIn("too small", found["small"])
        sites = {hint["line"]: hint for hint in review["hints"]}
        good = sites[MARKS["good"]]
        self.assertGreater(good["pages_named_used"] / good["pages_named"], 0.9)
        self.assertIn("noted and not followed", text)

    def test_a_priority_that_hurts(self):
        """Only noted: more is fetched with it than without, by far. (On the few pages that have one in the other program,
        it changes as much as chance does.)"""
        shutil.copy(HURTING_PRIORITY, self.folder)
        subprocess.run(["cc", "-g", "-O2", f"-I{INCLUDE}", "-o", "hurting", HURTING_PRIORITY.name], cwd=self.folder,
                       check=True)
        self.whole_trace("./hurting", "4096", "5", local="4M", options=(*PLAIN, "--hints", "note"))
        done = self.call("advise", "t.trace", "--local", "12M", "--policy", "priority", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        hint, = json.loads(done.stdout)["hint_review"]["hints"]
        self.assertEqual(hint["line"], marked_lines(HURTING_PRIORITY)["priority"])
        objection, = hint["objections"]
        self.assertEqual(objection["fault"], "priority hurts")
        self.assertGreater(objection["predicted_saving_s"], 0)

    def test_a_program_without_hints(self):
        subprocess.run(["cc", "-g", "-O2", "-DHL_NO_HINTS", f"-I{INCLUDE}", "-o", "bad_hints", "bad_hints.c"],
                       cwd=self.folder, check=True)
        self.record()
        found, _, text = self.review()
        self.assertEqual(found, {})
        self.assertNotIn("Hints that the program has", text)


if __name__ == "__main__":
    unittest.main()
