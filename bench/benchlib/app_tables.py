"""What a run of bench/apps/run came to: as a document, as a table with the targets, and as a plot."""

import os

from . import plots
from .figures import summary

# name of a run, what, percent local, "at most" or "at least", bound
TARGETS = (
    ("webservice", "swap over far-hinted", 40, "at least", 2.78),
    ("webservice", "webservice-flat far-hinted over far-hinted", 40, "at least", 1.3),
    ("kv", "native over far-hinted", 10, "at least", 0.30),
    ("kv", "swap over far-hinted", 10, "at least", 2.04),
    ("dataframe", "far-hinted over native", 22, "at most", 1.75),
    ("dataframe", "far-hinted over swap", 22, "at most", 0.73),
    ("psort", "far-hinted over swap", 10, "at most", 0.80),
    ("pagerank", "far-hinted over native", 50, "at most", 2.0),
)
HINTED_OVER_NATIVE_MAX, COVERAGE_MIN, HINTED_LINES_MAX = 1.03, 0.97, 11
# What of all runs stands in a plot, and how; the same colours as plots.py.
LINES = {"far": ("#56B4E9", "s", "--", "far"), "far-hinted": ("#0072B2", "o", "-", "far, hinted"),
         "swap": ("#D55E00", "^", "-", "Linux swap (zram)")}


class Results:
    """The series of all runs, by what they are."""

    def __init__(self, series, hinted_lines):
        self._series, self.hinted_lines = series, hinted_lines

    def runs(self):
        return list(dict.fromkeys(each.run for each in self._series))

    def percents(self, run):
        return sorted({each.percent for each in self._series if each.run == run and not each.kind.startswith("native")})

    def all_of(self, run):
        return [each for each in self._series if each.run == run]

    def best(self, name, kind, percent=None):
        """The series of least time of a kind: the better swap, the first far device. None where nothing was measured."""
        found = [each for each in self._series if each.run.name == name and each.kind == kind and each.samples
                 and (kind.startswith("native") or each.percent == percent)]
        if kind != "swap":
            return found[0] if found else None
        return min(found, key=lambda each: each.median(), default=None)

    def seconds(self, name, kind, percent):
        found = self.best(name, kind, percent)
        return found.median() if found else None

    def ratio(self, name, what, percent):
        """Of a target's words, "A over B"; a kind of another run has its name before it."""
        above, below = what.split(" over ")
        values = []
        for words in (above, below):
            other, _, kind = words.rpartition(" ")
            values.append(self.seconds(other or name, kind, percent))
        return values[0] / values[1] if all(values) else None

    def targets(self):
        """(figure, value or None, "at most" or "at least", bound) of all that were run."""
        names = {run.name for run in self.runs()}
        found = []
        for run in self.runs():
            found.append((f"{run.name}, hinted, 100 % local: time against native",
                          self.ratio(run.name, "far-hinted over native", 100), "at most", HINTED_OVER_NATIVE_MAX))
        found += [(f"{name}, {percent} % local: {what}", self.ratio(name, what, percent), kind, bound)
                  for name, what, percent, kind, bound in TARGETS if name in names]
        for run in self.runs():
            found.append((f"{run.name}: share of faults that hints spared", self.coverage(run), "at least", COVERAGE_MIN))
        for app in dict.fromkeys(run.app for run in self.runs()):
            found.append((f"{app}: hinted lines", self.hinted_lines[app], "at most", HINTED_LINES_MAX))
        return found

    def coverage(self, run):
        """The least of its places."""
        found = [each.median("coverage") for each in self.all_of(run) if each.kind == "far-hinted"]
        return min((value for value in found if value is not None), default=None)


def _met(value, kind, bound):
    if value is None:
        return "-"
    return "met" if (value <= bound if kind == "at most" else value >= bound) else "missed"


def table(results):
    lines = []
    for run in results.runs():
        native = results.seconds(run.name, "native", None)
        lines += [f"{run.name}: {run.about or ' '.join(run.options) or 'as it is'}; {results.hinted_lines[run.app]} "
                  "hinted lines",
                  f"  {'':44}{'seconds':>9}{'least':>9}{'most':>9}{'speed':>8}{'spared':>8}"]
        for each in results.all_of(run):
            name = each.key.partition(", ")[2]
            if not each.samples:
                lines.append(f"  {name:44}{each.failure or 'not run'}")
                continue
            seen, share = summary(each.seconds()), each.median("coverage")
            speed = f"{native / seen['median']:.3f}" if native else "-"
            lines.append(f"  {name:44}{seen['median']:9.3f}{seen['min']:9.3f}{seen['max']:9.3f}{speed:>8}"
                         f"{'-' if share is None else f'{share:.3f}':>8}{'  ' + each.failure if each.failure else ''}")
        lines.append("")
    lines.append(f"{'targets':72}{'value':>8}")
    for figure, value, kind, bound in results.targets():
        shown = "-" if value is None else f"{value:.3g}"
        lines.append(f"{figure:72}{shown:>8}  {kind} {bound:g}: {_met(value, kind, bound)}")
    return "\n".join(lines)


def document_of(results):
    """{"runs": ..., "targets": ...}"""
    runs = []
    for run in results.runs():
        native = results.seconds(run.name, "native", None)
        ways = []
        for each in results.all_of(run):
            entry = {"kind": each.kind, "way": each.way.name, "hinted": each.hinted, "samples": each.samples,
                     "failure": each.failure or None}
            if not each.kind.startswith("native"):
                entry["local_percent"] = each.percent
            if each.samples:
                entry["seconds"] = summary(each.seconds())
                entry["speed_of_native"] = native / entry["seconds"]["median"] if native else None
                entry["coverage"] = each.median("coverage")
            ways.append(entry)
        runs.append({"name": run.name, "app": run.app, "options": list(run.options), "about": run.about,
                     "hinted_lines": results.hinted_lines[run.app], "ways": ways})
    return {"runs": runs, "targets": [{"figure": figure, "value": value, "kind": kind, "bound": bound,
                                       "met": _met(value, kind, bound)}
                                      for figure, value, kind, bound in results.targets()]}


def _panel(axes, results, run):
    native = summary(results.best(run.name, "native").seconds())["median"]
    for kind, (colour, marker, style, label) in LINES.items():
        points = [(percent, results.best(run.name, kind, percent)) for percent in results.percents(run)]
        points = [(percent, summary(each.seconds())) for percent, each in points if each]
        if not points:
            continue
        middle = [native / seen["median"] for _, seen in points]
        low = [m - native / seen["max"] for m, (_, seen) in zip(middle, points)]
        high = [native / seen["min"] - m for m, (_, seen) in zip(middle, points)]
        axes.errorbar([percent for percent, _ in points], middle, [low, high], color=colour, marker=marker,
                      linestyle=style, label=label, markersize=4, linewidth=1.2, elinewidth=0.7, capsize=2)
    axes.axhline(1, color="#999999", linewidth=0.7)
    axes.set_title(run.name, fontsize=9, loc="left")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, 104)


def draw(results, path):
    """Speed over local memory, both of a native run without hints; a panel a run. plots.NoMatplotlib where it is missing."""
    pyplot = plots.import_pyplot()
    runs = [run for run in results.runs() if results.best(run.name, "native")]
    if not runs:
        return False
    columns = min(4, len(runs))
    rows = -(-len(runs) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(3.1 * columns, 0.4 + 2.4 * rows), squeeze=False)
    for index, axes in enumerate(grid.flat):
        if index >= len(runs):
            axes.set_visible(False)
            continue
        _panel(axes, results, runs[index])
        if index % columns == 0:
            axes.set_ylabel("speed of the native run")
        if index + columns >= len(runs):
            axes.set_xlabel("local memory, % of its peak")
    grid.flat[0].legend(frameon=False, fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=130, bbox_inches="tight")
    pyplot.close(figure)
    return os.path.exists(path)
