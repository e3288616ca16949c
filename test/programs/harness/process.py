"""A program started by us: in a session of its own, sampled, bounded in time, gone at the end whatever happens."""

import ctypes
import os
import select
import signal
import subprocess
import time

from . import endings, memory
from .errors import Failure

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent():
    """In the child before exec: should we be killed outright, it goes as well."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def environment():
    """Ours with one locale, so that sort orders and messages do not depend on the user."""
    return {**os.environ, "LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "0"}


class Process:
    """Started by the constructor; `with` ends it and everything below it."""

    def __init__(self, argv, *, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                 cwd=None, sample=True):
        self.argv = [str(word) for word in argv]
        self.started = time.monotonic()
        self.ended = None
        self.usage = None
        self._popen = subprocess.Popen(self.argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd,
                                       env=environment(), start_new_session=True, preexec_fn=_die_with_parent)
        self.stdout = self._popen.stdout
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)
        self.sampler = memory.Sampler(self.pid) if sample else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def wait(self, seconds):
        """Its exit status as a shell gives it (128 + signal). Failure when it takes longer."""
        if self.ended is None:
            poll = select.poll()  # not Popen.wait(timeout): that one sleeps in steps of up to 50 ms
            poll.register(self._pidfd, select.POLLIN)
            with endings.waiting:
                ended = poll.poll(max(0, seconds) * 1000)
            if not ended:
                raise Failure(f"still running after {seconds:.0f} s: {' '.join(self.argv)[:160]}")
            self._reap()
        code = self._popen.returncode
        return code if code >= 0 else 128 - code

    def running(self):
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return self.ended is None and not poll.poll(0)

    def send(self, number):
        if self.running():
            signal.pidfd_send_signal(self._pidfd, number)

    def _reap(self):
        self.ended = time.monotonic()
        if self.sampler:
            self.sampler.stop()
        _, status, self.usage = os.wait4(self.pid, 0)
        self._popen.returncode = os.waitstatus_to_exitcode(status)

    def kill(self):
        """Ends what still runs: the tree as it is now, then the session's group, then waits for ours."""
        if self._pidfd < 0:
            return
        if self.ended is None:
            for pid in memory.tree(self.pid):
                _kill(os.kill, pid)
            _kill(os.killpg, self.pid)
            self._reap()
        else:
            _kill(os.killpg, self.pid)  # children that outlived it
        if self.stdout:
            self.stdout.close()
        os.close(self._pidfd)
        self._pidfd = -1

    @property
    def seconds(self):
        return (self.ended or time.monotonic()) - self.started


def _kill(how, pid):
    try:
        how(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
