"""The speed that is aimed at, and what a run has measured of it: each figure compares within the one run.

A figure is a ratio of medians. Its least and most are those of the same ratio, round by round: what else the machine
did in a round has hit both sides.
"""

import contextlib
import dataclasses
import statistics

from . import ablations, results
from .plan import BENCHMARKS
from .programs import FITS

PROGRAMS = tuple(b.name for b in BENCHMARKS if b.group == "programs" and not b.name.endswith(FITS))
TIED = tuple(b.name for b in BENCHMARKS if b.tied)
THREADED = tuple(b.name for b in BENCHMARKS if b.name.endswith("-threads"))
PING_PONG = ("tcp/ping-pong/same-cpu", "tcp/ping-pong/other-cpu")
STREAM = ("tcp/stream-32/same-cpu", "tcp/stream-32/other-cpu")
FLOOR_ONE = "paging/random/handler-same-cpu/copy-clean"


class Missing(Exception):
    """Why a run has no such figure."""


@dataclasses.dataclass(frozen=True)
class Target:
    figure: str
    bound: float  # None: shown only
    at_most: bool
    measure: object  # of a Run: (value, least, most); Missing
    unit: str = ""

    def words(self):
        if self.bound is None:
            return "shown"
        return f"at {'most' if self.at_most else 'least'} {self.bound:g}{self.unit}"

    def met(self, value):
        if self.bound is None:
            return None
        return value <= self.bound if self.at_most else value >= self.bound


class Run:
    """The values of a document, by what they are."""

    def __init__(self, document):
        self._document = document

    def _benchmark(self, name):
        found = next((b for b in self._document["benchmarks"] if b["name"] == name), None)
        if found is None:
            raise Missing(f"{name} was not run")
        return found

    def way(self, name, way):
        """The values of one way of a benchmark."""
        benchmark = self._benchmark(name)
        series = next((s for s in benchmark["series"] if s["way"] == way), None)
        if series is None:
            raise Missing(f"{name} was not run on {way}")
        if not series["values"]:
            raise Missing(f"{name}, {way}: {series['failure'] or series['skipped'] or 'no round was finished'}")
        return series["values"]

    def counted(self, name, way):
        """What the runtime has counted in each run of a way."""
        self.way(name, way)  # Missing, with the reason
        series = results.series_of(self._benchmark(name), way)
        figures = [sample.get("figures", {}) for sample in series["samples"]]
        if not all("reclaim_direct_faults" in each for each in figures):
            raise Missing(f"{name}, {way}: its report does not count direct reclaim")
        return figures

    def swap(self, name):
        """Those of the better page-cluster."""
        benchmark = self._benchmark(name)
        best = results.best_swap(benchmark)
        if best:
            return best["values"]
        reasons = [s["failure"] or s["skipped"] for s in benchmark["series"] if s["way"].startswith("swap")]
        raise Missing(f"{name}, Linux swap: {next(filter(None, reasons), 'was not run')}")

    def floor(self, names):
        """Those of the figure with the least median of these names, in nanoseconds for a page."""
        found = [figure for figure in map(lambda name: results.figure_of(self._document, name), names) if figure]
        if not found:
            raise Missing(f"the floor has no {names[0]}")
        return min(found, key=lambda figure: figure["median"])["values"]

    def floor_of(self, name):
        """The best floor of a benchmark, and the share of its accesses that miss."""
        benchmark = self._benchmark(name)
        return self.floor(benchmark["floor"]), benchmark["miss_share"]


def _by_round(values, rounds):
    """One value a round: the median of those that are of it."""
    each = len(values) // rounds
    return [statistics.median(values[i * each:(i + 1) * each]) for i in range(rounds)]


def combined(formula, *lists):
    """(formula of the medians, its least and most over the rounds)."""
    rounds = min(map(len, lists))
    parts = [formula(*values) for values in zip(*(_by_round(values, rounds) for values in lists))]
    value = formula(*map(statistics.median, lists))
    return value, min(value, *parts), max(value, *parts)


def _of(top, bottom):
    return top / bottom


def _against_native(name, way="mem:"):
    return lambda run: combined(_of, run.way(name, way), run.way(name, "native"))


def _swap_against(name, way="mem:"):
    return lambda run: combined(_of, run.swap(name), run.way(name, way))


def _against_swap(name, way="mem:"):
    return lambda run: combined(_of, run.way(name, way), run.swap(name))


def _against_floor(name):
    def measure(run):
        floor, misses = run.floor_of(name)
        return combined(lambda ours, page: ours / (page * misses), run.way(name, "mem:"), floor)
    return measure


def _against_one_cpu(name):
    return lambda run: combined(_of, run.way(name, "mem:"), run.way(name, "mem: on 1 CPU"))


def _tcp_miss(run):
    """A miss takes the time of an access over the share of them that miss, the hits taking next to nothing."""
    _, misses = run.floor_of("random-read")
    return combined(lambda tcp, mem, ping: (tcp / misses) / (ping + mem / misses), run.way("random-read", "tcp:"),
                    run.way("random-read", "mem:"), run.floor(PING_PONG))


def _tcp_bandwidth(run):
    return combined(_of, run.floor(STREAM), run.way("sequential-read", "tcp:"))


def _direct_reclaim(name):
    """Per cent of all faults of a run, those of filling the memory included."""
    def share(figures):
        faults = sum(figures.get(kind, 0) for kind in ("faults_first_touch", "faults_read", "faults_write"))
        return 100 * figures["reclaim_direct_faults"] / max(1, faults)
    return lambda run: combined(float, [share(figures) for figures in run.counted(name, "mem:")])


def _two_threads(run):
    """The speed-up by a second thread, over that of the floor."""
    return combined(lambda one, two, floor_one, floor_two: (one / two) / (floor_one / floor_two),
                    run.way("random-read", "mem:"), run.way("random-read-2-threads", "mem:"), run.floor((FLOOR_ONE,)),
                    run.floor((FLOOR_ONE + "/2-threads",)))


def _worst_program(run):
    """Of those that swap can run at all: the others' rows say why they have no figure."""
    measured = []
    for name in PROGRAMS:
        with contextlib.suppress(Missing):
            measured.append(_against_swap(name)(run))
    if not measured:
        raise Missing("none of the programs ran in both ways")
    return max(measured, key=lambda figure: figure[0])


def _idle(name):
    return lambda run: combined(float, run.floor((f"idle/{name}",)))


def _feedback(run):
    without = ablations.FEEDBACK.way("mem:").name
    return combined(_of, run.way("redis-open-load", "mem:"), run.way("redis-open-load", without))


def _at_most(figure, bound, measure, unit=""):
    return Target(figure, bound, True, measure, unit)


def _at_least(figure, bound, measure):
    return Target(figure, bound, False, measure)


TARGETS = (
    *(_at_most(f"{name}, fitting its budget: time against native", 1.02, _against_native(name + FITS))
      for name in PROGRAMS),
    _at_most("first touch that fits: time against native", 1.05, _against_native("first-touch-fits")),
    _at_least("random reads, mem: pages a second against zram swap", 2.5, _swap_against("random-read")),
    _at_most("random reads, mem: time against the floor", 1.2, _against_floor("random-read")),
    _at_least("random writes, mem: against zram swap", 2.5, _swap_against("random-write")),
    _at_most("random writes, mem: time against the floor", 1.3, _against_floor("random-write")),
    *(target for kind, floor, swap in (("read", 1.25, 2.8), ("write", 1.35, 2.0)) for target in (
        _at_most(f"random {kind}s, hinted: time against the hinted floor", floor, _against_floor(f"random-{kind}-hinted")),
        _at_least(f"random {kind}s, hinted: against zram swap", swap, _swap_against(f"random-{kind}-hinted")))),
    *(_at_most(f"{name.replace('-', ' ')}, all CPUs: time against the same tied to one", 1.05, _against_one_cpu(name))
      for name in TIED),
    *(_at_least(f"{name.replace('-', ' ')}, {way}: against zram swap", 1, _swap_against(name, way))
      for name in THREADED for way in ("mem:", "zmem:")),
    _at_least("sequential reads, mem: against zram swap", 3, _swap_against("sequential-read")),
    _at_most("sequential reads, mem: time against the floor for runs", 1.4, _against_floor("sequential-read")),
    _at_least("sequential writes, mem: against zram swap", 3, _swap_against("sequential-write")),
    _at_most("sequential writes, mem: time against the floor for runs", 1.4, _against_floor("sequential-write")),
    _at_least("first touch under pressure, mem: against zram swap", 2, _swap_against("first-touch")),
    _at_least("read(2) into far memory, mem: against zram swap", 1.5, _swap_against("read-call")),
    _at_least("write(2) out of far memory, mem: against zram swap", 1.5, _swap_against("write-call")),
    *(_at_least(f"{name.replace('-', ' ')}s, zmem: against zram swap", 1.5, _swap_against(name, "zmem:"))
      for name in ("random-read", "random-write", "sequential-read", "sequential-write")),
    _at_least("random reads of 8 threads, file: against swap on the same disk", 1,
              _swap_against("random-read-disk", "file:")),
    _at_most("tcp: random, time a miss against raw ping-pong plus the mem: miss", 1.2, _tcp_miss),
    _at_least("tcp: sequential, share of the bandwidth of the raw stream", 0.75, _tcp_bandwidth),
    _at_least("two threads against one, random, mem: share of the floor's scaling", 0.9, _two_threads),
    *(_at_most(f"{name.replace('-', ' ')}s, mem: faults that had to reclaim, filling included", 0.1,
               _direct_reclaim(name), " %") for name in ("random-read", "random-write")),
    *(_at_most(f"{name}, 25 % local: time against zram swap", 0.7, _against_swap(name)) for name in PROGRAMS),
    _at_most("the worst of these programs that has a figure: against zram swap", 0.9, _worst_program),
    _at_most("Redis under open load, mem: 99th percentile of GET against zram swap", 0.3, _against_swap("redis-open-load")),
    _at_most("Redis under open load, zmem: 99th percentile of GET against zram swap", 0.3,
             _against_swap("redis-open-load", "zmem:")),
    Target("Redis under open load, 99th percentile with feedback against without", None, True, _feedback),
    _at_most("idle program: share of a core", 0.5, _idle("program-cpu"), " %"),
    _at_most("idle server: share of a core", 0.5, _idle("server-cpu"), " %"),
    _at_most("idle server: memory above the bytes stored", 2, _idle("server-memory-above-stored"), " %"),
)


def of(document):
    """A row a target: {"figure", "target", "value", "least", "most", "unit", "met", "missing"}."""
    run, rows = Run(document), []
    for target in TARGETS:
        row = {"figure": target.figure, "target": target.words(), "bound": target.bound, "at_most": target.at_most,
               "unit": target.unit, "value": None, "least": None, "most": None, "met": None, "missing": None}
        try:
            value, least, most = target.measure(run)
            row.update(value=value, least=least, most=most, met=target.met(value))
        except Missing as reason:
            row["missing"] = str(reason)
        rows.append(row)
    return rows
