"""What the command prints, and where."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from command import CommandTest, HINTERLAND, SOURCE

COMMANDS = ["run", "compare", "doctor", "stat", "top", "tune", "serve", "core", "cc", "help", "version"]


class Help(CommandTest):
    def test_reference_page_is_up_to_date(self):
        with open(os.path.join(SOURCE, "docs", "reference.md")) as file:
            self.assertEqual(self.call("help", "--markdown").stdout, file.read(),
                             "docs/reference.md is stale: ninja -C build reference")

    def test_overview_and_help_of_each_command(self):
        overview = self.call("help")
        self.assertEqual(overview.returncode, 0)
        self.assertEqual(self.call("--help").stdout, overview.stdout)
        for command in COMMANDS:
            self.assertIn("\n  " + command, overview.stdout)
            text = self.call("help", command)
            self.assertEqual((text.returncode, text.stderr), (0, ""))
            self.assertIn("Usage: hinterland " + command, text.stdout)
        for command in COMMANDS[:5]:
            self.assertEqual(self.call(command, "--help").stdout, self.call("help", command).stdout)

    def test_lines_fit_a_terminal(self):
        for command in COMMANDS:
            for line in self.call("help", command).stdout.splitlines():
                self.assertLessEqual(len(line), 108, line)

    def test_manual_pages_have_their_sections(self):
        for command in COMMANDS[:5]:
            page = self.call("help", "--man", command).stdout
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES"]:
                self.assertIn(".SH " + section, page)
        self.assertIn(".TH HINTERLAND 1", self.call("help", "--man").stdout)

    def test_version(self):
        self.assertRegex(self.call("version").stdout, r"^hinterland \d+\.\d+\.\d+\n$")
        self.assertEqual(self.call("--version").stdout, self.call("version").stdout)

    def test_a_full_disk_behind_stdout_is_not_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([HINTERLAND, "help"], stdout=full, stderr=subprocess.PIPE, env=self.environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)


class Doctor(CommandTest):
    def test_json_agrees_with_the_exit_status(self):
        done = self.call("doctor", "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["schema_version"], 1)
        self.assertEqual(report["will_run"], done.returncode == 0)
        names = {check["name"] for check in report["checks"]}
        self.assertLessEqual({"userfaultfd", "vectored madvise", "Linux AIO", "memlock", "max_map_count", "overcommit",
                              "huge pages", "cgroup memory limit", "descriptors", "/dev/shm"}, names)
        for check in report["checks"]:
            self.assertIn(check["state"], ["ok", "info", "missing", "warning", "blocking"])
            if check["state"] in ["missing", "warning", "blocking"]:
                self.assertTrue(check["cost"] and check["mend"], check)
        blocking = any(check["state"] == "blocking" for check in report["checks"])
        self.assertEqual(report["will_run"], not blocking)

    def test_no_colours_off_a_terminal(self):
        self.assertNotIn("\033", self.call("doctor").stdout)

    def test_low_limits_are_blocking(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 20; exec "$@"', "sh", HINTERLAND, "doctor", "--json"],
                              env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        state = {check["name"]: check for check in json.loads(done.stdout)["checks"]}["descriptors"]
        self.assertEqual(state["state"], "blocking")
        self.assertIn("ulimit", state["mend"])


class Serve(CommandTest):
    def start(self, *arguments):
        server = subprocess.Popen([HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "32M", *arguments],
                                  env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        return server

    def test_says_where_it_listens_and_ends_cleanly(self):
        for number in [signal.SIGTERM, signal.SIGINT]:
            server = self.start()
            self.assertRegex(server.stdout.readline(), r"^listening on 127\.0\.0\.1:\d+, offering 32.0 MiB, to any client")
            self.assertRegex(server.stdout.readline(), r"--far tcp://127\.0\.0\.1:\d+ ")
            server.send_signal(number)
            self.assertEqual(server.wait(10), 0)
            self.assertEqual(server.stderr.read(), "")

    def test_secret_is_not_shown(self):
        secret = "correct-horse-battery-staple-4711"
        server = self.start("-v", "--key-file", self.write("key", secret))
        first = server.stdout.readline()
        self.assertIn("have the key", first)
        server.terminate()
        output, errors = server.communicate(timeout=100)
        self.assertNotIn(secret, first + output + errors)
        self.assertIn("ended; served", errors)


class Stat(CommandTest):
    def test_nothing_runs(self):
        done = self.call("stat")
        self.assertEqual(done.returncode, 0)
        self.assertIn("hinterland run", done.stdout)
        self.assertEqual(json.loads(self.call("stat", "--json").stdout)["programs"], [])

    def test_rubbish_in_the_directory_is_passed_over(self):
        os.mkdir(self.figures_folder, 0o700)
        for name, text in [("1", ""), ("77", "x" * 100), ("abc", ""), ("99", b"\0" * 20000)]:
            self.write(os.path.join(self.figures_folder, name), text)
        os.mkdir(os.path.join(self.figures_folder, "run-1-1"))
        done = self.call("stat", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["programs"]), (0, []))
        self.assertFalse(os.path.exists(os.path.join(self.figures_folder, "run-1-1")), "directory of a run that is dead")

    def test_watch_goes_on_until_interrupted(self):
        watch = subprocess.Popen([HINTERLAND, "stat", "--json", "--watch", "100ms"], env=self.environment,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        for _ in range(3):
            self.assertEqual(json.loads(watch.stdout.readline())["schema_version"], 1)
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(10), -signal.SIGINT)


if __name__ == "__main__":
    unittest.main()
