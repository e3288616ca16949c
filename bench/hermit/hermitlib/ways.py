"""The systems that are compared, and the words that each puts before a program."""

import contextlib
import os

import swap_baseline

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
HINTERLAND = os.path.join(ROOT, "build/bin/hinterland")
NATIVE, SWAP, HERMIT, OURS = "all local", "zram swap", "hermit", "ours"
SLOW_PARTS = ("write-back-thread", "second-reclaimer", "feedback")  # of reclaim's adapting

# By name: options of `hinterland run`. Each of the later ones has one part more.
FAR = {
    HERMIT: ("--reclaim", "hermit"),
    OURS: (),
    "no feedback": ("--without", "feedback"),
    "one reclaimer": ("--without", "second-reclaimer,write-back-thread"),
    "bare": ("--without", ",".join(("background-reclaim", "batching", "second-chance", *SLOW_PARTS))),
    "bare + background": ("--without", ",".join(("batching", "second-chance", *SLOW_PARTS))),
    "+ batching": ("--without", ",".join(("second-chance", *SLOW_PARTS))),
    "no batching": ("--without", "batching"),
}


@contextlib.contextmanager
def words(way, local_bytes, peak_bytes, far_url):
    """What stands before a program that has so much local memory, of the so much that it takes."""
    if way == NATIVE:
        yield []
    elif way == SWAP:
        with swap_baseline.limited(local_bytes, 2 * peak_bytes, 0) as before:
            yield before
    else:
        yield [HINTERLAND, "run", "--local", str(local_bytes), "--far", far_url, "--takeover", "start", *FAR[way], "--"]
