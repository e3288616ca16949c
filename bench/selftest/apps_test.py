#!/usr/bin/python3
"""bench/apps/run against a build tree of stand-ins: what it refuses, what it keeps, what it makes of counters; and what
bench/apps/count_hints counts. Linux swap is never set up here.
"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, BENCH, os.path.join(ROOT, "test", "programs")]

from benchlib import app_runs, app_tables, ways  # noqa: E402

FAKE_HINTERLAND = os.path.join(ROOT, "test", "programs", "selftest", "fake_hinterland")
RELEASE = "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\nCMAKE_CXX_FLAGS_RELWITHDEBINFO:STRING=-O2 -g -DNDEBUG\n"
# What it prints; between the two looks, hints brought 95 pages, and 5 faulted.
FAKE_APP = """#!/bin/sh
me=$(basename "$0")
[ "$me" = "$FAKE_BROKEN" ] && { echo "it is broken" >&2; exit 1; }
check=7
for word; do
  [ "$word" = --around ] || continue
  around=1
  [ "$me" = "$FAKE_LIAR" ] && check=8
done
counters() {
  echo '{"programs": [{"counters": {"faults_read": '$1', "faults_write": 1, "faults_write_protect": 1, "faults_refault": 1,
    "hint_pages_in": '$2', "hint_refaults": 2, "hint_protection_cleared": 0}}]}'
}
[ -n "$around" ] && around=', "around": ['$(counters 10 100)', '$(counters 15 195)']'
echo '{"seconds": 0.5, "operations": 8, "check": "'$check'", "footprint_bytes": 33554432'$around'}'
"""


def module_of(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(BENCH, "apps", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build, self.out = os.path.join(folder.name, "build"), os.path.join(folder.name, "out.json")
        os.makedirs(os.path.join(self.build, "bin"))
        os.makedirs(os.path.join(self.build, "bench", "apps"))
        os.symlink(FAKE_HINTERLAND, os.path.join(self.build, "bin", "hinterland"))
        for name in ("app_hashmap", "app_hashmap_plain"):
            path = os.path.join(self.build, "bench", "apps", name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(FAKE_APP)
            os.chmod(path, 0o755)
        self.cache(RELEASE)

    def cache(self, text):
        with open(os.path.join(self.build, "CMakeCache.txt"), "w", encoding="utf-8") as file:
            file.write(text)

    def run_it(self, *words, **environment):
        done = subprocess.run([os.path.join(BENCH, "apps", "run"), "--build", self.build, "--busy-ok", "--size", "32M",
                               "--apps", "hashmap", "--repeat", "2", "--local", "50,100", "--out", self.out, *words],
                              capture_output=True, text=True, timeout=100, env={**os.environ, **environment},
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def ways_of(self):
        with open(self.out, encoding="utf-8") as file:
            self.document = json.load(file)
        return {(way["kind"], way.get("local_percent")): way for way in self.document["runs"][0]["ways"]}

    def test_everything(self):
        code, out, errors = self.run_it()
        self.assertEqual(code, 0, errors)
        found = self.ways_of()
        self.assertEqual(set(found), {("native", None), ("native-hinted", None), ("far", 50), ("far", 100),
                                      ("far-hinted", 50), ("far-hinted", 100)})
        for way in found.values():
            self.assertEqual((len(way["samples"]), way["failure"]), (2, None))
            self.assertEqual(way["speed_of_native"], 1.0)
        self.assertEqual(found["far-hinted", 50]["coverage"], 0.95)
        self.assertIsNone(found["native", None]["coverage"])
        self.assertEqual({target["figure"]: target["met"] for target in self.document["targets"]},
                         {"hashmap, hinted, 100 % local: time against native": "met",
                          "hashmap: share of faults that hints spared": "missed", "hashmap: hinted lines": "met"})
        self.assertRegex(out, "far, hinted mem:, 50 % local +0.500 +0.500 +0.500 +1.000 +0.950")

    def test_another_result_far(self):
        code, out, errors = self.run_it(FAKE_LIAR="app_hashmap")
        self.assertEqual(code, 1)
        self.assertIn("check is 8, and natively 7: the results differ", errors)
        found = self.ways_of()
        self.assertEqual([], found["far-hinted", 50]["samples"])
        self.assertEqual(2, len(found["far", 50]["samples"]), "what was right is kept")
        self.assertIn("the results differ", out)

    def test_one_that_fails(self):
        code, _, errors = self.run_it(FAKE_BROKEN="app_hashmap")
        self.assertEqual(code, 1)
        self.assertIn("it is broken", errors)
        self.assertEqual(2, len(self.ways_of()["far", 100]["samples"]))
        code, _, errors = self.run_it(FAKE_BROKEN="app_hashmap_plain")
        self.assertEqual(code, 1)
        self.assertTrue(all(not way["samples"] for way in self.ways_of().values()), "without a native run there is none")

    def test_pages_lost(self):
        code, _, errors = self.run_it(FAKE_FAULT="lost")
        self.assertEqual(code, 1)
        self.assertIn("pages_lost: 3", errors)

    def test_what_it_refuses(self):
        for words, message in ((("--apps", "hashmop"), "no application or run 'hashmop'"), (("--local", "0"), "usage:"),
                               (("--local", "10,x"), "usage:"), (("--repeat", "0"), "usage:"),
                               (("--size", "many"), "usage:"), (("--size", "99999G"), "smaller --size"),
                               (("--apps", "kv"), "build it first")):
            code, out, errors = self.run_it(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(message, errors)
        self.cache("CMAKE_BUILD_TYPE:STRING=Debug\n")
        self.assertEqual(2, self.run_it()[0])
        self.assertFalse(os.path.exists(self.out))


class Lists(unittest.TestCase):
    def test_those_that_are_there(self):
        names = [run.name for run in app_runs.all_runs()]
        self.assertEqual(len(names), len(set(names)), "two runs of one name")
        self.assertTrue({"hashmap", "webservice", "webservice-flat", "kv", "kv-blocking"} <= set(names))
        known = {name for name, *_ in app_tables.TARGETS}
        self.assertTrue(known <= set(names), f"targets of runs that are not there: {known - set(names)}")

    def test_priority_is_heard(self):
        """Only the policy `priority` looks at ev_prio: without it a run measures the same as the flat one."""
        for run in app_runs.choose(["webservice"], ""):
            words = " ".join(run.run_options)
            self.assertEqual("--flat" not in run.options, "--policy priority" in words, run.name)

    def test_words_for_hinterland_run(self):
        run = app_runs.Run("x", "x", run_options=("--policy", "priority"))
        launcher = mock.Mock()
        launcher.run.side_effect = lambda local_bytes, url, report, options: ["run", *options]
        tools = mock.Mock(launcher=launcher, run_options=("--take", "move"))
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(ways.report, "read", return_value={}):
            with ways.Far("mem:").words(app_runs.Place(run, 40, 64 << 20), 0, tools, folder, {}) as words:
                self.assertEqual(words, ["run", "--policy", "priority", "--take", "move"])

    def test_all_runs_of_an_application_or_one(self):
        self.assertLess({"psort"}, {run.name for run in app_runs.choose(["psort"], "")})
        self.assertEqual(["psort"], [run.name for run in app_runs.choose(["psort"], "", exactly=True)])

    def test_programs_that_others_have_to_build(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertNotIn("memcached", [run.name for run in app_runs.choose([], folder)])
            self.assertEqual(["memcached"], [run.name for run in app_runs.choose(["memcached"], folder)][:1])
            for name in ("memcached-hinted", "memcached-plain"):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8"):
                    os.chmod(path, 0o755)
            self.assertIn("memcached", [run.name for run in app_runs.choose([], folder)])

    def test_damaged(self):
        for text in ("[", "{}", '[{"nom": "x"}]', '["x"]'):
            with tempfile.TemporaryDirectory() as folder, mock.patch.object(app_runs, "APPS", folder):
                os.mkdir(os.path.join(folder, "some"))
                for name, content in (("CMakeLists.txt", ""), ("runs.json", text)):
                    with open(os.path.join(folder, "some", name), "w", encoding="utf-8") as file:
                        file.write(content)
                if text == "{}":
                    self.assertEqual(app_runs.all_runs(), [])
                else:
                    with self.assertRaisesRegex(app_runs.Unknown, "some/runs.json"):
                        app_runs.all_runs()


class Figures(unittest.TestCase):
    def test_coverage(self):
        counters = dict.fromkeys(("faults_read", "faults_write", "faults_write_protect", "faults_refault",
                                  "hint_pages_in", "hint_refaults", "hint_protection_cleared"), 0)
        self.assertIsNone(app_runs.coverage({**counters, "hint_pages_in": 99}), "too few to tell")
        self.assertEqual(app_runs.coverage({**counters, "faults_read": 100}), 0)
        self.assertEqual(app_runs.coverage({**counters, "hint_refaults": 60, "hint_protection_cleared": 30,
                                            "faults_refault": 10}), 0.9)

    def test_the_better_swap_counts_and_others_runs_can_be_compared_with(self):
        run, flat = app_runs.Run("webservice", "webservice"), app_runs.Run("webservice-flat", "webservice")
        swap = [way for way in ways.SWAPS if way.swap == "zram"]
        series = [app_runs.Series(run, "swap", swap[0], 40, [{"seconds": 9}]),
                  app_runs.Series(run, "swap", swap[1], 40, [{"seconds": 6}]),
                  app_runs.Series(run, "far-hinted", ways.Far("mem:"), 40, [{"seconds": 2}]),
                  app_runs.Series(flat, "far-hinted", ways.Far("mem:"), 40, [{"seconds": 5}])]
        found = {figure: value for figure, value, *_ in app_tables.Results(series, {"webservice": 4}).targets()}
        self.assertEqual(found["webservice, 40 % local: swap over far-hinted"], 3)
        self.assertEqual(found["webservice, 40 % local: webservice-flat far-hinted over far-hinted"], 2.5)
        self.assertIsNone(found["webservice, hinted, 100 % local: time against native"])

    def test_budget(self):
        place = app_runs.Place(app_runs.Run("x", "x"), 25, 100 << 20)
        self.assertEqual((place.local_bytes(), place.must_page), (25 << 20, True))
        self.assertGreater(app_runs.Place(place.run, 100, 100 << 20).local_bytes(), 100 << 20)
        self.assertEqual(app_runs.Place(place.run, 1, 100 << 20).local_bytes(), 4 << 20)


class Counting(unittest.TestCase):
    def lines(self, text, name="x.cpp"):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            return [number for _, number, _ in module_of("count_hints").hinted_lines(folder)]

    def test_forms(self):
        for line in ("hl::read(p);", "hl_write(p);", "  hl::hint(p, {.size = 8});", "hl_hint(p, .mut = 1);",
                     "hl::seq_read(&a[i]);", "hl_seq_write(p);", "hl::prefetch(p, 8);", "hl::cold(p, 8);",
                     "hl::pinned keep(p, 8);", "if (x) hl_read(p); else hl_write(p);"):
            self.assertEqual(self.lines("int a;\n" + line + "\n"), [2], line)

    def test_what_is_none(self):
        self.assertEqual(self.lines('// hl::read(p);\n/* hl_read(p);\nhl_read(p); */\nputs("hl::read(p)");\n'
                                    "#include <hinterland/hint.hpp>\nxhl_read(p);\nhl::hints(p);\n"), [])
        self.assertEqual(self.lines("hl::read(p);", "x_test.cpp"), [])
        self.assertEqual(self.lines("hl::read(p);", "x.md"), [])


if __name__ == "__main__":
    unittest.main()
