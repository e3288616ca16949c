"""Resident memory of a process tree, sampled from /proc."""

import os
import threading
import time

SAMPLE_SECONDS = 0.020


def _children(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found.extend(int(child) for child in file.read().split())
        except OSError:
            pass  # the thread or the process ended meanwhile
    return found


def tree(pid):
    """The process and all its descendants, parents first."""
    pids = [pid]
    for known in pids:  # grows while we walk it
        pids.extend(_children(known))
    return pids


def status(pid):
    """(name, RssAnon in bytes) or None when the process is gone or a zombie."""
    name, resident = "", None
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"Name:"):
                    name = line.split()[1].decode(errors="replace")
                elif line.startswith(b"RssAnon:"):
                    resident = int(line.split()[1]) * 1024
                    break
    except (OSError, IndexError):
        return None
    return None if resident is None else (name, resident)


class Sampler:
    """Samples RssAnon of every process of the tree below `pid` until stop(). A thread of its own."""

    def __init__(self, pid):
        self._pid = pid
        self._peaks = {}  # (pid, name): bytes. The name too, because exec keeps the pid.
        self.samples = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self):
        following = time.monotonic()
        while not self._end.is_set():
            self._sample()
            following = max(following + SAMPLE_SECONDS, time.monotonic())
            self._end.wait(following - time.monotonic())

    def _sample(self):
        for pid in tree(self._pid):
            seen = status(pid)
            if seen:
                key = (pid, seen[0])
                self._peaks[key] = max(self._peaks.get(key, 0), seen[1])
        self.samples += 1

    def stop(self):
        self._end.set()
        self._thread.join()

    def hog(self):
        """(name, peak RssAnon in bytes) of the process that took most; ("", 0) when it was too quick to be seen."""
        if not self._peaks:
            return "", 0
        (_, name), peak = max(self._peaks.items(), key=lambda item: item[1])
        return name, peak
