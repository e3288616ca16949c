#!/usr/bin/python3
"""The scripts of bench/trace without a program: hints that are taken out, what tables say of made-up results, what is
refused; and that docs/from-profile-to-hints.md shows the commands of its scripts.
"""

import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(BENCH, "trace"), BENCH, os.path.join(ROOT, "test", "programs")]

from benchlib import app_runs  # noqa: E402
from tracelib import advised_tables, rebuilt, unhinted  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "from-profile-to-hints.md")
WALKS = os.path.join(ROOT, "examples", "from_profile_to_hints")


def module_of(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(BENCH, "trace", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Unhinted(unittest.TestCase):
    def check(self, text, wanted):
        self.assertEqual(unhinted.without_hints(text), wanted)

    def test_forms(self):
        self.check("hl::read(p);", "(void)(p);")
        self.check("hl_hint(&a[f(1, 2)], .mut = 1, .size = n);", "(void)(&a[f(1, 2)]);")
        self.check("  hl::hint(p, {.size = g(a, b)});", "  (void)(p);")
        self.check("(hl::hint(from, {.size = bytes}), ...);", "((void)(from), ...);")
        self.check("if (x) hl::cold(p, 8); else hl::seq_write(&a[i]);", "if (x) (void)(p); else (void)(&a[i]);")

    def test_lines_keep_their_numbers(self):
        self.check("hl::hint(p, {\n  .size = 8});\nx;\n", "(void)(p)\n;\nx;\n")
        self.check("#include <a.h>\n#include <hinterland/hint.hpp>\nint x;\n", "#include <a.h>\n\nint x;\n")

    def test_what_stays(self):
        for text in ('// hl::read(p);\n"hl::read(p)";\n', "hl::fibers::run(p);", "hl_pin(p, 8);", "xhl_read(p);",
                     "#include <hinterland/fiber.hpp>\n"):
            self.check(text, text)

    def test_a_call_without_an_end(self):
        with self.assertRaises(unhinted.NotUnderstood):
            unhinted.without_hints("hl::read(p")

    def test_no_application_is_left_with_any(self):
        """All that bench/apps/count_hints counts is gone."""
        for folder, _, names in os.walk(os.path.join(BENCH, "apps")):
            for name in names:
                if name.endswith((".cpp", ".hpp")):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = file.read()
                    left = unhinted.without_hints(text)
                    self.assertEqual(left.count("\n"), text.count("\n"), name)
                    self.assertEqual(unhinted.without_hints(left), left, name)


class Commands(unittest.TestCase):
    def test_of_a_build(self):
        """A stand-in for ninja says how it builds."""
        with tempfile.TemporaryDirectory() as folder:
            ninja = os.path.join(folder, "ninja")
            with open(ninja, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n"
                           "echo 'c++ -DHL_NO_HINTS -DV=\\\"1\\\" -Werror -o a.o -c /s/a.cpp'\n"
                           "echo ': && c++ a.o -o bench/apps/app_x_plain lib.a && :'\n")
            os.chmod(ninja, 0o755)
            before = os.environ["PATH"]
            os.environ["PATH"] = folder + os.pathsep + before
            try:
                compiles, link = rebuilt.commands_of(folder, "bench/apps/app_x_plain")
                self.assertEqual(compiles, [["c++", '-DV="1"', "-o", "a.o", "-c", "/s/a.cpp"]])
                self.assertEqual(link, ["c++", "a.o", "-o", "bench/apps/app_x_plain", "lib.a"])
                with self.assertRaisesRegex(Exception, "does not say how it links"):
                    rebuilt.commands_of(folder, "bench/apps/app_y_plain")
            finally:
                os.environ["PATH"] = before


class Subject:
    """As of a run with one round; coverage and seconds."""

    def __init__(self, coverage, plain, advised, hand):
        self.run = app_runs.Run("x", "x")
        self.failure, self.patch = "", "+#include <hinterland/hint.h>\n+  hl_read(p);\n-old\n"
        self.advice = {"predicted_hinted": 90, "predicted_unhinted": 10, "places": [
            {"function": "f", "file": "/s/a.c", "line": 3, "share": 0.02, "verdict": "not found", "why": "a macro"},
            {"function": "g", "file": "/s/a.c", "line": 9, "share": 0.9, "verdict": "hint", "why": ""}]}
        self.samples = {kind: [{"seconds": seconds, "coverage": coverage, "coverage_with_setting_up": coverage}]
                        for kind, seconds in (("plain", plain), ("advised", advised), ("by hand", hand))}


class Advised(unittest.TestCase):
    def test_targets(self):
        results = advised_tables.results_of([Subject(0.96, 2, 1.25, 1), Subject(0.94, 2, 1, 1)])
        self.assertEqual([target["met"] for target in results["targets"]], ["met", "missed", "missed", "met"])
        self.assertEqual(results["runs"][0]["speed_of_hand"], 0.8)
        self.assertEqual(results["runs"][0]["hinted_lines"], 1)
        text = advised_tables.table(results)
        self.assertIn("no hint for 2.0% at a.c:3: a macro", text)
        self.assertNotIn("a.c:9", text)

    def test_without_samples(self):
        subject = Subject(1, 1, 1, 1)
        subject.samples, subject.failure, subject.advice = {kind: [] for kind in subject.samples}, "no compiler", None
        results = advised_tables.results_of([subject])
        self.assertEqual({target["met"] for target in results["targets"]}, {"-"})
        self.assertIn("no compiler", advised_tables.table(results))

    def test_what_it_refuses(self):
        for words, message in ((("--apps", "hashmop"), "no application or run"), (("--local", "100"), "usage:"),
                               (("--size", "many"), "usage:"), (("--build", "/nowhere"), "/nowhere/CMakeCache.txt")):
            done = subprocess.run([os.path.join(BENCH, "trace", "advised"), *words], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (words, done.stderr))
            self.assertIn(message, done.stderr)


def report(*sites):
    """As of `report --json`: (function, file, line, share)."""
    return {"faults": 5000, "stacks": 50, "stacks_complete_share": 1,
            "places_covering_percent": {"50": 1, "80": 1, "95": 2, "99": 2},
            "sites": [{"function": function, "file": file, "line": line, "share": share}
                      for function, file, line, share in sites]}


class Figure2(unittest.TestCase):
    def rows(self):
        figure2 = module_of("figure2")
        first = report(("f", "a.c", 1, 0.7), ("g", "a.c", 2, 0.3))
        later = report(("f", "a.c", 1, 0.6), ("h", None, None, 0.4))
        least = set(figure2.places_of(first))
        return figure2, {"x": {"peak_bytes": 64 << 20, "same_output": True, "shares": {
            10: figure2.at(first, 1, None), 25: figure2.at(later, 2, least)}}}

    def test_places(self):
        figure2, rows = self.rows()
        first, later = rows["x"]["shares"][10], rows["x"]["shares"][25]
        self.assertEqual(first["kind"], "lines")
        self.assertEqual((later["still_there"], later["faults_at_the_places_of_the_least"]), (0.5, 0.6))
        self.assertEqual(figure2.medians(rows)["all"], {"programs": 1, "50": 1, "80": 1, "95": 2, "99": 2})
        self.assertIn("| x | 64 | 5000 | lines | 1 / 1 / 2 / 2 | 2 / - | 0.50 / - | 0.60 / - |", figure2.table(rows))

    def test_places_without_lines(self):
        figure2 = module_of("figure2")
        self.assertEqual(figure2.kind_of(report(("f", None, None, 1), ("g", None, None, 0))), "functions")
        self.assertEqual(figure2.kind_of(report(("a+0x12", None, None, 1), ("a+0x15", None, None, 0))), "instructions")

    def test_a_run_that_goes_on(self):
        figure2, rows = self.rows()
        with tempfile.TemporaryDirectory() as folder:
            figure2.keep(rows, folder)
            options = type("Options", (), {"out": folder, "again": True})
            self.assertEqual(figure2.earlier(options), json.loads(json.dumps(rows), object_hook=lambda node: {
                int(key) if key in ("10", "25") else key: value for key, value in node.items()}))
            options.again = False
            self.assertEqual(figure2.earlier(options), {})

    def test_what_it_refuses(self):
        for script in ("figure2", "replayed"):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([os.path.join(BENCH, "trace", script), "--out", folder, "--build", "/nowhere"],
                                      capture_output=True, text=True, check=False, timeout=60)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("build it first", done.stderr)


class Replayed(unittest.TestCase):
    def test_table(self):
        replayed = module_of("replayed")
        rows = {"x": {"runs": [
            {"percent": 25, "read_ahead_pages": 0, "foretold": 1050, "real": 1000, "real_runs": [900, 1000, 1060]},
            {"percent": 50, "read_ahead_pages": 0, "foretold": 800, "real": 1000, "real_runs": [1000]}]}}
        text = replayed.table(rows)
        self.assertIn("| x | 1.05 (1000 ± 10%) | - | 0.80 (1000 ± 0%) | - |", text)
        self.assertIn("With a read-ahead of 0: 1 of 2 within 10%, median error 12.5%, largest 20.0%; 1 between", text)
        self.assertEqual(replayed.tables(rows), text)  # without waiting, nothing of it

    def test_waiting(self):
        replayed = module_of("replayed")
        counts = {"foretold": 1000, "real": 1000, "real_runs": [1000]}
        named = {"budget_bytes": 48 << 20, "slow_down_foretold": 1.48, "slow_down_runs": [1.7, 1.6, 1.4]}
        rows = {"x": {"native_s": 0.5, "peak_bytes": 64 << 20, "at_the_budget_named": named, "runs": [
            {"percent": 25, "read_ahead_pages": 64, **counts, "foretold_waiting_s": 0.9,
             "beyond_native_runs_s": [1.1, 1.0, 0.95]},
            {"percent": 50, "read_ahead_pages": 64, **counts, "foretold_waiting_s": 3, "beyond_native_runs_s": [2.0]}]}}
        text = replayed.tables(rows)
        self.assertIn("| x, 0.50 s | - | 0.90 (1.00 s ± 10%) | - | 1.50 (2.00 s ± 0%) | 75%: 1.60 (1.40 to 1.70) |", text)
        self.assertIn("With a read-ahead of 64: 1 of 2 within 20%, median error 30.0%, largest 50.0%.", text)

    def test_the_budget_named(self):
        """Held against runs where there is one; it is named in whole MiB, and its point is the least that is enough."""
        replayed = module_of("replayed")
        replayed.really = lambda *words: ("hash", 1, 3.0)
        points = [{"budget_bytes": size, "waiting_share": share} for size, share in ((10, 2.0), (25, 0.4), (50, 0.1))]
        plan = {"as_it_is": {"budget_bytes": 26, "less_may_do": False, "points": points}}
        found = replayed.at_the_budget_named(None, [], None, 2, plan, 2.0)
        self.assertEqual(found, {"budget_bytes": 26, "slow_down_foretold": 1.4, "slow_down_runs": [1.5, 1.5],
                                 "outputs": ("hash", "hash")})
        for none in ({"budget_bytes": None}, {"less_may_do": True}):
            nothing = {"as_it_is": {**plan["as_it_is"], **none}}
            self.assertIsNone(replayed.at_the_budget_named(None, [], None, 2, nothing, 2.0))


class Page(unittest.TestCase):
    """What a reader types is what the scripts run."""

    @staticmethod
    def commands(path):
        with open(path, encoding="utf-8") as file:
            return [line.strip() for line in file.read().split("# page\n")[1].splitlines() if line.strip()]

    def test_commands(self):
        with open(PAGE, encoding="utf-8") as file:
            shown = re.findall(r"^    \$ (.*)$", file.read(), re.MULTILINE)
        run = self.commands(os.path.join(WALKS, "memcached")) + self.commands(os.path.join(WALKS, "dataframe"))
        self.assertEqual(shown, run)


if __name__ == "__main__":
    unittest.main()
