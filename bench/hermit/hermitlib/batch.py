"""Programs that compute to their end, and single pages: seconds, CPU, and nanoseconds a miss."""

import json
import os
import tempfile

from benchlib import started
from harness.errors import Failure
from harness.process import Process

from . import counts, ways

BENCH = os.path.join(ways.ROOT, "build/bench")
SECONDS_MAX = 1800
# In the place of Spark's logistic regression, XGBoost and Cassandra.
APPS = ("kmeans", "dataframe", "kv")


class Batch:
    def __init__(self, size_bytes, far_url):
        self._size, self._far_url, self._footprints = size_bytes, far_url, {}

    def app(self, name, way, share):
        """What the application says, with that share of what it takes local."""
        return self._run([f"{BENCH}/apps/app_{name}_plain", "--size", str(self._size)], name, way, share, "footprint_bytes")

    def access(self, pattern, way, share):
        return self._run([f"{BENCH}/access", pattern, "--size", str(self._size), "--accesses", str(self._size // 4096)],
                         "access", way, share, None)

    def _run(self, argv, name, way, share, footprint):
        if way == ways.NATIVE or name not in self._footprints:
            said = self._once(argv, ways.NATIVE, self._size)
            self._footprints[name] = said.get(footprint, self._size)
            if way == ways.NATIVE:
                return said
        return self._once(argv, way, int(share * self._footprints[name]) // 4096 * 4096)

    def _once(self, argv, way, local_bytes):
        with tempfile.TemporaryDirectory(prefix="hinterland-hermit-") as folder:
            out, errors, report = (os.path.join(folder, name) for name in ("stdout", "stderr", "report.json"))
            with ways.words(way, local_bytes, self._size, self._far_url) as words:
                if way in ways.FAR:
                    words = [*words[:-1], "--report", report, "--"]
                before = counts.of_swap()
                with open(out, "wb") as stdout, open(errors, "wb") as stderr:
                    with Process([*words, *argv], stdout=stdout, stderr=stderr, cwd=folder, sample=False) as process:
                        code = process.wait(SECONDS_MAX)
                        usage = process.usage
                counted = counts.since(before, counts.of_swap())
            if code != 0:
                raise Failure(f"{way}: {os.path.basename(argv[0])} ended with status {code}: {started.last_words(errors)}")
            with open(out, encoding="utf-8") as file:
                said = json.load(file)
            if way in ways.FAR:
                with open(report, encoding="utf-8") as file:
                    totals = json.load(file)["totals"]
                counted = counts.of_far(totals)
                said["fault_p50_ns"] = totals["fault_latency"]["p50_ns"]
                said["fetch_p50_ns"] = totals["fetch_latency"]["p50_ns"]
            if way != ways.NATIVE:
                said.update(counted)
            said["cpu_seconds"] = usage.ru_utime + usage.ru_stime
            return said
