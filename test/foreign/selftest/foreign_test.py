#!/usr/bin/python3
"""What counts as lost, against a stand-in for the command that spoils what programs print."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FOREIGN = os.path.dirname(HERE)
PROGRAMS = os.path.join(os.path.dirname(FOREIGN), "programs")
sys.path[:0] = [FOREIGN, PROGRAMS]
sys.dont_write_bytecode = True

from cases import ALL  # noqa: E402
from cases.commands import Commands  # noqa: E402
from passes import Lost, Passes  # noqa: E402

RUN = os.path.join(FOREIGN, "run.py")
FAKE = os.path.join(PROGRAMS, "selftest", "fake_hinterland")


class _Some(Passes):
    def __init__(self):
        super().__init__()

    tries = 2


class Compare(unittest.TestCase):
    def test_what_passes_natively_must_pass(self):
        _Some().compare({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3})  # more is not less
        for far in ({"a": 1}, {"a": 1, "b": 3}, {}):
            with self.assertRaises(Lost) as raised:
                _Some().compare({"a": 1, "b": 2}, dict(far))
            self.assertEqual(raised.exception.passed, 1 if far else 0)
            self.assertIn("b (", str(raised.exception))

    def test_a_second_try_counts_with_the_first(self):
        program = _Some()
        program.start_over()
        with self.assertRaises(Lost):
            program.compare({"a": 1, "b": 2}, {"a": 1})
        program.compare({"a": 1, "b": 2}, {"b": 2})
        program.start_over()  # another device
        with self.assertRaises(Lost):
            program.compare({"a": 1, "b": 2}, {"b": 2})


class Runner(unittest.TestCase):
    def run_foreign(self, *words, fault=""):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["/usr/bin/python3", RUN, "--hinterland", FAKE, "--scale", "0.01", *words], text=True,
                                  capture_output=True, timeout=100, check=False,
                                  env={**os.environ, "FAKE_FAULT": fault, "TMPDIR": folder})
            self.assertEqual(os.listdir(folder), [], "files left behind")
        return done.returncode, done.stdout

    def test_passes_are_counted(self):
        status, out = self.run_foreign("perl", "sqlite-shell")
        if "skipped" in out:
            self.skipTest(out)
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"perl +mem: +ok +14 passes")
        self.assertRegex(out, r"\nprogram +native +mem: +zmem:\nperl +14 +14 +14\n")

    def test_a_wrong_value_is_a_loss(self):
        status, out = self.run_foreign("--far", "mem:", "perl", fault="wrong")
        self.assertEqual(status, 1, out)
        self.assertRegex(out, r"perl +mem: +FAILED +\d+ of 14 lost: ")

    def test_faults_of_the_command_are_failures(self):
        for fault, words in (("die", "exit status 139"), ("silent", "left no file"), ("lost", "pages_lost: 3")):
            status, out = self.run_foreign("--far", "mem:", "perl", fault=fault)
            self.assertEqual(status, 1, out)
            self.assertIn(words, out)

    def test_what_cannot_be_had_is_skipped(self):
        status, out = self.run_foreign("perl", fault="unable")
        self.assertEqual(status, 77, out)

    def test_refused(self):
        for words in (["nonsense"], ["--local-share", "0"]):
            self.assertEqual(self.run_foreign(*words)[0], 2)

    def test_the_table(self):
        short = [name for name, program in ALL.items() if program.in_short]
        self.assertIn("python-short", short)
        self.assertNotIn("postgres", short)
        done = subprocess.run([RUN, "--list"], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(len(done.stdout.splitlines()), len(ALL))


class CommandList(unittest.TestCase):
    def test_only_what_ends_well_passes(self):
        class Two(Commands):
            def commands(self):
                return ("good", "echo hello"), ("bad", "echo hello; exit 3")

        with tempfile.TemporaryDirectory() as folder:
            program = Two(folder, 1, 1)
            subprocess.run(program.command(), cwd=folder, check=True, timeout=30)
            self.assertEqual(list(program.answer(None)), ["good"])


if __name__ == "__main__":
    unittest.main()
