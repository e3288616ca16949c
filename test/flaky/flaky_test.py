#!/usr/bin/python3
"""Which tests a change touches, and that a test which fails only sometimes is found (run.py).

    flaky_test.py BUILD
"""

import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1))


class WhichTests(unittest.TestCase):
    def own(self, command, folder=""):
        test = {"command": command, "properties": [{"name": "WORKING_DIRECTORY", "value": folder}]}
        return run.own_files(test, run.Sources(BUILD), BUILD)

    def test_a_program_s_own_files_are_its_tests_and_not_what_they_test(self):
        files = self.own([os.path.join(BUILD, "bin", "json_test")])
        self.assertIn("src/base/json_test.cpp", files)
        self.assertNotIn("src/base/json.cpp", files)

    def test_sources_that_are_compiled_together_are_found(self):
        self.assertIn("src/base/options_test.cpp", self.own([os.path.join(BUILD, "bin", "options_test")]))

    def test_a_script_and_a_folder_of_modules_count(self):
        script = os.path.join(run.ROOT, "test", "preload", "compare.py")
        self.assertEqual(self.own(["python3", script]), {"test/preload/compare.py"})
        folder = os.path.join(run.ROOT, "test", "cli")
        self.assertIn("test/cli/command.py", self.own(["python3", "-m", "unittest", "test_running"], folder))


class Rounds(unittest.TestCase):
    def test_a_test_that_fails_at_its_third_run_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            count = os.path.join(folder, "count")
            script = f"echo x >> {count}; test $(wc -l < {count}) -lt 3"
            with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
                file.write(f'add_test(steady "true")\nadd_test(now_and_then "sh" "-c" "{script}")\n')
            os.mkdir(os.path.join(folder, "flaky"))
            failed = self.failures(folder, 2)
            self.assertEqual(failed, [])
            os.unlink(count)
            self.assertEqual(self.failures(folder, 3), ["now_and_then"])

    def failures(self, folder, times):
        first = str(min(os.sched_getaffinity(0)))
        arguments = types.SimpleNamespace(build=folder, times=times)
        return list(run.rounds("here", first, 0, {1: "steady", 2: "now_and_then"}, arguments))


class Usage(unittest.TestCase):
    def test_a_commit_that_is_not_there_is_said(self):
        done = subprocess.run([os.path.join(os.path.dirname(run.__file__), "run.py"), "--since", "nowhere", "--build",
                               BUILD], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main()
