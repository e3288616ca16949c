"""The ways in which a benchmark is run: natively, over a far device, under Linux swap. A way gives the words that stand
before the program; the benchmark runs it."""

import contextlib
import os
import sys

import swap_baseline
from swap_baseline import LeftBehind  # noqa: F401: bench/run reports it
from harness import devices, report
from harness.errors import Failure

from . import disk


class Way:
    """`swap`: which swap it needs ("zram", "file"), or ""."""
    name, swap = "", ""

    def run(self, benchmark, size_bytes, tools, folder):
        """A sample of the benchmark, with what the way has counted as "figures"."""
        figures = {}
        with self.words(benchmark, size_bytes, tools, folder, figures) as words:
            sample = benchmark.sample(words, size_bytes, tools, folder)
        if figures:
            sample["figures"] = figures
        return sample

    def words(self, benchmark, size_bytes, tools, folder, figures):
        raise NotImplementedError


class Native(Way):
    name = "native"

    @contextlib.contextmanager
    def words(self, benchmark, size_bytes, tools, folder, figures):
        yield []


class Far(Way):
    """Under `hinterland run`, over one device. label: what is different, for the name; options: further words; before:
    words that come first of all."""

    def __init__(self, url, label="", options=(), before=()):
        self.url, self._options, self._before = url, tuple(options), tuple(before)
        self.name = f"{url} {label}" if label else url

    @contextlib.contextmanager
    def words(self, benchmark, size_bytes, tools, folder, figures):
        path = os.path.join(folder, "report.json")
        if os.path.exists(path):
            os.unlink(path)
        with contextlib.ExitStack() as stack:
            if self.url == "file:":
                disk.check_free(tools.disk_folder, benchmark.far_bytes(size_bytes))
                folder = stack.enter_context(tools.folder(tools.disk_folder))
            url = stack.enter_context(devices.opened(self.url, tools.launcher, folder,
                                                     benchmark.far_bytes(size_bytes)))
            options = (*benchmark.run_options, *tools.run_options, *self._options)
            yield [*self._before, *tools.launcher.run(local_bytes=benchmark.local_bytes(size_bytes), url=url,
                                                      report=path, options=options)]
        figures.update(report.read(path))
        for name in ("pages_lost", "device_errors"):
            if figures.get(name, 0):
                raise Failure(f"the report says {name}: {figures[name]}")
        if benchmark.must_page and figures.get("managed") == 0:
            raise Failure("paging never began, though the program is larger than its budget: this is no figure of far "
                          "memory")


class Swap(Way):
    """Linux swap, in a memory cgroup with the same limit. kind: on "zram", or in a "file"."""

    def __init__(self, cluster, kind="zram"):
        self.name, self.swap, self._cluster = f"swap page-cluster {cluster}", kind, cluster

    @contextlib.contextmanager
    def words(self, benchmark, size_bytes, tools, folder, figures):
        limit = benchmark.cgroup_bytes(size_bytes)
        swap_folder = tools.disk_folder if self.swap == "file" else None
        with swap_baseline.limited(limit, benchmark.far_bytes(size_bytes), self._cluster, swap_folder) as words:
            first = swap_baseline.pages_moved()
            yield words
            last = swap_baseline.pages_moved()
        figures.update(pages_in=last[0] - first[0], pages_out=last[1] - first[1],
                       kills_diverted=swap_baseline.kills_diverted())


def tied(url):
    """The same tied to the first 1 and 2 of the CPUs that there are, as far as they are fewer than all."""
    cpus = sorted(os.sched_getaffinity(0))
    for count in (1, 2):
        if count < len(cpus):
            chosen = ",".join(map(str, cpus[:count]))
            yield Far(url, f"on {count} CPU{'s' if count > 1 else ''}", before=("taskset", "-c", chosen))


SWAPS = tuple(Swap(cluster, kind) for kind in ("zram", "file") for cluster in (0, 3))


def swap_reasons(disk_folder):
    """{kind: why there is no such swap to compare with, or None}."""
    reasons = {}
    for kind, folder in (("zram", None), ("file", disk_folder)):
        try:
            swap_baseline.check(folder)
            reasons[kind] = None
        except (swap_baseline.Unavailable, OSError) as reason:
            reasons[kind] = str(reason)
    return reasons


def say(text):
    print(text, file=sys.stderr, flush=True)
