"""Core files: of a running program, of one that dies, and the kernel's own. What is in them is right, or absent."""

import os
import resource
import signal
import unittest

from support import PAGES, Core, DebuggingTest, Subject, SUBJECT

CORE_PATTERN = "/proc/sys/kernel/core_pattern"


class OfARunningProgram(DebuggingTest):
    def check(self, **how):
        subject = Subject(self, **how)
        done = self.call("core", str(subject.pid), "-o", "it")
        self.assertEqual(done.returncode, 0, done.stderr)
        core = Core(self.path("it"))
        self.addCleanup(core.close)
        self.assertEqual(core.nodes(subject.nodes), (PAGES, 0, 0))
        for page in (0, 1, 800, 1599):
            self.assertIsNone(core.word(subject.secret + page * 4096), f"page {page}, which the program excluded")
        self.assertEqual(os.stat(self.path("it")).st_mode & 0o777, 0o600)
        self.assertEqual(subject.ask("c"), "wrong 0")
        self.assertEqual(subject.end(), 0)

    def test_far(self):
        self.check()

    def test_while_threads_fault_and_allocate(self):
        self.check(mode="stir")

    def test_before_paging_began(self):
        self.check(local="1G", takeover="pressure")

    def test_a_debugger_reads_it(self):
        subject = Subject(self)
        self.assertEqual(self.call("core", str(subject.pid), "-o", "it").returncode, 0)
        text = self.gdb("print g_nodes[5000].value", "print g_nodes->next->next->value", "print *g_secret",
                        "thread apply all backtrace", arguments=(SUBJECT, self.path("it")))
        self.assertIn("$1 = 15001\n$2 = 7\n", text)
        self.assertIn("Cannot access memory", text)
        self.assertRegex(text, r"#[1-9].* in main \(count=2, ")
        self.assertIn("wait_in_thread (argument=", text)

    def test_names(self):
        subject = Subject(self)
        self.assertEqual(self.call("core", str(subject.pid), "-o", "%e-%p-100%%").returncode, 0)
        name = f"subject-{subject.pid}-100%"
        self.assertIn(name, os.listdir(self.folder))
        again = self.call("core", str(subject.pid), "-o", name)
        self.assertEqual(again.returncode, 1)
        self.assertIn("--force", again.stderr)
        self.assertEqual(self.call("core", str(subject.pid), "-o", name, "--force").returncode, 0)

    def test_stopped(self):
        subject = Subject(self)
        os.kill(subject.pid, signal.SIGSTOP)
        os.waitpid(subject.pid, os.WUNTRACED)
        done = self.call("core", str(subject.pid), "-o", "it")
        self.assertEqual((done.returncode, os.path.exists(self.path("it"))), (1, False))
        self.assertIn("kill -CONT", done.stderr)
        os.kill(subject.pid, signal.SIGCONT)
        self.assertEqual(self.call("core", str(subject.pid), "-o", "it").returncode, 0)

    def test_refused(self):
        self.assertEqual(self.call("core").returncode, 2)
        self.assertEqual(self.call("core", "x").returncode, 2)
        gone = self.call("core", "1")
        self.assertEqual((gone.returncode, "does not run under Hinterland" in gone.stderr), (1, True), gone.stderr)


class OfADyingProgram(DebuggingTest):
    def die(self, letter, number, **how):
        subject = Subject(self, "--core", "core.%p", **how)
        subject.tell(letter)
        self.assertEqual(subject.process.wait(100), -number, subject.said())
        core = Core(self.path(f"core.{subject.pid}"))
        self.addCleanup(core.close)
        self.assertEqual(core.nodes(subject.nodes), (PAGES, 0, 0))
        self.assertIn(f"ends by signal {number}", subject.said())
        return self.path(f"core.{subject.pid}")

    def test_by_each_signal(self):
        for letter, number in (("s", signal.SIGSEGV), ("a", signal.SIGABRT), ("q", signal.SIGQUIT),
                               ("f", signal.SIGFPE)):
            with self.subTest(number):
                self.die(letter, number)

    def test_while_threads_fault_and_allocate(self):
        self.die("s", signal.SIGSEGV, mode="stir")

    def test_with_a_parent(self):
        subject = Subject(self, "--core", "core", "--report", "report.json")
        subject.tell("s")
        self.assertEqual(subject.process.wait(100), -signal.SIGSEGV)
        self.assertIn("core", os.listdir(self.folder))

    def test_a_debugger_shows_where(self):
        core = self.die("s", signal.SIGSEGV)
        text = self.gdb("backtrace", "print node->next->value", "print $_siginfo.si_signo", "print g_nodes[8191].value",
                        arguments=(SUBJECT, core))
        self.assertRegex(text, r"#0 .*dies_here \(node=0x[0-9a-f]+, how=115 's'\)")
        self.assertRegex(text, r"#1 .*in main ")
        self.assertIn("$1 = 12967\n$2 = 11\n$3 = 24574\n", text)

    def test_no_file_can_be_made(self):
        subject = Subject(self, "--core", "/proc/none/core")
        subject.tell("s")
        self.assertEqual(subject.process.wait(60), -signal.SIGSEGV)
        self.assertIn("/proc/none/core cannot be made", subject.said())


class OfTheKernel(DebuggingTest):
    def test_no_zeros_for_far_pages(self):
        with open(CORE_PATTERN, encoding="ascii") as file:
            if file.read().strip() not in ("core", "core.%p"):
                self.skipTest(f"{CORE_PATTERN} is not 'core'")

        def allow():
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        subject = Subject(self, before=allow)
        subject.tell("s")
        self.assertEqual(subject.process.wait(120), -signal.SIGSEGV)
        names = [name for name in os.listdir(self.folder) if name.startswith("core")]
        self.assertEqual(len(names), 1)
        core = Core(self.path(names[0]))
        self.addCleanup(core.close)
        right, absent, wrong = core.nodes(subject.nodes)
        self.assertEqual(wrong, 0, f"{right} right, {absent} absent")


if __name__ == "__main__":
    unittest.main()
