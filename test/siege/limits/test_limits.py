"""Limits that the program or its shell sets, and programs that end in ways of their own."""

import os
import subprocess
import unittest

from command import CommandTest, HINTERLAND

PROGRAM = os.environ.get("HINTERLAND_TEST_LIMITS", "limits")


class Limited(CommandTest):
    def setUp(self):
        super().setUp()
        self.need_library()

    def far(self, *words, options=(), status=0, **variables):
        done = self.call("run", "--local", "8M", "--takeover", "start", *options, "--", *words, timeout=150, **variables)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def native(self, *words):
        return subprocess.run(words, capture_output=True, text=True, timeout=150)


class Files(Limited):
    def test_children_with_a_small_limit_on_files_live(self):
        for blocks in (0, 1, 4, 15):
            with self.subTest(blocks=blocks):
                done = self.far("/bin/sh", "-c", f"ulimit -f {blocks}; {PROGRAM} says as; {PROGRAM} says as")
                self.assertEqual(done.stdout, "unlimited right\n" * 2)

    def test_the_command_says_it_once(self):
        run = f"ulimit -f 1; exec {HINTERLAND} run --local 8M -- /bin/sh -c '{PROGRAM} says as; {PROGRAM} says as'"
        done = subprocess.run(["/bin/sh", "-c", run], env=self.environment, capture_output=True, text=True, timeout=150)
        self.assertEqual((done.returncode, done.stdout), (0, "unlimited right\n" * 2), done.stderr)
        self.assertEqual(done.stderr.count("file size limit"), 1, done.stderr)
        self.assertIn("ulimit -f", done.stderr)

    def test_a_trace_that_is_cut_short_leaves_the_program_alone(self):
        run = f"ulimit -f 8; exec {HINTERLAND} trace --local 8M -o t -- /bin/sh -c 'kill -l >/dev/null; {PROGRAM} says as'"
        done = subprocess.run(["/bin/sh", "-c", run], env=self.environment, capture_output=True, text=True, timeout=150,
                              cwd=self.directory)
        self.assertEqual((done.returncode, done.stdout), (0, "unlimited right\n"), done.stderr)


class Ends(Limited):
    def test_as_natively(self):
        for how in ("call", "instruction", "thread", "main-first", "main-waits", "strict"):
            with self.subTest(how=how):
                native = self.native(PROGRAM, "ends", how)
                done = self.far(PROGRAM, "ends", how, status=native.returncode)
                self.assertEqual(done.stdout, native.stdout)


class Filters(Limited):
    def test_of_a_program_with_one_thread_it_is_for_that(self):
        self.assertEqual(self.far(PROGRAM, "filter", "alone").stdout, "filtered\nright\n")

    def test_of_all_threads_it_is_the_end_or_does_not_matter_and_never_a_hang(self):
        done = self.call("run", "--local", "8M", "--takeover", "start", "--", PROGRAM, "filter", "threads", timeout=150)
        if done.returncode == 0:
            self.assertEqual(done.stdout, "filtered\nright\n")
        else:
            self.assertEqual((done.returncode, done.stdout), (1, ""))  # as soon as the filter is there
            self.assertIn("seccomp filter for all threads", done.stderr)


class Memory(Limited):
    def test_a_program_that_bounds_itself(self):
        for what in ("as", "data"):
            with self.subTest(limit=what):
                self.assertEqual(self.native(PROGRAM, "bounded", what).stdout, "bounded\n")
                self.assertEqual(self.far(PROGRAM, "bounded", what).stdout, "bounded\n")

    def test_stacks_of_threads_count(self):
        for what in ("as", "data"):
            for options in ((), ("--fault", "signal")):
                with self.subTest(limit=what, options=options):
                    self.assertEqual(self.native(PROGRAM, "threads", what).stdout, "threads\n")
                    self.assertEqual(self.far(PROGRAM, "threads", what, options=options).stdout, "threads\n")

    def test_what_a_shell_sets_is_what_its_children_read(self):
        for flag, what in (("v", "as"), ("d", "data")):
            done = self.far("/bin/bash", "-c", f"ulimit -{flag} 1000000; ulimit -{flag}; {PROGRAM} says {what}")
            self.assertEqual(done.stdout, "1000000\nlimited right\n1024000000\n")

    def test_the_message_names_the_limit_that_it_is(self):
        for flag in ("v", "d"):
            run = f"ulimit -{flag} 100000; exec {HINTERLAND} run --local 8M -- {PROGRAM} says as"
            done = subprocess.run(["/bin/sh", "-c", run], env=self.environment, capture_output=True, text=True, timeout=150)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"ulimit -{flag}", done.stderr)

    def test_without_room_for_tables_of_all_addresses_the_window_alone_is_far(self):
        for flag, kibibytes in (("v", 300_000_000), ("d", 300_000_000)):
            run = f"ulimit -{flag} {kibibytes}; exec {HINTERLAND} run --local 8M --takeover start --addresses all -- {PROGRAM} says as"
            done = subprocess.run(["/bin/sh", "-c", run], env=self.environment, capture_output=True, text=True, timeout=150)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(" right\n", done.stdout)
            self.assertIn("memory outside of the window stays local", done.stderr)
            self.assertIn(f"ulimit -{flag}", done.stderr)
        done = self.far(PROGRAM, "says", "as", options=("--addresses", "all", "--fault", "signal"))
        self.assertEqual(done.stdout, "unlimited right\n")
        self.assertIn("--addresses all needs --fault message", done.stderr)
        self.assertNotIn("addresses", self.far(PROGRAM, "says", "as", options=("--addresses", "all")).stderr)

    def test_descriptors(self):
        """With 3 no loader can open a library; a program may set that for itself, and has its far memory all the same."""
        done = self.call("run", "--local", "8M", "--", "/bin/sh", "-c", f"ulimit -n 4; exec {PROGRAM} says as", timeout=150)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ulimit -n", done.stderr)
        for far in ("mem:", "zmem:", f"file:{self.path('far')}?size=256M"):
            with self.subTest(far=far):
                self.assertEqual(self.far(PROGRAM, "descriptors", "3", options=("--far", far)).stdout, "right\n")


if __name__ == "__main__":
    unittest.main()
