"""The document that a run writes and compare reads, and what follows from its figures."""

import json

from . import figures

SCHEMA_VERSION = 1


class Damaged(Exception):
    """A file that is not a result of ours; the text says why."""


class Series:
    """The repetitions of one benchmark in one way."""

    def __init__(self, way, unit="ns/access"):
        self.way, self.unit, self.samples, self.skipped, self.failure = way, unit, [], None, None

    def document(self):
        values = [sample["value"] for sample in self.samples]
        result = {"way": self.way, "unit": self.unit, "values": values, "skipped": self.skipped,
                  "failure": self.failure}
        if values:
            result.update(figures.summary(values))
        return {**result, "samples": self.samples}


class FigureSeries:
    """The figures of what gives several by name (figure_sets.py) over several runs of it."""

    def __init__(self):
        self._figures = {}
        self.skipped = self.failure = None

    def add(self, found):
        for name, figure in found.items():
            kept = self._figures.setdefault(name, {"name": name, "unit": figure["unit"], "values": [],
                                                   "skipped": figure.get("skipped")})
            kept["values"].extend(figure.get("values", []))

    def documents(self):
        return [{**figure, **(figures.summary(figure["values"]) if figure["values"] else {})}
                for figure in self._figures.values()]


def figure_of(document, name):
    """A figure of the floor or of what is idle, that has values, or None."""
    return next((figure for figure in [*document["floor"], *document.get("idle", [])]
                 if figure["name"] == name and figure["values"]), None)


def floor_per_access(document, benchmark):
    """ns an access that the floor would take for a benchmark of a document, or None."""
    known = {figure["name"]: figure for figure in document["floor"]}
    medians = [known[name]["median"] for name in benchmark["floor"] if known.get(name, {}).get("values")]
    return min(medians) * benchmark["miss_share"] if medians else None


def series_of(benchmark, way):
    return next((series for series in benchmark["series"] if series["way"] == way and series["values"]), None)


def best_swap(benchmark):
    """The series of the better vm.page-cluster, or None."""
    found = [series for series in benchmark["series"] if series["way"].startswith("swap") and series["values"]]
    return min(found, key=lambda series: series["median"], default=None)


def write(path, document):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def read(path):
    """A document. Damaged when it is none, or one of another version."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise Damaged(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Damaged(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("program") != "bench/run":
        raise Damaged(f"{path} was not written by bench/run (results.json in its --out folder was)")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise Damaged(f"{path} has version {document.get('schema_version')}; this program reads {SCHEMA_VERSION}")
    return document
