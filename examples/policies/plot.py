#!/usr/bin/env python3
"""Draws what a sweep of policies found: pages fetched, by budget, a line for each policy, and one for the fewest that
are possible. Needs matplotlib.

    hinterland replay program.trace --policy ./mine.so --sweep --json > sweep.json
    examples/policies/plot.py sweep.json sweep.png [POLICY...]
"""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plot  # noqa: E402  (the backend comes first)


def main():
    source, picture, *chosen = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        sweep = json.load(file)
    curves, least = {}, {}
    for run in sweep["runs"]:
        curves.setdefault(run["policy"], []).append((run["budget_bytes"] / 2**20, run["pages_in"] / 1000))
        least[run["budget_bytes"] / 2**20] = run["pages_in_least"] / 1000
    figure, axes = plot.subplots(figsize=(8, 4.5))
    for policy, points in curves.items():
        if not chosen or policy in chosen:
            axes.plot(*zip(*points), marker="o", label=policy)
    axes.plot(*zip(*sorted(least.items())), color="grey", linestyle="--", label="at least")
    axes.set(xlabel="local memory, MiB", ylabel="pages fetched, thousand", title=sweep["program"], xscale="log")
    axes.set_xticks([megabytes for megabytes, _ in max(curves.values(), key=len)])
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=100)


if __name__ == "__main__":
    main()
