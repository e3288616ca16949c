"""Plots of a result, as PNG and SVG: the access patterns, the real programs, Redis under open load, what each feature
of the runtime is worth, and the floor. Needs matplotlib."""

import os

from . import figures, results, tables
from .latency import PERCENTILES

ABLATED = tables.ABLATED
FITS = "-fits"

# Okabe and Ito's colours, told apart by colour-blind readers too; hatches tell them apart without any colour.
COLOURS = {"native": "#999999", "mem:": "#0072B2", "zmem:": "#56B4E9", "tcp:": "#009E73", "file:": "#CC79A7",
           "swap": "#D55E00", "mem: by signal": "#F0E442"}
HATCHES = {"native": "", "mem:": "", "zmem:": "//", "tcp:": "..", "file:": "xx", "swap": "\\\\", "mem: by signal": "--"}
OTHER_COLOUR = "#E69F00"


class NoMatplotlib(Exception):
    """Why there are no plots."""


def import_pyplot():
    try:
        import matplotlib
    except ImportError:
        raise NoMatplotlib("matplotlib is missing (apt-get install python3-matplotlib)") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "hinterland", "axes.spines.top": False,
                            "axes.spines.right": False, "hatch.linewidth": 0.5})
    return pyplot


def _kind(way):
    return next((kind for kind in COLOURS if way.startswith(kind)), way)


def _bar_kind(way):
    """As _kind(), but what is served by signal has a bar of its own beside that of its device."""
    return way if way.endswith("by signal") else _kind(way)


def _save(pyplot, figure, folder, name):
    for ending in ("png", "svg"):
        figure.savefig(os.path.join(folder, f"{name}.{ending}"), dpi=130, bbox_inches="tight",
                       metadata={"Date": None} if ending == "svg" else None)
    pyplot.close(figure)
    return [f"{name}.png", f"{name}.svg"]


def _shown(benchmark):
    """The series worth a bar: those with values, of swap only the better, and nothing that is switched off."""
    swap = results.best_swap(benchmark)
    return [series for series in benchmark["series"] if series["values"] and ABLATED not in series["way"]
            and (not series["way"].startswith("swap") or series is swap)]


def _short(way):
    return way.replace(" page-cluster", ", cluster")


def _in_groups(document, *groups):
    return [benchmark for benchmark in document["benchmarks"]
            if benchmark.get("group", "access") in groups and _shown(benchmark)]


def _bars(axes, document, benchmark):
    shown = _shown(benchmark)
    for position, series in enumerate(shown):
        kind = _kind(series["way"])
        middle = series["median"] / 1000
        error = [[middle - series["min"] / 1000], [series["max"] / 1000 - middle]]
        axes.barh(position, middle, xerr=error, color=COLOURS.get(kind, OTHER_COLOUR), hatch=HATCHES.get(kind, ""),
                  edgecolor="white", linewidth=0, error_kw={"linewidth": 0.8, "ecolor": "#333333", "capsize": 2})
        axes.annotate(tables.ns(series["median"]), (series["max"] / 1000, position), xytext=(4, 0), va="center",
                      textcoords="offset points", fontsize=8,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})
    floor = results.floor_per_access(document, benchmark)
    if floor:
        axes.axvline(floor / 1000, color="black", linestyle="--", linewidth=0.9)
    axes.set_yticks(range(len(shown)), [_short(series["way"]) for series in shown])
    axes.set_ylim(len(shown) - 0.4, -0.65)
    axes.set_xlim(0, max([series["max"] / 1000 for series in shown] + [0.001]) * 1.25)
    sizes = f"{tables.size(benchmark['size_bytes'])}, {tables.size(benchmark['local_bytes'])} local"
    dashed = f"; dashed: floor, {tables.ns(floor)}" if floor else ""
    axes.set_title(f"{benchmark['name']}\n{sizes}{dashed}", fontsize=9, loc="left")


def draw_access(pyplot, document, folder):
    shown = _in_groups(document, "access", "disk")
    if not shown:
        return []
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(3.9 * columns, 0.6 + 1.9 * rows), squeeze=False)
    for index, axes in enumerate(grid.flat):
        if index < len(shown):
            _bars(axes, document, shown[index])
            if index + columns >= len(shown):
                axes.set_xlabel("us per access (median; least to most)")
        else:
            axes.set_visible(False)
    figure.tight_layout()
    return _save(pyplot, figure, folder, "access")


def _relative_bars(axes, rows, reference, title):
    """Bars of series against the median of `reference`, one group a row; rows: [(name, [series], [kinds that failed])]."""
    kinds = list(dict.fromkeys(_bar_kind(series["way"]) for _, shown, _ in rows for series in shown))
    height = 0.8 / max(1, len(kinds))
    for position, (name, shown, failed) in enumerate(rows):
        for kind in failed:
            number = kinds.index(kind) if kind in kinds else 0
            axes.annotate(f"{kind}: failed", (1, position + (number - (len(kinds) - 1) / 2) * height), xytext=(4, 0),
                          va="center", textcoords="offset points", fontsize=7)
        for series in shown:
            kind, base = _bar_kind(series["way"]), reference[name]
            middle, number = series["median"] / base, kinds.index(kind)
            at = position + (number - (len(kinds) - 1) / 2) * height
            error = [[middle - series["min"] / base], [series["max"] / base - middle]]
            axes.barh(at, middle - 1, height, left=1, xerr=error, color=COLOURS.get(kind, OTHER_COLOUR),
                      hatch=HATCHES.get(kind, ""), edgecolor="white", linewidth=0, label=kind,
                      error_kw={"linewidth": 0.8, "ecolor": "#333333", "capsize": 2})
            axes.annotate(f"{middle:.2f}", (max(1, series["max"] / base), at), xytext=(4, 0), va="center",
                          textcoords="offset points", fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_xlabel("times as long as natively (median; least to most)")
    by_kind = dict(zip(*reversed(axes.get_legend_handles_labels())))
    axes.legend(by_kind.values(), by_kind.keys(), frameon=False, fontsize=8, loc="best")


def _fit_scale(axes):
    """Where bars are of very different lengths: logarithmic, with ticks that people read. Room for the numbers beside
    the bars in any case."""
    low, high = axes.get_xlim()
    if high < 5:
        axes.set_xlim(low, high + 0.15 * (high - low))
        return
    axes.set_xscale("log")
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= 1.5 * high]
    ticks = [tick for tick in ticks if tick >= max(low, 0.1) / 1.5]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(min(0.9, max(low, 0.1)), high * 1.3)


def _failed(benchmark):
    """The kinds of ways that gave no figure because they failed."""
    with_values = {_kind(series["way"]) for series in benchmark["series"] if series["values"]}
    return sorted({_kind(series["way"]) for series in benchmark["series"] if series["failure"]} - with_values)


def draw_programs(pyplot, document, folder):
    """Two panels: a quarter local, and room to spare."""
    panels = []
    for fits in (False, True):
        chosen = [b for b in _in_groups(document, "programs") if b["name"].endswith(FITS) == fits
                  and results.series_of(b, "native")]
        rows = [(b["name"].removesuffix(FITS), [s for s in _shown(b) if s["way"] != "native"], _failed(b))
                for b in chosen]
        natives = {b["name"].removesuffix(FITS): results.series_of(b, "native")["median"] for b in chosen}
        if rows:
            panels.append((rows, natives, "half as much again as its peak local" if fits else "a quarter of its peak local"))
    if not panels:
        return []
    figure, grid = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels), 1.2 + 0.55 * len(panels[0][0])),
                                   squeeze=False)
    for axes, (rows, natives, title) in zip(grid.flat, panels):
        _relative_bars(axes, rows, natives, title)
        _fit_scale(axes)
    figure.tight_layout()
    return _save(pyplot, figure, folder, "programs")


def draw_ablation(pyplot, document, folder):
    """What each feature is worth: the time without it over the time with everything."""
    chosen = [(url, b) for url in tables.ablated_devices(document) for b in tables.ablated(document, url)]
    if not chosen:
        return []
    columns = min(4, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(1.9 + 3.1 * columns, 0.7 + 2.3 * rows), squeeze=False,
                                   sharey=True)
    names = tables.left_out(document)
    for axes, (url, benchmark) in zip(grid.flat, chosen):
        _ablated_bars(axes, benchmark, url, names)
    for axes in list(grid.flat)[len(chosen):]:
        axes.set_visible(False)
    for index, axes in enumerate(grid.flat):
        if index + columns >= len(chosen):
            axes.set_xlabel("times as long as with everything on")
    figure.tight_layout()
    return _save(pyplot, figure, folder, "ablation")


def _ablated_bars(axes, benchmark, url, names):
    whole = results.series_of(benchmark, url)
    for position, name in enumerate(names):
        series = results.series_of(benchmark, url + ABLATED[1:] + name)
        if not series:
            continue
        middle, least, most = (series[key] / whole["median"] for key in ("median", "min", "max"))
        worse = middle >= 1
        axes.barh(position, middle - 1, 0.7, left=1, color=COLOURS["swap"] if worse else COLOURS["mem:"],
                  hatch="" if worse else "//", edgecolor="white", linewidth=0,
                  xerr=[[middle - least], [most - middle]],
                  error_kw={"linewidth": 0.8, "ecolor": "#333333", "capsize": 2})
        axes.annotate(f"{middle:.2f}", (max(1, most), position), xytext=(4, 0), va="center",
                      textcoords="offset points", fontsize=7)
    axes.axvspan(whole["min"] / whole["median"], whole["max"] / whole["median"], color="#dddddd", zorder=0)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), [f"without {name}" for name in names], fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.15 * (high - low))
    axes.set_title(f"{benchmark['name']}, {url} ({tables.ns(whole['median'])} with all)", fontsize=9, loc="left")


MARKERS = {"native": "o", "mem:": "s", "zmem:": "v", "swap": "^"}


def draw_open_load(pyplot, document, folder):
    """Percentiles of the latency of GET, one line a way: the median over the rounds, and least to most."""
    chosen = _in_groups(document, "open-load")
    if not chosen:
        return []
    benchmark = chosen[0]
    swap = results.best_swap(benchmark)
    figure, axes = pyplot.subplots(figsize=(5.6, 3.6))
    for number, series in enumerate(s for s in benchmark["series"] if s["values"]):
        if series["way"].startswith("swap") and series is not swap:
            continue
        kind, off = _kind(series["way"]), ABLATED in series["way"]
        points = [sorted(sample["get"][key] / 1000 for sample in series["samples"]) for key in PERCENTILES]
        middle = [figures.summary(values)["median"] for values in points]
        axes.errorbar([position + (number - 1) * 0.05 for position in range(len(points))], middle,
                      [[m - p[0] for m, p in zip(middle, points)], [p[-1] - m for m, p in zip(middle, points)]],
                      color=OTHER_COLOUR if off else COLOURS.get(kind, OTHER_COLOUR), marker=MARKERS.get(kind, "D"),
                      linestyle="--" if off else "-", markersize=5, linewidth=1.3, elinewidth=0.7, capsize=2,
                      label=_short(series["way"]))
    rate = next(s for s in benchmark["series"] if s["values"])["samples"][0]["rate_asked_per_second"]
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xticks(range(len(PERCENTILES)), PERCENTILES.values())
    axes.set(xlabel="percentile", ylabel="us from when a GET was due, logarithmic")
    axes.set_title(f"Redis GET, {rate:g} requests a second, {tables.size(benchmark['size_bytes'])}, "
                   f"{tables.size(benchmark['local_bytes'])} local", fontsize=9, loc="left")
    axes.grid(axis="y", linewidth=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return _save(pyplot, figure, folder, "open-load")


LINES = {"copy-clean": ("#0072B2", "o", "-"), "copy-dirty-move": ("#56B4E9", "s", "--"),
         "copy-dirty-protect": ("#009E73", "^", "--"), "move-clean": ("#D55E00", "D", "-"),
         "move-dirty": ("#CC79A7", "v", "--")}
PLACES = ("hinted", "signal", "handler-same-cpu", "handler-other-cpu-spinning", "handler-other-cpu",
          "handler-unpinned")


def _with_error(axes, positions, chosen, colour, marker, style, label):
    middle = [figure["median"] / 1000 for figure in chosen]
    low = [m - figure["min"] / 1000 for m, figure in zip(middle, chosen)]
    high = [figure["max"] / 1000 - m for m, figure in zip(middle, chosen)]
    axes.errorbar(positions, middle, [low, high], color=colour, marker=marker, linestyle=style, label=label,
                  markersize=5, linewidth=1.3, elinewidth=0.7, capsize=2)


def draw_floor(pyplot, document, folder):
    known = {figure["name"]: figure for figure in document["floor"] if figure["values"]}
    places = [place for place in PLACES if f"paging/random/{place}/copy-clean" in known]
    if not places:
        return []
    figure, (runs, random) = pyplot.subplots(1, 2, figsize=(10.5, 3.8))
    for number, (way, (colour, marker, style)) in enumerate(LINES.items()):
        beside = (number - len(LINES) // 2) * 0.13  # so that error bars do not hide each other
        sizes = [size for size in (1, 4, 16, 64) if f"paging/sequential/hinted/{way}/run-{size}" in known]
        _with_error(runs, sizes, [known[f"paging/sequential/hinted/{way}/run-{size}"] for size in sizes], colour,
                    marker, style, way)
        there = [(position, known[f"paging/random/{place}/{way}"]) for position, place in enumerate(places)
                 if f"paging/random/{place}/{way}" in known]
        _with_error(random, [p + beside for p, _ in there], [f for _, f in there], colour, marker, "none", way)
    runs.set_xscale("log", base=4)
    runs.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
    runs.minorticks_off()
    runs.set(xlabel="pages in a run", ylabel="us per page", title="Sequential, by length of the run")
    runs.set_ylim(bottom=0)
    runs.legend(frameon=False, fontsize=8)
    random.set_yscale("log")
    ticks = [step * 10 ** power for power in range(6) for step in (1, 2, 5)]
    most = max(known[name]["max"] for name in known if name.startswith("paging/random/")) / 1000
    random.set_yticks([tick for tick in ticks if tick / 2 <= most], [str(tick) for tick in ticks if tick / 2 <= most])
    random.minorticks_off()
    random.set_xticks(range(len(places)), [place.replace("handler-", "handler,\n").replace("-cpu", " CPU")
                                           .replace("-spinning", ",\nspinning") for place in places], fontsize=8)
    random.set_xlim(-0.5, len(places) - 0.5)
    random.set(ylabel="us per page, logarithmic", title="Random, by where a miss is served")
    random.grid(axis="y", linewidth=0.3)
    figure.tight_layout()
    return _save(pyplot, figure, folder, "floor")


def draw(document, folder):
    """Names of the files written. NoMatplotlib where it is missing."""
    pyplot = import_pyplot()
    return [name for draw_one in (draw_access, draw_programs, draw_open_load, draw_ablation, draw_floor)
            for name in draw_one(pyplot, document, folder)]
