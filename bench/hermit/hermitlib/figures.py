"""Hermit's figures, by number: of which measurements each is made, and how its table is drawn.

A point is (kind, what, way, share of the memory that is local, share of the capacity that is asked for), measured once a
round however many figures show it.
"""

import collections
import statistics

from . import batch
from .ways import FAR, HERMIT, NATIVE, OURS, SWAP

Point = collections.namedtuple("Point", "kind what way share load")
# `value`: a function of what was measured of a point, and of the same point with all memory local; None: nothing to
# say. `by`: the field of the point that names the column; the way, or another field, names the row.
Figure = collections.namedtuple("Figure", "shows value points by row")
Plan = collections.namedtuple("Plan", "shares loads batch_shares")

WHOLE = Plan(shares=(0.9, 0.8, 0.7, 0.6, 0.5), loads=(0.02, 0.05, 0.1, 0.2), batch_shares=(0.7, 0.45, 0.2))
QUICK = Plan(shares=(0.7,), loads=(0.05,), batch_shares=(0.45,))
FIXED_LOAD = 0.05  # the paper has half, on 24 cores and with the client on another machine
ANSWERED_LEAST = 0.97
FIXED_SHARE, BATCH_SHARE = 0.7, 0.2  # the paper's
COMPARED = (SWAP, HERMIT, OURS)
STATIC = ("no feedback", "one reclaimer", HERMIT, OURS)
STEPS = (SWAP, "bare", "bare + background", "+ batching", OURS)


def field(name):
    return lambda found, _: found.get(name)


def slowdown(found, native):
    return found["seconds"] / native["seconds"]


def cpu_a_fault(found, native):
    """Microseconds of CPU more than with all memory local, for each fault that fetched."""
    return (found["cpu_seconds"] - native["cpu_seconds"]) * 1e6 / found["faults"] if found.get("faults") else None


def cpu_an_eviction(found, native):
    return (found["cpu_seconds"] - native["cpu_seconds"]) * 1e6 / found["evicted"] if found.get("evicted") else None


def microseconds_a_fault(found, native):
    """Of all that a fault costs the program: the time beyond that with all memory local."""
    return (found["seconds"] - native["seconds"]) * 1e6 / found["faults"] if found.get("faults") else None


def native_of(point):
    """The point that another is compared with: the same work, all local."""
    return point._replace(way=NATIVE, share=1.0)


def service(plan, ways, shares=None, loads=None):
    shares, loads = shares or (FIXED_SHARE,), loads or plan.loads
    local = [Point("service", "redis", NATIVE, 1.0, load) for load in loads]
    return local + [Point("service", "redis", way, share, load) for share in shares for load in loads for way in ways]


def apps(names, ways, shares):
    return [point for name in names for point in
            [Point("app", name, NATIVE, 1.0, 0), *(Point("app", name, way, share, 0) for share in shares for way in ways)]]


def access(pattern, ways):
    return [Point("access", pattern, NATIVE, 1.0, 0), *(Point("access", pattern, way, FIXED_SHARE, 0) for way in ways)]


def all_of(plan):
    by_share = service(plan, COMPARED, plan.shares, (FIXED_LOAD,))
    by_load = service(plan, COMPARED)
    figures = {
        "7": Figure("99th percentile of GET, us, at a twentieth of the capacity, by the share that is local", field("p99_us"),
                    by_share, "share", "way"),
        "8": Figure("99th percentile of GET, us, with 70 % local, by the load", field("p99_us"), by_load, "load", "way"),
        "9": Figure("time beside all local, by the share that is local", slowdown,
                    apps(batch.APPS, COMPARED, plan.batch_shares), "share", "way"),
        "10": Figure("us that a fault costs a program that reads pages at random", microseconds_a_fault,
                     access("random-read", COMPARED), "what", "way"),
        "10, service": Figure("of that, us until the fault is served (median)",
                              lambda found, _: found["fault_p50_ns"] / 1e3 if "fault_p50_ns" in found else None,
                              access("random-read", COMPARED), "what", "way"),
        "10, fetch": Figure("and of that, us for the page itself (median)",
                            lambda found, _: found["fetch_p50_ns"] / 1e3 if "fetch_p50_ns" in found else None,
                            access("random-read", COMPARED), "what", "way"),
        "11": Figure("share of reclaimed pages for which a fault waited, by the load", field("direct_share"), by_load,
                     "load", "way"),
        "12": Figure("us of CPU for a changed page that leaves, with what brings another", cpu_an_eviction,
                     access("random-write", (SWAP, "no batching", HERMIT, OURS)), "what", "way"),
        "13": Figure("99th percentile of GET, us, with 70 % local: feedback and none", field("p99_us"),
                     service(plan, STATIC), "load", "way"),
        "14": Figure("99th percentile of GET, us, with 70 % local: part by part", field("p99_us"), service(plan, STEPS),
                     "load", "way"),
        "15": Figure("time beside all local, 20 % local: part by part", slowdown,
                     apps(batch.APPS[:1], STEPS, (BATCH_SHARE,)), "what", "way"),
        "16": Figure("MiB a second in, by the load", field("in_mib_s"), by_load, "load", "way"),
        "16, out": Figure("MiB a second out, by the load", field("out_mib_s"), by_load, "load", "way"),
        "17": Figure("CPUs in use, with the runtime's threads, by the load", field("cpus"), by_load, "load", "way"),
        "17, fault": Figure("us of CPU for each fault, beyond what all local takes, by the load", cpu_a_fault, by_load,
                            "load", "way"),
        "20": Figure("median of GET, us, at a twentieth of the capacity, by the share that is local", field("p50_us"), by_share,
                     "share", "way"),
        "20, 99.9 %": Figure("99.9th percentile of GET, us, likewise", field("p999_us"), by_share, "share", "way"),
    }
    assert all(point.way in FAR or point.way in (NATIVE, SWAP) for each in figures.values() for point in each.points)
    return figures


def number(name):
    """The paper's, of a part of a figure."""
    return name.partition(",")[0]


def median(figure, point, found):
    """Of the rounds; None where nothing was measured, or there is nothing to say."""
    native = found.get(native_of(point), [])
    values = [figure.value(each, native[at] if at < len(native) else {})
              for at, each in enumerate(found.get(point, [])) if at < len(native) or point.way == NATIVE]
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def fell_behind(rounds):
    """Whether a server answered less than it was asked, so that latencies only say for how long it fell behind."""
    shares = [each["answered_share"] for each in rounds if "answered_share" in each]
    return bool(shares) and statistics.median(shares) < ANSWERED_LEAST


def table(name, figure, found):
    """Lines of text: a row for each way (and application), a column for each share or load."""
    columns = sorted({getattr(point, figure.by) for point in figure.points if point.way != NATIVE}, key=str, reverse=True)
    several = len({point.what for point in figure.points}) > 1 and figure.by != "what"
    rows = dict.fromkeys((point.what if several else "", point.way) for point in figure.points)
    label = {"share": lambda share: f"{share:.0%} local", "load": lambda load: f"{load:.0%} load", "what": str}[figure.by]
    yield f"Figure {name}: {figure.shows}"
    yield f"  {'':28}" + "".join(f"{label(column):>14} " for column in columns)
    for what, way in rows:
        cells = []
        for column in columns:
            points = [point for point in figure.points if point.way == way and (not several or point.what == what) and
                      (getattr(point, figure.by) == column or (way == NATIVE and figure.by == "share"))]
            value = median(figure, points[0], found) if points else None
            behind = bool(points) and fell_behind(found.get(points[0], []))
            cells.append(f"{'-':>14}" if value is None else f"{value:14.3f}{'*' if behind else ' '}")
        yield f"  {(what + ' ' + way).strip():28}" + "".join(cells)


def verdicts(found, plan):
    """What the paper's claim comes to here: the 99th percentile beside that under swap, with 70 % local."""
    figure = all_of(plan)["8"]
    for load in plan.loads:
        swap = median(figure, Point("service", "redis", SWAP, FIXED_SHARE, load), found)
        for way in (HERMIT, OURS):
            mine = median(figure, Point("service", "redis", way, FIXED_SHARE, load), found)
            if swap and mine:
                verdict = "met" if mine <= 0.3 * swap else "missed"
                yield f"99th percentile at {load:.0%} load, {way}: {mine / swap:.2f} of zram swap's (at most 0.30: {verdict})"
