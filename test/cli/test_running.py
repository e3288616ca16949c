"""`hinterland run` around real programs: what comes back, and what is left behind."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from command import CommandTest, HINTERLAND

HUNGRY = """
import sys, time
block = bytearray(24 << 20)
for round in range(3):
    for at in range(0, len(block), 4096): block[at] = (block[at] + 1) % 256
print(sum(block))
"""


class Run(CommandTest):
    def setUp(self):
        super().setUp()
        self.need_library()

    def run_program(self, *program, options=(), **variables):
        return self.call("run", "--local", "8M", "--far", "mem:", *options, "--", *program, timeout=100, **variables)

    def start(self, *arguments, stdin=None):
        child = subprocess.Popen([HINTERLAND, "run", "--local", "8M", *arguments], env=self.environment, stdin=stdin,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child

    def test_exit_status_and_output_come_back(self):
        for options in [[], ["-v"], ["--report", self.path("report.json"), "--force"]]:
            done = self.run_program("sh", "-c", "echo out; echo err >&2; exit 42", options=options)
            self.assertEqual((done.returncode, done.stdout), (42, "out\n"))
            self.assertIn("err\n", done.stderr)

    def test_death_by_signal_comes_back(self):
        for options in [[], ["-v"]]:
            for number in [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV]:
                done = self.run_program("sh", "-c", f"kill -{int(number)} $$", options=options)
                self.assertEqual(done.returncode, -number, done.stderr)

    def test_calls_by_instructions_are_named(self):
        program = os.path.join(os.path.dirname(HINTERLAND), "..", "test", "siege", "siege_own")
        if not os.path.exists(program):
            self.skipTest("the program is not built")
        done = self.run_program(program, options=["-v"])
        self.assertRegex(done.stderr, r"siege_own makes system calls by instructions of its own "
                                      r"\(mmap, .*madvise.*close_range\): .*use --catch")
        self.assertNotIn("libc.so", done.stderr)
        done = self.run_program(program, options=["-v", "--catch"])
        self.assertRegex(done.stderr, r"siege_own makes .*: they are caught")
        self.assertNotIn("instructions", self.run_program(program).stderr)
        self.assertNotIn("instructions", self.run_program("/bin/ls", options=["-v"]).stderr)

    def test_arguments_of_the_program_are_its_own(self):
        for separator in [["--"], []]:
            done = self.call("run", "--local", "8M", *separator, "printf", "%s,", "--local", "-v", "--", "--nonsense")
            self.assertEqual((done.returncode, done.stdout), (0, "--local,-v,--,--nonsense,"))

    def test_preloaded_libraries_are_kept(self):
        other = subprocess.run(["sh", "-c", "ls /lib/x86_64-linux-gnu/libz.so.1 /lib/x86_64-linux-gnu/libutil.so.1 "
                                "2>/dev/null | head -1"], capture_output=True, text=True).stdout.strip()
        if not other:
            self.skipTest("no library to preload")
        done = self.run_program("sh", "-c", 'echo "$LD_PRELOAD"; grep -c -e "$0" /proc/self/maps', other, LD_PRELOAD=other)
        preload, count = done.stdout.splitlines()
        # Where the kernel has no MOVE, the signal library comes between them.
        self.assertRegex(preload, r"libhinterland-preload\.so:(\S*libhinterland-signal\.so:)?" + other)
        self.assertGreater(int(count), 0)

    def test_scripts_run(self):
        script = self.write("script", "#!/usr/bin/env sh\nexit 7\n", 0o755)
        self.assertEqual(self.run_program(script).returncode, 7)

    def test_report(self):
        done = self.run_program("python3", "-c", HUNGRY, options=["-v", "--report", self.path("report.json")])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, str(3 * 6144) + "\n")
        with open(self.path("report.json")) as file:
            report = json.load(file)
        self.assertEqual((report["schema_version"], report["exit_status"], report["death_signal"]), (1, 0, None))
        self.assertEqual(report["budget_bytes"], 8 << 20)
        self.assertGreater(report["totals"]["counters"]["pages_evicted"], 1000)
        self.assertGreater(report["totals"]["fault_latency"]["count"], 0)
        self.assertEqual(report["process_count"], len(report["processes"]))
        self.assertIn("pages in", done.stderr)
        self.assertEqual(os.listdir(self.figures_folder), [], "figures left behind")

    def test_figures_of_far_objects(self):
        program = os.path.join(os.path.dirname(os.path.dirname(HINTERLAND)), "examples", "objects")
        if not os.path.exists(program):
            self.skipTest("no example with far objects was built")
        done = self.call("run", "--local", "32M", "--far", "mem:", "-v", "--report", self.path("objects.json"), "--",
                         program, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("objects.json")) as file:
            process, = json.load(file)["processes"]
        counters, gauges = process["counters"], process["gauges"]
        self.assertGreater(counters["object_evacuations"], 10_000)
        self.assertGreater(counters["object_misses"], 1000)
        self.assertGreater(gauges["object_local_bytes"], 1 << 20)
        self.assertIn(f"far objects: {counters['object_misses']} misses", done.stderr)

    def test_report_after_a_signal_and_exit_without_handlers(self):
        for end, status in [("os.abort()", -signal.SIGABRT), ("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", -9)]:
            done = self.run_program("python3", "-c", "import os; " + end,
                                    options=["--report", self.path("r.json"), "--force"])
            self.assertEqual(done.returncode, status)
            with open(self.path("r.json")) as file:
                report = json.load(file)
            self.assertEqual(report["death_signal"], signal.Signals(-status).name if status < 0 else None)
            self.assertEqual(len(report["processes"]), 1)

    def test_report_to_stdout_comes_after_the_programs(self):
        done = self.run_program("echo", "mine", options=["--report", "-"])
        own, report = done.stdout.split("\n", 1)
        self.assertEqual((own, json.loads(report)["exit_status"]), ("mine", 0))

    def test_report_has_the_whole_tree(self):
        done = self.run_program("sh", "-c", "python3 -c 1; python3 -c 2; true", options=["--report", "-"])
        names = [process["program"] for process in json.loads(done.stdout)["processes"]]
        self.assertGreaterEqual(len(names), 3, names)

    def test_signals_are_passed_on(self):
        child = self.start("-v", "--", "sh", "-c", 'trap "echo got; exit 5" USR1; echo ready; while :; do sleep 0.05; done')
        self.assertEqual(child.stdout.readline(), "ready\n")
        child.send_signal(signal.SIGUSR1)
        self.assertEqual(child.stdout.readline(), "got\n")
        self.assertEqual(child.wait(100), 5)

    def assert_rates_at_once(self, pid):
        """The first block of a watch has rates, which of a program that sleeps are 0."""
        watch = subprocess.Popen([HINTERLAND, "stat", pid, "--watch", "100ms"], env=self.environment,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        for line in iter(watch.stdout.readline, ""):
            if line.split()[0] == "pages_in":
                self.assertRegex(line, r"pages_in +\d+ \(\d+/s\)")
                return
        self.fail("it ended without a line about pages in")

    def assert_openmetrics(self, text, pid):
        """Each family once, with its type before its samples; names that its type allows; the mark of the end."""
        lines = text.splitlines()
        self.assertEqual(lines[-1], "# EOF")
        endings = {"gauge": [""], "counter": ["_total"], "summary": ["", "_count"]}
        family, seen = ("", ""), set()
        for line in lines[:-1]:
            if line.startswith("# TYPE "):
                family = tuple(line.split()[2:])
                self.assertNotIn(family[0], seen)
                seen.add(family[0])
            elif line.startswith("# HELP "):
                self.assertEqual(line.split()[2], family[0])
            else:
                found = re.fullmatch(r'(\w+)\{pid="(\d+)",program="[^"]+",far_url="[^"]+"(?:,quantile="[\d.]+")?\} [\d.]+', line)
                self.assertIsNotNone(found, line)
                self.assertIn(found[1], [family[0] + ending for ending in endings[family[1]]])
                self.assertEqual(found[2], pid)
        self.assertIn(f'hinterland_budget_bytes{{pid="{pid}"', text)
        self.assertIn("hinterland_pages_in_total{", text)

    def test_stat_and_tune_of_a_running_program(self):
        for options in [[], ["-v"]]:
            child = self.start(*options, "--", "python3", "-c", "import time; print('ready', flush=True); time.sleep(110)")
            self.assertEqual(child.stdout.readline(), "ready\n")
            programs = json.loads(self.call("stat", "--json").stdout)["programs"]
            self.assertEqual([program["gauges"]["budget_bytes"] for program in programs], [8 << 20])
            pid = str(programs[0]["pid"])
            self.assertIn("budget_bytes", self.call("stat", pid).stdout)
            self.assert_openmetrics(self.call("stat", "--format", "openmetrics").stdout, pid)
            self.assertIn(pid, self.call("stat").stdout)
            self.assert_rates_at_once(pid)
            done = self.call("tune", pid, "--local", "16M")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("was 8.00 MiB, is 16.0 MiB", done.stdout)
            after = json.loads(self.call("stat", pid, "--json").stdout)["programs"][0]
            self.assertEqual(after["gauges"]["budget_bytes"], 16 << 20)
            child.terminate()
            self.assertEqual(child.wait(100), -signal.SIGTERM)

    def summary_of(self, far, filled_by):
        """Of a program that has 32 MiB and sleeps until its store was looked at. It ends without giving memory back: for
        a moment the store would be there still, and its pages not."""
        child = self.start("--far", far, "--takeover", "start", "-v", "--", "python3", "-c",
                           f"import os, sys; block = {filled_by}; print('ready', flush=True); sys.stdin.read(); os._exit(0)",
                           stdin=subprocess.PIPE)
        self.assertEqual(child.stdout.readline(), "ready\n")
        for _ in range(600):
            programs = json.loads(self.call("stat", "--json").stdout)["programs"]
            if any(program["gauges"]["stored_at_peak_bytes"] > 16 << 20 for program in programs):
                break
            time.sleep(0.1)
        _, errors = child.communicate("", timeout=100)
        return errors

    def test_the_store_is_part_of_what_it_costs(self):
        told = r"all memory of this machine: at most [\d.]+ MiB, with the store of [\d.]+ [KM]iB for [\d.]+ MiB of far pages"
        saves_nothing = "saves next to nothing here"
        for far, filled_by, saves in [("mem:", "b'0123456789abcdef' * (2 << 20)", False),
                                      ("zmem:", "b'0123456789abcdef' * (2 << 20)", True),
                                      ("zmem:", "os.urandom(32 << 20)", False)]:
            errors = self.summary_of(far, filled_by)
            self.assertRegex(errors, told)
            self.assertEqual(saves_nothing in errors, not saves, errors)

    def test_what_cannot_become_far_is_said(self):
        """Shared memory of 128 MiB with a budget of 48: nothing of it is in the budget, and a user would wonder."""
        shared = "import mmap; m = mmap.mmap(-1, 128 << 20); [m.write(bytes(1 << 20)) for _ in range(128)]"
        for budget, addresses, told in (("48M", "window", True), ("48M", "all", True), ("1G", "window", False)):
            done = self.call("run", "--local", budget, "--far", "mem:", "--addresses", addresses, "-v", "--", "python3", "-c", shared)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("cannot become far: files, shared memory" in done.stderr, told, done.stderr)
            self.assertEqual("--addresses all" in done.stderr, told and addresses == "window", done.stderr)

    def test_tune_of_a_stopped_program_says_so(self):
        child = self.start("--", "python3", "-c", "import time; print('ready', flush=True); time.sleep(110)")
        child.stdout.readline()
        os.kill(child.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, child.pid, signal.SIGCONT)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)  # with all of its threads
        self.assert_refused(1, "did not answer", arguments=["tune", str(child.pid), "--local", "16M"])


if __name__ == "__main__":
    unittest.main()
