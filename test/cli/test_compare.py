"""`hinterland compare`: what it measures, and what it refuses."""

import json
import os
import subprocess
import sys
import unittest

from command import CommandTest, HINTERLAND

# Touches 24 MiB twice and prints what it read.
JOB = """import sys
data = bytearray(24 << 20)
data[::4096] = bytes(i % 251 for i in range(len(data) // 4096))
print(sum(data), sys.stdin.read())
"""
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


class BadInput(CommandTest):
    def test_options_that_say_nothing(self):
        for arguments, words in [
                ([], ["no program given"]),
                (["--sizes", "0", "--", "true"], ["--sizes", "no list"]),
                (["--sizes", "50", "--local", "8M", "--", "true"], ["contradict"]),
                (["--repeat", "0", "--", "true"], ["--repeat"]),
                (["--swap", "perhaps", "--", "true"], ["--swap"]),
                (["--local-total", "1G", "--", "true"], ["for a single run"]),
                (["--report", "r.json", "--", "true"], ["for a single run"])]:
            self.assert_refused(2, *words, arguments=["compare", *arguments])

    def test_a_program_that_is_not_there(self):
        self.assert_refused(127, "/there/is/none", arguments=["compare", "--", "/there/is/none"])

    def test_a_device_that_is_none(self):
        self.need_library()
        self.assert_refused(1, "file:", arguments=["compare", "--devices", "zmem: file:/there/is/none/far", "--", "true"])

    def test_swap_that_cannot_be(self):
        self.need_library()
        if os.geteuid() == 0 and os.path.exists("/sys/block/zram0/disksize"):
            self.skipTest("here it can be")
        self.assert_refused(1, arguments=["compare", "--swap", "always", "--", "true"])


class Compare(CommandTest):
    def setUp(self):
        super().setUp()
        self.need_library()
        self.job = self.write("job.py", JOB)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def compare(self, *arguments, program=None, given=b"", **variables):
        environment = {**self.environment, "TMPDIR": self.directory, **variables}
        swap = [] if "--swap" in arguments else ["--swap", "never"]
        return subprocess.run([HINTERLAND, "compare", *swap, "--repeat", "1", *arguments, "--",
                               *(program or [PYTHON, self.job])], env=environment, cwd=self.directory, timeout=100,
                              input=given, capture_output=True)

    def test_each_way_has_its_figures(self):
        done = self.compare("--devices", "zmem: mem:", "--sizes", "60,30", "--json", "--markdown", "table.md", "--html",
                            "page.html", given=b"what a pipe has")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([(way["kind"], way["far_url"], way["local_percent"]) for way in found["ways"]],
                         [("native", "", 0), ("far", "zmem:", 60), ("far", "mem:", 60), ("far", "zmem:", 30),
                          ("far", "mem:", 30)])
        for way in found["ways"]:
            self.assertEqual((len(way["runs_s"]), way["failure"]), (1, ""))
            self.assertGreater(way["peak_resident_bytes"], 0)
            self.assertEqual(way["pages_in"] > 0, way["kind"] == "far", way)
        self.assertEqual(found["ways"][0]["times_native"], 1)
        self.assertIn("zmem: 60 %", found["verdict"][0])
        table, page = self.read("table.md"), self.read("page.html")
        for text in [table, page]:
            self.assertIn("zmem: 30 %", text)
        self.assertEqual(page.count('class="time"'), 5)
        self.assertEqual([name for name in os.listdir(self.directory) if name.startswith("hinterland-compare")], [],
                         "its files are left behind")

    def test_one_budget_and_a_table(self):
        done = self.compare("--local", "16M")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"zmem: 16.0 MiB", done.stdout)
        self.assertIn(b"x native", done.stdout)
        self.assertEqual(done.stderr.count(b"hinterland: ["), 2, done.stderr)

    def test_another_exit_status_is_compared_too(self):
        done = self.compare("--local", "16M", program=["/bin/sh", "-c", "exit 3"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"natively the program ended with status 3", done.stderr)

    def test_output_that_far_memory_changes_is_an_error(self):
        done = self.compare("--local", "16M", program=["/bin/sh", "-c", "echo same; echo far ${LD_PRELOAD:+memory}"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"from line 2 on", done.stderr)
        self.assertEqual(done.stdout, b"")

    def test_another_end_is_an_error(self):
        done = self.compare("--local", "16M", program=["/bin/sh", "-c", "exit ${LD_PRELOAD:+7}"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"ended with status 7, where it natively ended with status 0", done.stderr)

    def test_output_that_never_is_the_same(self):
        done = self.compare("--local", "16M", program=["/bin/sh", "-c", "cat /proc/sys/kernel/random/uuid"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"only its exit status is compared", done.stderr)

    def test_each_run_gets_the_same_signals(self):
        # Less signals 29 to 36: libc takes two of them for itself as soon as there is a thread, ignored or not before.
        done = self.compare("--local", "16M", program=["/bin/sed", "-n", r"/Sig[BI]/s/..\(.\{7\}\)$/\1/p",
                                                       "/proc/self/status"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"something else each time", done.stderr)

    def test_a_program_that_dies_natively(self):
        done = self.compare("--local", "16M", program=["/bin/sh", "-c", "kill -9 $$"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"natively the program was ended by signal 9", done.stderr)

    def test_a_file_that_exists_is_kept(self):
        self.write("table.md", "mine")
        done = self.compare("--local", "16M", "--markdown", "table.md", program=["true"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--force", done.stderr)
        self.assertNotIn(b"warm up", done.stderr, "known before anything runs")
        self.assertEqual(self.read("table.md"), "mine")

    def test_swap_is_set_up_and_taken_down(self):
        with open("/proc/swaps", encoding="utf-8") as swaps:
            before = swaps.read()
        done = self.compare("--swap", "auto", "--sizes", "50", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        with open("/proc/swaps", encoding="utf-8") as swaps:
            self.assertEqual(swaps.read(), before)
        if found["no_swap"]:
            self.assertIn("Not compared with Linux swap", found["verdict"][-1])
            self.skipTest(found["no_swap"])
        swap = found["ways"][-1]
        self.assertEqual(swap["kind"], "swap")
        self.assertEqual(swap["failure"], "", "the kernel kills idle processes first")
        self.assertGreater(swap["pages_in"], 0)
        self.assertGreaterEqual(swap["kills_diverted"], 0)
        self.assertLess(swap["peak_resident_bytes"], found["ways"][0]["peak_resident_bytes"])

    def test_no_place_for_its_files(self):
        done = self.compare("--local", "16M", program=["true"], TMPDIR="/there/is/none")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"set TMPDIR", done.stderr)


if __name__ == "__main__":
    unittest.main()
