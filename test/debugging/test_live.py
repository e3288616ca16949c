"""A running program looked at from outside: /proc/PID/mem, ptrace, gdb, perf. What is read is right, or an error."""

import os
import shutil
import struct
import subprocess
import unittest

from support import GDB_SCRIPT, PAGE, PAGES, SUBJECT, DebuggingTest, Subject, Tracer


class FromOutside(DebuggingTest):
    def test_proc_mem(self):
        subject = Subject(self)
        self.assertEqual(subject.ask("c"), "wrong 0")  # it has just been at them: many are there
        right = refused = 0
        with open(f"/proc/{subject.pid}/mem", "rb", buffering=0) as memory:
            for i in range(PAGES):
                try:
                    value = struct.unpack("<q", os.pread(memory.fileno(), 8, subject.nodes + i * PAGE + 8))[0]
                except OSError:
                    refused += 1
                    continue
                self.assertEqual(value, i * 3 + 1)
                right += 1
        self.assertGreater(right, 100)
        self.assertGreater(refused, PAGES // 2)  # where this fails the kernel has learned it: say so in the manual

    def test_peek_and_poke(self):
        subject = Subject(self)
        # The program has just written all of them: a quarter fits. What it only read may not be written from outside.
        self.assertEqual(subject.ask("w"), "written")
        tracer = Tracer(subject.pid)
        poked = []
        for i in range(PAGES):
            address = subject.nodes + i * PAGE + 8
            value, error = tracer.call(Tracer.PEEK, address)
            if error != 0:
                self.assertIn(error, (5, 14))  # EIO, EFAULT
                continue
            self.assertEqual(value, i * 3 + 1)
            if tracer.call(Tracer.POKE, address, 2 * i)[1] == 0:
                poked.append(i)
        tracer.detach()
        self.assertGreater(len(poked), 100)
        # None is lost: the program finds all of them. And what was refused is as it was.
        self.assertEqual(subject.ask("c"), f"wrong {len(poked)}")

    def test_gdb_attached(self):
        self.need_gdb_calls()
        subject = Subject(self)
        text = self.gdb(f"attach {subject.pid}", f"source {GDB_SCRIPT}", "far print g_nodes[10].value",
                        "far print g_nodes[4000].value", "far print g_nodes->next->next->next->value",
                        "thread apply all backtrace", "far print g_nodes[8190]->next->value", "detach",
                        arguments=(SUBJECT,))
        self.assertIn("$1 = 31\n", text)
        self.assertIn("$2 = 12001\n", text)
        self.assertIn("$3 = 10\n", text)
        self.assertIn("$4 = 24574\n", text)
        self.assertIn("wait_in_thread (argument=", text)
        self.assertEqual(subject.ask("c"), "wrong 0")
        self.assertEqual(subject.end(), 0)

    def test_perf(self):
        if shutil.which("perf") is None:
            self.skipTest("perf is not installed")
        subject = Subject(self, mode="stir")
        data = self.path("perf.data")
        done = subprocess.run(["perf", "record", "-q", "-e", "page-faults,task-clock", "-g", "-o", data, "-p",
                               str(subject.pid), "--", "sleep", "1"], capture_output=True, text=True, check=False,
                              timeout=60)
        if done.returncode != 0 and "ermission" in done.stderr:
            self.skipTest("perf may not be used here")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = subprocess.run(["perf", "report", "--stdio", "-i", data, "--no-children", "-g", "none"],
                                capture_output=True, text=True, check=False, timeout=100)
        self.assertIn("stir", report.stdout)
        self.assertEqual(subject.ask("c"), "wrong 0")


if __name__ == "__main__":
    unittest.main()
