"""Runs the chosen benchmarks, interleaved: every way of every benchmark once, then all again, so that what else the
machine does hits all alike. The order within a round turns, so that no way always comes after the same other one."""

import dataclasses
import datetime
import tempfile
import time

import swap_baseline
from harness import endings
from harness.errors import Failure, Interrupted, Skip

from . import ablations, machine, results, ways

# What ends one way of one benchmark, and leaves the others alone.
ONE_FAILURE = (Failure, swap_baseline.Unavailable, OSError, ValueError, KeyError)


@dataclasses.dataclass
class Tools:
    """The programs, and the options that are the same for all of a run."""
    launcher: object
    access: str = ""
    floor: str = ""
    openload: str = ""
    run_options: tuple = ()
    floor_options: tuple = ()
    openload_options: tuple = ()
    disk_folder: str = "/var/tmp"     # of the far file, and of the swap file
    program_scale: float = 1.0
    program_seconds_max: float = 600
    idle_seconds: float = 10
    seed: int = 20240229

    @staticmethod
    def folder(where=None):
        """A folder for one run, gone when the `with` ends."""
        return tempfile.TemporaryDirectory(prefix="hinterland-bench-", dir=where, ignore_cleanup_errors=True)


@dataclasses.dataclass
class Job:
    """One benchmark in one way; no way: a set of figures."""
    benchmark: object
    way: object
    series: object

    @property
    def key(self):
        return f"{self.benchmark.name} {self.way.name}" if self.way else self.benchmark.name

    def text(self, number):
        where = f"{self.benchmark.name}, {self.way.name}" if self.way else self.benchmark.name
        return f"{where}, round {number + 1}"


@dataclasses.dataclass
class Choice:
    """What of all ways is wanted. swap_reasons: {kind: why it is left out, None when it is not}."""
    devices: tuple
    swap_reasons: dict
    known: object = None  # ablations.Known
    ablate: tuple = ()   # devices over which each feature is left out in turn
    signal: bool = False  # faults by signal, too


def _ways_of(benchmark, choice):
    """(way, why it is left out or None) of all."""
    yield ways.Native(), None
    for url in benchmark.devices or choice.devices:
        yield ways.Far(url), None
    for url in choice.ablate if benchmark.ablated else ():
        for ablation in ablations.ABLATIONS:
            yield ablation.way(url), choice.known.missing(ablation)
    if benchmark.group == "open-load":
        yield ablations.FEEDBACK.way("mem:"), choice.known.missing(ablations.FEEDBACK)
    if benchmark.tied and "mem:" in choice.devices:
        for way in ways.tied("mem:"):
            yield way, None
    if choice.signal and benchmark.by_signal:
        yield ablations.by_signal("mem:"), choice.known.missing_option(ablations.SIGNAL_OPTIONS)
    for way in ways.SWAPS:
        if way.swap == benchmark.swap:
            yield way, choice.swap_reasons[way.swap]


def jobs_of(benchmarks, figure_sets, choice):
    """All jobs of a round."""
    jobs = []
    for benchmark in benchmarks:
        for way, reason in _ways_of(benchmark, choice):
            series = results.Series(way.name, benchmark.unit)
            series.skipped = reason
            jobs.append(Job(benchmark, way, series))
    return jobs + [Job(each, None, results.FigureSeries()) for each in figure_sets]


def turned(jobs, number):
    start = number * 5 % len(jobs) if jobs else 0
    return jobs[start:] + jobs[:start]


def prepare(jobs, stack, tools, size_bytes, steps):
    """Once before the first round, every benchmark. One that cannot be had is left out, and says why."""
    for benchmark in dict.fromkeys(job.benchmark for job in jobs if job.way):
        series = [job.series for job in jobs if job.benchmark is benchmark]
        steps.note(f"{benchmark.name}, getting ready")
        try:
            benchmark.prepare(stack, tools, size_bytes)
        except Skip as reason:
            for each in series:
                each.skipped = str(reason)
        except ONE_FAILURE as failure:
            for each in series:
                each.failure = f"natively, to get ready: {failure}"


class Runner:
    def __init__(self, tools, jobs, size_bytes, progress):
        self._tools, self._jobs, self._size, self._progress = tools, jobs, size_bytes, progress
        self._checksums = {}  # of each benchmark, by its first run: all ways must do the same

    def round(self, number):
        for job in turned(self._jobs, number):
            if not job.series.skipped:
                self._progress.start(job.key, job.text(number))
                self._run(job)
                self._progress.done()

    def _run(self, job):
        if job.series.failure:
            return  # one failure is enough to know
        try:
            with self._tools.folder() as folder:
                if job.way:
                    self._add(job, job.way.run(job.benchmark, self._size, self._tools, folder))
                else:
                    job.series.add(job.benchmark.figures(self._tools, folder, self._size))
        except ONE_FAILURE as failure:
            job.series.failure = str(failure) or type(failure).__name__

    def _add(self, job, sample):
        name = job.benchmark.name
        expected = self._checksums.setdefault(name, sample["checksum"])
        if sample["checksum"] != expected:
            raise Failure(f"checksum {sample['checksum']}, and {expected} in the first run: it did not do the same")
        job.series.samples.append(sample)


def benchmark_documents(jobs, size_bytes):
    documents = {}
    for job in jobs:
        if job.way:
            benchmark = job.benchmark
            document = documents.setdefault(benchmark.name, {
                "name": benchmark.name, "group": benchmark.group, "about": benchmark.about,
                "measured": benchmark.measured, "size_bytes": benchmark.size_bytes(size_bytes),
                "local_bytes": benchmark.local_bytes(size_bytes), "floor": list(benchmark.floor),
                "miss_share": benchmark.miss_share, "series": []})
            document["series"].append(job.series.document())
    return list(documents.values())


def measure(runner, jobs, repeat, size_bytes, document):
    """Fills the document. What is finished is in it also when Interrupted comes through."""
    before, began = machine.CpuTimes(), time.monotonic()
    document.update(started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), complete=False)
    try:
        for number in range(repeat):
            runner.round(number)
        document["complete"] = True
    finally:
        document["seconds"] = round(time.monotonic() - began, 1)
        document["busy"]["steal_share_during"] = machine.CpuTimes().shares_since(before)["steal_share"]
        document["benchmarks"] = benchmark_documents(jobs, size_bytes)
        for name in ("floor", "idle"):
            document[name] = next((job.series.documents() for job in jobs if job.key == name), [])


def failures(jobs):
    return [f"{job.key} failed: {job.series.failure}" for job in jobs if job.series.failure]


def wait(seconds):
    """Sleeps, and may be interrupted."""
    with endings.waiting:
        time.sleep(seconds)


__all__ = ["Choice", "Interrupted", "Job", "Runner", "Tools", "failures", "jobs_of", "measure", "prepare", "wait"]
