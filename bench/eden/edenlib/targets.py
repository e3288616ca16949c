"""The speed that hints and fibers aim at, and what the steps of bench/eden/run have measured of it."""

import dataclasses

from benchlib import app_tables


@dataclasses.dataclass(frozen=True)
class Row:
    figure: str
    target: str      # "at most 1.03", or "-": shown only
    value: object    # None: not measured

    @property
    def met(self):
        """"met", "missed", "-" where nothing is asked or known."""
        kind, _, bound = self.target.rpartition(" ")
        if self.value is None or kind not in ("at most", "at least"):
            return "-"
        return "met" if (self.value <= float(bound) if kind == "at most" else self.value >= float(bound)) else "missed"


def _hints(hints):
    if hints is None:
        return [Row("hints (bench/hints/run)", "-", None)]
    return [Row(f"{ratio['what']}, of {ratio['of']}", ratio["target"], ratio["value"]) for ratio in hints.ratios]


def _fibers(document):
    def share(readers):
        found = {each["latency"]: sorted(each["reads_per_second"]) for each in (document or {"series": []})["series"]
                 if each["readers"] == readers}
        slow, fast = found.get("5us"), found.get("0us")
        return slow[len(slow) // 2] / fast[len(fast) // 2] if slow and fast else None
    return [Row("64 fibers, random hinted reads: throughput over a device of 5 us, of that without latency", "at least 0.8",
                share("fibers 64")),
            Row("the same with hints that block", "-", share("fibers 64, blocking")),
            Row("the same by a thread", "-", share("threads 1"))]


def _named(words, name, percent):
    """A part of app_tables.TARGETS, "webservice-flat far-hinted": (name, kind, percent)."""
    other, _, kind = words.rpartition(" ")
    return (other or name, kind, None if kind.startswith("native") else percent)


def _applications(apps, overheads):
    rows = []
    for name in dict.fromkeys(overheads.names() + apps.names()):
        of = overheads if overheads.seconds(name, "native") else apps
        rows.append(Row(f"{name}, hinted, 100 % local: time against native",
                        f"at most {app_tables.HINTED_OVER_NATIVE_MAX:g}",
                        of.ratio((name, "far-hinted", 100), (name, "native", None))))
    for name, what, percent, kind, bound in app_tables.TARGETS:
        above, below = (_named(words, name, percent) for words in what.split(" over "))
        rows.append(Row(f"{name}, {percent} % local: {what}", f"{kind} {bound:g}", apps.ratio(above, below)))
    for name in apps.names():
        rows.append(Row(f"{name}: share of faults that hints spared", f"at least {app_tables.COVERAGE_MIN:g}",
                        apps.coverage(name)))
    lines = {apps.application(name): apps.hinted_lines(name) for name in apps.names()}
    return rows + [Row(f"{name}: hinted lines", f"at most {app_tables.HINTED_LINES_MAX}", count)
                   for name, count in lines.items()]


def rows(apps, overheads, hints, fibers):
    """All of them, whether measured or not."""
    return _hints(hints) + _fibers(fibers) + _applications(apps, overheads)


def markdown(all_rows):
    lines = ["| figure | target | measured | met? |", "|---|---|---|---|"]
    for row in all_rows:
        shown = "-" if row.value is None else f"{row.value:.3g}"
        lines.append(f"| {row.figure} | {row.target} | {shown} | {row.met.replace('missed', 'NO').replace('met', 'yes')} |")
    return "\n".join(lines)
