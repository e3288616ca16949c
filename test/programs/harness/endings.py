"""SIGTERM, SIGINT and SIGHUP become an exception, so that everything started is taken down on the way out.

It is raised only where we wait (`with endings.waiting:`): anywhere else it could hit a clean-up half-way, or the
moment between starting something and remembering it.
"""

import signal

from .errors import Interrupted

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Waiting:
    def __init__(self):
        self._inside, self._arrived = False, None

    def __enter__(self):
        self._inside = True
        if self._arrived:
            self._leave()

    def __exit__(self, *_):
        self._inside = False

    def arrived(self, number, _frame):
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)  # one is enough
        self._arrived = signal.Signals(number).name
        if self._inside:
            self._leave()

    def _leave(self):
        name, self._inside, self._arrived = self._arrived, False, None  # the way out may wait too
        raise Interrupted(name)


waiting = _Waiting()


def catch():
    for number in _SIGNALS:
        signal.signal(number, waiting.arrived)
