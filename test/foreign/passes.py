"""What passes natively must pass under far memory: runs one program both ways and counts.

A foreign program's answer is {check: value} of the checks that passed. One that fails natively is none of ours.
"""

import dataclasses

from harness import devices, measure, suite
from harness.errors import Failure, Skip
from harness.units import mib


class Lost(Failure):
    """Checks that pass natively did not pass, or gave something else."""

    def __init__(self, lost, native, far):
        shown = "; ".join(f"{what} ({str(far.get(what, 'not passed'))[:80]}, natively {str(native[what])[:80]})"
                          for what in lost[:3])
        super().__init__(f"{len(lost)} of {len(native)} lost: {shown}{'; ...' if len(lost) > 3 else ''}")
        self.passed = len(native) - len(lost)


class Passes:
    """Mixed into a harness.program.Program. `tries`: a test whose verdict hangs on the clock may fail once without
    meaning anything; then the whole program runs again, and each check must have passed in one of the runs."""

    in_short = in_long = True
    short = False  # which form this run is
    tries = 1

    def __init__(self, *words):
        super().__init__(*words)
        self._passed_before = {}

    def start_over(self):
        """Before the first run over another device."""
        self._passed_before = {}

    def compare(self, native, far):
        far.update({what: value for what, value in self._passed_before.items() if what not in far})
        self._passed_before = dict(far)
        lost = [what for what in sorted(native) if far.get(what) != native[what]]
        if lost:
            raise Lost(lost, native, far)

    def forgive_exit(self, code, well):
        """For accept(): statuses other than 0 with which a test suite says that tests failed."""
        if code not in well:
            raise Failure(f"exit status {code}")


@dataclasses.dataclass
class Row:
    name: str
    native: int = 0
    far: dict = dataclasses.field(default_factory=dict)  # URL: passes
    skipped: str = ""
    failed: bool = False


def run_program(program, settings, say):
    """Says a line a device; returns the table's row."""
    row = Row(program.name)
    try:
        program.prepare()
        native = measure.run(program, seconds_max=settings.seconds_max)
    except Skip as skip:
        row.skipped = str(skip)
        say(f"{program.name:<22} skipped  {skip}")
        return row
    except Failure as failure:
        row.failed = True
        say(f"{program.name:<22} native FAILED   {failure}")
        return row
    row.native = len(native.answer)
    if not native.answer:
        row.failed = True
        say(f"{program.name:<22} native FAILED   nothing passes")
        return row
    for url in settings.urls:
        _run_far(program, native, url, settings, row, say)
    return row


def _run_far(program, native, url, settings, row, say):
    where = f"{program.name:<22} {devices.name(url):<6}"
    program.start_over()
    for attempt in range(1, program.tries + 1):
        try:
            outcome, figures, local = suite.run_far(program, native, url, settings)
            break
        except Failure as failure:
            row.far[url] = getattr(failure, "passed", 0)
            again = attempt < program.tries
            say(f"{where} {'again   ' if again else 'FAILED  '} {failure}")
            if not again:
                row.failed = True
                return
    row.far[url] = row.native
    say(f"{where} ok       {row.native} passes, native {native.seconds:.2f} s, far {outcome.seconds:.2f} s, "
        f"{mib(native.peak_bytes)} natively, {mib(local)} local, {mib(outcome.peak_bytes)} resident, "
        f"{figures['pages_in']} pages in, {figures['pages_out']} out")


def show_table(rows, urls, say):
    names = [devices.name(url) for url in urls]
    say("")
    say(f"{'program':<22} {'native':>7} " + " ".join(f"{name:>7}" for name in names))
    for row in rows:
        if row.skipped:
            say(f"{row.name:<22} skipped: {row.skipped}")
        else:
            say(f"{row.name:<22} {row.native:>7} " + " ".join(f"{row.far.get(url, 0):>7}" for url in urls))
    ran = [row for row in rows if not row.skipped]
    say(f"{'all':<22} {sum(row.native for row in ran):>7} "
        + " ".join(f"{sum(row.far.get(url, 0) for row in ran):>7}" for url in urls))
