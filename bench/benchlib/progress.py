"""Where a long run is, and about how long it still takes. On a terminal only."""

import sys
import time


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class Progress:
    """Steps are told by a key; the same key takes about as long as the last time."""

    def __init__(self, keys, out=None, clock=time.monotonic):
        self._left, self._done, self._of = list(keys), 0, len(keys)
        self._spent = {}
        self._out, self._clock = out or sys.stderr, clock
        self._current = None

    def expect(self, keys):
        """These are the steps, after all."""
        self._left, self._done, self._of = list(keys), 0, len(keys)

    def estimate(self):
        """Seconds that the remaining steps will take, None while nothing is known."""
        if not self._spent:
            return None
        average = sum(self._spent.values()) / len(self._spent)
        return sum(self._spent.get(key, average) for key in self._left)

    def start(self, key, text):
        self._current, self._since = key, self._clock()
        if self._out.isatty():
            left = self.estimate()
            more = f"  (about {duration(left)} left)" if left is not None else ""
            print(f"\r\x1b[K[{self._done + 1}/{self._of}] {text}{more}", end="", file=self._out, flush=True)

    def note(self, text):
        """Something beside the steps."""
        if self._out.isatty():
            print(f"\r\x1b[K{text}", end="", file=self._out, flush=True)

    def done(self):
        self._spent[self._current] = self._clock() - self._since
        self._left.remove(self._current)
        self._done += 1

    def end(self):
        if self._out.isatty():
            print("\r\x1b[K", end="", file=self._out, flush=True)
