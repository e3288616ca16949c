"""What the steps of bench/eden/run have left in a folder, by what it is."""

import json
import os

MOVED = ("faults_read", "faults_write", "faults_write_protect", "faults_refault", "hint_pages_in", "hint_refaults",
         "hint_protection_cleared")


def read(folder, name):
    """A document; None where the step was not run."""
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Apps:
    """The results of several runs of bench/apps/run: each run by its name, the first document that has it."""

    def __init__(self, documents):
        self._runs, self.targets = {}, []
        for document in filter(None, documents):
            self.targets += document["targets"]
            for run in document["runs"]:
                self._runs.setdefault(run["name"], run)

    def names(self):
        return list(self._runs)

    def hinted_lines(self, name):
        return self._runs[name]["hinted_lines"]

    def application(self, name):
        return self._runs[name]["app"]

    def _ways(self, name, kind, percent=None):
        run = self._runs.get(name)
        return [way for way in (run["ways"] if run else ()) if way["kind"] == kind and way["samples"]
                and (kind.startswith("native") or way.get("local_percent") == percent)]

    def way(self, name, kind, percent=None):
        """Of several the fastest: the better page-cluster of swap. None where there is none."""
        return min(self._ways(name, kind, percent), key=lambda way: way["seconds"]["median"], default=None)

    def seconds(self, name, kind, percent=None):
        """{"median", "min", "max"}, or None."""
        way = self.way(name, kind, percent)
        return way["seconds"] if way else None

    def ratio(self, above, below):
        """Of medians; each is (name, kind, percent). None where one is missing."""
        parts = [self.seconds(*each) for each in (above, below)]
        return parts[0]["median"] / parts[1]["median"] if all(parts) else None

    def percents(self, name, kind):
        run = self._runs.get(name)
        return sorted({way["local_percent"] for way in (run["ways"] if run else ())
                       if way["kind"] == kind and way["samples"] and "local_percent" in way})

    def pages_per_second(self, name, kind, percent):
        """Pages that came back while it was measured, by faults and by hints; under Linux swap major faults."""
        way = self.way(name, kind, percent)
        if not way:
            return None
        rates = [(sample["major_faults"] if kind == "swap" else sum(sample["counters"].get(each, 0) for each in MOVED))
                 / sample["seconds"] for sample in way["samples"]]
        return sorted(rates)[len(rates) // 2]

    def coverage(self, name):
        """The least of its places; None where hints were not measured under pressure."""
        run = self._runs.get(name)
        found = [way["coverage"] for way in (run["ways"] if run else ())
                 if way["kind"] == "far-hinted" and way.get("coverage") is not None]
        return min(found, default=None)


class Hints:
    """The result of bench/hints/run."""

    def __init__(self, document):
        self._series = document["summaries"]
        self.ratios = document["ratios"]

    def ns(self, key):
        seen = self._series.get(key)
        return seen["median"] if seen else None

    def swap_ns(self, key):
        """With the better page-cluster."""
        return min(filter(None, (self.ns(f"{key} swap {cluster}") for cluster in (0, 3))), default=None)
