"""Processes in a memory cgroup for the kernel to kill in the place of the program there.

Linux 6.18 gives up reclaiming in a small cgroup although there is swap left: 16 looks at pages that are all in use, and it
ends a process. What it ends is of no matter to it: afterwards it looks again, and then finds pages. So there are always
some processes that it likes better than the program; they do nothing, and what little memory they have is counted
elsewhere.

Version 1 of cgroups can instead be told not to kill (memory.oom_control). But then a page that is missing inside a system
call makes that call fail with EFAULT at once: only faults of the program itself wait. A server that gets EFAULT from
read(2) drops its connection.
"""

import contextlib
import os
import select
import subprocess
import threading
import time

AT_ONCE = 8       # a kill takes the kernel a moment, and a new one some milliseconds
LOST_MAX = 2000   # who needs more has less memory than it cannot do without: it is killed, and that is the result
START_SECONDS = 2


class Decoys:
    """A `with`: there while it lasts. procs: the cgroup's cgroup.procs. `lost`: how many the kernel has killed."""

    def __init__(self, procs):
        self._procs, self.lost = procs, 0
        self._living = {}  # pidfd: process
        self._reading = self._writing = -1
        self._end_reading, self._end_writing = -1, -1
        self._thread = None

    def __enter__(self):
        self._reading, self._writing = os.pipe()  # they read until it closes: also when we are killed
        self._end_reading, self._end_writing = os.pipe()
        try:
            for _ in range(AT_ONCE):
                self._add()
        except BaseException:
            self._end_all()
            raise
        self._thread = threading.Thread(target=self._replace, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        os.write(self._end_writing, b".")
        self._thread.join()
        self._end_all()

    def _add(self):
        process = subprocess.Popen(["/bin/cat"], stdin=self._reading, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self._living[os.pidfd_open(process.pid)] = process
        with open(f"/proc/{process.pid}/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
        _wait_until_it_sleeps(process.pid)
        with open(self._procs, "w", encoding="ascii") as file:
            file.write(str(process.pid))

    def _replace(self):
        poll = select.poll()
        poll.register(self._end_reading, select.POLLIN)
        for descriptor in self._living:
            poll.register(descriptor, select.POLLIN)
        while True:
            ended = [descriptor for descriptor, _ in poll.poll()]
            if self._end_reading in ended:
                return
            for descriptor in ended:
                poll.unregister(descriptor)
                self._reap(descriptor)
                self.lost += 1
                if self.lost + len(self._living) >= LOST_MAX:
                    continue
                known = set(self._living)
                with contextlib.suppress(OSError):  # killed before it was there, or no process to be had
                    self._add()
                for new in set(self._living) - known:
                    poll.register(new, select.POLLIN)

    def _reap(self, descriptor):
        self._living.pop(descriptor).wait()
        os.close(descriptor)

    def _end_all(self):
        os.close(self._writing)
        for descriptor in list(self._living):
            self._reap(descriptor)
        for descriptor in (self._reading, self._end_reading, self._end_writing):
            os.close(descriptor)


def _wait_until_it_sleeps(pid):
    """In its read(2): what it has by then is counted where we are, not in the cgroup that it moves to."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            if file.read().rpartition(")")[2].split()[0] == "S":
                return
        time.sleep(0.0005)
    raise OSError(f"process {pid} did not get ready in {START_SECONDS} s")
