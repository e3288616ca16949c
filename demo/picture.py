"""What the demo measured, for people: bars in the terminal, a table in Markdown, a picture, and a page with it."""

import html
import sys

MIB = 1 << 20
BAR = 22  # letters, of the longest bar


def resident(way):
    """All memory that the way took: here, the store in it included, and at its server."""
    return way["here_bytes"] + way["server_bytes"]


def seconds(value):
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def memory(way):
    here = f"{way['here_bytes'] / MIB:.0f}"
    return f"{here} + {way['server_bytes'] / MIB:.0f} MiB" if way["server_bytes"] else f"{here} MiB"


def _bar(share, width=BAR):
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    return block * max(1, round(share * width)) if share > 0 else ""


def text(jobs):
    """Lines. Each job's bars are against the longest of that job."""
    lines = []
    for job in jobs:
        longest = max(way["seconds"] for way in job["ways"])
        largest = max(map(resident, job["ways"]))
        lines += ["", job["title"]]
        for way in job["ways"]:
            if way["failure"]:
                lines.append(f"  {way['name']:<18} the program {way['failure']}")
                continue
            lines.append(f"  {way['name']:<18} {seconds(way['seconds']):>7} {_bar(way['seconds'] / longest):<{BAR}}  "
                         f"{memory(way):>13} {_bar(resident(way) / largest)}")
    return lines


def markdown(jobs):
    names = [way["name"] for way in max((job["ways"] for job in jobs), key=len)]
    rows = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for job in jobs:
        cells = {way["name"]: way["failure"] or f"{seconds(way['seconds'])}, {memory(way)}" for way in job["ways"]}
        rows.append(f"| {job['title']} | " + " | ".join(cells.get(name, "") for name in names) + " |")
    return "\n".join(rows) + "\n"


_LEFT, _WIDTH, _GAP, _ROW, _TITLE = 130, 230, 120, 22, 34  # of the picture, in pixels


def _bar_svg(left, top, lengths, label):
    """A bar of parts: (share of the longest bar, class of its colour)."""
    parts, at = "", left
    for share, kind in lengths:
        width = share * _WIDTH
        if width > 0:
            parts += f'<rect class="{kind}" x="{at:.1f}" y="{top + 3}" width="{max(width, 1):.1f}" height="15"/>'
        at += width
    return parts + f'<text x="{at + 6:.1f}" y="{top + 15}">{html.escape(label)}</text>\n'


def _job_svg(job, top):
    longest = max(way["seconds"] for way in job["ways"])
    largest = max(map(resident, job["ways"]))
    drawn = f'<text class="title" x="0" y="{top + 20}">{html.escape(job["title"])}</text>\n'
    right = _LEFT + _WIDTH + _GAP
    for number, way in enumerate(job["ways"]):
        at = top + _TITLE + number * _ROW
        drawn += f'<text x="{_LEFT - 8}" y="{at + 15}" text-anchor="end">{html.escape(way["name"])}</text>'
        if way["failure"]:
            drawn += f'<text x="{_LEFT}" y="{at + 15}">{html.escape(way["failure"])}</text>\n'
            continue
        drawn += _bar_svg(_LEFT, at, [(way["seconds"] / longest, "time")], seconds(way["seconds"]))
        drawn += _bar_svg(right, at, [(way["here_bytes"] / largest, "here"), (way["server_bytes"] / largest, "server")],
                          memory(way))
    return drawn


def svg(jobs):
    tops, top = [], 24
    for job in jobs:
        tops.append(top)
        top += _TITLE + _ROW * len(job["ways"]) + 14
    width = _LEFT + 2 * (_WIDTH + _GAP)
    drawn = "".join(_job_svg(job, at) for job, at in zip(jobs, tops))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}" '
            'role="img" aria-label="time and memory of each job">\n<style>text{font:13px sans-serif}'
            ".title{font-weight:bold}.time{fill:#4477aa}.here{fill:#ccbb44}.server{fill:#eee3a6}</style>\n"
            f'<rect width="{width}" height="{top}" fill="white"/>\n'
            f'<text x="{_LEFT}" y="16">time</text><text x="{_LEFT + _WIDTH + _GAP}" y="16">all resident memory '
            f"(light: at the server)</text>\n{drawn}</svg>\n")


def page(jobs, words):
    paragraphs = "".join(f"<p>{html.escape(line)}</p>\n" for line in words)
    return ('<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Hinterland: the demo</title>'
            "<style>body{font:15px sans-serif;margin:2em;max-width:60em}</style></head><body>\n"
            f"<h1>A quarter of their memory</h1>\n{svg(jobs)}{paragraphs}</body></html>\n")
