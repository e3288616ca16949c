#!/usr/bin/python3
"""Time and misses of each real program with 100, 50 and 25 % of its memory local: the tables of performance.md.

    bench/programs_table.py --hinterland build/bin/hinterland --runs 5 --json programs.json --markdown programs.md
    bench/programs_table.py --far mem: --share 0.25 --swap        # with Linux swap on zram beside it (root)

Runs are interleaved (native, each device and share, then again), so that what else the machine does hits all alike.
Every far run's results are compared with native ones; one that differs is a failure, not a figure. The files hold what
is complete after each program, and after an interruption. Exit status 0; 1 when a run failed (its cell says so) or all
were interrupted; 2 usage, or a build that must not be measured.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(ROOT, "test", "programs")]
sys.dont_write_bytecode = True

import swap_baseline  # noqa: E402
from harness import devices, endings, measure, suite  # noqa: E402
from harness.errors import Failure, Interrupted, Skip  # noqa: E402
from harness.launcher import Launcher  # noqa: E402
from workloads import ALL  # noqa: E402

SCHEMA_VERSION = 1
FAST_BUILDS = ("Release", "RelWithDebInfo", "MinSizeRel")
SWAP_CLUSTERS = (0, 3)  # vm.page-cluster; the better one counts
KEPT_FIGURES = ("pages_out", "device_stored_bytes", "managed", "reclaim_direct_faults")


class Refused(Exception):
    """What must not be measured, and why."""


def build_of(command):
    """CMAKE_BUILD_TYPE of the tree that `command` was built in. Refused for one whose figures mean nothing."""
    cache = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(command))), "CMakeCache.txt")
    try:
        with open(cache, encoding="utf-8") as file:
            settings = dict(line.strip().split("=", 1) for line in file if "=" in line and line[0] not in "#/")
    except OSError:
        raise Refused(f"{command} is not in a build tree (no {cache}): it may be a debug build") from None
    kind = next((value for key, value in settings.items() if key.startswith("CMAKE_BUILD_TYPE:")), "")
    sanitizer = next((value for key, value in settings.items() if key.startswith("HINTERLAND_SANITIZE:")), "")
    sanitizer = "" if sanitizer in ("OFF", "0", "NO", "FALSE") else sanitizer  # it is an option(): OFF by default
    if kind not in FAST_BUILDS or sanitizer:
        raise Refused(f"{command} is a {kind or 'plain'} build{' with sanitizers' * bool(sanitizer)}: its figures "
                      f"mean nothing. Build with make")
    return kind


def commit():
    try:
        words = ["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory_bytes = int(file.readline().split()[1]) * 1024
    return {"processor": model, "processors": os.cpu_count(), "memory_bytes": memory_bytes,
            "kernel": platform.release(), "load_average_at_start": os.getloadavg()[0]}


def summary(values, name="seconds"):
    return {name: values, f"{name}_median": statistics.median(values), f"{name}_min": min(values),
            f"{name}_max": max(values)} if values else {name: []}


class Cell:
    """One device and share of one program."""

    def __init__(self, url, share):
        self.url, self.share = url, share
        self.seconds, self.ratios, self.pages_in = [], [], []
        self.figures, self.failure, self.local_bytes = {}, None, 0

    def run(self, program, native, settings):
        if self.failure:
            return  # one failure is enough to know
        settings.local_share = self.share
        try:
            outcome, figures, self.local_bytes = self.run_once(program, native, settings)
        except (Failure, swap_baseline.Unavailable) as failure:
            self.failure = str(failure)
            return
        self.seconds.append(outcome.seconds)
        self.ratios.append(outcome.seconds / native.seconds)
        self.pages_in.append(figures.get("pages_in", 0))
        self.figures = {name: figures[name] for name in KEPT_FIGURES if name in figures}

    def run_once(self, program, native, settings):
        return suite.run_far(program, native, self.url, settings)

    def result(self):
        ratio = {"ratio_median": statistics.median(self.ratios), "ratio_min": min(self.ratios),
                 "ratio_max": max(self.ratios)} if self.ratios else {}
        return {"far": self.url, "local_share": self.share, "local_bytes": self.local_bytes, **summary(self.seconds),
                **ratio, **summary(self.pages_in, "pages_in"), "figures": self.figures, "failure": self.failure}


class SwapCell(Cell):
    """The same without us: a memory cgroup of the same limit, and swap on zram."""

    def __init__(self, cluster, share):
        super().__init__(f"swap/{cluster}", share)
        self._cluster = cluster

    def run_once(self, program, native, settings):
        local = suite.budget(native, self.share, program.local_bytes_max)
        first = swap_baseline.pages_moved()
        with swap_baseline.limited(local, 2 * native.peak_bytes, self._cluster) as words:
            outcome = measure.run(program, around=words, seconds_max=settings.seconds_max)
        last = swap_baseline.pages_moved()
        program.compare(native.answer, outcome.answer)
        return outcome, {"pages_in": last[0] - first[0], "pages_out": last[1] - first[1]}, local


def against_swap(cells):
    """Notes in each far result its time and its misses against those of the better swap of the same share."""
    for cell in cells:
        swaps = [other for other in cells if other["far"].startswith("swap/")
                 and other["local_share"] == cell["local_share"] and other["seconds"]]
        if swaps and cell["seconds"] and not cell["far"].startswith("swap/"):
            faster = min(swaps, key=lambda swap: swap["seconds_median"])
            cell["of_swap"] = cell["seconds_median"] / faster["seconds_median"]
            cell["misses_of_swap"] = cell["pages_in_median"] / max(faster["pages_in_median"], 1)
    return cells


def means_against_swap(document):
    """{"time": ..., "misses": ...}: geometric means of all far results that have swap beside them; {} without one. Who
    fetches nothing counts as a hundredth of swap's misses."""
    cells = [cell for result in document["results"] for cell in result["far"] if "of_swap" in cell]
    if not cells:
        return {}
    return {"time": statistics.geometric_mean(cell["of_swap"] for cell in cells),
            "misses": statistics.geometric_mean(max(cell["misses_of_swap"], 0.01) for cell in cells)}


class Progress:
    """On a terminal where we are and about how long it takes, else a line for each program."""

    def __init__(self, steps):
        self._steps, self._done, self._started = steps, 0, time.monotonic()

    def step(self, text):
        if sys.stderr.isatty():
            spent = time.monotonic() - self._started
            left = f"about {spent / self._done * (self._steps - self._done):.0f} s left" if self._done else ""
            print(f"\r\x1b[K{self._done}/{self._steps} {text} {left}", end="", file=sys.stderr, flush=True)
        self._done += 1

    def program_ended(self, name):
        if not sys.stderr.isatty():
            spent = time.monotonic() - self._started
            print(f"{name}: {self._done}/{self._steps} runs after {spent:.0f} s", file=sys.stderr, flush=True)

    def end(self):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def measure_program(name, chosen, settings, progress):
    with tempfile.TemporaryDirectory(prefix="hinterland-bench-", ignore_cleanup_errors=True) as folder:
        program = ALL[name](folder, chosen.scale, chosen.seed)
        program.prepare()
        cells = [Cell(url, share) for url in chosen.far for share in chosen.share]
        cells += [SwapCell(cluster, share) for cluster in SWAP_CLUSTERS for share in chosen.share
                  if chosen.swap and share < 1]
        natives, budget_from = [], None
        for number in range(chosen.runs):
            progress.step(f"{name}, run {number + 1}, native")
            native = measure.run(program, seconds_max=chosen.timeout)
            natives.append(native.seconds)
            budget_from = budget_from or native.peak_bytes
            native.peak_bytes = budget_from  # the same budgets in every run
            for cell in cells:
                progress.step(f"{name}, run {number + 1}, {cell.url} {cell.share:.0%} local")
                cell.run(program, native, settings)
        return {"program": name, "native_peak_bytes": budget_from, "native": summary(natives),
                "far": against_swap([cell.result() for cell in cells]), "skipped": None}


def cell_text(cell):
    if cell["failure"]:
        return "failed"
    of_swap = f", {cell['of_swap']:.2f} of swap" if "of_swap" in cell else ""
    return f"{cell['ratio_median']:.2f} ({cell['ratio_min']:.2f}-{cell['ratio_max']:.2f}){of_swap}"


def misses_text(cell):
    if cell["failure"]:
        return "failed"
    least, most = cell["pages_in_min"] / 1000, cell["pages_in_max"] / 1000
    of_swap = f", {cell['misses_of_swap']:.2f} of swap" if "misses_of_swap" in cell else ""
    return f"{cell['pages_in_median'] / 1000:.1f} ({least:.1f}-{most:.1f}){of_swap}"


def misses(document, heads):
    """Pages that came in, median and spread."""
    lines = ["", "Thousand pages that came in, read-ahead included.", "", "| program | " + " | ".join(heads) + " |",
             "|---" * (1 + len(heads)) + "|"]
    for result in document["results"]:
        if not result["skipped"]:
            lines.append(f"| {result['program']} | " + " | ".join(misses_text(cell) for cell in result["far"]) + " |")
    return lines


def markdown(document):
    """Times as ratios to native, and misses: median and spread."""
    about = document["machine"]
    shares = [f"{cell['far']} {cell['local_share']:.0%}" for cell in
              next((result["far"] for result in document["results"] if result["far"]), [])]
    lines = [f"Time against native (median of {document['runs']} runs, least to most), by far device and share of "
             f"memory that is local.", "",
             f"{about['processor']}, {about['processors']} processors, Linux {about['kernel']}, commit "
             f"{document['commit']}, {document['build_type']} build, scale {document['scale']:g}.", "",
             "| program | peak MiB | native s | " + " | ".join(shares) + " |",
             "|---" * (3 + len(shares)) + "|"]
    for result in document["results"]:
        if result["skipped"]:
            lines.append(f"| {result['program']} | skipped: {result['skipped']} |" + " |" * (1 + len(shares)))
            continue
        cells = " | ".join(cell_text(cell) for cell in result["far"])
        lines.append(f"| {result['program']} | {result['native_peak_bytes'] / 2**20:.0f} | "
                     f"{result['native']['seconds_median']:.2f} | {cells} |")
    lines += misses(document, shares)
    if means := means_against_swap(document):
        lines += ["", f"Geometric means against swap: time {means['time']:.2f}, misses {means['misses']:.2f}."]
    return "\n".join(lines) + "\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hinterland", default=os.path.join(ROOT, "build", "bin", "hinterland"), metavar="PATH")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--far", action="append", metavar="URL", help="several times; default zmem: mem: tcp:")
    parser.add_argument("--share", action="append", type=float, metavar="SHARE",
                        help="local share of the native peak, several times; default 1 0.5 0.25")
    parser.add_argument("--swap", action="store_true", help="also under Linux swap on zram, with the same limits")
    parser.add_argument("--scale", type=float, default=1.0, help="of the programs' data; 5 is 300 to 500 MiB")
    parser.add_argument("--seed", type=int, default=20240229)
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="for one run")
    parser.add_argument("--json", metavar="FILE", help="write all figures here")
    parser.add_argument("--markdown", metavar="FILE", help="write the table here, and not on stdout")
    parser.add_argument("--force", action="store_true", help="overwrite these files")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"default: all of {', '.join(ALL)}")
    chosen = parser.parse_args()
    chosen.far, chosen.share = chosen.far or ["zmem:", "mem:", "tcp:"], chosen.share or [1.0, 0.5, 0.25]
    chosen.programs = chosen.programs or list(ALL)
    for name in chosen.programs:
        if name not in ALL:
            parser.error(f"no program '{name}': there are {', '.join(ALL)}")
    if chosen.runs < 1 or chosen.scale <= 0 or not all(0 < share <= 1.5 for share in chosen.share):
        parser.error("--runs is at least 1, --scale above 0, --share above 0 and at most 1.5")
    for path in filter(None, (chosen.json, chosen.markdown)):
        if os.path.exists(path) and not chosen.force:
            parser.error(f"{path} exists: --force overwrites it")
    return chosen


def check_swap(chosen):
    """Refused when Linux swap is wanted and cannot be set up."""
    try:
        if chosen.swap:
            swap_baseline.check()
    except (swap_baseline.Unavailable, OSError) as reason:
        raise Refused(f"--swap: {reason}") from None


def begun(chosen, build_type):
    """The document, without results yet."""
    return {"schema_version": SCHEMA_VERSION, "machine": machine(), "commit": commit(), "build_type": build_type,
            "runs": chosen.runs, "scale": chosen.scale, "seed": chosen.seed, "results": []}


def measure_all(chosen, launcher, document):
    settings = suite.Settings(launcher=launcher, urls=(), local_share=1, seconds_max=chosen.timeout)
    swaps = len(SWAP_CLUSTERS) * sum(share < 1 for share in chosen.share) if chosen.swap else 0
    progress = Progress(len(chosen.programs) * chosen.runs * (1 + len(chosen.far) * len(chosen.share) + swaps))
    for name in chosen.programs:
        try:
            result = measure_program(name, chosen, settings, progress)
        except (Skip, Failure) as reason:  # a failure here is of the native run: nothing of ours
            result = {"program": name, "far": [], "skipped": str(reason)}
        document["results"].append(result)
        write_files(chosen, document)
        progress.program_ended(name)
    progress.end()


def write_files(chosen, document):
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump({**document, "means_against_swap": means_against_swap(document)}, file, indent=2)
            file.write("\n")
    if chosen.markdown:
        with open(chosen.markdown, "w", encoding="utf-8") as file:
            file.write(markdown(document))


def main():
    endings.catch()
    chosen = arguments()
    document = None
    try:
        launcher = Launcher(chosen.hinterland)
        build_type = build_of(chosen.hinterland)
        launcher.check()
        check_swap(chosen)
        document = begun(chosen, build_type)
        measure_all(chosen, launcher, document)
    except (Refused, FileNotFoundError, Skip, Failure) as error:
        print(f"programs_table: {error}", file=sys.stderr)
        return 2
    except swap_baseline.LeftBehind as error:
        print(f"programs_table: {error}", file=sys.stderr)
        return 1
    except Interrupted as signal:
        programs = len(document["results"]) if document else 0
        if programs:
            write_files(chosen, document)  # it may have been interrupted in the midst of it
        print(f"\nprograms_table: ended by {signal}; nothing is left running, figures of {programs} programs are kept",
              file=sys.stderr)
        if programs and not chosen.markdown:
            print(markdown(document), end="")
        return 1
    if not chosen.markdown:
        print(markdown(document), end="")
    failures = [f"{result['program']} {cell['far']} {cell['local_share']:.0%}: {cell['failure']}"
                for result in document["results"] for cell in result["far"] if cell["failure"]]
    for failure in failures:
        print(f"programs_table: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
