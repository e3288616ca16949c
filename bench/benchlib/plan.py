"""Which benchmarks there are, and what may be asked for by name.

A benchmark that is run in several ways (access.py, programs.py, openload.py) has
    name, about, group      what it is called, alone and with others
    unit, measured          of its value ("ns/access", "time per access"); less is better
    floor, miss_share       the figures of the floor it is held against, and how many of them an access takes
    devices, swap, ablated  far devices (none: those of the run); "zram", "file" or ""; whether --ablate is for it
    by_signal               whether --signal is for it
    tied                    whether it is run tied to 1 and 2 of the CPUs, too
    must_page               false where the program may fit its budget after all
    run_options             further words for hinterland run
    size_bytes, local_bytes, cgroup_bytes, far_bytes   of memory, by the size of the run; after prepare()
    prepare()               once, before the first round
    sample()                one run behind a way's words: {"value", "checksum", ...}; the checksum is equal in all ways
"""

import difflib

from . import figure_sets
from .access import ACCESS, MIB
from .openload import OpenLoad
from .programs import real_programs

SIZE = 1024 * MIB
QUICK_SIZE = 128 * MIB
DEVICES = ("mem:", "zmem:", "tcp:")

BENCHMARKS = (*ACCESS, *real_programs(), OpenLoad())  # each run in several ways
FIGURE_SETS = (figure_sets.Floor(), figure_sets.Idle())
NAMES = tuple(each.name for each in (*BENCHMARKS, *FIGURE_SETS))
GROUPS = tuple(dict.fromkeys(each.group for each in (*BENCHMARKS, *FIGURE_SETS)))


class Unknown(Exception):
    """No benchmark has this name."""


def choose(names):
    """(benchmarks, figure sets) of these names and groups; all for no names. Unknown with the nearest name there is."""
    known = (*NAMES, *GROUPS)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.4)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise Unknown(f"there is no benchmark '{name}'{hint} (--list shows all)")
    return tuple(tuple(each for each in kind if not names or each.name in names or each.group in names)
                 for kind in (BENCHMARKS, FIGURE_SETS))


def listing():
    lines = []
    for group in GROUPS:
        lines += ["", f"{group}:"]
        lines += [f"  {each.name:<22} {each.about}" for each in (*BENCHMARKS, *FIGURE_SETS) if each.group == group]
    return "\n".join(["--only takes the name of a benchmark or of a group.", *lines])
