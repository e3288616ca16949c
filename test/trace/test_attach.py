"""Recording a program that runs already: begins and ends on request, and the program never notices."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from support import HINTERLAND, PAGES, SUBJECT, TraceTest
from test_recording import without_sampling

UNTIL_TOLD = "1000"  # rounds of the subject: more than any test waits for


class Attach(TraceTest):
    def begin(self, *words, local="16M", options=()):
        """A program under `hinterland run`, once it pages."""
        program = subprocess.Popen([HINTERLAND, "run", "--local", local, "--far", "mem:", *options, "--", *words],
                                   env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline:
            done = self.call("stat", str(program.pid), "--json")
            if done.returncode == 0 and any(each["managed"] for each in find(json.loads(done.stdout), "managed")):
                return program
            time.sleep(0.05)
        self.fail("the program did not begin to page")

    def begin_subject(self):
        return self.begin(SUBJECT, str(PAGES), UNTIL_TOLD)

    def ends_well(self, program):
        """When told to, with the result that so many rounds have natively."""
        program.send_signal(signal.SIGUSR1)
        output = program.stdout.read()
        self.assertEqual(program.wait(timeout=100), 0)
        rounds = re.fullmatch(r"\d+ in (\d+) rounds\n", output)
        self.assertIsNotNone(rounds, output)
        plain = subprocess.run([SUBJECT, str(PAGES), rounds[1]], capture_output=True, text=True, check=True)
        self.assertEqual(output, plain.stdout)

    def attach(self, program, *options, output="t.trace", **more):
        return self.call("trace", "--attach", str(program.pid), "-o", output, *options, **more)

    def attach_in_background(self, program, output="t.trace"):
        """Once it has recorded something."""
        tracer = subprocess.Popen([HINTERLAND, "trace", "--attach", str(program.pid), "-o", output],
                                  env=self.environment, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tracer.stderr.close)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.kill)
        deadline = time.monotonic() + 100
        while os.path.getsize(self.path(output)) < 20000 if os.path.exists(self.path(output)) else True:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(tracer.poll(), "the tracer ended")
            time.sleep(0.02)
        return tracer

    def test_for_some_seconds_and_again(self):
        program = self.begin_subject()
        for output in ("t.trace", "again.trace"):
            done = self.attach(program, "--seconds", "1", output=output)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = self.report(output, "--by", "function")
            self.assertEqual(report["process_id"], program.pid)
            self.assertTrue(report["complete"])
            self.assertGreater(report["faults"], 0)  # how many, is the machine's affair
            self.assertLess(report["traced_s"], 5)
            self.assertEqual(report["sites"][0]["function"], "read_pages")
            if "does not let page faults be sampled" not in done.stderr:
                self.assertGreater(report["stacks_complete_share"], 0.9)
        self.ends_well(program)
        self.assertEqual(self.files_left(), [])

    def test_until_interrupted(self):
        program = self.begin_subject()
        tracer = self.attach_in_background(program)
        tracer.send_signal(signal.SIGINT)
        self.assertEqual(tracer.wait(timeout=100), 0)
        self.assertIn("hinterland report t.trace", tracer.stderr.read())
        self.assertGreater(self.report("t.trace")["faults"], 0)
        self.ends_well(program)

    def test_until_the_program_ends(self):
        program = self.begin_subject()
        tracer = self.attach_in_background(program)
        self.ends_well(program)
        self.assertEqual(tracer.wait(timeout=100), 0)
        self.assertTrue(self.report("t.trace")["complete"])
        self.assertEqual(self.files_left(), [])

    def test_threads_that_run_and_start(self):
        program = self.begin(SUBJECT, str(PAGES), UNTIL_TOLD, "4")
        done = self.attach(program, "--seconds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.need_kernel_sampling(done)
        report = self.report("t.trace", "--by", "thread")
        self.assertEqual(len(report["sites"]), 4, report["sites"])

    def test_without_move(self):
        """The signal library is there, too, and faults are messages all the same."""
        program = self.begin(SUBJECT, str(PAGES), UNTIL_TOLD, options=("--without", "move"))
        done = self.attach(program, "--seconds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.need_kernel_sampling(done)
        report = self.report("t.trace", "--by", "function")
        self.assertEqual(report["sites"][0]["function"], "read_pages")
        self.ends_well(program)

    def test_served_by_signal(self):
        program = self.begin(SUBJECT, str(PAGES), UNTIL_TOLD, options=("--fault", "signal"))
        done = self.attach(program, "--seconds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.report("t.trace", "--by", "function")
        self.assertEqual(report["sites"][0]["function"], "read_pages")
        self.need_kernel_sampling(done)
        self.assertGreater(report["stacks_complete_share"], 0.9)
        self.ends_well(program)

    def test_tracer_killed(self):
        """The program goes on, and can be traced again at once."""
        program = self.begin_subject()
        tracer = self.attach_in_background(program)
        tracer.kill()
        tracer.wait()
        done = self.attach(program, "--seconds", "1", output="second.trace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.report("second.trace")["faults"], 0)
        self.assertGreater(self.report("t.trace")["faults"], 0)
        self.ends_well(program)

    def test_two_at_once(self):
        program = self.begin_subject()
        self.attach_in_background(program)
        done = self.attach(program, output="second.trace")
        self.assertEqual(done.returncode, 1)
        self.assertIn("traced already", done.stderr)
        self.assertFalse(os.path.exists(self.path("second.trace")))
        done = self.call("tune", str(program.pid), "--local", "24M")  # by the same way, meanwhile
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_traced_from_its_start(self):
        tracer = subprocess.Popen([HINTERLAND, "trace", "--local", "16M", "--far", "mem:", "-o", "t.trace", "--", SUBJECT,
                                   str(PAGES), "20"], env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(tracer.stdout.close)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.kill)
        deadline = time.monotonic() + 100
        pid = None
        while pid is None and time.monotonic() < deadline:
            for row in self.call("stat").stdout.splitlines():
                if row.split()[1:2] == ["subject"] and os.path.exists(self.path("t.trace")):
                    pid = row.split()[0]
        done = self.call("trace", "--attach", str(pid), "-o", "second.trace")
        self.assertEqual(done.returncode, 1)
        self.assertIn("traced already", done.stderr)

    def test_allocations_from_then_on(self):
        program = self.begin(os.path.join(os.path.dirname(SUBJECT), "allocating"), "1024", "300")
        done = self.attach(program, "--seconds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.report("t.trace", "--by", "allocation")
        self.assertAlmostEqual(sum(site["share"] for site in report["sites"]), 1, delta=0.01)
        self.assertLessEqual(report["attributed_share"], 1)

    def test_sampling_not_permitted(self):
        program = self.begin_subject()
        done = self.attach(program, "--seconds", "1", preexec_fn=without_sampling)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kernel.perf_event_paranoid", done.stderr)
        report = self.report("t.trace", "--by", "function")
        self.assertIn("innermost", report["stacks_from"])
        self.assertEqual(report["sites"][0]["function"], "read_pages")

    def test_no_fault(self):
        sleeper = subprocess.Popen([HINTERLAND, "run", "--local", "64M", "--far", "mem:", "--", "/bin/sleep", "250"],
                                   env=self.environment, cwd=self.folder)
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        deadline = time.monotonic() + 100
        while self.call("stat", str(sleeper.pid)).returncode != 0:
            self.assertLess(time.monotonic(), deadline)
        done = self.attach(sleeper, "--seconds", "1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("no fault on far memory in that time", done.stderr)
        self.assertFalse(os.path.exists(self.path("t.trace")))

    def test_what_cannot_be(self):
        program = self.begin_subject()
        pid = str(program.pid)
        with open(self.path("there.trace"), "w", encoding="utf-8") as file:
            file.write("precious")
        stranger = subprocess.Popen(["/bin/sleep", "250"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        for words, status, says in (
                (("--attach", "abc"), 2, "not a process id"),
                (("--attach", "4194304"), 1, "there is no process"),
                (("--attach", str(stranger.pid)), 1, "does not run under Hinterland"),
                (("--attach", pid, "-o", "there.trace"), 1, "--force"),
                (("--attach", pid, "-o", "/no/such/folder/t.trace"), 1, "cannot be made"),
                (("--attach", pid, "--", "/bin/true"), 2, "leave one of them out"),
                (("--attach", pid, "--local", "8M"), 2, "hinterland tune"),
                (("--attach", pid, "--sizes", "10"), 2, "is for a program that is started"),
                (("--attach", pid, "--seconds", "0"), 2, "--seconds"),
                (("--seconds", "3", "--", "/bin/true"), 2, "--attach")):
            done = self.call("trace", *words)
            self.assertEqual(done.returncode, status, (words, done.stderr))
            self.assertIn(says, done.stderr)
        with open(self.path("there.trace"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")
        program.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, program.pid, os.WSTOPPED)  # with all of its threads
        done = self.attach(program, "--seconds", "1")
        program.send_signal(signal.SIGCONT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is it stopped?", done.stderr)
        self.assertFalse(os.path.exists(self.path("t.trace")))

    def test_somebody_elses(self):
        if os.geteuid() != 0:
            self.skipTest("only root can act for another user")
        program = self.begin_subject()
        try:
            done = self.call("trace", "--attach", str(program.pid), preexec_fn=lambda: os.setuid(65534))
        except PermissionError:
            self.skipTest("another user cannot reach the command")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("is not yours", done.stderr)


def find(tree, name):
    """The objects in a tree of JSON that have the name."""
    if isinstance(tree, dict):
        if name in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for each in tree:
            yield from find(each, name)


if __name__ == "__main__":
    unittest.main()
