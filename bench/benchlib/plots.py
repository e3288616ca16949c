"""Plots of a result, as PNG and SVG: the access patterns, and the floor. Needs matplotlib."""

import os

from . import results, tables

# Okabe and Ito's colours, told apart by colour-blind readers too; hatches tell them apart without any colour.
COLOURS = {"native": "#999999", "mem:": "#0072B2", "zmem:": "#56B4E9", "tcp:": "#009E73", "file:": "#CC79A7",
           "swap": "#D55E00"}
HATCHES = {"native": "", "mem:": "", "zmem:": "//", "tcp:": "..", "file:": "xx", "swap": "\\\\"}
OTHER_COLOUR = "#E69F00"


class NoMatplotlib(Exception):
    """Why there are no plots."""


def _pyplot():
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


def _save(pyplot, figure, folder, name):
    for ending in ("png", "svg"):
        figure.savefig(os.path.join(folder, f"{name}.{ending}"), dpi=130, bbox_inches="tight",
                       metadata={"Date": None} if ending == "svg" else None)
    pyplot.close(figure)
    return [f"{name}.png", f"{name}.svg"]


def _shown(benchmark):
    """The series worth a bar: those with values, of swap only the better."""
    swap = results.best_swap(benchmark)
    return [series for series in benchmark["series"]
            if series["values"] and (not series["way"].startswith("swap") or series is swap)]


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
    axes.set_yticks(range(len(shown)), [series["way"].replace(" page-cluster", ", cluster") for series in shown])
    axes.set_ylim(len(shown) - 0.4, -0.65)
    axes.set_xlim(0, max([series["max"] / 1000 for series in shown] + [0.001]) * 1.25)
    sizes = f"{tables.size(benchmark['size_bytes'])}, {tables.size(benchmark['local_bytes'])} local"
    dashed = f"; dashed: floor, {tables.ns(floor)}" if floor else ""
    axes.set_title(f"{benchmark['name']}\n{sizes}{dashed}", fontsize=9, loc="left")


def draw_access(pyplot, document, folder):
    shown = [benchmark for benchmark in document["benchmarks"] if _shown(benchmark)]
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
    ticks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]
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
    pyplot = _pyplot()
    return draw_access(pyplot, document, folder) + draw_floor(pyplot, document, folder)
