"""Every limit of setrlimit(2), from nothing up, in both fault modes: as natively, with every byte of far memory right."""

import os
import subprocess
import unittest

from command import CommandTest

PROGRAM = os.environ.get("HINTERLAND_TEST_SWEEP", "sweep")
STEP = os.environ.get("HINTERLAND_TEST_SWEEP_STEP", "36")  # between exponents of two; 1: all
# How much of these a process has before it asks for anything is not the same under far memory: it has the library.
COUNTED = {"AS", "DATA"}
NEAR = range(1 << 20, 1 << 28)
REFUSALS = {"0", "11", "12"}  # EAGAIN, ENOMEM
# The kernel counts these for all processes of a user together, so what other processes do at the moment decides too.
BY_USER = {"MSGQUEUE", "NPROC", "SIGPENDING"}
ROUNDS = 5
# Stacks of threads, which libc maps by itself, do not count: a thread may begin where natively it may not.
THREAD = ("11", "0")


def differs(native, far):
    """Whether two lines are of different outcomes, where they may not be."""
    if native == far:
        return False
    left, right = native.split(), far.split()
    if len(left) != len(right) or left[0] not in COUNTED:
        return True
    near = int(left[1]) in NEAR
    return any(a != b and (name, a, b) != ("thread", *THREAD) and not (near and {a, b} <= REFUSALS)
               for name, a, b in zip([None, *left], left, right))


class Sweep(CommandTest):
    def compare(self, *options):
        """Holds every round to all limits of a process, and one of the rounds to those of a user as well."""
        self.need_library()
        for _ in range(ROUNDS):
            different, said = self.differences(options)
            own = [lines for lines in different if lines.split()[0] not in BY_USER]
            self.assertFalse(own, "\n".join(own) + "\n" + said)
            if not different:
                return
        self.fail("in every round:\n" + "\n".join(different) + "\n" + said)

    def differences(self, options):
        natively = subprocess.run([PROGRAM, STEP], cwd=self.directory, capture_output=True, text=True, timeout=1500)
        self.assertEqual(natively.returncode, 0, natively.stdout + natively.stderr)
        done = self.call("run", "--local", "4M", "--takeover", "start", *options, "--", PROGRAM, STEP, timeout=1500)
        expected, lines = natively.stdout.splitlines(), done.stdout.splitlines()
        different = [f"{a}\n  {b}" for a, b in zip(expected, lines) if differs(a, b)]
        self.assertEqual((done.returncode, len(lines)), (0, len(expected)), "\n".join(lines[-3:]) + done.stderr)
        return different, done.stderr

    def test_by_message(self):
        self.compare()

    def test_by_signal(self):
        self.compare("--fault", "signal")


if __name__ == "__main__":
    unittest.main()
