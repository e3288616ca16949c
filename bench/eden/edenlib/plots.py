"""The plots of bench/eden/run: one for each figure of Eden's evaluation, drawn from what its steps have measured."""

import os

from benchlib import plots

from . import published

# Okabe and Ito's colours, and a marker each, so that lines differ without colour, too.
KINDS = {"native": ("#999999", "", "-", "native"), "far": ("#56B4E9", "s", "--", "far, no hints"),
         "far-hinted": ("#0072B2", "o", "-", "far, hinted"), "swap": ("#D55E00", "^", "-", "Linux swap (zram)"),
         "flat": ("#009E73", "D", "-.", "far, hinted, no priority"),
         "blocking": ("#CC79A7", "v", "-.", "far, hinted, blocking")}
LOCAL = "local memory, % of the most it takes"
THREADS = (1, 2, 4)


class Nothing(Exception):
    """What a plot would need was not measured."""


def _save(pyplot, figure, folder, name):
    figure.tight_layout()
    for ending in ("png", "svg"):
        figure.savefig(os.path.join(folder, f"{name}.{ending}"), dpi=130, bbox_inches="tight",
                       metadata={"Date": None} if ending == "svg" else None)
    pyplot.close(figure)
    return f"{name}.png"


def _line(axes, points, kind, label=None, dotted=False):
    """points: [(x, {"median", "min", "max"} or a number)]; those without a value are left out. dotted: the second of a kind,
    with hollow marks."""
    points = [(x, y) for x, y in points if y is not None]
    if not points:
        return
    colour, marker, style, name = KINDS[kind]
    seen = [y if isinstance(y, dict) else {"median": y, "min": y, "max": y} for _, y in points]
    axes.errorbar([x for x, _ in points], [y["median"] for y in seen],
                  [[y["median"] - y["min"] for y in seen], [y["max"] - y["median"] for y in seen]], color=colour,
                  marker=marker, linestyle=":" if dotted else style, label=label or name,
                  markerfacecolor="white" if dotted else colour, markersize=5, linewidth=1.3, elinewidth=0.7,
                  capsize=2)


def _marks(axes, points):
    """Eden's own numbers: hollow stars, which no line of ours has."""
    for number, point in enumerate(points):
        axes.plot(point.x, point.y, "*", markersize=11, markerfacecolor="white", markeredgecolor=KINDS[point.kind][0],
                  label="stated in Eden's paper" if number == 0 else None, zorder=5)
        axes.annotate(point.label, (point.x, point.y), xytext=(-6 if point.x > 60 else 7, 5), fontsize=7,
                      textcoords="offset points", ha="right" if point.x > 60 else "left", color=KINDS[point.kind][0])


def _finish(axes, title, x, y, legend=True, columns=1):
    """columns: of the legend; more than one stand above the lines."""
    axes.set_title(title, fontsize=9, loc="left")
    axes.set(xlabel=x, ylabel=y)
    axes.set_ylim(0, axes.get_ylim()[1] * (1.4 if columns > 1 else 1.02))
    axes.grid(axis="y", linewidth=0.3)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7, ncols=columns, loc="upper center" if columns > 1 else "best")


def _inverse(seen, of):
    """Speed: a time turned over, with its spread."""
    return {"median": of / seen["median"], "min": of / seen["max"], "max": of / seen["min"]} if seen else None


def _times(seen, of):
    return {name: seen[name] / of for name in ("median", "min", "max")} if seen else None


def _check_measured(apps, *names):
    if not any(apps.seconds(name, "native") for name in names):
        raise Nothing(f"{' and '.join(names)} was not measured")


def _against_native(apps, axes, name, turn, kinds=("far", "far-hinted", "swap"), lines=None):
    """A line a kind over local memory, against the native run without hints. lines: (other run, kind, as) beside."""
    native = apps.seconds(name, "native")
    if not native:
        axes.text(0.5, 0.5, f"{name} was not measured", transform=axes.transAxes, ha="center")
        return
    for kind in kinds:
        _line(axes, [(percent, turn(apps.seconds(name, kind, percent), native["median"]))
                     for percent in apps.percents(name, kind)], kind)
    for other, kind, shown in lines or ():
        base = apps.seconds(other, "native")
        if base:
            _line(axes, [(percent, turn(apps.seconds(other, kind, percent), base["median"]))
                         for percent in apps.percents(other, kind)], shown)
    axes.axhline(1, color=KINDS["native"][0], linewidth=0.9, label="native")
    axes.set_xlim(0, 104)


# --- the calls ------------------------------------------------------------------------------------------------------
CALLS = {"zero-fault/1": ("#D55E00", "^", "zero-page faults, one handler"), "copy/1": ("#0072B2", "o", "copy in"),
         "unmap/1": ("#CC79A7", "s", "unmap"), "protect/1": ("#009E73", "D", "write-protect"),
         "move/1": ("#E69F00", "v", "move")}


def _calls(calls, axes, name, style="-", label=None):
    colour, marker, words = CALLS[name.split("/")[0] + "/1"]
    known = {figure["name"]: figure for figure in calls["figures"] if "median" in figure}
    points = [(threads, known.get(f"scaling/{name}/{threads}-threads")) for threads in THREADS]
    points = [(threads, 1000 / figure["median"]) for threads, figure in points if figure]
    if points:
        axes.plot(*zip(*points), color=colour, marker=marker, linestyle=style, label=label or words, markersize=5,
                  linewidth=1.3)
    axes.set_xticks(THREADS)


def figure1(pyplot, folder, calls):
    figure, axes = pyplot.subplots(figsize=(5.2, 3.6))
    for name in CALLS:
        _calls(calls, axes, name)
    axes.axhline(published.ZERO_FAULTS_PER_SECOND / 1e6, color=CALLS["zero-fault/1"][0], linestyle=":", linewidth=1.2,
                 label="zero-page faults at most, Eden 2.2")
    _finish(axes, "One page a call, each thread on its own memory", "threads", "million pages a second")
    return _save(pyplot, figure, folder, "eden-figure1")


def figure8(pyplot, folder, calls, hints):
    figure, (vectors, fetch, evict, ahead) = pyplot.subplots(1, 4, figsize=(18, 3.8))
    for name in ("unmap", "protect", "move"):
        words = CALLS[name + "/1"][2]
        _calls(calls, vectors, name + "/16", label=f"{words}, 16 a call")
        _calls(calls, vectors, name + "/1", "--", f"{words}, one a call")
    _finish(vectors, "(a) 16 pages a call and one", "threads", "million pages a second", columns=2)

    def rate(ns):
        return 1000 / ns if ns else None

    def over_threads(axes, name, words, dotted):
        """Hinted, by faults and under swap, for one thread and two."""
        for kind, more in (("far-hinted", ""), ("far", " --no-hints"), ("swap", "")):
            keys = {1: name, 2: f"{name} --threads 2"}
            values = [(count, rate(hints.swap_ns(key) if kind == "swap" else hints.ns(f"{key}{more} mem:")))
                      for count, key in keys.items()]
            label = {"far-hinted": "hinted", "far": "no hints", "swap": "Linux swap"}[kind]
            _line(axes, values, kind, f"{label}, {words}", dotted)
        axes.set_xticks((1, 2))
        axes.set_xlim(0.9, 2.1)
    for axes, names in ((fetch, {"fetch-in-order": "in order", "fetch-random": "at random"}),
                        (evict, {"sequential-read": "clean", "sequential-write": "dirty"})):
        for dotted, (name, words) in enumerate(names.items()):
            over_threads(axes, name, words, dotted)
    fetch.axhline(published.FETCHES_PER_SECOND / 1e6, color="black", linestyle=":", linewidth=1,
                  label="Eden hinted, many cores (5.4)")
    _finish(fetch, "(b) fetch, nothing leaves", "threads", "million pages a second", columns=2)
    _finish(evict, "(c) in order, a page leaves for each", "threads", "million pages a second", columns=2)
    for way, kind, words in (("mem:", "far-hinted", "mem:"), ("sim:latency=5us,inner=mem:", "flat", "5 us away")):
        _line(ahead, [(position, rate(hints.ns(f"sequential-read --read-ahead {pages} {way}")))
                      for position, pages in enumerate(READ_AHEADS)], kind, f"hinted, {words}")
    swap = rate(hints.swap_ns("sequential-read"))
    if swap:
        ahead.axhline(swap, color=KINDS["swap"][0], linewidth=1, label="Linux swap, its own read-ahead")
    ahead.set_xticks(range(len(READ_AHEADS)), READ_AHEADS)
    _finish(ahead, "(d) as (c), clean, by read-ahead", "pages read ahead", "million pages a second", columns=2)
    return _save(pyplot, figure, folder, "eden-figure8")


READ_AHEADS = (0, 1, 2, 4, 8, 16, 32, 64)


# --- the applications -----------------------------------------------------------------------------------------------
def _overhead_bars(axes, apps, overheads, names):
    rows = [(name, apps_of) for name in names for apps_of in (overheads, apps) if apps_of.seconds(name, "native")]
    rows = list(dict(reversed(rows)).items())[::-1]
    height, shown = 0.26, []
    for position, (name, where) in enumerate(rows):
        native = where.seconds(name, "native")["median"]
        for number, kind in enumerate(("far", "far-hinted", "swap")):
            seen = _times(where.seconds(name, kind, 100), native) or _times(apps.seconds(name, kind, 100), (
                apps.seconds(name, "native") or {"median": native})["median"])
            if seen:
                at, colour = position + (number - 1) * height, KINDS[kind][0]
                axes.barh(at, seen["median"], height * 0.9, color=colour, label=KINDS[kind][3] if position == 0 else None,
                          hatch=("//", "", "..")[number], edgecolor="white", linewidth=0,
                          xerr=[[seen["median"] - seen["min"]], [seen["max"] - seen["median"]]],
                          error_kw={"linewidth": 0.7, "capsize": 2})
                shown.append((seen["median"], seen["max"], at))
    if not rows:
        raise Nothing("nothing was measured with all memory local")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6 - min(0.9, 0.25 * len(rows)))  # the legend stands above
    # One disturbed run must not squeeze all others: its error bar ends at the edge.
    right = max(1.5, 1.35 * max(median for median, *_ in shown))
    axes.set_xlim(0, right)
    for median, most, at in shown:
        axes.annotate(f"{median:.2f}", (min(most, right * 0.93), at), xytext=(3, 0), textcoords="offset points",
                      va="center", fontsize=7)
    axes.set_xlabel("time of the native run, all memory local")
    return rows


def overheads(pyplot, folder, apps, overheads_):
    names = list(dict.fromkeys(overheads_.names() + apps.names()))
    figure, axes = pyplot.subplots(figsize=(7, 0.9 + 0.45 * len(names)))
    _overhead_bars(axes, apps, overheads_, names)
    axes.axvline(1.03, color="black", linewidth=0.7, linestyle=":", label="target 1.03")
    axes.set_title("All memory local: what being far-capable costs", fontsize=9, loc="left")
    axes.legend(frameon=False, fontsize=7, loc="upper right", ncols=2)
    return _save(pyplot, figure, folder, "eden-overheads")


def figure6(pyplot, folder, apps, overheads_):
    _check_measured(apps, "dataframe", "webservice")
    figure, (local, frame, web, large) = pyplot.subplots(1, 4, figsize=(16, 3.7))
    rows = _overhead_bars(local, apps, overheads_, ("dataframe", "webservice", "webservice-1600"))
    at = [position for position, (name, _) in enumerate(rows) if name == "dataframe"]
    if at:
        local.plot(1.12, at[0], "*", markersize=11, markerfacecolor="white", markeredgecolor="black", zorder=5,
                   label="Eden, stated (5.3.1)")
    local.set_title("(a) all memory local", fontsize=9, loc="left")
    local.legend(frameon=False, fontsize=7, loc="upper right", ncols=2)
    _against_native(apps, frame, "dataframe", _times)
    _marks(frame, published.DATAFRAME_TIME)
    _finish(frame, "(b) DataFrame", LOCAL, "time of the native run")
    _against_native(apps, web, "webservice", _inverse, lines=[("webservice-flat", "far-hinted", "flat")])
    _marks(web, published.WEBSERVICE_SPEED)
    _finish(web, "(c) web service, 4-byte values", LOCAL, "speed of the native run")
    _against_native(apps, large, "webservice-1600", _inverse)
    _finish(large, "(d) web service, 1600-byte values", LOCAL, "speed of the native run")
    return _save(pyplot, figure, folder, "eden-figure6")


def figure7(pyplot, folder, apps):
    _check_measured(apps, "kv")
    figure, (speed, faults) = pyplot.subplots(1, 2, figsize=(9.6, 3.7))
    _against_native(apps, speed, "kv", _inverse, lines=[("kv-blocking", "far-hinted", "blocking")])
    _marks(speed, published.MEMCACHED_SPEED)
    _finish(speed, "kv: throughput", LOCAL, "speed of the native run")
    for name, kind, shown in (("kv", "far", "far"), ("kv", "far-hinted", "far-hinted"),
                              ("kv-blocking", "far-hinted", "blocking"), ("kv", "swap", "swap")):
        rates = [(percent, apps.pages_per_second(name, kind, percent)) for percent in apps.percents(name, kind)]
        _line(faults, [(percent, rate / 1000 if rate is not None else None) for percent, rate in rates], shown)
    faults.set_xlim(0, 104)
    most = published.MEMCACHED_FAULTS_PER_SECOND
    _finish(faults, f"kv: pages fetched (Eden, 5 cores: {most['far-hinted'] / 1e3:.0f} thousand at most, "
            f"Fastswap {most['swap'] / 1e3:.0f})", LOCAL, "thousand a second")
    return _save(pyplot, figure, folder, "eden-figure7")


def figure11(pyplot, folder, apps):
    _check_measured(apps, "psort")
    figure, axes = pyplot.subplots(figsize=(5.2, 3.6))
    _against_native(apps, axes, "psort", _times)
    _marks(axes, published.PSORT_TIME)
    swap = apps.seconds("psort", "swap", 10)
    if swap:
        base = apps.seconds("psort", "native")["median"]
        _marks(axes, [published.Point(10, published.PSORT_OF_SWAP_AT_10 * swap["median"] / base, "far-hinted",
                                      "19.4 % below swap, as Eden", "A.4")])
    _finish(axes, "Parallel sort", LOCAL, "time of the native run", legend=False)
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles))
    axes.legend(named.values(), named.keys(), frameon=False, fontsize=7)
    return _save(pyplot, figure, folder, "eden-figure11")


def applications(pyplot, folder, apps, names):
    """What Eden does not measure, as it draws what it does."""
    names = [name for name in names if apps.seconds(name, "native")]
    if not names:
        raise Nothing("no application beside Eden's was measured")
    rows = -(-len(names) // 3)
    figure, grid = pyplot.subplots(rows, 3, figsize=(12, 3.4 * rows), squeeze=False)
    for position, axes in enumerate(grid.flat):
        if position >= len(names):
            axes.set_axis_off()
            continue
        _against_native(apps, axes, names[position], _inverse)
        _finish(axes, names[position], LOCAL, "speed of the native run", legend=position == 0)
    return _save(pyplot, figure, folder, "eden-applications")


# --- fibers ---------------------------------------------------------------------------------------------------------
def fibers(pyplot, folder, document):
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    shown = {"fibers 64": "far-hinted", "fibers 16": "flat", "fibers 1": "far", "fibers 64, blocking": "blocking",
             "threads 1": "swap"}
    latencies = list(dict.fromkeys(each["latency"] for each in document["series"]))
    for readers, kind in shown.items():
        points = []
        for position, latency in enumerate(latencies):
            values = next((each["reads_per_second"] for each in document["series"]
                           if (each["readers"], each["latency"]) == (readers, latency)), [])
            if values:
                values = sorted(value / 1000 for value in values)
                points.append((position, {"median": values[len(values) // 2], "min": values[0], "max": values[-1]}))
        words = readers.replace("fibers ", "", 1) + " fibers" if readers.startswith("fibers") else "a thread"
        _line(axes, points, kind, words.replace(", blocking fibers", " fibers, hints block").replace("1 fibers", "1 fiber"))
    axes.set_xticks(range(len(latencies)), [latency.replace("us", " us") for latency in latencies])
    _finish(axes, "Random hinted reads, one CPU for them, a quarter local", "latency of the device", "thousand a second")
    return _save(pyplot, figure, folder, "eden-fibers")


# --- flame graphs ---------------------------------------------------------------------------------------------------
def _tree(lines):
    """{frame: [count, its children]} of folded stacks."""
    root = {}
    for line in lines:
        stack, _, count = line.rstrip().rpartition(" ")
        level = root
        for frame in stack.split(";"):
            node = level.setdefault(frame, [0, {}])
            node[0] += int(count)
            level = node[1]
    return root


def _boxes(level, left, depth, boxes):
    for frame, (count, below) in sorted(level.items(), key=lambda item: -item[1][0]):
        boxes.append((left, depth, count, frame))
        _boxes(below, left, depth + 1, boxes)
        left += count


# The tip of each stack says what kind of fault it was, in colours close to those of Eden's figure 9.
FAULTS = {"[read]": "#7FBFE8", "[write]": "#F0A07A", "[write-protect]": "#F0E442", "[first touch]": "#C9A5C0",
          "[refault]": "#8FD0B8"}


def flame(pyplot, folder, name, title, path):
    """Folded stacks of faults: as wide as their share, callers below."""
    with open(path, encoding="utf-8") as file:
        root = _tree(file)
    boxes = []
    _boxes(root, 0, 0, boxes)
    total = sum(node[0] for node in root.values())
    boxes = [box for box in boxes if total and box[2] >= total / 400]
    if not boxes:
        raise Nothing(f"{path} has no stacks")
    depth = max(box[1] for box in boxes) + 1
    figure, axes = pyplot.subplots(figsize=(11, 0.8 + 0.3 * depth))
    callers = ("#E8E4DA", "#DDD8CB", "#F0ECE4", "#E2DED2")
    for number, (left, level, count, frame) in enumerate(boxes):
        axes.barh(level, count / total, 0.94, left=left / total, color=FAULTS.get(frame, callers[number % len(callers)]),
                  edgecolor="white", linewidth=0.4)
        room = int(count / total * 160)
        if room > 3:
            words = frame if len(frame) <= room else frame[:room - 1] + "…"
            axes.text((left + 0.003 * total) / total, level, words, fontsize=6, va="center", clip_on=True)
    axes.set(xlim=(0, 1), ylim=(-0.6, depth - 0.4), yticks=[], xlabel="share of the faults")
    axes.set_title(title, fontsize=9, loc="left")
    return _save(pyplot, figure, folder, name)


import_pyplot, NoMatplotlib = plots.import_pyplot, plots.NoMatplotlib
