"""Statistics of repeated measurements: what to show of a series, and whether two series differ."""

import itertools
import math
import statistics

SMALLEST_CHANGE = 0.02     # a smaller difference of medians is of no interest, however sure
CHANCE_MAX = 0.05          # of seeing such a difference in rank although nothing changed
COMBINATIONS_MAX = 200_000  # exact up to here (ten values against ten), a normal approximation above


def summary(values):
    """Median and spread of a series that is not empty. spread: (most - least) / median."""
    middle = statistics.median(values)
    return {"median": middle, "min": min(values), "max": max(values),
            "spread": (max(values) - min(values)) / middle if middle else 0.0}


def _wins(before, after):
    """How often a value of `before` is less than one of `after`; equal ones count half."""
    return sum(1.0 if a < b else 0.5 if a == b else 0.0 for a in before for b in after)


def chance(before, after):
    """Mann-Whitney: how likely ranks as far apart as these are when both come from the same machine and code. 1.0 when
    one is empty."""
    n, m = len(before), len(after)
    if not n or not m:
        return 1.0
    middle = n * m / 2
    seen = abs(_wins(before, after) - middle)
    if math.comb(n + m, n) > COMBINATIONS_MAX:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return math.erfc(max(0.0, seen - 0.5) / deviation / math.sqrt(2))
    values = [*before, *after]
    order = sorted(range(n + m), key=values.__getitem__)
    rank = [0.0] * (n + m)
    for _, equal in itertools.groupby(enumerate(order), key=lambda item: values[item[1]]):
        equal = list(equal)
        for _, index in equal:
            rank[index] = sum(position for position, _ in equal) / len(equal)
    # wins of the chosen n = their ranks' distance from the highest sum possible
    highest = n * m + n * (n - 1) / 2
    as_far = sum(1 for chosen in itertools.combinations(rank, n) if abs(highest - sum(chosen) - middle) >= seen - 1e-9)
    return as_far / math.comb(n + m, n)


def compare(before, after):
    """What changed from one series to another, both in a unit of which less is better.

    {"ratio": after / before, "chance": float, "verdict": "better" | "worse" | "same" | "unsure"}; "unsure" is a
    difference that so few repetitions cannot tell from noise.
    """
    middle = statistics.median(before), statistics.median(after)
    ratio = middle[1] / middle[0] if middle[0] else 1.0 if middle[0] == middle[1] else math.inf
    likely = chance(before, after)
    if abs(ratio - 1) < SMALLEST_CHANGE:
        verdict = "same"
    elif likely <= CHANCE_MAX:
        verdict = "better" if ratio < 1 else "worse"
    else:
        # 2 / C(n + m, n) is the least chance that so many values can give.
        could_tell = 2 / math.comb(len(before) + len(after), len(before)) <= CHANCE_MAX
        verdict = "same" if could_tell else "unsure"
    return {"ratio": ratio, "chance": likely, "verdict": verdict}
