"""The ways in which a benchmark is run: natively, over a far device, under Linux swap."""

import json
import os
import sys

import swap_baseline
from swap_baseline import LeftBehind  # noqa: F401: bench/run reports it
from harness import devices, report
from harness.errors import Failure
from harness.process import Process

from . import machine

SECONDS_MAX = 900


def _words_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return " / ".join(file.read().strip().splitlines()[-3:])[:300]


def run_program(argv, folder):
    """Its stdout, as JSON. Failure when it does not end well."""
    out, errors = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    with open(out, "wb") as stdout, open(errors, "wb") as stderr:
        with Process(argv, stdout=stdout, stderr=stderr, cwd=folder, sample=False) as process:
            code = process.wait(SECONDS_MAX)
    if code != 0:
        raise Failure(f"exit status {code}: {_words_of(errors)}")
    with open(out, encoding="utf-8") as file:
        return json.load(file)


def access_sample(argv, folder):
    """One run of build/bench/access: {"value": ns per access, ...}."""
    before = machine.CpuTimes()
    said = run_program(argv, folder)
    sample = {"value": said["ns_per_access"]}
    sample.update({key: said[key] for key in ("seconds", "accesses", "checksum", "resident_anonymous_bytes")})
    sample["steal_share"] = machine.CpuTimes().shares_since(before)["steal_share"]
    return sample


class Native:
    name = "native"

    def run(self, benchmark, size_bytes, tools, folder):
        return access_sample(benchmark.argv(tools.access, size_bytes), folder)


class Far:
    """Under `hinterland run`, over one device."""

    def __init__(self, url):
        self.name = self.url = url

    def run(self, benchmark, size_bytes, tools, folder):
        path = os.path.join(folder, "report.json")
        if os.path.exists(path):
            os.unlink(path)
        with devices.opened(self.url, tools.launcher, folder, 2 * size_bytes) as url:
            before = tools.launcher.run(local_bytes=benchmark.local_bytes(size_bytes), url=url, report=path,
                                        options=tools.run_options)
            sample = access_sample([*before, *benchmark.argv(tools.access, size_bytes)], folder)
        figures = report.read(path)
        sample["figures"] = figures
        for name in ("pages_lost", "device_errors"):
            if figures.get(name, 0):
                raise Failure(f"the report says {name}: {figures[name]}")
        return sample


class Swap:
    """Linux swap on zram, in a memory cgroup with the same limit."""

    def __init__(self, cluster):
        self.name, self._cluster = f"swap page-cluster {cluster}", cluster

    def run(self, benchmark, size_bytes, tools, folder):
        limit = benchmark.cgroup_bytes(size_bytes)
        with swap_baseline.limited(limit, 2 * size_bytes, self._cluster) as words:
            first = swap_baseline.pages_moved()
            sample = access_sample([*words, *benchmark.argv(tools.access, size_bytes)], folder)
            last = swap_baseline.pages_moved()
        sample["figures"] = {"pages_in": last[0] - first[0], "pages_out": last[1] - first[1]}
        return sample


SWAPS = (Swap(0), Swap(3))


def floor_figures(tools, folder, options):
    """{name: figure} of one run of build/bench/floor."""
    path = os.path.join(folder, "floor.json")
    out, errors = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    with open(out, "wb") as stdout, open(errors, "wb") as stderr:
        with Process([tools.floor, "--json", path, *options], stdout=stdout, stderr=stderr, cwd=folder,
                     sample=False) as process:
            code = process.wait(SECONDS_MAX)
    if code != 0:
        raise Failure(f"exit status {code}: {_words_of(errors)}")
    with open(path, encoding="utf-8") as file:
        return {figure["name"]: figure for figure in json.load(file)["figures"]}


def swap_reason():
    """Why there is no swap to compare with, or None."""
    try:
        swap_baseline.check()
    except (swap_baseline.Unavailable, OSError) as reason:
        return str(reason)
    return None


def say(text):
    print(text, file=sys.stderr, flush=True)
