"""Keys in random order: numpy_permutation.py ELEMENTS SEED prints one hash a step.

Gathers by a permutation, sorts, and sorts stably by index. A gather in random order uses each page of its source many
times, far apart, beside streams that are used once: what stays local makes the difference.
"""

import hashlib
import sys

import numpy as np


def show(what, array):
    print(what, hashlib.sha256(np.ascontiguousarray(array)).hexdigest(), array.shape, flush=True)


def main():
    elements, seed = int(sys.argv[1]), int(sys.argv[2])
    random = np.random.default_rng(seed)
    keys = random.integers(0, 1 << 62, elements)
    order = random.permutation(elements)
    gathered = keys[order]
    show("gathered", gathered)
    show("sorted", np.sort(keys))
    show("order", np.argsort(gathered, kind="stable"))


main()
