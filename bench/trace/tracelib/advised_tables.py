"""What a run of bench/trace/advised came to: as a document and as a table."""

from benchlib.figures import summary

from .subject import KINDS

COVERAGE_MIN, SPEED_OF_HAND_MIN = 0.95, 0.9
_NO_HINT = ("not found", "needs none")


def _middle(samples, name):
    values = [sample[name] for sample in samples if sample.get(name) is not None]
    return summary(values)["median"] if values else None


def _ratio(above, below):
    return above / below if above and below else None


def _met(value, bound):
    return "-" if value is None else "met" if value >= bound else "missed"


def _without_hint(advice):
    """Places with faults that hints could spare, and none: for the reader who asks why."""
    return [{"function": place["function"], "file": place["file"], "line": place["line"], "share": place["share"],
             "verdict": place["verdict"], "why": place["why"]}
            for place in (advice or {}).get("places", []) if place["verdict"] in _NO_HINT and place["share"] > 0.002]


def _of(subject):
    seconds = {kind: _middle(samples, "seconds") for kind, samples in subject.samples.items()}
    advice = subject.advice or {}
    predicted = advice.get("predicted_hinted", 0) + advice.get("predicted_unhinted", 0)
    return {
        "name": subject.run.name, "app": subject.run.app, "options": list(subject.run.options),
        "failure": subject.failure or None, "samples": subject.samples, "seconds": seconds,
        "hinted_lines": sum(1 for line in subject.patch.splitlines()
                            if line.startswith("+") and "hl" in line and "#include" not in line),
        "places_without_hint": _without_hint(advice),
        "coverage_predicted": advice["predicted_hinted"] / predicted if predicted else None,
        "coverage": _middle(subject.samples["advised"], "coverage"),
        "coverage_with_setting_up": _middle(subject.samples["advised"], "coverage_with_setting_up"),
        "coverage_by_hand": _middle(subject.samples["by hand"], "coverage"),
        "speed_of_hand": _ratio(seconds["by hand"], seconds["advised"]),
        "speed_of_plain": _ratio(seconds["plain"], seconds["advised"])}


def results_of(subjects):
    """{"runs": ..., "targets": ...}"""
    runs = [_of(subject) for subject in subjects]
    targets = []
    for run in runs:
        for figure, name, bound in (("share of faults that became hints", "coverage", COVERAGE_MIN),
                                    ("speed of the one hinted by hand", "speed_of_hand", SPEED_OF_HAND_MIN)):
            targets.append({"figure": f"{run['name']}: {figure}", "value": run[name], "kind": "at least",
                            "bound": bound, "met": _met(run[name], bound)})
    return {"runs": runs, "targets": targets}


def _shown(value, form=".3f"):
    return "-" if value is None else format(value, form)


def table(results):
    lines = ["share: of the faults that hints can spare, those that became hints, in the measured part; with setting "
             "up; and by hand", "speed: of the advised program, of the one hinted by hand, and of the one without hints",
             "", f"{'':18}{'lines':>6}{'share':>8}{'all':>8}{'hand':>8}" +
             "".join(f"{kind + ' s':>11}" for kind in KINDS) + f"{'/ hand':>8}{'/ plain':>8}"]
    for run in results["runs"]:
        lines.append(f"{run['name']:18}{run['hinted_lines']:6}{_shown(run['coverage']):>8}"
                     f"{_shown(run['coverage_with_setting_up']):>8}{_shown(run['coverage_by_hand']):>8}" +
                     "".join(f"{_shown(run['seconds'][kind]):>11}" for kind in KINDS) +
                     f"{_shown(run['speed_of_hand'], '.2f'):>8}{_shown(run['speed_of_plain'], '.2f'):>8}"
                     + (f"  {run['failure']}" if run["failure"] else ""))
        for place in run["places_without_hint"]:
            where = f"{(place['file'] or '').rsplit('/', 1)[-1]}:{place['line']}" if place["file"] else place["function"]
            lines.append(f"    no hint for {place['share']:.1%} at {where[:60]}: {place['why']}")
    lines += ["", f"{'targets':72}{'value':>8}"]
    for target in results["targets"]:
        lines.append(f"{target['figure']:72}{_shown(target['value'], '.3g'):>8}  {target['kind']} {target['bound']:g}: "
                     f"{target['met']}")
    return "\n".join(lines)
