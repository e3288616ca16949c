"""A result as text: one block a benchmark, one line a way."""

import statistics

from . import results
from .latency import PERCENTILES, fell_behind

ABLATED = ": without "  # in the name of a way (ablations.py)


def size(count):
    return f"{count / 2**30:g} GiB" if count >= 2**30 and count % 2**28 == 0 else f"{count / 2**20:.4g} MiB"


def ns(value):
    """With its unit, in three digits or so."""
    for limit, unit in ((1e4, "ns"), (1e7, "us"), (1e10, "ms")):
        if value < limit:
            return f"{value / (limit / 1e4):.{0 if value < 1e4 else 1}f} {unit}"
    return f"{value / 1e9:.1f} s"


def quantity(value, unit):
    """Of whatever it is: times in their own unit, the rest with theirs."""
    if unit.startswith("ns"):
        return ns(value)
    return f"{value:.2f} %" if unit.startswith("%") else f"{value:.3g} {unit}"


_LINE = "  {:<29} {:>10} {:>10} {:>10} {:>11} {:>11} {:>11}".format


def _ratio(value, reference, inverse=False):
    if not reference:
        return "-"
    return f"{reference / value if inverse else value / reference:.2f}x"


def block(document, benchmark):
    """Lines of one benchmark."""
    native, swap = results.series_of(benchmark, "native"), results.best_swap(benchmark)
    floor = results.floor_per_access(document, benchmark)
    yield f"{benchmark['name']}: {benchmark['about']} ({size(benchmark['size_bytes'])}, " \
          f"{size(benchmark['local_bytes'])} local), {benchmark.get('measured', 'time per access')}"
    yield _LINE("", "median", "least", "most", "of native", "of floor", "swap's is")
    for series in benchmark["series"]:
        if series["failure"] or series["skipped"]:
            word = "FAILED" if series["failure"] else "left out"
            yield f"  {series['way']:<29} {word}: {series['failure'] or series['skipped']}"
        if not series["values"]:
            continue
        far = series["way"] != "native"
        yield _LINE(series["way"], ns(series["median"]), ns(series["min"]), ns(series["max"]),
                    _ratio(series["median"], native and native["median"]) if far else "-",
                    _ratio(series["median"], floor) if far else "-",
                    _ratio(series["median"], swap and swap["median"], inverse=True) if far else "-")
    if floor:
        yield _LINE("the floor", ns(floor), "", "", "", "", "").rstrip()
    yield ""


def percentile_lines(benchmark):
    """Of the latencies of GET: the median over the rounds of each percentile."""
    if benchmark.get("group") != "open-load":
        return
    yield f"  {'percentile of GET':<29} " + " ".join(f"{name:>10}" for name in PERCENTILES.values())
    for series in benchmark["series"]:
        if not series["values"]:
            continue
        found = [statistics.median(sample["get"][key] for sample in series["samples"]) for key in PERCENTILES]
        late = sum(map(fell_behind, series["samples"]))
        note = f"  fell behind the rate in {late} of {len(series['samples'])} rounds" if late else ""
        yield f"  {series['way']:<29} " + " ".join(f"{ns(value):>10}" for value in found) + note
    yield ""


def ablated_devices(document):
    """Those over which features were left out in turn."""
    return list(dict.fromkeys(series["way"].partition(ABLATED)[0] + ":" for benchmark in document["benchmarks"]
                              for series in benchmark["series"] if ABLATED in series["way"] and series["values"]
                              and benchmark.get("group") == "access"))


def ablated(document, url):
    """The benchmarks that were run over that device with and without features."""
    return [benchmark for benchmark in document["benchmarks"] if benchmark.get("group") == "access"
            and results.series_of(benchmark, url)
            and any(series["way"].startswith(url + ABLATED[1:]) and series["values"] for series in benchmark["series"])]


def left_out(document):
    """The features, in their order."""
    return list(dict.fromkeys(series["way"].partition(ABLATED)[2] for benchmark in document["benchmarks"]
                              for series in benchmark["series"] if ABLATED in series["way"] and series["values"]
                              and benchmark.get("group") == "access"))


def ablation_lines(document):
    """How many times as long each pattern takes without each feature: medians over the one with everything."""
    for url in ablated_devices(document):
        chosen = ablated(document, url)
        yield f"  {url + ' times as long without':<29} " + " ".join(f"{b['name']:>16.16}" for b in chosen)
        for name in left_out(document):
            pairs = [(results.series_of(b, url + ABLATED[1:] + name), results.series_of(b, url)) for b in chosen]
            ratios = [_ratio(one["median"], whole["median"]) if one else "-" for one, whole in pairs]
            yield f"  {name:<29} " + " ".join(f"{ratio:>16}" for ratio in ratios)
        yield ""


def figure_lines(title, figures):
    if not figures:
        return
    yield f"  {title:<62} {'median':>9} {'least':>9} {'most':>9}"
    for figure in figures:
        if figure["values"]:
            shown = " ".join(f"{figure[key]:>9.{0 if figure['unit'].startswith('ns') else 3}f}"
                             for key in ("median", "min", "max"))
            yield f"  {figure['name']:<62} {shown} {figure['unit']}"
        else:
            yield f"  {figure['name']:<62} left out: {figure['skipped']}"
    yield ""


def target_lines(rows, everything=False):
    """The targets that the run has measured, or all of them."""
    measured = [row for row in rows if row["missing"] is None]
    if not rows or not measured and not everything:
        return
    line = "  {:<72} {:>13} {:>28}  {}".format
    yield line("figure", "target", "measured (least to most)", "met?")
    for row in rows if everything else measured:
        yield line(row["figure"], row["target"], *target_words(row))
    if len(measured) < len(rows) and not everything:
        yield f"  {len(rows) - len(measured)} of {len(rows)} targets were not measured in this run (bench/targets says why)"
    yield ""


def target_words(row):
    """(measured, met?) as words."""
    if row["missing"] is not None:
        return "-", f"not measured: {row['missing']}"
    spread = "" if row["least"] is None else f" ({row['least']:.3g} to {row['most']:.3g})"
    return f"{row['value']:.3g}{row['unit']}{spread}", {True: "yes", False: "NO", None: "shown"}[row["met"]]


def targets_markdown(rows):
    lines = ["| figure | target | measured (least to most) | met? |", "|---|---|---|---|"]
    for row in rows:
        measured, met = target_words(row)
        lines.append(f"| {row['figure']} | {row['target']} | {measured} | {met} |")
    return "\n".join(lines)


def heading(document):
    about = document["machine"]
    yield f"{about['processor']}, {about['processors']} CPUs, {about['memory_gib']} GiB, Linux {about['kernel']}; " \
          f"commit {document['commit']}, {document['build_type']}; {document['options']['repeat']} rounds"
    if document["busy"]["was_busy"]:
        seen = document["busy"]["before"]
        yield f"THE MACHINE WAS BUSY: {seen['cpu_share']:.0%} of its CPU time was used by others, " \
              f"{seen['steal_share']:.0%} stolen. Do not trust these figures."
    if not document["complete"]:
        yield "INCOMPLETE: the run was ended before its last round"
    yield ""


def text(document):
    lines = list(heading(document))
    for benchmark in document["benchmarks"]:
        lines.extend(block(document, benchmark))
        lines.extend(percentile_lines(benchmark))
    lines.extend(ablation_lines(document))
    lines.extend(figure_lines("the floor", document["floor"]))
    lines.extend(figure_lines("idle", document.get("idle", [])))
    lines.extend(target_lines(document.get("targets", [])))
    return "\n".join(lines)
