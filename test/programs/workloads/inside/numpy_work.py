"""The work of the NumPy test: numpy_work.py ELEMENTS SEED prints one hash a step.

All results are exact (integers, or floats that hold integers), so they do not depend on the order in which threads or
vector units add.
"""

import hashlib
import sys

import numpy as np


def show(what, array):
    print(what, hashlib.sha256(np.ascontiguousarray(array)).hexdigest(), array.shape, flush=True)


def main():
    elements, seed = int(sys.argv[1]), int(sys.argv[2])
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 1 << 40, elements)
    show("sorted", np.sort(numbers))
    order = np.argsort(numbers, kind="stable")
    show("order", order)
    show("gathered", numbers[random.permutation(elements)[: elements // 2]])
    show("sums", np.cumsum(numbers[order]))
    del order
    values, counts = np.unique(numbers >> 24, return_counts=True)
    show("values", values)
    show("counts", counts)
    side = int((elements / 8) ** 0.5)
    left = random.integers(-8, 8, (side, side)).astype(np.float64)
    right = random.integers(-8, 8, (side, side)).astype(np.float64)
    show("product", left @ right)
    show("transposed", (left.T + right)[::3])
    signal = random.integers(0, 16, 1 << (elements // 4).bit_length()).astype(np.float64)
    there_and_back = np.rint(np.fft.irfft(np.fft.rfft(signal))).astype(np.int64)
    assert (there_and_back == signal.astype(np.int64)).all(), "the FFT does not give back what went in"
    show("fft", there_and_back)
    texts = numbers[: elements // 20].astype("U14")
    show("texts", np.sort(texts))


main()
