"""Random bytes that look like data: half of it compresses, half does not."""

import random


class Data:
    def __init__(self, seed):
        self.random = random.Random(seed)
        words = [self.random.randbytes(self.random.randint(3, 9)).hex().encode() for _ in range(512)]
        text = b" ".join(self.random.choice(words) for _ in range(40_000))
        noise = self.random.randbytes(len(text))
        self._pools = (text, noise)

    def value(self, size):
        """`size` bytes, cheaply: a random piece of text or of noise."""
        pool = self._pools[self.random.getrandbits(1)]
        first = self.random.randrange(len(pool) - size)
        return pool[first:first + size]
