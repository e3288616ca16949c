#!/usr/bin/python3
"""Statistics, and the comparison of two results."""

import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, BENCH, os.path.join(os.path.dirname(BENCH), "test", "programs")]

from benchlib import comparison, figures, plots, results, tables, targets  # noqa: E402
from fake_result import fake_result, series_named  # noqa: E402


class Statistics(unittest.TestCase):
    def test_summary(self):
        self.assertEqual(figures.summary([4, 1, 2]), {"median": 2, "min": 1, "max": 4, "spread": 1.5})
        self.assertEqual(figures.summary([3])["spread"], 0)

    def test_chance_is_exact_for_few_values(self):
        self.assertAlmostEqual(figures.chance([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 2 / 252)
        self.assertAlmostEqual(figures.chance([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]), 2 / 252)
        self.assertAlmostEqual(figures.chance([1, 3], [2, 4]), 4 / 6)
        self.assertEqual(figures.chance([1, 4], [2, 3]), 1.0)
        self.assertEqual(figures.chance([7, 7, 7], [7, 7, 7]), 1.0)
        self.assertEqual(figures.chance([], [1]), 1.0)

    def test_chance_of_many_values_agrees_with_the_exact_one(self):
        seed = int(os.environ.get("HINTERLAND_TEST_SEED", "20240229"))
        numbers = random.Random(seed)
        for _ in range(20):
            before = [numbers.gauss(0, 1) for _ in range(8)]
            after = [numbers.gauss(0.7, 1) for _ in range(8)]
            exact = figures.chance(before, after)
            limit, figures.COMBINATIONS_MAX = figures.COMBINATIONS_MAX, 0
            try:
                near = figures.chance(before, after)
            finally:
                figures.COMBINATIONS_MAX = limit
            self.assertAlmostEqual(exact, near, delta=0.03, msg=f"HINTERLAND_TEST_SEED={seed}")

    def test_verdicts(self):
        steady = [100, 101, 102, 103, 104]
        verdicts = {"worse": [110, 111, 112, 113, 114], "better": [90, 91, 92, 93, 94],
                    "same": [100, 103, 101, 104, 102.5]}
        for verdict, after in verdicts.items():
            self.assertEqual(figures.compare(steady, after)["verdict"], verdict)
        self.assertEqual(figures.compare(steady, [80, 90, 130, 120, 140])["verdict"], "same", "within the noise")
        self.assertEqual(figures.compare(steady[:3], [200, 201, 202])["verdict"], "unsure", "three are too few")
        self.assertEqual(figures.compare([1000, 1001, 1002, 1003], [1005, 1006, 1007, 1008])["verdict"], "same",
                         "sure, but of no interest")


class Compare(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.before = fake_result()

    def compare(self, after, *words, before=None):
        """(exit status, stdout, stderr) of bench/compare."""
        paths = []
        for name, document in (("before", before or self.before), ("after", after)):
            paths.append(os.path.join(self._folder.name, name))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(document if isinstance(document, str) else json.dumps(document))
        done = subprocess.run([os.path.join(BENCH, "compare"), *paths, *words], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def slower(self, way="mem:"):
        after = copy.deepcopy(self.before)
        series = series_named(after, "random-read", way)
        series["values"] = [value * 1.5 for value in series["values"]]
        return after

    def test_nothing_changed(self):
        code, out, _ = self.compare(self.before, "--fail-on-worse")
        self.assertEqual(code, 0)
        self.assertNotIn("worse:", out)
        self.assertNotIn("unsure:", out)
        self.assertIn("have not changed beyond the noise", out)

    def test_one_is_worse(self):
        code, out, _ = self.compare(self.slower())
        self.assertEqual(code, 0)
        self.assertRegex(out, r"worse:\n +random-read, mem: .*\+50\.0%\n\n")
        self.assertNotIn("better:", out)
        self.assertEqual(self.compare(self.slower(), "--fail-on-worse")[0], 1)

    def test_the_machine_changed(self):
        _, out, _ = self.compare(self.slower("native"))
        self.assertIn("the machine itself is not as it was", out)

    def test_other_machine_or_options_are_refused(self):
        for part, key, value in (("machine", "processors", 96), ("options", "size_bytes", 1 << 20),
                                 ("options", "program_scale", 0.5)):
            after = copy.deepcopy(self.before)
            self.before[part].setdefault(key, 1)
            after[part][key] = value
            code, out, errors = self.compare(after)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"{key} is {self.before[part][key]} and {value}", errors)
            self.assertEqual(self.compare(after, "--force")[0], 0)

    def test_notes(self):
        after = copy.deepcopy(self.before)
        after["machine"]["kernel"], after["busy"]["was_busy"], after["complete"] = "9.9", True, False
        _, out, _ = self.compare(after)
        for words in ("kernel", "was busy after", "ended before its last round"):
            self.assertIn(words, out)

    def test_files_that_are_no_results(self):
        other = copy.deepcopy(self.before)
        other["schema_version"] = 99
        for document, words in (("{", "not JSON"), ("[]", "not written by bench/run"), ('{"program": "floor"}', "not "
                                "written by bench/run"), (other, "version 99")):
            code, _, errors = self.compare(document)
            self.assertEqual(code, 2)
            self.assertIn(words, errors)
        self.assertIn("No such file", subprocess.run([os.path.join(BENCH, "compare"), "/no/a", "/no/b"], check=False,
                                                     capture_output=True, text=True).stderr)

    def test_what_only_one_has(self):
        after = copy.deepcopy(self.before)
        after["benchmarks"].pop(0)
        self.assertIn(f"only before: {self.before['benchmarks'][0]['name']}",
                      comparison.text(self.before, after, comparison.changes(self.before, after)))


    def test_what_idles_is_compared_in_its_own_unit(self):
        after = copy.deepcopy(self.before)
        idle = next(figure for figure in after["idle"] if figure["name"] == "idle/server-cpu")
        idle["values"] = [value * 100 for value in idle["values"]]
        _, out, _ = self.compare(after)
        self.assertRegex(out, r"worse:\n +idle/server-cpu +0\.01 % +\d\.\d\d %")

    def test_a_figure_that_was_zero(self):
        self.assertEqual(figures.compare([0.0] * 5, [0.0] * 5)["verdict"], "same")
        self.assertEqual(figures.compare([0.0] * 5, [1.0] * 5)["verdict"], "worse")


class Targets(unittest.TestCase):
    def setUp(self):
        self.document = fake_result()

    def row(self, words):
        return next(row for row in targets.of(self.document) if words in row["figure"])

    def set(self, benchmark, way, *values):
        series = series_named(self.document, benchmark, way)
        series.update(values=list(values), failure=None, skipped=None, **figures.summary(values))

    def set_figure(self, name, *values):
        found = next(f for f in [*self.document["floor"], *self.document["idle"]] if f["name"] == name)
        found.update(values=list(values), **figures.summary(values))

    def test_all_are_computed_from_one_run(self):
        rows = targets.of(self.document)
        self.assertEqual([row["figure"] for row in rows if row["missing"]], [])
        for row in rows:
            self.assertTrue(row["least"] <= row["value"] <= row["most"], row)
            self.assertEqual(row["met"] is None, row["bound"] is None, row)

    def test_round_by_round(self):
        self.set("random-read", "mem:", 100, 200)
        for way in ("swap page-cluster 0", "swap page-cluster 3"):
            self.set("random-read", way, 300, 500)
        row = self.row("random reads, mem: pages a second against zram swap")
        self.assertAlmostEqual(row["value"], 400 / 150)
        self.assertEqual((row["least"], row["most"], row["met"]), (2.5, 3, True))

    def test_the_better_swap_counts(self):
        self.set("first-touch", "mem:", 100)
        self.set("first-touch", "swap page-cluster 0", 150)
        self.set("first-touch", "swap page-cluster 3", 900)
        row = self.row("first touch under pressure")
        self.assertEqual((row["value"], row["met"]), (1.5, False))

    def test_over_tcp(self):
        self.set("random-read", "tcp:", 15_000)
        self.set("random-read", "mem:", 3_000)
        self.set_figure("tcp/ping-pong/same-cpu", 9_000, 9_000, 9_000)
        self.set_figure("tcp/ping-pong/other-cpu", 6_000)
        row = self.row("tcp: random")
        self.assertAlmostEqual(row["value"], (15_000 / 0.75) / (6_000 + 3_000 / 0.75))
        self.assertFalse(row["met"])
        self.set("sequential-read", "tcp:", 2_000)
        self.set_figure("tcp/stream-32/same-cpu", 1_600)
        self.set_figure("tcp/stream-32/other-cpu", 1_800)
        row = self.row("tcp: sequential")
        self.assertEqual((row["value"], row["met"]), (0.8, True))

    def test_two_threads_are_held_against_the_floors_scaling(self):
        self.set("random-read", "mem:", 4_000)
        self.set("random-read-2-threads", "mem:", 2_500)
        self.set_figure("paging/random/handler-same-cpu/copy-clean", 6_000)
        self.set_figure("paging/random/handler-same-cpu/copy-clean/2-threads", 3_000)
        row = self.row("two threads")
        self.assertAlmostEqual(row["value"], 1.6 / 2)
        self.assertFalse(row["met"])

    def test_direct_reclaim(self):
        self.assertAlmostEqual(self.row("random reads, mem: faults that had to reclaim")["value"], 0.05)
        series = series_named(self.document, "random-read", "mem:")
        for sample, direct in zip(series["samples"], (0, 70, 90, 120, 180)):
            sample["figures"] = {"reclaim_direct_faults": direct, "faults_first_touch": 10_000, "faults_read": 50_000}
        row = self.row("random reads, mem: faults that had to reclaim")
        self.assertAlmostEqual(row["value"], 0.15)
        self.assertEqual((row["least"], row["met"]), (0, False))
        self.assertAlmostEqual(row["most"], 0.3)
        del series["samples"][3]["figures"]["reclaim_direct_faults"]
        self.assertIn("does not count direct reclaim", self.row("random reads, mem: faults that had to reclaim")["missing"])

    def test_idle(self):
        self.set_figure("idle/server-memory-above-stored", 1.5, 2.5, 2.1)
        row = self.row("memory above the bytes stored")
        self.assertEqual((row["value"], row["least"], row["most"], row["met"]), (2.1, 1.5, 2.5, False))
        self.assertIn("at most 2 %", tables.targets_markdown([row]))

    def test_what_was_not_measured_says_why(self):
        series = series_named(self.document, "numpy", "mem:")
        series.update(values=[], failure="exit status 139")
        row = self.row("numpy, 25 % local")
        self.assertEqual((row["value"], row["met"], row["missing"]), (None, None, "numpy, mem:: exit status 139"))
        others = [self.row(f"{name}, 25 % local")["value"] for name in targets.PROGRAMS if name != "numpy"]
        self.assertEqual(self.row("the worst of these programs")["value"], max(others))
        self.document["floor"] = []
        self.assertIn("the floor has no tcp/stream-32/same-cpu", self.row("tcp: sequential")["missing"])
        self.document["benchmarks"] = []
        self.assertEqual(self.row("first touch that fits")["missing"], "first-touch-fits was not run")
        self.assertIsNotNone(self.row("the worst of these programs")["missing"])

    def test_the_program_that_prints_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")

            def shown(*words):
                return subprocess.run([os.path.join(BENCH, "targets"), path, *words], capture_output=True, text=True,
                                      check=False)
            self.assertEqual(shown().returncode, 2)
            results.write(path, self.document)
            done = shown("--markdown", "--fail-on-missed")
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, 2 + len(targets.TARGETS)))
            self.assertEqual(shown().returncode, 0)


class Shown(unittest.TestCase):
    def test_table(self):
        document = fake_result()
        text = tables.text(document)
        swap = results.best_swap(next(b for b in document["benchmarks"] if b["name"] == "random-read"))
        mem = series_named(document, "random-read", "mem:")
        self.assertRegex(text, rf"mem: .*{swap['median'] / mem['median']:.2f}x\n")
        self.assertNotIn("BUSY", text)
        document["busy"].update(was_busy=True, before={"cpu_share": 0.63, "steal_share": 0.0})
        series_named(document, "random-read", "tcp:")["failure"] = "exit status 7"
        text = tables.text(document)
        self.assertIn("THE MACHINE WAS BUSY: 63%", text)
        self.assertIn("FAILED: exit status 7", text)

    def test_the_floor_of_a_benchmark(self):
        document = fake_result()
        benchmark = next(b for b in document["benchmarks"] if b["name"] == "random-read")
        medians = [f["median"] for f in document["floor"] if f["name"] in benchmark["floor"]]
        self.assertAlmostEqual(results.floor_per_access(document, benchmark), min(medians) * 0.75)
        self.assertIsNone(results.floor_per_access({**document, "floor": []}, benchmark))

    def test_units(self):
        self.assertEqual([tables.ns(value) for value in (85, 4200, 35300, 2.5e7, 3e10)],
                         ["85 ns", "4200 ns", "35.3 us", "25.0 ms", "30.0 s"])
        self.assertEqual([tables.size(value) for value in (1 << 30, 256 << 20, 5 << 28)],
                         ["1 GiB", "256 MiB", "1.25 GiB"])

    def test_each_way_of_a_program_has_a_bar_of_its_own(self):
        try:
            pyplot = plots.import_pyplot()
        except plots.NoMatplotlib as reason:
            self.skipTest(str(reason))
        ways = ("mem:", "mem: by signal", "zmem:", "swap page-cluster 0")
        shown = [{"way": way, **figures.summary([number + 2.0])} for number, way in enumerate(ways)]
        drawn, axes = pyplot.subplots()
        plots._relative_bars(axes, [("redis", shown, [])], {"redis": 1.0}, "")
        self.assertEqual(len({round(bar.get_y(), 3) for bar in axes.patches}), len(ways))
        self.assertEqual([text.get_text() for text in axes.get_legend().get_texts()], ["mem:", "mem: by signal", "zmem:", "swap"])
        pyplot.close(drawn)

    def test_plots(self):
        with tempfile.TemporaryDirectory() as folder:
            try:
                names = plots.draw(fake_result(), folder)
            except plots.NoMatplotlib as reason:
                self.skipTest(str(reason))
            self.assertEqual(sorted(names), sorted(f"{name}.{ending}" for ending in ("png", "svg") for name in (
                "access", "programs", "open-load", "ablation", "floor")))
            self.assertEqual(sorted(os.listdir(folder)), sorted(names))
            for name in names:
                self.assertGreater(os.path.getsize(os.path.join(folder, name)), 5000)


if __name__ == "__main__":
    unittest.main()
