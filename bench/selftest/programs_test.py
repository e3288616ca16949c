#!/usr/bin/python3
"""The programs floor and access, small and short: that they measure what they say, and what they refuse.

    programs_test.py FOLDER     build/bench, where the two are
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

FOLDER = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bench"
SMALL = ("--size", "16M", "--local", "4M", "--primitive-size", "1M", "--seconds", "0.002", "--repeat", "2")
DEBUG = "debug build"


def run(name, *words):
    done = subprocess.run([os.path.join(FOLDER, name), *words], capture_output=True, text=True, timeout=100,
                          check=False)
    if DEBUG in done.stderr:
        raise unittest.SkipTest("a debug build refuses to measure")
    return done.returncode, done.stdout, done.stderr


class Access(unittest.TestCase):
    def access(self, *words):
        code, out, errors = run("access", *words)
        self.assertEqual(code, 0, errors)
        return json.loads(out)

    def test_every_pattern(self):
        for pattern in ("first-touch", "sequential-read", "sequential-write", "random-read", "random-write",
                        "read-call", "write-call"):
            for more in ((), ("--threads", "2", "--malloc", "--pipe", "--piece", "256K")):
                said = self.access(pattern, "--size", "2M", "--content", "zero", *more)
                self.assertEqual((said["pattern"], said["accesses"]), (pattern, 512))
                self.assertGreater(said["seconds"], 0)
                self.assertAlmostEqual(said["ns_per_access"] * 512 / 1e9, said["seconds"], places=6)
                self.assertGreater(said["resident_anonymous_bytes"], 2 << 20)

    def test_the_same_seed_is_the_same_work(self):
        sums = [self.access("random-read", "--size", "2M", "--seed", seed)["checksum"] for seed in ("3", "3", "4")]
        self.assertEqual(sums[0], sums[1])
        self.assertNotEqual(sums[0], sums[2])

    def test_bad_input(self):
        for words in (("nonsense",), (), ("random-read", "--size", "1K"), ("random-read", "--size", "0"),
                      ("random-read", "--threads", "0"), ("read-call", "--piece", "100"),
                      ("random-read", "--threads", "2", "--accesses", "3")):
            code, out, errors = run("access", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertTrue(errors)

    def test_a_folder_that_cannot_be_used(self):
        code, _, errors = run("access", "read-call", "--size", "1M", "--folder", "/nowhere")
        self.assertEqual(code, 1)
        self.assertIn("/nowhere", errors)


class Floor(unittest.TestCase):
    def test_everything(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "floor.json")
            code, out, errors = run("floor", *SMALL, "--json", path)
            if "userfaultfd" in errors:
                self.skipTest(errors.strip())
            self.assertEqual(code, 0, errors)
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        names = run("floor", "--list")[1].split()
        self.assertEqual([figure["name"] for figure in document["figures"]], names)
        for figure in document["figures"]:
            self.assertIn(figure["name"], out)
            if "skipped" not in figure:
                self.assertTrue(0 < figure["min"] <= figure["median"] <= figure["max"], figure)
                self.assertGreaterEqual(len(figure["values"]), 2)
        measured = [figure for figure in document["figures"] if "skipped" not in figure]
        self.assertGreater(len(measured), 10)

    def test_bad_input(self):
        for words in (("--only", "nonsense"), ("--size", "1M", "--local", "1M"), ("--size", "x"),
                      ("--size", "1000000G"), ("--repeat", "0"), ("--local", "0"), ("--size", "3000K")):
            code, _, errors = run("floor", *words)
            self.assertEqual(code, 2, words)
            self.assertTrue(errors)


if __name__ == "__main__":
    unittest.main()
