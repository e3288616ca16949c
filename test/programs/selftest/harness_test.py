#!/usr/bin/python3
"""The harness itself, against a stand-in for the command: it must see each fault and leave nothing behind."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True

from harness import memory, report, suite, units  # noqa: E402
from harness.errors import Failure  # noqa: E402
from harness.process import Process  # noqa: E402

RUN = os.path.join(HERE, "..", "run.py")
FAKE = os.path.join(HERE, "fake_hinterland")


class WithFake(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def run_sort(self, *words, fault="", program="sort"):
        """(exit status, stdout). Asserts that no file and no process outlives the run."""
        folder = self._folder.name
        done = subprocess.run(["/usr/bin/python3", RUN, "--hinterland", FAKE, *words, program], text=True,
                              capture_output=True, timeout=100, check=False,
                              env={**os.environ, "FAKE_FAULT": fault, "TMPDIR": folder})
        self.assertEqual(os.listdir(folder), [], "files left behind")
        mine = [pid for pid in os.listdir("/proc") if pid.isdigit() and folder in _command_line(pid)]
        self.assertEqual(mine, [], "processes left behind")
        return done.returncode, done.stdout

    def test_equal_results_are_ok_on_every_device(self):
        code, out = self.run_sort("--quick")
        self.assertEqual(code, 0, out)
        self.assertEqual([line.split()[1:3] for line in out.splitlines()],
                         [[device, "ok"] for device in ("mem:", "zmem:", "file:", "tcp:")])
        self.assertIn("12 pages in, 34 out", out)

    def test_servers_are_driven(self):
        for program in ("redis", "memcached"):
            code, out = self.run_sort("--quick", "--far", "mem:", program=program)
            self.assertIn(code, (0, 77), out)
            self.assertRegex(out, " ok  | skipped  .* is not installed")

    def test_wrong_output_is_seen(self):
        code, out = self.run_sort("--quick", "--far", "mem:", fault="wrong")
        self.assertEqual(code, 1)
        self.assertIn("output differs", out)

    def test_too_much_resident_memory_is_seen(self):
        code, out = self.run_sort("--far", "mem:")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"sort had \d+ MiB resident, \d+ MiB is the most for a budget of")

    def test_each_fault_is_named(self):
        for fault, words in (("die", "exit status 139"), ("silent", "--report left no file"),
                             ("lost", "pages_lost: 3")):
            code, out = self.run_sort("--quick", "--far", "mem:", fault=fault)
            self.assertEqual(code, 1)
            self.assertIn(words, out)

    def test_hanging_program_is_ended(self):
        started = time.monotonic()
        code, out = self.run_sort("--quick", "--timeout", "2", "--far", "mem:", fault="hang")
        self.assertEqual(code, 1)
        self.assertIn("still running after 2 s", out)
        self.assertLess(time.monotonic() - started, 30)

    def test_skip_where_doctor_says_no(self):
        code, out = self.run_sort("--quick", fault="unable")
        self.assertEqual(code, 77)
        self.assertIn("userfaultfd: not permitted here", out)

    def test_usage(self):
        self.assertEqual(self.run_sort(program="sprt")[0], 2)
        self.assertEqual(self.run_sort("--local-share", "7")[0], 2)
        done = subprocess.run([RUN, "--hinterland", "/nonexistent", "sort"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"build it first", done.stderr)

    def test_interrupt_leaves_nothing(self):
        folder = self._folder.name
        with subprocess.Popen([RUN, "--hinterland", FAKE, "--far", "tcp:", "sort"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "FAKE_FAULT": "hang", "TMPDIR": folder}
                              ) as runner:
            _until(lambda: len(memory.tree(runner.pid)) > 2)
            pids = memory.tree(runner.pid)[1:]
            runner.terminate()
            self.assertEqual(runner.wait(20), 1)
        _until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
        self.assertEqual(os.listdir(folder), [])


class Parts(unittest.TestCase):
    def test_what_was_there_when_paging_began_may_be_resident(self):
        slack = suite.SLACK_BYTES
        self.assertEqual(suite.most_resident(16 << 20, 0, {}), (16 << 20) + slack)
        self.assertEqual(suite.most_resident(16 << 20, 0, {"takeover_resident_bytes": 14 << 20}), (16 << 20) + slack)
        self.assertEqual(suite.most_resident(16 << 20, 0, {"takeover_resident_bytes": 47 << 20}), (47 << 20) + slack)

    def test_sizes(self):
        self.assertEqual(units.parse_size("64M"), 64 << 20)
        self.assertEqual(units.parse_size("1.5G"), 3 << 29)
        self.assertEqual(units.parse_size("4096"), 4096)
        for wrong in ("", "M", "-1", "0", "7X"):
            with self.assertRaises(ValueError):
                units.parse_size(wrong)

    def test_peak_of_the_largest_process_of_the_tree(self):
        script = "x = bytearray(50 << 20); import time; time.sleep(0.3)"
        with Process(["/bin/sh", "-c", f"/usr/bin/python3 -c '{script}'; true"]) as process:
            self.assertEqual(process.wait(20), 0)
            name, peak = process.sampler.hog()
        self.assertEqual(name, "python3")
        self.assertGreater(peak, 50 << 20)
        self.assertLess(peak, 80 << 20)

    def test_report_figures_of_several_processes(self):
        one = {"counters": {"pages_in": 3, "pages_out": {"value": 4}}, "gauges": {"far_bytes": 10}}
        two = {"counters": {"pages_in": 5, "pages_out": {"value": 1}}, "gauges": {"far_bytes": 7}}
        figures = report.figures({"schema_version": 1, "processes": [one, two], "total": {"pages_in": 8}})
        self.assertEqual((figures["pages_in"], figures["pages_out"], figures["far_bytes"]), (8, 5, 10))

    def test_report_that_is_none(self):
        with tempfile.NamedTemporaryFile("w") as file:
            for text in ("", "[]", '{"pages_in": 1}', '{"schema_version": 1, "pages_in": 1}'):
                file.seek(0)
                file.truncate()
                file.write(text)
                file.flush()
                with self.assertRaises(Failure):
                    report.read(file.name)


def _command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("did not happen in time")
        time.sleep(0.02)


if __name__ == "__main__":
    unittest.main(verbosity=1)
