"""The real programs of test/programs: at a quarter of their own peak against Linux swap, and with room to spare."""

import hashlib
import json
import shutil
import tempfile

from harness import measure, suite
from workloads import ALL

# Those that have rows in bench/targets; bench/programs_table.py runs all that there are.
NAMES = ("redis", "memcached", "sqlite", "sort", "numpy", "permutation", "compile")
QUARTER, ROOMY = 0.25, 1.5
FITS = "-fits"


class Subject:
    """A program with its data, and what it does natively; prepared once, by whoever comes first."""

    def __init__(self, name):
        self.name, self.program, self.native = name, None, None

    def prepare(self, stack, tools):
        """Skip when it cannot be had, Failure when it does not run natively."""
        if self.native:
            return
        folder = tempfile.mkdtemp(prefix="hinterland-bench-")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.program = ALL[self.name](folder, tools.program_scale, tools.seed)
        self.program.prepare()
        self.native = measure.run(self.program, seconds_max=tools.program_seconds_max)


class RealProgram:
    """A Subject with a share of its native peak local; as every benchmark that is run in several ways (see plan.py)."""
    group, unit, measured = "programs", "ns/run", "time of a run"
    floor, miss_share, devices, ablated, tied, must_page = (), 1.0, ("mem:",), False, False, False

    def __init__(self, subject, share):
        self.subject, self._share = subject, share
        self.name = f"{subject.name}{FITS if share > 1 else ''}"
        self.swap = "" if share > 1 else "zram"
        self.by_signal = share <= 1
        self.about = f"{ALL[subject.name].help}; {share:.0%} of its peak local"
        self.run_options = ALL[subject.name].options

    def size_bytes(self, _):
        return self.subject.native.peak_bytes if self.subject.native else 0

    def local_bytes(self, _):
        if not self.subject.native:
            return 0
        return suite.budget(self.subject.native, self._share, self.subject.program.local_bytes_max)

    def cgroup_bytes(self, size_bytes):
        return self.local_bytes(size_bytes)

    def far_bytes(self, _):
        return 2 * self.subject.native.peak_bytes

    def prepare(self, stack, tools, _size_bytes):
        self.subject.prepare(stack, tools)

    def sample(self, words, _size_bytes, tools, _folder):
        program = self.subject.program
        outcome = measure.run(program, words, seconds_max=tools.program_seconds_max)
        program.compare(self.subject.native.answer, outcome.answer)
        answer = hashlib.sha256(json.dumps(outcome.answer, sort_keys=True, default=str).encode()).hexdigest()
        return {"value": outcome.seconds * 1e9, "checksum": answer[:16],
                "resident_anonymous_bytes": outcome.peak_bytes}


def real_programs():
    """Each at a quarter and with room to spare; the pair shares its data."""
    subjects = [Subject(name) for name in NAMES]
    return tuple(RealProgram(subject, share) for subject in subjects for share in (QUARTER, ROOMY))
