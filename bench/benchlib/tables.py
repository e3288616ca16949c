"""A result as text: one block a benchmark, one line a way."""

from . import results


def size(count):
    return f"{count / 2**30:g} GiB" if count >= 2**30 and count % 2**28 == 0 else f"{count / 2**20:g} MiB"


def ns(value):
    """With its unit, in three digits or so."""
    for limit, unit in ((1e4, "ns"), (1e7, "us"), (1e10, "ms")):
        if value < limit:
            return f"{value / (limit / 1e4):.{0 if value < 1e4 else 1}f} {unit}"
    return f"{value / 1e9:.1f} s"


_LINE = "  {:<22} {:>10} {:>10} {:>10} {:>11} {:>11} {:>11}".format


def _ratio(value, reference, inverse=False):
    if not reference:
        return "-"
    return f"{reference / value if inverse else value / reference:.2f}x"


def block(document, benchmark):
    """Lines of one benchmark."""
    native, swap = results.series_of(benchmark, "native"), results.best_swap(benchmark)
    floor = results.floor_per_access(document, benchmark)
    yield f"{benchmark['name']}: {benchmark['about']} ({size(benchmark['size_bytes'])}, " \
          f"{size(benchmark['local_bytes'])} local), time per access"
    yield _LINE("", "median", "least", "most", "of native", "of floor", "swap's is")
    for series in benchmark["series"]:
        if series["failure"] or series["skipped"]:
            word = "FAILED" if series["failure"] else "left out"
            yield f"  {series['way']:<22} {word}: {series['failure'] or series['skipped']}"
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


def floor_lines(document):
    if not document["floor"]:
        return
    yield f"  {'the floor':<62} {'median':>9} {'least':>9} {'most':>9}"
    for figure in document["floor"]:
        if figure["values"]:
            yield f"  {figure['name']:<62} {figure['median']:>9.0f} {figure['min']:>9.0f} {figure['max']:>9.0f} " \
                  f"{figure['unit']}"
        else:
            yield f"  {figure['name']:<62} left out: {figure['skipped']}"
    yield ""


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
    lines.extend(floor_lines(document))
    return "\n".join(lines)
