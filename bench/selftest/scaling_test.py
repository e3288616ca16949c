"""bench/scaling reads what perf and the kernel count, and refuses what it does not know."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scaling")
LOADER = importlib.machinery.SourceFileLoader("scaling", TOOL)
scaling = importlib.util.module_from_spec(importlib.util.spec_from_loader("scaling", LOADER))
sys.dont_write_bytecode = True
LOADER.exec_module(scaling)


class Scaling(unittest.TestCase):
    def test_counts_of_perf(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("# started on some day\n\n6340;;context-switches;80731;100.00;;\n<not counted>;;cpu-migrations;0;0.00;;\n")
            file.flush()
            self.assertEqual(scaling.events(file.name), {"context-switches": 6340})

    def test_table(self):
        row = {name: 0.5 for name in scaling.COLUMNS}
        text = scaling.table({("message", 2): row}, markdown=True).splitlines()
        self.assertTrue(text[0].startswith("| faults | threads | ns an access | system calls |"))
        self.assertTrue(text[2].startswith("| message | 2 | 0 | 0.50 |"))

    def test_flushes_only_grow(self):
        before = scaling.flushes()
        self.assertGreaterEqual(scaling.flushes(), before)

    def test_wrong_options(self):
        for words, why in ((["--threads", "none"], "numbers"), (["--threads", "0"], "at least 1"), (["--fault", "luck"], "message or signal"),
                           (["sideways"], "invalid choice")):
            done = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)

    def test_a_folder_without_a_build(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([TOOL, "--build", folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2 if "perf" not in done.stderr else 1)
        self.assertRegex(done.stderr, "make|perf")


if __name__ == "__main__":
    unittest.main()
