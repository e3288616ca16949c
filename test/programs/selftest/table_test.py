#!/usr/bin/python3
"""bench/programs_table.py against a stand-in for the command: the table, the JSON, and what it refuses."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "..", "..", "..", "bench", "programs_table.py")


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "bin"))
        self.command = os.path.join(self.folder, "bin", "hinterland")
        shutil.copy(os.path.join(HERE, "fake_hinterland"), self.command)

    def run_table(self, *words, cache="CMAKE_BUILD_TYPE:STRING=Release\n", fault=""):
        if cache is not None:
            with open(os.path.join(self.folder, "CMakeCache.txt"), "w", encoding="utf-8") as file:
                file.write(cache)
        return subprocess.run([TABLE, "--hinterland", self.command, "--scale", "0.2", "--runs", "2", *words, "sort"],
                              capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "FAKE_FAULT": fault})

    def test_table_and_json(self):
        path = os.path.join(self.folder, "figures.json")
        done = self.run_table("--json", path, cache="CMAKE_BUILD_TYPE:STRING=Release\nHINTERLAND_SANITIZE:BOOL=OFF\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\| sort \| \d+ \| \d+\.\d\d \|( \d+\.\d\d \(\d+\.\d\d-\d+\.\d\d\) \|){9}")
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(document["schema_version"], 1)
        cells = document["results"][0]["far"]
        self.assertEqual(len(cells), 9)
        for cell in cells:
            self.assertEqual(len(cell["seconds"]), 2)
            self.assertEqual(cell["pages_in"], [12, 12])
        self.assertRegex(done.stdout, r"\| sort \|( 0\.0 \(0\.0-0\.0\) \|){9}")
        self.assertEqual(self.run_table("--json", path).returncode, 2)  # refuses to overwrite

    def test_failed_run_is_no_figure(self):
        done = self.run_table("--far", "mem:", "--share", "1", fault="wrong")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| failed |", done.stdout)
        self.assertIn("output differs", done.stderr)

    def test_interrupted(self):
        """What is complete is kept."""
        path = os.path.join(self.folder, "figures.json")
        with open(os.path.join(self.folder, "CMakeCache.txt"), "w", encoding="utf-8") as file:
            file.write("CMAKE_BUILD_TYPE:STRING=Release\n")
        words = [TABLE, "--hinterland", self.command, "--scale", "0.2", "--runs", "2", "--far", "mem:", "--json", path]
        with subprocess.Popen([*words, *["sort"] * 40], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as table:
            first = table.stderr.readline()  # the first of forty has ended
            table.terminate()
            out, errors = table.communicate(timeout=60)
        self.assertRegex(first, r"sort: \d+/\d+ runs")
        self.assertEqual(table.returncode, 1)
        self.assertIn("| sort |", out)
        with open(path, encoding="utf-8") as file:
            kept = len(json.load(file)["results"])
        self.assertIn(f"figures of {kept} programs are kept", errors)
        self.assertIn(kept, range(1, 40))

    def test_refused_builds(self):
        for cache in ("CMAKE_BUILD_TYPE:STRING=Debug\n", "CMAKE_BUILD_TYPE:STRING=\n", None,
                      "CMAKE_BUILD_TYPE:STRING=Release\nHINTERLAND_SANITIZE:BOOL=address\n"):
            if cache is None and os.path.exists(os.path.join(self.folder, "CMakeCache.txt")):
                os.unlink(os.path.join(self.folder, "CMakeCache.txt"))
            done = self.run_table(cache=cache)
            self.assertEqual(done.returncode, 2, cache)
            self.assertIn("programs_table:", done.stderr)


if __name__ == "__main__":
    unittest.main()
