#!/usr/bin/python3
"""bench/eden/run without measuring: what its steps run, what it keeps and goes on with, how targets are judged, and that
every figure can be drawn from results of the form that the tools write. None of these figures means anything.
"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(BENCH, "eden"), BENCH, os.path.join(ROOT, "test", "programs")]

from benchlib import app_runs, app_tables, plots  # noqa: E402
from edenlib import documents, figures, pages, steps, targets  # noqa: E402

MACHINE = {"machine": {"processor": "some", "processors": 4, "kernel": "6.18"}, "commit": "abc", "busy": {"cpu_share": 0.5}}
SPREAD = {"median": 2.0, "min": 1.5, "max": 3.0}


def apps_document(name, app, percents=(10, 25, 40, 100), seconds=None):
    """As bench/apps/run writes it. seconds: {(kind, percent): median}, 2 for the rest."""
    def way(kind, percent=None):
        median = (seconds or {}).get((kind, percent), 2.0)
        found = {"kind": kind, "way": kind, "failure": None, "coverage": 0.98 if kind == "far-hinted" else None,
                 "seconds": {"median": median, "min": median * 0.9, "max": median * 1.2},
                 "samples": [{"seconds": median, "major_faults": 40, "counters": {"faults_read": 10, "hint_pages_in": 90}}]}
        return {**found, "local_percent": percent} if percent else found
    ways_ = [way("native"), way("native-hinted")]
    ways_ += [way(kind, percent) for percent in percents for kind in ("far", "far-hinted", "swap")]
    return {**MACHINE, "runs": [{"name": name, "app": app, "hinted_lines": 4, "ways": ways_}], "targets": []}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, document):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(document if isinstance(document, str) else json.dumps(document))

    def fill(self):
        for name in steps.APPS + ("pagerank", "others", "overheads"):
            self.write(name + ".json", apps_document(name, name))
        self.write("calls.json", {"figures": [
            {"name": f"scaling/{call}/{batch}/{count}-threads", "median": 500.0, "min": 1, "max": 2}
            for call in ("zero-fault", "copy", "unmap", "protect", "move") for batch in (1, 16) for count in (1, 2, 4)]})
        keys = [f"{figure}{more}{way}" for figure in ("fetch-in-order", "fetch-random", "sequential-read", "sequential-write")
                for more in ("", " --no-hints", " --threads 2", " --read-ahead 8") for way in (" mem:", " swap 0", " swap 3")]
        self.write("hints.json", {**MACHINE, "summaries": {key: SPREAD for key in keys},
                                  "ratios": [{"what": "a hint", "of": "nothing", "value": 1.0, "target": "at most 1.5"}]})
        self.write("fibers.json", {**MACHINE, "series": [
            {"readers": readers, "latency": latency, "reads_per_second": [speed, speed + 1]}
            for readers in ("fibers 64", "fibers 64, blocking", "threads 1") for latency, speed in (("0us", 99), ("5us", 89))]})
        for name in ("server-stacks", "dataframe-stacks"):
            self.write(name + ".json", {})
            self.write(name + ".folded", "main;query;median 90\nmain;other 10\n")
        self.write("places/figure2.json", {"programs": {"sort": {"peak_bytes": 1 << 26, "shares": {
            "10": {"faults": 5000, "places": {"95": 3}}}}}})
        for ending in ("png", "svg"):
            self.write(f"places/figure2.{ending}", "a plot")


class Drawing(Folder):
    """Names of runs that nobody measured leave their panel empty, and the figure is there all the same."""
    def setUp(self):
        super().setUp()
        try:
            plots.import_pyplot()
        except plots.NoMatplotlib as reason:
            self.skipTest(str(reason))

    def test_every_figure(self):
        self.fill()
        said = []
        made = pages.make(self.folder, figures.FIGURES, said.append)
        self.assertEqual((set(made), said), (set(figures.FIGURES), []))
        for name, figure in figures.FIGURES.items():
            if figure.image:
                self.assertEqual(made[name], figure.image)
                for path in (figure.image, figure.image.replace(".png", ".svg")):
                    self.assertTrue(os.path.getsize(os.path.join(self.folder, path)), path)
        text = pages.markdown(self.folder, made, "images/")
        self.assertIn("The machine was BUSY", text)
        self.assertIn("(images/eden-figure6.png)", text)
        self.assertIn("| dataframe | 4 | 11 | 98.0 % | 97.3 % | 0.0 % | 37 % |", text)

    def test_what_was_not_measured_is_left_out_and_said(self):
        said = []
        self.assertEqual(pages.make(self.folder, figures.FIGURES, said.append), {})
        self.assertEqual(len(said), len(figures.FIGURES))
        self.assertIn("Nothing was measured yet", pages.markdown(self.folder, {}))

    def page(self, name):
        with open(os.path.join(self.folder, "docs", name + ".md"), encoding="utf-8") as file:
            return file.read()

    def test_pages_are_written_between_their_marks(self):
        self.fill()
        docs = os.path.join(self.folder, "docs")
        os.makedirs(os.path.join(docs, "images"))
        for page in ("eden", "performance"):
            self.write(f"docs/{page}.md", f"before\n{pages.BEGIN}\nold\n{pages.END}\nafter\n")
        made = pages.make(self.folder, ["figure11"], self.fail)
        for _ in range(2):
            pages.write_docs(self.folder, made, docs)
            plots_page, targets_page = map(self.page, ("eden", "performance"))
            for text in plots_page, targets_page:
                self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text)
                self.assertIn("commit abc", text)
            self.assertEqual((plots_page.count("eden-figure11.png"), plots_page.count("at most 1.03")), (1, 0))
            self.assertIn("| dataframe, hinted, 100 % local: time against native | at most 1.03 | 1 | yes |", targets_page)
        self.assertTrue(os.path.exists(os.path.join(docs, "images", "eden-figure11.png")))
        self.write("docs/performance.md", "no marks")
        before = self.page("eden")
        with self.assertRaises(OSError):
            pages.write_docs(self.folder, made, docs)
        self.assertEqual((self.page("eden"), self.page("performance")), (before, "no marks"))

    def test_the_pages_have_their_marks(self):
        for page in ("eden", "performance"):
            with open(os.path.join(ROOT, "docs", page + ".md"), encoding="utf-8") as file:
                text = file.read()
            self.assertLess(text.index(pages.BEGIN), text.index(pages.END))
            for name in figures.FIGURES if page == "eden" else ("| hint on a resident page, ns, of nothing |",):
                self.assertIn(name, text)


class Targets(Folder):
    def rows(self, **seconds):
        self.fill()
        document = apps_document("dataframe", "dataframe", (22, 100), {
            ("far-hinted", 22): 3.0, ("swap", 22): 6.0, ("far-hinted", 100): 2.1, **seconds})
        self.write("dataframe.json", document)
        self.write("overheads.json", document)
        return {row.figure: row for row in pages.rows(self.folder)}

    def test_ratios_and_verdicts(self):
        rows = self.rows()
        found = {name: (round(rows[name].value, 3), rows[name].met) for name in (
            "dataframe, 22 % local: far-hinted over native", "dataframe, 22 % local: far-hinted over swap",
            "dataframe, hinted, 100 % local: time against native", "a hint, of nothing",
            "64 fibers, random hinted reads: throughput over a device of 5 us, of that without latency")}
        self.assertEqual(list(found.values()), [(1.5, "met"), (0.5, "met"), (1.05, "missed"), (1.0, "met"), (0.9, "met")])

    def test_every_target_has_its_row(self):
        rows = {row.figure for row in targets.rows(documents.Apps([]), documents.Apps([]), None, None)}
        for name, what, percent, *_ in app_tables.TARGETS:
            self.assertIn(f"{name}, {percent} % local: {what}", rows)

    def test_rows_without_a_figure(self):
        row = targets.Row("x", "at most 1", None)
        self.assertEqual(row.met, "-")
        self.assertIn("| x | at most 1 | - | - |", targets.markdown([row]))

    def test_pages_a_second(self):
        apps = documents.Apps([apps_document("kv", "kv")])
        self.assertEqual(apps.pages_per_second("kv", "far-hinted", 10), 50)
        self.assertEqual(apps.pages_per_second("kv", "swap", 10), 20)
        self.assertIsNone(apps.pages_per_second("kv", "swap", 11))


class Steps(Folder):
    def options(self):
        return steps.Options(self.folder, 64 << 20, 2, True, True)

    def test_their_applications_are_there(self):
        known = {run.app for run in app_runs.all_runs()}
        self.assertLessEqual({*steps.APPS, "pagerank", *steps.OTHERS}, known)

    def test_the_tools_take_these_words(self):
        for step in steps.STEPS.values():
            words = step.words(self.options())
            self.assertEqual(words.count("OUT"), 1, step.name)
            if "--build" not in words:
                continue
            done = subprocess.run([words[0], "--help"], capture_output=True, text=True, check=True, timeout=60)
            for word in words[1:]:
                if word.startswith("--"):
                    self.assertIn(word.partition("=")[0], done.stdout, step.name)

    def step(self, script):
        return steps.Step("some", lambda _: ["/bin/sh", "-c", script, "sh", "OUT"], 1)

    def test_a_result_is_kept_when_the_tool_has_ended(self):
        path = os.path.join(self.folder, "some.json")
        with open(os.devnull, "w", encoding="utf-8") as log:
            self.assertEqual(steps.perform(self.step('echo 1 >"$1"; exit 2'), self.options(), self.folder, log), 2)
            self.assertFalse(os.path.exists(path))
            self.assertEqual(steps.perform(self.step('echo 1 >"$1"; echo 2 >"$1.folded"'), self.options(), self.folder, log), 0)
        self.assertTrue(os.path.exists(path) and os.path.exists(os.path.join(self.folder, "some.folded")))

    def test_what_is_there_is_not_measured_again(self):
        module = self.runner()
        for name in steps.STEPS:
            self.write(steps.STEPS[name].path("."), {})
        options = type("Options", (), {"build": "/nowhere", "size": 64 << 20, "repeat": 1, "no_swap": True, "busy_ok": True,
                                       "again": False})
        self.assertEqual(module.measure(options, list(steps.STEPS), self.folder), [])
        os.unlink(os.path.join(self.folder, "psort.json"))
        self.assertEqual(module.measure(options, list(steps.STEPS), self.folder), ["psort"], "there is no such build")

    @staticmethod
    def runner():
        loader = importlib.machinery.SourceFileLoader("eden_run", os.path.join(BENCH, "eden", "run"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("eden_run", loader))
        loader.exec_module(module)
        return module

    def test_results_lie_by_commit_unless_said_otherwise(self):
        module = self.runner()
        for words, folder in (((), os.path.join("/b", "bench", "eden", module.machine.commit(ROOT))), (("--out", "x"), "x")):
            with unittest.mock.patch("sys.argv", ["run", "--build", "/b", *words]):
                self.assertEqual(module.arguments().out, folder)

    def test_what_is_refused(self):
        for words, message in ((("--only", "figure3"), "there is no 'figure3'"), (("--size", "1M"), "less than 32M"),
                               (("--repeat", "0"), "from 1 on"),
                               (("--draw", "--docs", "--out", os.path.join(self.folder, "x")), "nothing was measured in")):
            done = subprocess.run([os.path.join(BENCH, "eden", "run"), *words], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
