"""What Eden's paper states in its text (NSDI 2025), by figure. Points that stand only in a plot are not here: reading them
off would be a guess. Speeds are shares of the system's own fully local run, times are multiples of it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Point:
    """(x, y) of a plot. kind: whose it is, as in plots.KINDS, for the colour."""
    x: float
    y: float
    kind: str
    label: str
    section: str


# Eden 2.2: all handlers together, on 28 cores.
ZERO_FAULTS_PER_SECOND = 350e3

# Local memory in percent, time over that of the fully local program without hints.
DATAFRAME_TIME = (
    Point(22, 1.75, "far-hinted", "Eden 1.75", "5.3.1"),
    Point(22, 2.7, "swap", "Fastswap 2.7", "5.3.1"),
    Point(100, 1.12, "far-hinted", "Eden 1.12", "5.3.1"),
)
# The gain of 0.49 is 178 % of what Fastswap has: 0.275, and so 0.765.
WEBSERVICE_SPEED = (
    Point(40, 0.765, "far-hinted", "Eden 0.77", "5.3.2"),
    Point(40, 0.275, "swap", "Fastswap 0.28", "5.3.2"),
    Point(4, 0.083, "flat", "Eden NP 0.08", "5.3.2"),
    Point(4, 0.02, "swap", "Fastswap 0.02", "5.3.2"),
)
MEMCACHED_SPEED = (
    Point(10, 0.294, "far-hinted", "Eden 0.29", "5.3.3"),
    Point(10, 0.144, "swap", "Fastswap 0.14", "5.3.3"),
)
# The most that was reached, by five cores: faults a second.
MEMCACHED_FAULTS_PER_SECOND = {"far-hinted": 836e3, "swap": 312e3}
# The paper gives the time over Fastswap's alone at 10 %: 19.4 % less.
PSORT_TIME = (Point(100, 1.175, "far-hinted", "Eden 1.175", "A.4"),)
PSORT_OF_SWAP_AT_10 = 0.806

# How many times as many pages a second, 16 in a call, over one.
VECTORED_GAIN = {"protect": (5.4, 6.6), "unmap": (3.7, 5.7)}
# Figure 8 (b): what hints reach, and how far that is above Fastswap.
FETCHES_PER_SECOND = 2e6
FETCHES_OVER_FASTSWAP = (1.38, 1.88)

# Table 1: application, lines with hints, share of faults covered, most gained over Fastswap.
TABLE_1 = (("dataframe", 11, 0.973, "37 %"), ("webservice", 4, 0.99, "178 %"), ("memcached", 2, 0.99, "104 %"),
           ("psort", 6, 0.99, "19.4 %"))
PLACES_MEDIAN_95 = 12
