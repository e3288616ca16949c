#!/usr/bin/env python3
"""Runs random sequences of memory calls natively and under far memory, and compares what came of each.

run.py --hinterland COMMAND --program PROGRAM [--sequences N] [--seed N] [--first N] [--local SIZE] [--far URL]
       [--option OPTION ...]

Far memory pages from the start, with a budget far below what the sequences use; for tcp: and file: a server and a file
are made. With --sequences many processes are
run, one after the other, and their progress is printed. A difference prints the command that repeats it, and the first
call that differs. HINTERLAND_TEST_SEED and HINTERLAND_TEST_CALLS (here: sequences) stand in for --seed and
--sequences. Exit status: 0 equal, 1 different, 77 skipped.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "programs"))
sys.dont_write_bytecode = True

from harness import devices  # noqa: E402
from harness.launcher import Launcher  # noqa: E402

SPACE = 1 << 30  # of a file or a server, bytes
BATCH = 12800  # sequences a process: 50 rounds


class Skipped(Exception):
    """The test cannot be done here; says why."""


def command_line():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hinterland", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--sequences", type=int, default=int(os.environ.get("HINTERLAND_TEST_CALLS", "2560")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("HINTERLAND_TEST_SEED", "0")) or time.time_ns() % 10**9)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--local", default="4M")
    parser.add_argument("--far", default="mem:")
    parser.add_argument("--option", action="append", default=[], help="for hinterland run, as --option=--take=protect")
    return parser.parse_args()


class Runs:
    """The two ways to run the program."""

    def __init__(self, options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self.pages_in = self.pages_out = self.forks = 0

    def records(self, which):
        """The file that a program may keep all its calls in, one a line, which begins with its sequence."""
        return os.path.join(self.folder.name, which + ".records")

    def recorded(self, which, sequence):
        if not os.path.exists(self.records(which)):
            return []
        with open(self.records(which), encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file if line.startswith(sequence + " ")]

    def native(self, arguments):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
        environment["HINTERLAND_TEST_RECORDS"] = self.records("native")
        return subprocess.Popen([self.options.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=environment, text=True)

    def far(self, arguments):
        report = os.path.join(self.folder.name, "report.json")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
        environment["EXPECT_PRELOADED"] = "1"
        environment["HINTERLAND_TEST_RECORDS"] = self.records("far")
        command = [self.options.hinterland, "run", "--local", self.options.local, "--far", self.options.far,
                   "--takeover", "start", "--report", report, "--force", *self.options.option, "--",
                   self.options.program, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True,
                              timeout=3600, check=False)
        if "userfaultfd is not permitted" in done.stderr:
            raise Skipped(done.stderr)
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                counters = json.load(file)["totals"]["counters"]
            self.pages_in += counters["pages_in"] + counters["faults_refault"]
            self.pages_out += counters["pages_out"]
            self.forks += counters["forks"]
        return done

    def both(self, arguments):
        """(status, lines) of each, and what far memory said."""
        native = self.native(arguments)
        far = self.far(arguments)
        output, errors = native.communicate(timeout=3600)
        if native.returncode == 77:
            raise Skipped(errors)
        return (native.returncode, output.splitlines()), (far.returncode, far.stdout.splitlines()), far.stderr


def first_difference(left, right):
    for number, pair in enumerate(zip(left + ["<end>"], right + ["<end>"])):
        if pair[0] != pair[1]:
            return number
    return -1


def differing_sequence(theirs, ours):
    """The number, as text: what was found wrong names it, and otherwise the line is a sequence's. "" if neither."""
    found = re.match(r"wrong in sequence (\d+)", ours)
    if found:
        return found.group(1)
    return theirs.split()[0] if theirs[:1].isdigit() else ""


def explain(runs, options, native, far, errors):
    number = first_difference(native[1], far[1])
    print(f"status: native {native[0]}, far {far[0]}\n{errors}")
    if number < 0:
        return
    theirs = native[1][number] if number < len(native[1]) else "<end>"
    ours = far[1][number] if number < len(far[1]) else "<end>"
    print(f"native  {theirs}\nfar     {ours}")
    sequence = differing_sequence(theirs, ours)
    if not sequence:
        return
    calls = runs.recorded("native", sequence), runs.recorded("far", sequence)
    number = first_difference(*calls)
    for title, lines in zip(("native", "far"), calls):
        print(f"its calls {title}, up to the first that differs:")
        print("\n".join(lines[max(number - 12, 0):number + 1]))
    repeat = [str(options.seed), sequence, "1", sequence]
    print(f"repeat with: {options.program} {' '.join(repeat)}")
    native, far, _ = runs.both(repeat)
    number = first_difference(native[1], far[1])
    if number < 0:
        print("but alone it makes no difference: it depends on where its pages were")
    for title, lines in ("native", native[1]), ("far", far[1]):
        print(f"--- {title}")
        print("\n".join(lines[:number + 1]))


def compare(options):
    runs = Runs(options)
    started = time.monotonic()
    print(f"HINTERLAND_TEST_SEED={options.seed}", flush=True)
    end = options.first + options.sequences
    for first in range(options.first, end, BATCH):
        count = min(BATCH, end - first)
        native, far, errors = runs.both([str(options.seed), str(first), str(count)])
        if native != far or native[0] != 0:
            explain(runs, options, native, far, errors)
            return 1
        done, took = first + count - options.first, time.monotonic() - started
        if options.sequences > BATCH:
            left = took / done * (options.sequences - done)
            print(f"{done} of {options.sequences} sequences equal, {took:.0f} s, {left:.0f} s to go", flush=True)
    print(f"{options.sequences} sequences equal; far: {runs.pages_out} pages out, {runs.pages_in} in, "
          f"{runs.forks} forks; {time.monotonic() - started:.1f} s")
    if runs.pages_in == 0 or runs.pages_out == 0:
        print("nothing was paged: that was no test")
        return 1
    return 0


def main():
    options = command_line()
    try:
        with tempfile.TemporaryDirectory() as folder, \
                devices.opened(options.far, Launcher(options.hinterland), folder, SPACE) as options.far:
            return compare(options)
    except Skipped as reason:
        print(reason, file=sys.stderr)
        return 77


if __name__ == "__main__":
    sys.exit(main())
