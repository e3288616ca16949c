#!/usr/bin/python3
"""The soak runner with jobs of a second: verdicts, order, the estimate, and what it refuses."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import jobs  # noqa: E402
import run  # noqa: E402


def job(name, script, minutes=1, timed=True):
    return jobs.Job(name, minutes, "a test", lambda context: ["/bin/sh", "-c", script.format(context=context)], timed)


class Soak(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = folder.name
        os.mkdir(os.path.join(self.build, "bin"))
        with open(os.path.join(self.build, "bin", "hinterland"), "w", encoding="ascii"):
            pass

    def soak(self, table, *words):
        """(exit status, what it printed)."""
        out, before = io.StringIO(), sys.argv
        sys.argv = ["soak", "--build", self.build, *words]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                try:
                    status = run.main(table)
                except SystemExit as error:
                    status = error.code
        finally:
            sys.argv = before
        return status, out.getvalue()

    def test_verdicts_and_logs(self):
        status, out = self.soak((job("good", "echo minutes {context.minutes}"), job("bad", "echo broken; exit 3"),
                                 job("absent", "echo no such device; exit 77")))
        self.assertEqual(status, 1)
        self.assertRegex(out, r"\[1/3\] good +ok .*minutes 1")
        self.assertRegex(out, r"\[2/3\] bad +FAILED .*broken")
        self.assertRegex(out, r"\[3/3\] absent +skipped .*no such device")
        self.assertIn("1 well, 1 failed: bad, 1 skipped", out)
        with open(os.path.join(self.build, "soak", "bad.log"), encoding="ascii") as log:
            self.assertEqual(log.read(), "broken\n")

    def test_minutes_reach_timed_jobs_only(self):
        status, out = self.soak((job("a", "echo {context.seconds}"), job("b", "echo {context.seconds}", 2, False)),
                                "--minutes", "5")
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"a +ok .*: 300")
        self.assertRegex(out, r"b +ok .*: 120")
        self.assertIn("all done in about 7 min", out)

    def test_estimate_learns(self):
        table = (job("quick", "true", 60, False),)
        self.assertIn("all done in about 1 h 00 min", self.soak(table)[1])
        self.assertIn("all done in about 0 s", self.soak(table)[1])

    def test_only(self):
        table = (job("one", "true"), job("two", "false"), job("other", "true"))
        self.assertEqual(self.soak(table, "--only", "o*")[0], 0)
        self.assertEqual(self.soak(table, "--only", "two")[0], 1)
        self.assertEqual(self.soak(table, "--only", "three")[0], 2)

    def test_nothing_possible_is_not_well(self):
        self.assertEqual(self.soak((job("absent", "exit 77"),))[0], 77)

    def test_refused(self):
        self.assertEqual(self.soak((job("one", "true"),), "--minutes", "0")[0], 2)
        os.unlink(os.path.join(self.build, "bin", "hinterland"))
        self.assertEqual(self.soak((job("one", "true"),))[0], 2)

    def test_the_real_table(self):
        names = [entry.name for entry in jobs.JOBS]
        self.assertEqual(len(names), len(set(names)))
        context = jobs.Context("/build", 2)
        for entry in jobs.JOBS:
            words = [str(word) for word in entry.command(context)]
            self.assertTrue(os.access(words[0], os.X_OK), words[0])
            self.assertGreater(entry.minutes, 0)
        self.assertIn("120", [str(word) for word in jobs.JOBS[0].command(context)])
        status, out = self.soak(jobs.JOBS, "--list")
        self.assertEqual((status, len(out.splitlines())), (0, len(names)))


if __name__ == "__main__":
    unittest.main()
