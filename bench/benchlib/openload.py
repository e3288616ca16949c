"""The time that Redis takes for a GET while requests come at a fixed rate (build/bench/openload)."""

import os
import socket
import time

from harness import endings
from harness.errors import Failure
from harness.process import Process
from harness.program import need

from . import started

LOCAL_SHARE = 0.7     # of the server's peak
DATA_SHARE = 0.25     # of the run's size are values
VALUE_BYTES = 1024
START_SECONDS, STOP_SECONDS = 60, 60


class OpenLoad:
    """As every benchmark that is run in several ways (see plan.py). One instance a run: prepare() finds the peak."""
    name, group, unit = "redis-open-load", "open-load", "ns"
    about = f"Redis GETs at a fixed rate, one request of ten a SET; {LOCAL_SHARE:.0%} of its peak local"
    measured = "99th percentile of GET"
    floor, miss_share, devices, swap, run_options = (), 1.0, ("mem:", "zmem:"), "zram", ()
    ablated, by_signal, tied = False, False, False
    must_page = False  # 70 % of a small server may be all it keeps

    def __init__(self):
        self._peak_bytes = 0

    def size_bytes(self, _):
        return self._peak_bytes

    def local_bytes(self, _):
        return int(self._peak_bytes * LOCAL_SHARE) // 4096 * 4096

    def cgroup_bytes(self, size_bytes):
        return self.local_bytes(size_bytes)

    def far_bytes(self, _):
        return 2 * self._peak_bytes

    def prepare(self, stack, tools, size_bytes):
        """Finds the server's peak, natively. Skip when there is no Redis."""
        need("redis-server")
        with tools.folder() as folder:
            self._peak_bytes = self._drive([], size_bytes, tools, folder)[1]

    def sample(self, words, size_bytes, tools, folder):
        said, peak = self._drive(words, size_bytes, tools, folder)
        return {"value": said["get"]["p99_ns"], "checksum": said["checksum"], "resident_anonymous_bytes": peak,
                **{key: said[key] for key in ("get", "set", "rate_asked_per_second", "rate_answered_per_second")}}

    def _drive(self, words, size_bytes, tools, folder):
        """(what openload printed, the server's peak)."""
        path, errors = os.path.join(folder, "redis.socket"), os.path.join(folder, "redis.stderr")
        argv = [*words, need("redis-server"), "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no",
                "--dir", folder, "--daemonize", "no", "--logfile", os.path.join(folder, "redis.log")]
        keys = max(1, int(size_bytes * DATA_SHARE) // VALUE_BYTES)
        with open(errors, "wb") as stderr, Process(argv, stderr=stderr, cwd=folder) as server:
            wait_until_it_listens(server, path, errors)
            said = started.run_json([tools.openload, "--socket", path, "--keys", str(keys), "--value",
                                     str(VALUE_BYTES), *tools.openload_options], folder)
            shut_down(path)
            code = server.wait(STOP_SECONDS)
            if code != 0:
                raise Failure(f"redis-server: exit status {code} at its end: {started.last_words(errors)}")
            return said, server.sampler.hog()[1]


def wait_until_it_listens(server, path, errors):
    """Failure when it does not, or is gone."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if not server.running():
            raise Failure(f"redis-server ended at once, exit status {server.wait(0)}: {started.last_words(errors)}")
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(path)
                return
        except OSError:
            with endings.waiting:
                time.sleep(0.02)
    raise Failure(f"redis-server does not listen after {START_SECONDS} s")


def shut_down(path):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        link.sendall(b"SHUTDOWN NOSAVE\r\n")
