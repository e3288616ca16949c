"""Two results beside each other: whether they may be compared, and what changed."""

import dataclasses

from . import figures
from .tables import quantity

SAME_MACHINE = ("processor", "processors", "memory_gib", "virtual")
SAME_OPTIONS = ("size_bytes", "run_options", "program_scale", "open_load_rate")


@dataclasses.dataclass
class Change:
    name: str
    unit: str
    before: float
    after: float
    ratio: float
    verdict: str  # better, worse, same, unsure


def differences(before, after):
    """Why the two cannot be compared, one line each."""
    found = [f"different machines: {key} is {before['machine'].get(key)} and {after['machine'].get(key)}"
             for key in SAME_MACHINE if before["machine"].get(key) != after["machine"].get(key)]
    found += [f"different options: {key} is {before['options'].get(key)} and {after['options'].get(key)}"
              for key in SAME_OPTIONS if key in before["options"] and key in after["options"]  # older results have fewer
              and before["options"][key] != after["options"][key]]
    return found


def _values(document):
    """{name: (unit, values)} of everything measured, in order."""
    found = {}
    for benchmark in document["benchmarks"]:
        for series in benchmark["series"]:
            found[f"{benchmark['name']}, {series['way']}"] = series["unit"], series["values"]
    for figure in [*document["floor"], *document.get("idle", [])]:
        found[figure["name"]] = figure["unit"], figure["values"]
    return found


def changes(before, after):
    """One Change for everything that both have measured."""
    old, new = _values(before), _values(after)
    result = []
    for name, (unit, values) in old.items():
        later = new.get(name, (unit, []))[1]
        if values and later:
            seen = figures.compare(values, later)
            medians = figures.summary(values)["median"], figures.summary(later)["median"]
            result.append(Change(name, unit, *medians, seen["ratio"], seen["verdict"]))
    return result


def missing(before, after):
    """What only one of the two has, one line each."""
    old = {name for name, (_, values) in _values(before).items() if values}
    new = {name for name, (_, values) in _values(after).items() if values}
    return [f"only before: {name}" for name in sorted(old - new)] + \
           [f"only after: {name}" for name in sorted(new - old)]


def _notes(before, after, found):
    if before["machine"].get("kernel") != after["machine"].get("kernel"):
        yield f"note: kernel {before['machine'].get('kernel')} before, {after['machine'].get('kernel')} after"
    for word, document in (("before", before), ("after", after)):
        if document["busy"]["was_busy"]:
            yield f"note: the machine was busy {word}"
        if not document["complete"]:
            yield f"note: the run {word} was ended before its last round"
    # Native runs have none of our code in them: when they change, it is the machine that has changed.
    drifted = [change.name for change in found
               if change.verdict in ("better", "worse") and
               (change.name.endswith(", native") or change.name.startswith("primitive/"))]
    if drifted:
        yield f"note: the machine itself is not as it was: {len(drifted)} figures without our code changed, " \
              f"{drifted[0]} among them"


def text(before, after, found, everything=False):
    """For people: what changed, what may have, how much has not."""
    lines = [f"before: {before['commit']}, {before['options']['repeat']} rounds; after: {after['commit']}, "
             f"{after['options']['repeat']} rounds", *_notes(before, after, found)]
    line = "  {:<66} {:>10} {:>10} {:>8}".format
    for verdict in ("worse", "better", "unsure", "same"):
        chosen = sorted((c for c in found if c.verdict == verdict), key=lambda c: abs(c.ratio - 1), reverse=True)
        if not chosen or verdict == "same" and not everything:
            continue
        lines += ["", f"{verdict}:"] + [line(c.name, quantity(c.before, c.unit), quantity(c.after, c.unit),
                                                   f"{c.ratio - 1:+.1%}") for c in chosen]
    same = sum(change.verdict == "same" for change in found)
    lines += ["", f"{same} of {len(found)} figures have not changed beyond the noise", *missing(before, after)]
    return "\n".join(lines)
