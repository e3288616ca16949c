"""Recording: the program's result stays, every fault is there, and so is a file whatever goes wrong."""

import ctypes
import errno
import json
import os
import re
import signal
import struct
import subprocess
import time
import unittest

from support import HINTERLAND, PAGES, SUBJECT, TraceTest


def children_of(pid):
    found = []
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{other}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
        found += [int(other)] if parent == pid else []
    return found


class Stacks(TraceTest):
    """Stacks are a sample. Those that the kernel had no room for, because the recorder did not get a CPU, are counted:
    what must hold with every scheduler takes that into account. (How long it may be away depends on how fast the
    program faults: what needs nearly all stacks asks for a whole_trace.)"""

    def check_known(self, report):
        """The stacks stand for as many faults as there were, but for those that were lost. (Of these some belonged to
        faults on other memory.)"""
        known = report["stacks_stand_for_faults"] / report["faults"]
        lost = report["stacks_lost_stand_for_faults"] / report["faults"]
        self.assertLess(known, 1.1, self.figures(report))
        self.assertGreater(known + lost, 0.9, self.figures(report))

    def check_faults(self, report, counters):
        """By kind they are those of the runtime's own counters, but for those that found the ring full."""
        lost = report["faults_lost"]
        for kind, counter in (("first touch", "faults_first_touch"), ("read", "faults_read"),
                              ("write", "faults_write"), ("write-protect", "faults_write_protect"),
                              ("refault", "faults_refault")):
            missing = counters[counter] - report["faults_by_kind"][kind]
            # One may be under way when the process ends: recorded, and not counted any more.
            self.assertGreaterEqual(missing, -1, (kind, counters, self.figures(report)))
            self.assertLessEqual(missing, lost + 1, (kind, counters, self.figures(report)))

    def figures(self, report):
        return {key: value for key, value in report.items() if isinstance(value, (int, float, bool)) or key == "remarks"}


class Recording(Stacks):
    def test_the_program_is_as_without(self):
        plain = subprocess.run([SUBJECT, str(PAGES), "2"], capture_output=True, text=True, check=True)
        traced = self.trace(SUBJECT, str(PAGES), "2")
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertEqual(traced.stdout, plain.stdout)
        self.assertIn("hinterland report t.trace", traced.stderr)
        self.assertEqual(self.trace("/bin/sh", "-c", "exit 7", output="u.trace").returncode, 7)

    def test_faults_are_all_there(self):
        """The trace's counts are those of the runtime's own counters, by kind."""
        self.whole_trace(SUBJECT, str(PAGES), "2", options=("--report", "run.json", "--force"))
        with open(self.path("run.json"), encoding="utf-8") as file:
            counters = json.load(file)["totals"]["counters"]
        report = self.report("t.trace")
        self.check_faults(report, counters)
        self.assertGreater(report["faults_by_kind"]["read"] + report["faults_lost"], PAGES / 2)
        self.assertTrue(report["complete"])

    def test_a_sample_stands_for_all(self):
        """With few stacks the shares are those with many: reads, writes and copies 8 : 2 : 1."""
        self.whole_trace(SUBJECT, str(PAGES), "8", options=("--rate", "500", "--force"))
        report = self.report("t.trace", "--top", "1000", "--by", "function")
        self.assertLess(report["stacks"], report["faults"] / 4)
        self.check_known(report)
        sites = {site["function"]: site["faults"] for site in report["sites"]}
        self.assertAlmostEqual(sum(sites.values()) / report["faults"], 1, delta=0.02)
        self.assertAlmostEqual(sites["write_pages"] / sites["read_pages"], 1 / 4, delta=0.15)

    def test_stacks_stand_for_the_faults_that_were(self):
        """At the default rate they stand for as many faults as there were, and hardly one is lost."""
        for threads in ("1", "4"):
            self.whole_trace(SUBJECT, str(PAGES), "2", threads, options=("--force",))
            report = self.report("t.trace")
            self.assertGreater(report["stacks"] + report["stacks_lost"], 50, self.figures(report))
            self.assertLess(report["stacks"], report["faults"] / 7)  # one in 13 and one in 17, at most
            self.check_known(report)

    def test_a_late_recorder_says_what_it_lost(self):
        """It is stopped for a while, again and again: what the kernel had no room for is counted, and why is said."""
        words = [HINTERLAND, "trace", "--local", "16M", "--far", "mem:", "-o", "t.trace", "--rate", "0", "--", SUBJECT,
                 str(PAGES), "6"]
        with subprocess.Popen(words, env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as recorder:
            while recorder.poll() is None:
                os.kill(recorder.pid, signal.SIGSTOP)
                time.sleep(0.2)
                os.kill(recorder.pid, signal.SIGCONT)
                time.sleep(0.05)
            errors = recorder.stderr.read()
        self.assertEqual(recorder.returncode, 0, errors)
        if "does not let page faults be sampled" in errors:
            self.skipTest("the kernel does not let this user sample page faults (kernel.perf_event_paranoid)")
        report = self.report("t.trace")
        self.assertGreater(report["stacks_lost"], 0)
        self.assertGreater(report["recorder_away_s"], 0.15)
        self.assertEqual(report["stacks_lost_stand_for_faults"], report["stacks_lost"])  # a stack with every fault
        self.assertRegex(self.call("report", "t.trace").stdout, r"\d+ lost \(the recorder took none for up to ")
        self.assertEqual("nobody knows the place" in self.call("advise", "t.trace").stderr,
                         report["stacks_lost"] > report["faults"] // 10, self.figures(report))

    def test_every_fault_with_rate_0(self):
        done = self.trace(SUBJECT, str(PAGES), "1", options=("--rate", "0"))
        self.need_kernel_sampling(done)
        report = self.report("t.trace")
        self.assertGreater(report["stacks"] + report["stacks_lost"], 0.95 * report["faults"])

    def test_children_get_their_own(self):
        done = self.trace(SUBJECT, "fork", str(PAGES), "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        traces = sorted(name for name in os.listdir(self.folder) if name.startswith("t.trace"))
        self.assertEqual(len(traces), 2, traces)
        processes = set()
        for name in traces:
            report = self.report(name)
            processes.add(report["process_id"])
            self.assertGreater(report["faults_by_kind"]["read"], PAGES / 2, name)
        self.assertEqual(len(processes), 2)

    def test_many_children(self):
        """Each has its trace, and the rings of those that ended do not pile up in memory: the next one waits until
        they are gone, which fails after half a minute."""
        rings = os.path.join(self.figures_folder, "run-*", "rings")
        wait = (f"tries=0; while set -- {rings}/*; [ $# -gt 1 ]; do "  # one is the shell's
                "tries=$((tries + 1)); [ $tries -lt 300 ] || exit 9; LD_PRELOAD= /bin/sleep 0.1; done")
        done = self.call("trace", "--local", "8M", "--far", "mem:", "--takeover", "start", "-o", "t.trace", "--",
                         "/bin/sh", "-c", f"for i in 0 1 2 3 4 5 6 7 8 9; do {SUBJECT} {PAGES // 4} 2 || exit 8; {wait}; done",
                         timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        traces = [name for name in os.listdir(self.folder) if name.startswith("t.trace")]
        reports = [self.report(name) for name in traces]
        self.assertTrue(all(report["complete"] for report in reports))
        faults = [report["faults_by_kind"]["read"] for report in reports if report["program"] == "subject"]
        self.assertEqual(len(faults), 10, traces)
        self.assertGreater(min(faults), PAGES / 8)

    def test_program_behind_a_shell(self):
        """The shell has no fault; what it runs is the trace, with its own names."""
        done = self.trace("/bin/sh", "-c", f"{SUBJECT} {PAGES} 1; true")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.report("t.trace")
        self.assertEqual(report["program"], "subject")

    def test_program_that_another_starts(self):
        """It has its own names, though its parent, which had more files mapped, was recorded before."""
        words = [SUBJECT, str(PAGES), "1"]
        script = f"import json, ssl, os; os.waitpid(os.posix_spawn({SUBJECT!r}, {words!r}, os.environ), 0)"
        done = self.trace("/usr/bin/python3", "-c", script, options=("--takeover", "start"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.need_kernel_sampling(done)
        reports = [self.report(name) for name in os.listdir(self.folder) if name.startswith("t.trace")]
        found = next(report for report in reports if report["program"] == "subject")
        self.assertIn("read_pages", [site["function"] for site in found["sites"]])

    def test_no_system_call_is_interrupted(self):
        """A stack with every fault, and a thread that waits in calls which a signal would end."""
        for mode in ("message", "signal"):
            done = self.trace(SUBJECT, "calls", str(PAGES), "2", options=("--rate", "0", "--fault", mode, "--force"))
            self.assertEqual(done.returncode, 0, (mode, done.stderr))
            self.need_kernel_sampling(done)
            report = self.report("t.trace")
            self.assertGreater(report["stacks"] + report["stacks_lost"], PAGES / 8, self.figures(report))

    def test_nothing_is_left_behind(self):
        self.trace(SUBJECT, str(PAGES), "1")
        self.assertEqual(self.files_left(), [])


class BySignal(Stacks):
    """Threads that serve their own faults: the kernel samples these when they begin."""
    OPTIONS = ("--fault", "signal", "--report", "run.json", "--force")

    def test_faults_and_stacks(self):
        plain = subprocess.run([SUBJECT, str(PAGES), "4"], capture_output=True, text=True, check=True)
        done = self.whole_trace(SUBJECT, str(PAGES), "4", options=self.OPTIONS)
        self.assertEqual(done.stdout, plain.stdout)
        with open(self.path("run.json"), encoding="utf-8") as file:
            counters = json.load(file)["totals"]["counters"]
        report = self.report("t.trace", "--by", "function")
        self.check_faults(report, counters)
        self.assertGreater(report["stacks_complete_share"], 0.95)
        self.check_known(report)
        sites = {site["function"]: site for site in report["sites"]}
        self.assertAlmostEqual(sites["write_pages"]["faults"] / sites["read_pages"]["faults"], 1 / 4, delta=0.15)
        self.assertGreater(sites["read_pages"]["latency_mean_ns"], 500)  # two system calls at least

    def test_threads(self):
        done = self.trace(SUBJECT, str(PAGES), "2", "4", options=self.OPTIONS)
        self.need_kernel_sampling(done)
        report = self.report("t.trace", "--by", "thread")
        self.assertEqual(len([site for site in report["sites"] if site["share"] > 0.1]), 4, report["sites"])

    def test_sampling_not_permitted(self):
        done = self.trace(SUBJECT, str(PAGES), "4", options=self.OPTIONS, preexec_fn=without_sampling)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kernel.perf_event_paranoid", done.stderr)
        report = self.report("t.trace", "--by", "function")
        self.assertEqual(report["sites"][0]["function"], "read_pages")
        self.assertAlmostEqual(report["stacks"] * 16 / report["faults"], 1, delta=0.3)


class Sizes(Stacks):
    def test_several_budgets(self):
        """A trace for each, output once, and the lines are the same in all that fault."""
        plain = subprocess.run([SUBJECT, str(PAGES), "1"], capture_output=True, text=True, check=True)
        words = ("trace", "--sizes", "10,50,100", "--far", "mem:", "--takeover", "start", "-o", "t.trace", "--force", "--",
                 SUBJECT, str(PAGES), "1")
        done = self.in_time(lambda: self.call(*words), "t.10.trace", "t.50.trace")
        self.assertEqual(done.stdout, plain.stdout)
        self.assertIn("hinterland report t.10.trace t.50.trace", done.stderr)
        report = self.report("t.10.trace", "t.50.trace")
        ten, fifty = report["traces"]
        self.assertAlmostEqual(fifty["budget_bytes"] / ten["budget_bytes"], 5, delta=0.1)
        self.assertGreater(ten["budget_bytes"], PAGES * 4096 / 10)
        self.assertGreater(ten["faults"], fifty["faults"])
        self.assertGreater(fifty["share_of_the_first_ones"], 0.3)
        first = report["places"][0]
        self.assertEqual((first["function"], first["stable"], first["covers"]), ("read_pages", True, [True, True]))
        text = self.call("report", "t.10.trace", "t.50.trace").stdout
        self.assertRegex(text, r"\d\d\.\d %\s+\d\d\.\d %  subject\.c:\d+ read_pages")

    def test_input_is_read_again(self):
        with open(self.path("words"), "w", encoding="ascii") as file:
            file.write("three words here\n")
        for text in (None, "words"):
            with open(self.path("words"), "rb") if text else open(os.devnull, "rb") as file:
                done = subprocess.run([HINTERLAND, "trace", "--sizes", "50", "--far", "mem:", "--", "/usr/bin/wc", "-w"],
                                      env=self.environment, cwd=self.folder, stdin=file, capture_output=True, text=True,
                                      check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.strip(), "3" if text else "0")

    def test_what_cannot_be(self):
        for options, says in ((("--sizes", "10,x"), "no list"), (("--sizes", "0"), "no list"),
                              (("--sizes", "10,10"), "no list"), (("--sizes", "10", "--local", "8M"), "contradict"),
                              (("--sizes", "10", "--report", "r.json"), "contradict")):
            done = self.call("trace", *options, "--", "/bin/echo", "ran")
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(says, done.stderr)
            self.assertNotIn("ran", done.stdout)
        pipe = subprocess.run([HINTERLAND, "trace", "--sizes", "10", "--", "/bin/cat"], env=self.environment, input="x",
                              capture_output=True, text=True, check=False, timeout=60, cwd=self.folder)
        self.assertEqual((pipe.returncode, pipe.stdout), (2, ""))
        self.assertIn("read once", pipe.stderr)
        done = self.call("trace", "--sizes", "10", "--", "/bin/false")
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed without far memory", done.stderr)
        self.assertEqual(self.call("trace", "--sizes", "10", "--", "/no/such").returncode, 127)


class GoingWrong(TraceTest):
    def test_output_exists(self):
        with open(self.path("t.trace"), "w", encoding="utf-8") as file:
            file.write("precious")
        done = self.trace("/bin/echo", "ran")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("ran", done.stdout)
        self.assertIn("--force", done.stderr)
        with open(self.path("t.trace"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")
        self.assertEqual(self.trace(SUBJECT, str(PAGES), "1", options=("--force",)).returncode, 0)
        self.assertGreater(self.report("t.trace")["faults"], 0)

    def test_no_fault_at_all(self):
        done = self.trace("/bin/true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("before any fault", done.stderr)
        self.assertFalse(os.path.exists(self.path("t.trace")))

    def test_records_removed(self):
        """By somebody who takes the directory for nobody's: said, and not that there was no fault."""
        folder = os.path.join(self.figures_folder, "run-*", "rings")
        done = self.trace("/bin/sh", "-c", f"rm -r {folder}; exec {SUBJECT} {PAGES} 4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("its records are not in", done.stderr)
        self.assertFalse(os.path.exists(self.path("t.trace")))

    def test_program_killed(self):
        done = self.trace(SUBJECT, "die", str(PAGES), "1")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        report = self.report("t.trace")
        self.assertGreater(report["faults_by_kind"]["read"], PAGES / 2)
        self.assertTrue(report["complete"])

    def test_recorder_killed(self):
        """What it had written is readable, and the program goes on: it is told to end with the round that it is in."""
        words = [HINTERLAND, "trace", "--local", "16M", "--far", "mem:", "-o", "t.trace", "--", SUBJECT, str(PAGES),
                 "1000"]
        with subprocess.Popen(words, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 100
            while time.monotonic() < deadline:
                if os.path.exists(self.path("t.trace")) and os.path.getsize(self.path("t.trace")) > 100_000:
                    break
                time.sleep(0.05)
            subject = children_of(process.pid)
            process.kill()
            process.wait()
            self.assertEqual(len(subject), 1)
            os.kill(subject[0], signal.SIGUSR1)
            result = process.stdout.read()  # until the program has closed it, too
        rounds = re.search(rb"in (\d+) rounds", result)
        self.assertIsNotNone(rounds, result)
        plain = subprocess.run([SUBJECT, str(PAGES), rounds[1]], capture_output=True, check=True)
        self.assertEqual(result, plain.stdout)
        done = self.call("report", "t.trace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "recorder was killed")
        self.assertIn("faults in", done.stdout)
        self.assertNotEqual(self.files_left(), [], "the rings of the recorder: what the next run is to remove")
        self.assertEqual(self.call("run", "--local", "16M", "--far", "mem:", "--report", "r.json", "--",
                                   "/bin/true").returncode, 0)
        self.assertEqual(self.files_left(), [])
        self.assertEqual(os.listdir(self.figures_folder), [])

    def test_disk_full(self):
        """The program's result is right, the message names the file, and what was written is readable."""
        disk = self.path("disk")
        os.mkdir(disk)
        if os.geteuid() != 0:
            self.skipTest("a small file system can be mounted by root only")
        inner = (f"mount -t tmpfs -o size=256k tmpfs {disk} && {HINTERLAND} trace --local 16M --far mem: --rate 0 "
                 f"-o {disk}/t.trace -- {SUBJECT} {PAGES} 3; echo status $?; {HINTERLAND} report {disk}/t.trace")
        done = subprocess.run(["unshare", "-m", "/bin/sh", "-c", inner], env=self.environment, capture_output=True,
                              text=True, check=False, timeout=100)
        plain = subprocess.run([SUBJECT, str(PAGES), "3"], capture_output=True, text=True, check=True)
        self.assertTrue(done.stdout.startswith(plain.stdout + "status 0\n"), done)
        self.assertIn("ends early", done.stderr)
        self.assertIn("No space left", done.stderr)
        self.assertIn("faults in", done.stdout)

    def test_sampling_not_permitted(self):
        """The message names the setting, and the innermost functions remain."""
        done = self.trace(SUBJECT, str(PAGES), "4", preexec_fn=without_sampling)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kernel.perf_event_paranoid", done.stderr)
        report = self.report("t.trace", "--by", "function")
        self.assertIn("innermost", report["stacks_from"])
        self.assertEqual(report["sites"][0]["function"], "read_pages")
        self.assertAlmostEqual(report["stacks"] * 16 / report["faults"], 1, delta=0.3)


def without_sampling():
    """From here on perf_event_open(2) fails with EACCES, as under a strict perf_event_paranoid: a seccomp filter."""
    system_call, forbidden, allow = 298, 0x00050000 | errno.EACCES, 0x7fff0000
    code = b"".join(struct.pack("HBBI", *step) for step in (
        (0x20, 0, 0, 0),  # load the number of the call
        (0x15, 0, 1, system_call), (0x06, 0, 0, forbidden), (0x06, 0, 0, allow)))
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    unittest.main()
