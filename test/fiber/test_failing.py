#!/usr/bin/env python3
"""A device that fails while fibers are parked on hints: all of them go on, one message says what is lost, no byte is wrong.

test_failing.py HINTERLAND FAILING
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

HINTERLAND, FAILING = sys.argv.pop(1), sys.argv.pop(1)
FIBERS = 96


class Program:
    """The program under far memory, filled."""

    def __init__(self, test, url, *words, options=()):
        self._errors = tempfile.TemporaryFile()
        test.addCleanup(self._errors.close)
        self.process = subprocess.Popen(
            [HINTERLAND, "run", "--local", "4M", "--takeover", "start", "--far", url, "--timeout", "1s", *options, "--",
             FAILING, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        test.addCleanup(self._end)
        test.assertEqual(self.process.stdout.readline(), "filled\n", self.errors())

    def _end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def park(self, test):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        test.assertEqual(self.process.stdout.readline(), "parked\n", self.errors())

    def go_on(self, seconds=60):
        return self.process.communicate("\n", timeout=seconds)[0].splitlines()

    def errors(self):
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def messages(self):
        return [line for line in self.errors().splitlines() if line.startswith("hinterland: ")]


class Server:
    def __init__(self, test):
        self.process = subprocess.Popen([HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "256M"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        test.addCleanup(self._end)
        self.url = "tcp://" + re.search(r"127\.0\.0\.1:\d+", self.process.stdout.readline())[0]

    def _end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def figures(line):
    return [int(word) for word in re.findall(r"\d+", line)]


class Failing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if subprocess.run([HINTERLAND, "doctor"], capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest("this machine cannot run programs on far memory")

    def expect_all_went_on(self, program):
        went_on, memory = program.go_on()
        self.assertEqual(went_on, f"went on {FIBERS} of {FIBERS}")
        lost, right, wrong = figures(memory)
        self.assertEqual((lost + right, wrong), (6144, 0))
        self.assertGreater(lost, FIBERS)
        self.assertEqual(program.process.returncode, 0, program.errors())

    def test_all_reads_fail(self):
        program = Program(self, "sim:latency=200us,fail_reads=1,inner=mem:")
        program.park(self)
        self.expect_all_went_on(program)
        self.assertRegex(program.messages()[0], "cannot be had from sim:.*SIGBUS")

    def frozen(self, *words):
        """A program, and its server, which does not answer any longer."""
        server = Server(self)
        program = Program(self, server.url, *words)
        server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
        return server, program

    def expect_one_message(self, program):
        """One error; and one warning at most, where a thread's first hint could not be begun."""
        warnings = [line for line in program.messages() if "warning: hints cannot fetch" in line]
        said = [line for line in program.messages() if line not in warnings]
        self.assertEqual((len(said), len(warnings) <= 1), (1, True), program.errors())
        self.assertRegex(said[0], r"the far device tcp:.* is gone: \d+ pages")
        return warnings

    def test_the_server_is_killed(self):
        server, program = self.frozen()
        program.park(self)
        server.process.kill()
        self.expect_all_went_on(program)
        self.expect_one_message(program)

    def test_the_server_never_answers(self):
        _, program = self.frozen()
        program.park(self)
        self.expect_all_went_on(program)
        self.expect_one_message(program)

    def test_the_server_does_not_answer_the_first_hint(self):
        """Not even connections for hints can be made: that is said once, and not waited for by each hint."""
        _, program = self.frozen("cold")
        program.park(self)
        self.expect_all_went_on(program)
        self.assertEqual(len(self.expect_one_message(program)), 1, program.errors())

    def test_touching_what_is_lost_ends_the_program(self):
        _, program = self.frozen("touch")
        program.go_on()  # the first that is given up ends it, maybe before the last is parked
        self.assertEqual(program.process.returncode, -signal.SIGBUS, program.errors())
        self.expect_one_message(program)

    def test_pages_that_faults_have_parked_for_are_lost(self):
        """By signal; the fibers leave in the midst of an access, and meet the loss there."""
        program = Program(self, "sim:latency=20ms,fail_reads=1,inner=mem:", "fault", options=("--fault", "signal"))
        program.go_on()
        self.assertEqual(program.process.returncode, -signal.SIGBUS, program.errors())
        self.assertRegex(program.messages()[0], "cannot be had from sim:.*SIGBUS")


if __name__ == "__main__":
    unittest.main(verbosity=2)
