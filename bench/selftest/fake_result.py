#!/usr/bin/python3
"""A result that nobody has measured, for the tests; as a program it shows how the plots and the table look.

    bench/selftest/fake_result.py FOLDER
"""

import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "..", "test", "programs")]

from benchlib import plan, plots, results, runner, tables, targets  # noqa: E402

ABOUT_NS = {"native": 90, "mem:": 4000, "zmem:": 6500, "tcp:": 9500, "file:": 15000,
            "swap page-cluster 0": 14000, "swap page-cluster 3": 21000}
ABOUT_FLOOR_NS = {"hinted": 2100, "signal": 3000, "handler-same-cpu": 4300, "handler-other-cpu": 70000,
                  "handler-other-cpu-spinning": 9000, "handler-unpinned": 30000}


def _floor(numbers):
    series = results.FigureSeries()
    for way_number, way in enumerate(plots.LINES):
        more = 1 + 0.2 * way_number
        for place, about in ABOUT_FLOOR_NS.items():
            series.add(_figure(f"paging/random/{place}/{way}", about * more, numbers))
        for run in (1, 4, 16, 64):
            for place in ("hinted", "handler-same-cpu"):
                about = ABOUT_FLOOR_NS[place] * more * (0.3 + 0.7 / run)
                series.add(_figure(f"paging/sequential/{place}/{way}/run-{run}", about, numbers))
    series.add(_figure("paging/random/handler-same-cpu/copy-clean/2-threads", 2400, numbers))
    for name, about in (("ping-pong/same-cpu", 7000), ("ping-pong/other-cpu", 17000), ("stream-32/same-cpu", 1000),
                        ("stream-32/other-cpu", 1200)):
        series.add(_figure(f"tcp/{name}", about, numbers))
    series.add({"primitive/uffdio-move/1": {"unit": "ns/page", "skipped": "this kernel has no UFFDIO_MOVE"}})
    return series.documents()


def _figure(name, about, numbers):
    return {name: {"unit": "ns/page", "values": [about * numbers.uniform(0.95, 1.1) for _ in range(5)]}}


def _idle(numbers):
    series = results.FigureSeries()
    for name, unit, about in (("program-cpu", "% of a core", 0.04), ("server-cpu", "% of a core", 0.01),
                              ("server-memory-above-stored", "%", 0.6)):
        series.add({f"idle/{name}": {"unit": unit, "values": [about * numbers.uniform(0.9, 1.1) for _ in range(5)]}})
    return series.documents()


def _sample(job, about, numbers):
    value = about * numbers.uniform(0.95, 1.1)
    sample = {"value": value, "checksum": 1}
    if job.benchmark.group == "open-load":
        sample["get"] = {key: value * share for key, share in zip(plots.PERCENTILES, (0.05, 0.2, 1, 4))}
        sample["rate_asked_per_second"], sample["rate_answered_per_second"] = 5000.0, 4990.0
    if not job.way.name.startswith(("native", "swap")):
        sample["figures"] = {"reclaim_direct_faults": 30, "faults_first_touch": 4000, "faults_read": 56_000}
    return sample


class KnowsEverything:
    """Stands in for ablations.Known: every switch is there."""

    def missing(self, ablation):
        return None


def fake_result(seed=7):
    numbers = random.Random(seed)
    choice = runner.Choice(plan.DEVICES, {"zram": None, "file": None}, KnowsEverything(), ("mem:", "zmem:"))
    jobs = runner.jobs_of(plan.BENCHMARKS, (), choice)
    for job in jobs:
        about = ABOUT_NS.get(job.way.name, ABOUT_NS["mem:"]) * numbers.uniform(0.5, 1.6)
        if job.benchmark.unit == "ns/run":
            about = 1e9 * (1 + about / 10_000)
        job.series.samples = [_sample(job, about, numbers) for _ in range(5)]
    document = {"schema_version": results.SCHEMA_VERSION, "program": "bench/run", "commit": "0123456789ab",
                "build_type": "RelWithDebInfo", "complete": True, "seconds": 1,
                "machine": {"processor": "none", "processors": 2, "memory_gib": 24.0, "kernel": "6.18",
                            "virtual": True},
                "options": {"size_bytes": plan.SIZE, "repeat": 5, "quick": False, "run_options": []},
                "busy": {"before": {"cpu_share": 0.0, "steal_share": 0.0}, "was_busy": False,
                         "steal_share_during": 0.0},
                "benchmarks": runner.benchmark_documents(jobs, plan.SIZE), "floor": _floor(numbers),
                "idle": _idle(numbers)}
    return {**document, "targets": targets.of(document)}


def series_named(document, benchmark, way):
    return next(series for b in document["benchmarks"] if b["name"] == benchmark
                for series in b["series"] if series["way"] == way)


if __name__ == "__main__":
    print(tables.text(fake_result()))
    print(plots.draw(fake_result(), sys.argv[1]))
