"""One program natively, then over each far device with little local memory: same results, bounded memory."""

import dataclasses
import os
import shutil

from . import devices, measure, report
from .errors import Failure, Skip
from .units import MIB, mib

MINIMUM_BUDGET_BYTES = 4 * MIB
SLACK_BYTES = 48 * MIB  # of a process's resident memory over its budget: libraries, tables, frames in flight
SLACK_SHARE = 0.015  # of the far bytes: page words and far addresses


@dataclasses.dataclass
class Settings:
    launcher: object
    urls: tuple
    local_share: float
    seconds_max: float
    options: tuple = ()


def budget(native, share, bytes_max=None):
    local = int(native.peak_bytes * share) // 4096 * 4096
    return max(MINIMUM_BUDGET_BYTES, min(local, bytes_max or local))


def most_resident(local_bytes, far_bytes, figures):
    """Bytes that a process may have. Until paging begins the kernel has all pages: on a machine that gives the thread
    which begins it no CPU, more than the budget is there by then, and the report says how much."""
    within = max(local_bytes, figures.get("takeover_resident_bytes", 0))
    return within + SLACK_BYTES + int(SLACK_SHARE * far_bytes)


def check_resident(outcome, local_bytes, native_peak_bytes, figures):
    far_bytes = max(figures.get("far_bytes", 0), native_peak_bytes - local_bytes, 0)
    allowed = most_resident(local_bytes, far_bytes, figures)
    if outcome.peak_bytes > allowed:
        raise Failure(f"{outcome.hog} had {mib(outcome.peak_bytes)} resident, {mib(allowed)} is the most for a "
                      f"budget of {mib(local_bytes)}")


def check_report(figures):
    for name in ("pages_lost", "device_errors"):
        if figures.get(name, 0):
            raise Failure(f"the report says {name}: {figures[name]}")


def run_far(program, native, url, settings):
    """(Outcome, figures of the report, budget in bytes) over one device, after all checks."""
    local = budget(native, settings.local_share, program.local_bytes_max)
    path = program.path("report.json")
    if os.path.exists(path):
        os.unlink(path)
    with devices.opened(url, settings.launcher, program.folder, 2 * native.peak_bytes) as full_url:
        options = (*program.options, *settings.options)
        before = settings.launcher.run(local_bytes=local, url=full_url, report=path, options=options)
        outcome = measure.run(program, before, seconds_max=settings.seconds_max)
    program.compare(native.answer, outcome.answer)
    figures = report.read(path)
    check_report(figures)
    check_resident(outcome, local, native.peak_bytes, figures)
    return outcome, figures, local


def run_program(program, settings, say):
    """Says one line a device. Returns how many failed; Skip when the program cannot be had."""
    program.prepare()
    native = measure.run(program, seconds_max=settings.seconds_max)
    failed = 0
    for url in settings.urls:
        where = f"{program.name:<10} {devices.name(url):<6}"
        try:
            outcome, figures, local = run_far(program, native, url, settings)
        except Failure as failure:
            failed += 1
            say(f"{where} FAILED   {failure}")
        except Skip as skip:
            say(f"{where} skipped  {skip}")
        else:
            say(f"{where} ok       native {native.seconds:6.2f} s, far {outcome.seconds:6.2f} s "
                f"({outcome.seconds / native.seconds:5.2f}x), {mib(native.peak_bytes)} natively, {mib(local)} local, "
                f"{mib(outcome.peak_bytes)} resident, {figures['pages_in']} pages in, {figures['pages_out']} out")
    return failed


def clean(folder):
    shutil.rmtree(folder, ignore_errors=True)
