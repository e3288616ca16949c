"""Redis under open load, with a part of its memory local: latencies, and what the system did meanwhile."""

import contextlib
import os
import tempfile
import time

from benchlib import openload, started
from harness.errors import Failure
from harness.process import Process
from harness.program import need

from . import counts, ways

OPENLOAD = os.path.join(ways.ROOT, "build/bench/openload")
VALUE_BYTES = 1024
DATA_SHARE = 0.5  # of the size are values. What a server takes besides must fit into the smallest cgroup
OVERLOAD_PER_SECOND = 1_000_000  # more than a server of one thread answers
SKEW = 0.99
SET_SHARE = 0.002  # of Facebook's USR, as in the paper
START_SECONDS, STOP_SECONDS = 60, 120


class Service:
    """`seconds`: of load that is counted, in each measurement."""

    def __init__(self, size_bytes, seconds, far_url):
        self._keys = int(size_bytes * DATA_SHARE) // VALUE_BYTES
        self._seconds, self._far_url = seconds, far_url
        self.peak_bytes, self.capacity_per_second = 0, 0.0

    def prepare(self):
        """Finds what the server takes, and how much it answers with all of it local."""
        with self._server(ways.NATIVE, 0) as (server, drive):
            self.peak_bytes = counts.anonymous_bytes(server.pid)  # before it has a backlog of requests
            done = drive("--filled", "--rate", str(OVERLOAD_PER_SECOND), "--seconds", str(min(self._seconds, 2)))
            self.capacity_per_second = done["rate_answered_per_second"]

    def measure(self, way, share, load):
        """`load`: of capacity_per_second."""
        rate = load * self.capacity_per_second
        with self._server(way, int(share * self.peak_bytes) // 4096 * 4096) as (server, drive):
            folder = drive.folder
            before, cpu, began = counts.now(way, folder), counts.cpu_seconds(server.pid), time.monotonic()
            done = drive("--filled", "--rate", str(rate), "--seconds", str(self._seconds))
            passed = time.monotonic() - began
            cpu = counts.cpu_seconds(server.pid) - cpu
            counted = counts.since(before, counts.now(way, folder))
        get = done["get"]
        return {"p50_us": get["p50_ns"] / 1e3, "p99_us": get["p99_ns"] / 1e3, "p999_us": get["p999_ns"] / 1e3,
                "answered_share": done["rate_answered_per_second"] / rate, "cpus": cpu / passed, "cpu_seconds": cpu,
                "in_mib_s": counted.get("bytes_in", 0) / passed / (1 << 20),
                "out_mib_s": counted.get("bytes_out", 0) / passed / (1 << 20),
                "direct_share": counts.direct_share(counted), "faults": counted.get("faults", 0)}

    @contextlib.contextmanager
    def _server(self, way, local_bytes):
        """A server that has all keys, and a call that loads it."""
        with tempfile.TemporaryDirectory(prefix="hinterland-hermit-") as folder:
            path, errors = os.path.join(folder, "redis.socket"), os.path.join(folder, "redis.stderr")
            with ways.words(way, local_bytes, self.peak_bytes, self._far_url) as words:
                argv = ["/usr/bin/env", f"HINTERLAND_STAT_DIR={folder}", *words, need("redis-server"), "--port", "0",
                        "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", folder, "--daemonize", "no",
                        "--logfile", os.path.join(folder, "redis.log")]
                with open(errors, "wb") as stderr, Process(argv, stderr=stderr, cwd=folder) as server:
                    openload.wait_until_it_listens(server, path, errors)
                    drive = _Drive(folder, path, self._keys)
                    drive("--seconds", "0.01", "--warm-up", "0", "--rate", "100")
                    yield server, drive
                    openload.shut_down(path)
                    if (code := server.wait(STOP_SECONDS)) != 0:
                        raise Failure(f"{way}: redis-server ended with status {code}: {started.last_words(errors)}")


class _Drive:
    def __init__(self, folder, path, keys):
        self.folder, self._words = folder, [OPENLOAD, "--socket", path, "--keys", str(keys), "--value", str(VALUE_BYTES),
                                            "--sets", str(SET_SHARE), "--skew", str(SKEW)]

    def __call__(self, *options):
        return started.run_json([*self._words, *options], self.folder)
