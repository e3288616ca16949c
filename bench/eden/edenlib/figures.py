"""Eden's figures and tables, and what we hold against each: the steps that measure it, and how it is drawn or written."""

import dataclasses
import os
import shutil

from . import documents, plots, published
from .steps import APPS, OTHERS

ALL_APPS = (*APPS, "pagerank", "others")


@dataclasses.dataclass(frozen=True)
class Figure:
    """make(pyplot, folder): the name of the PNG that it left (an SVG lies beside it), or lines of markdown for a table."""
    name: str
    shows: str
    steps: tuple
    make: object
    image: str = ""


def apps_of(folder, names=ALL_APPS):
    return documents.Apps([documents.read(folder, name) for name in names])


def _overheads(folder):
    return documents.Apps([documents.read(folder, "overheads")])


def _needed(folder, name):
    document = documents.read(folder, name)
    if document is None:
        raise plots.Nothing(f"step {name} has left no result")
    return document


def _hints(folder):
    return documents.Hints(_needed(folder, "hints"))


def _figure2(_, folder):
    for ending in ("png", "svg"):
        made = os.path.join(folder, "places", f"figure2.{ending}")
        if not os.path.exists(made):
            raise plots.Nothing("step places has left no plot")
        shutil.copy(made, os.path.join(folder, f"eden-figure2.{ending}"))
    return "eden-figure2.png"


def _flame(step, name, title):
    def make(pyplot, folder):
        _needed(folder, step)
        return plots.flame(pyplot, folder, name, title, os.path.join(folder, step + ".folded"))
    return make


def _gain(apps, name):
    """The most that hints gained over Linux swap at any budget, as Eden counts: speed over speed, less one."""
    found = [apps.ratio((name, "swap", percent), (name, "far-hinted", percent))
             for percent in apps.percents(name, "far-hinted") if percent < 100]
    return max((value - 1 for value in found if value), default=None)


def _percent(value):
    return "-" if value is None else f"{value:.1%}".replace("%", " %")


def _table1(_, folder):
    apps, eden = apps_of(folder), {name: more for name, *more in published.TABLE_1}
    lines = ["| application | hinted lines | Eden's | share of faults covered | Eden's | most gained over Linux swap | Eden's, over "
             "Fastswap |", "|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys((*APPS, *apps.names())):
        if name not in apps.names():
            continue
        theirs = eden.get(name, ("-", None, "-"))
        lines.append(f"| {name} | {apps.hinted_lines(name)} | {theirs[0]} | {_percent(apps.coverage(name))} | "
                     f"{_percent(theirs[1])} | {_percent(_gain(apps, name))} | {theirs[2]} |")
    if len(lines) == 2:
        raise plots.Nothing("no application was measured")
    return lines


def _table2(_, folder):
    rows = _needed(os.path.join(folder, "places"), "figure2")["programs"]
    lines = ["| program | most memory, MiB | faults at 10 % local | places for 95 % |", "|---|---|---|---|"]
    for name, row in sorted(rows.items()):
        first = row["shares"].get("10")
        if first:
            lines.append(f"| {name} | {row['peak_bytes'] >> 20} | {first['faults']} | {first['places']['95']} |")
    return lines


FIGURES = {figure.name: figure for figure in (
    Figure("figure1", "rate of the calls that change mappings, by cores", ("calls",),
           lambda pyplot, folder: plots.figure1(pyplot, folder, _needed(folder, "calls")), "eden-figure1.png"),
    Figure("figure2", "lines that cover most faults, for each program", ("places",), _figure2, "eden-figure2.png"),
    Figure("figure6", "DataFrame and web service over local memory", ("dataframe", "webservice", "overheads"),
           lambda pyplot, folder: plots.figure6(pyplot, folder, apps_of(folder), _overheads(folder)), "eden-figure6.png"),
    Figure("figure7", "memcached: throughput and faults over local memory", ("kv",),
           lambda pyplot, folder: plots.figure7(pyplot, folder, apps_of(folder)), "eden-figure7.png"),
    Figure("figure8", "vectored calls, fetch, eviction, read-ahead", ("calls", "hints"),
           lambda pyplot, folder: plots.figure8(pyplot, folder, _needed(folder, "calls"), _hints(folder)), "eden-figure8.png"),
    Figure("figure9", "where memcached faults", ("server-stacks",),
           _flame("server-stacks", "eden-figure9", "memcached's faults, a quarter local"), "eden-figure9.png"),
    Figure("figure10", "where DataFrame faults", ("dataframe-stacks",),
           _flame("dataframe-stacks", "eden-figure10", "dataframe's faults, a quarter local"), "eden-figure10.png"),
    Figure("figure11", "parallel sort over local memory", ("psort",),
           lambda pyplot, folder: plots.figure11(pyplot, folder, apps_of(folder)), "eden-figure11.png"),
    Figure("table1", "hinted lines, coverage, gain", (*APPS, "pagerank", "others"), _table1),
    Figure("table2", "programs whose faults were looked at", ("places",), _table2),
    Figure("applications", "the other papers' applications over local memory", ("pagerank", "others"),
           lambda pyplot, folder: plots.applications(pyplot, folder, apps_of(folder), ("pagerank", *OTHERS)),
           "eden-applications.png"),
    Figure("fibers", "latency that fibers hide (Eden 3.2)", ("fibers",),
           lambda pyplot, folder: plots.fibers(pyplot, folder, _needed(folder, "fibers")), "eden-fibers.png"),
    Figure("overheads", "every application with all memory local", ("overheads",),
           lambda pyplot, folder: plots.overheads(pyplot, folder, apps_of(folder), _overheads(folder)), "eden-overheads.png"),
)}
TARGET_STEPS = ("hints", "fibers", "dataframe", "webservice", "kv", "psort", "pagerank", "others", "overheads")
__all__ = ["ALL_APPS", "FIGURES", "OTHERS", "TARGET_STEPS", "Figure", "apps_of"]
