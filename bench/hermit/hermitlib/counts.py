"""What a system has counted so far, and what it comes to over a time."""

import json
import os
import subprocess

from harness import memory

from . import ways

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
PAGE = 4096


def cpu_seconds(pid):
    """Of the process and all below it, as long as they live."""
    ticks = 0
    for each in memory.tree(pid):
        try:
            with open(f"/proc/{each}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        except OSError:
            pass  # it ended meanwhile
    return ticks * TICK_SECONDS


def anonymous_bytes(pid):
    """Resident now, of the process and all below it."""
    found = [memory.status(each) for each in memory.tree(pid)]
    return sum(each[1] for each in found if each)


def of_swap():
    """Of the whole machine: nobody else swaps meanwhile, for swap was off. Who reaches the limit of a memory cgroup
    reclaims itself, always: the kernel has no thread that does it ahead, nor counts it beside that of the machine. So
    what was written is what left, but for pages that were unchanged."""
    with open("/proc/vmstat", encoding="utf-8") as file:
        found = dict(line.split() for line in file)
    number = {name: int(found.get(name, 0)) for name in ("pswpin", "pswpout", "pgmajfault")}
    return {"faults": number["pgmajfault"], "bytes_in": number["pswpin"] * PAGE, "bytes_out": number["pswpout"] * PAGE,
            "direct": number["pswpout"], "ahead": 0, "evicted": number["pswpout"]}


def of_far(document):
    """Of one program, as `hinterland stat --json` has it."""
    counters = document["counters"]
    return {"faults": counters["faults_read"] + counters["faults_write"], "bytes_in": counters["device_bytes_in"],
            "bytes_out": counters["device_bytes_out"], "direct": counters["reclaim_direct_pages"],
            "ahead": counters["reclaim_background_pages"] + counters["reclaim_handler_pages"],
            "evicted": counters["pages_evicted"]}


def stat(stat_dir):
    """The one program that runs there."""
    done = subprocess.run([ways.HINTERLAND, "stat", "--json", "--stat-dir", stat_dir], capture_output=True, text=True,
                          check=True)
    programs = json.loads(done.stdout)["programs"]
    return max(programs, key=lambda each: each["gauges"]["mapped_bytes"])


def now(way, stat_dir):
    """Counters of a system, at this moment; none of a program that is alone."""
    if way == ways.NATIVE:
        return {}
    return of_swap() if way == ways.SWAP else of_far(stat(stat_dir))


def since(before, after):
    return {name: after[name] - before[name] for name in after}


def direct_share(counts):
    """Of the pages that were reclaimed: those for which a fault had to wait. None where there were none."""
    reclaimed = counts.get("direct", 0) + counts.get("ahead", 0)
    return counts["direct"] / reclaimed if reclaimed else None
