"""Runs the chosen benchmarks, interleaved: every way of every benchmark once, then all again, so that what else the
machine does hits all alike. The order within a round turns, so that no way always comes after the same other one."""

import dataclasses
import datetime
import tempfile
import time

import swap_baseline
from harness import endings
from harness.errors import Failure, Interrupted

from . import machine, results, ways
from .plan import FLOOR


@dataclasses.dataclass
class Tools:
    launcher: object
    access: str
    floor: str
    run_options: tuple = ()
    floor_options: tuple = ()


@dataclasses.dataclass
class Job:
    """One benchmark in one way; no benchmark: the floor."""
    benchmark: object
    way: object
    series: object

    @property
    def key(self):
        return f"{self.benchmark.name} {self.way.name}" if self.benchmark else FLOOR

    def text(self, number):
        where = f"{self.benchmark.name}, {self.way.name}" if self.benchmark else "the floor"
        return f"{where}, round {number + 1}"


def jobs_of(benchmarks, with_floor, devices, swap_reason):
    """All jobs of a round. swap_reason: why swap is left out, None when it is not."""
    jobs = []
    for benchmark in benchmarks:
        for way in (ways.Native(), *(ways.Far(url) for url in devices), *(ways.SWAPS if benchmark.swap else ())):
            series = results.Series(way.name)
            if isinstance(way, ways.Swap):
                series.skipped = swap_reason
            jobs.append(Job(benchmark, way, series))
    if with_floor:
        jobs.append(Job(None, None, results.FloorSeries()))
    return jobs


def turned(jobs, number):
    start = number * 5 % len(jobs) if jobs else 0
    return jobs[start:] + jobs[:start]


class Runner:
    def __init__(self, tools, jobs, size_bytes, progress):
        self._tools, self._jobs, self._size, self._progress = tools, jobs, size_bytes, progress
        self._checksums = {}  # of each benchmark, by its first run: all ways must do the same

    def round(self, number):
        for job in turned(self._jobs, number):
            if not job.benchmark or not job.series.skipped:
                self._progress.start(job.key, job.text(number))
                self._run(job)
                self._progress.done()

    def _run(self, job):
        if job.series.failure:
            return  # one failure is enough to know
        try:
            with tempfile.TemporaryDirectory(prefix="hinterland-bench-", ignore_cleanup_errors=True) as folder:
                if job.benchmark:
                    self._add(job, job.way.run(job.benchmark, self._size, self._tools, folder))
                else:
                    job.series.add(ways.floor_figures(self._tools, folder, self._tools.floor_options))
        except (Failure, swap_baseline.Unavailable, OSError, ValueError, KeyError) as failure:
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
        if job.benchmark:
            benchmark = job.benchmark
            document = documents.setdefault(benchmark.name, {
                "name": benchmark.name, "about": benchmark.about, "size_bytes": size_bytes,
                "local_bytes": benchmark.local_bytes(size_bytes), "floor": list(benchmark.floor),
                "miss_share": benchmark.miss_share, "series": []})
            document["series"].append(job.series.document())
    return list(documents.values())


def measure(runner, jobs, repeat, size_bytes, document):
    """Fills the document. What is finished is in it also when Interrupted comes through."""
    before, started = machine.CpuTimes(), time.monotonic()
    document.update(started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), complete=False)
    try:
        for number in range(repeat):
            runner.round(number)
        document["complete"] = True
    finally:
        document["seconds"] = round(time.monotonic() - started, 1)
        document["busy"]["steal_share_during"] = machine.CpuTimes().shares_since(before)["steal_share"]
        document["benchmarks"] = benchmark_documents(jobs, size_bytes)
        floors = [job.series for job in jobs if not job.benchmark]
        document["floor"] = floors[0].documents() if floors else []


def failures(jobs):
    return [f"{job.key} failed: {job.series.failure}" for job in jobs if job.series.failure]


def wait(seconds):
    """Sleeps, and may be interrupted."""
    with endings.waiting:
        time.sleep(seconds)


__all__ = ["Interrupted", "Job", "Runner", "Tools", "failures", "jobs_of", "measure", "wait"]
