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

from benchlib import plan, plots, results, runner, tables  # noqa: E402

ABOUT_NS = {"native": 90, "mem:": 4000, "zmem:": 6500, "tcp:": 9500, "swap page-cluster 0": 14000,
            "swap page-cluster 3": 21000}
ABOUT_FLOOR_NS = {"hinted": 2100, "signal": 3000, "handler-same-cpu": 4300, "handler-other-cpu": 70000,
                  "handler-other-cpu-spinning": 9000, "handler-unpinned": 30000}


def _floor(numbers):
    series = results.FloorSeries()
    for way_number, way in enumerate(plots.LINES):
        more = 1 + 0.2 * way_number
        for place, about in ABOUT_FLOOR_NS.items():
            series.add(_figure(f"paging/random/{place}/{way}", about * more, numbers))
        for run in (1, 4, 16, 64):
            for place in ("hinted", "handler-same-cpu"):
                about = ABOUT_FLOOR_NS[place] * more * (0.3 + 0.7 / run)
                series.add(_figure(f"paging/sequential/{place}/{way}/run-{run}", about, numbers))
    series.add({"primitive/uffdio-move/1": {"unit": "ns/page", "skipped": "this kernel has no UFFDIO_MOVE"}})
    return series.documents()


def _figure(name, about, numbers):
    return {name: {"unit": "ns/page", "values": [about * numbers.uniform(0.95, 1.1) for _ in range(5)]}}


def fake_result(seed=7):
    numbers = random.Random(seed)
    jobs = runner.jobs_of(plan.BENCHMARKS, False, plan.DEVICES, None)
    for job in jobs:
        about = ABOUT_NS[job.way.name] * numbers.uniform(0.5, 1.6)
        job.series.samples = [{"value": about * numbers.uniform(0.95, 1.1), "checksum": 1} for _ in range(5)]
    return {"schema_version": results.SCHEMA_VERSION, "program": "bench/run", "commit": "0123456789ab",
            "build_type": "RelWithDebInfo", "complete": True, "seconds": 1,
            "machine": {"processor": "none", "processors": 2, "memory_gib": 24.0, "kernel": "6.18", "virtual": True},
            "options": {"size_bytes": plan.SIZE, "repeat": 5, "quick": False, "run_options": []},
            "busy": {"before": {"cpu_share": 0.0, "steal_share": 0.0}, "was_busy": False, "steal_share_during": 0.0},
            "benchmarks": runner.benchmark_documents(jobs, plan.SIZE), "floor": _floor(numbers)}


def series_named(document, benchmark, way):
    return next(series for b in document["benchmarks"] if b["name"] == benchmark
                for series in b["series"] if series["way"] == way)


if __name__ == "__main__":
    print(tables.text(fake_result()))
    print(plots.draw(fake_result(), sys.argv[1]))
