"""The applications of bench/apps: which runs of them there are, and each natively, far and under Linux swap, with hints
and without.

An application's folder may have a runs.json, a list of runs:

    [{"name": "kv-threads", "options": ["--threads", "2"], "local": [10, 40], "about": "what is special"}]

`local` are percentages beside those that every run has; `run_options` are words for `hinterland run`; `needs` are programs
beside those of the application, without which it is left out where it is not asked for. Without the file there is one run, named as the folder."""

import dataclasses
import json
import os

from harness.errors import Failure
from harness.process import Process

from . import started, ways
from .figures import summary

APPS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "apps")
MIB = 1 << 20
SMALLEST_LOCAL = 4 * MIB  # that hinterland run takes
# At 100 % all of it stays: the allocator of far memory spreads the same data a little differently than libc's.
ALL_LOCAL_SLACK = 1.125
SAME = ("operations", "check", "footprint_bytes")
KINDS = {"native": "native", "native-hinted": "native, hinted", "far": "far", "far-hinted": "far, hinted",
         "swap": "Linux"}


def natively(argv, folder):
    """(what an application printed, the most memory that it took). Failure when it does not end well."""
    out, errors = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    with open(out, "wb") as stdout, open(errors, "wb") as stderr:
        with Process(argv, stdout=stdout, stderr=stderr, cwd=folder) as process:
            code = process.wait(started.SECONDS_MAX)
            peak = process.sampler.hog()[1]
    if code != 0:
        raise Failure(f"exit status {code}: {started.last_words(errors)}")
    with open(out, encoding="utf-8") as file:
        document = json.load(file)
    return document, max(peak, document["footprint_bytes"])


class Unknown(Exception):
    """A name that is not there, or a runs.json that is not right."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One way to use an application."""
    name: str
    app: str
    options: tuple = ()
    local: tuple = ()
    about: str = ""
    needs: tuple = ()
    run_options: tuple = ()


def _runs_of(app):
    path = os.path.join(APPS, app, "runs.json")
    if not os.path.exists(path):
        return [Run(app, app)]
    try:
        with open(path, encoding="utf-8") as file:
            return [Run(run["name"], app, tuple(run.get("options", ())), tuple(run.get("local", ())),
                        run.get("about", ""), tuple(run.get("needs", ())), tuple(run.get("run_options", ())))
                    for run in json.load(file)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unknown(f"{path}: {error!r}") from None


def all_runs():
    names = sorted(name for name in os.listdir(APPS) if os.path.exists(os.path.join(APPS, name, "CMakeLists.txt")))
    return [run for name in names for run in _runs_of(name)]


def choose(names, apps, exactly=False):
    """The runs of these names (a run's, or, unless exactly, an application's for all of its runs); none: all that can be
    had. apps: the folder of the built programs."""
    known = all_runs()
    for name in names:
        if not any(name in ((run.name,) if exactly else (run.name, run.app)) for run in known):
            raise Unknown(f"there is no application or run '{name}'; there are: {', '.join(run.name for run in known)}")
    if names:
        return [run for run in known if run.name in names or (run.app in names and not exactly)]
    return [run for run in known if not missing(run, apps)]


def missing(run, apps):
    """Programs that it needs and that are not there."""
    return [name for name in run.needs if not os.access(os.path.join(apps, name), os.X_OK)]


@dataclasses.dataclass
class Place:
    """A run with so much local memory, as the ways of ways.py know it."""
    run: Run
    percent: int
    peak_bytes: int

    @property
    def run_options(self):
        return self.run.run_options

    @property
    def must_page(self):
        return self.percent < 100 and self.peak_bytes > 2 * SMALLEST_LOCAL

    def local_bytes(self, _=None):
        share = self.percent / 100 if self.percent < 100 else ALL_LOCAL_SLACK
        return max(SMALLEST_LOCAL, int(self.peak_bytes * share) // 4096 * 4096)

    cgroup_bytes = local_bytes

    def far_bytes(self, _=None):
        return 2 * self.peak_bytes


@dataclasses.dataclass
class Series:
    """One run in one way: what it was, and the samples of all rounds."""
    run: Run
    kind: str        # of KINDS
    way: object      # of ways.py
    percent: int = 100
    samples: list = dataclasses.field(default_factory=list)
    failure: str = ""

    @property
    def key(self):
        more = "" if self.kind.startswith("native") else f" {self.way.name}, {self.percent} % local"
        return f"{self.run.name}, {KINDS[self.kind]}{more}"

    @property
    def hinted(self):
        return self.kind.endswith("hinted")

    def seconds(self):
        return [sample["seconds"] for sample in self.samples]

    def median(self, name="seconds"):
        """Of a figure of the samples; None where there is none."""
        values = [sample[name] for sample in self.samples if sample.get(name) is not None]
        return summary(values)["median"] if values else None


def series_of(run, percents, devices, swap):
    """All ways of a run: the native ones first."""
    found = [Series(run, kind, ways.Native()) for kind in ("native", "native-hinted")]
    for percent in percents:
        found += [Series(run, kind, ways.Far(url), percent) for url in devices for kind in ("far", "far-hinted")]
        found += [Series(run, "swap", way, percent) for way in ways.SWAPS if swap and way.swap == "zram"]
    return found


def _faults(counters):
    """Those that a hint can spare: on pages that were touched before."""
    return sum(counters[name] for name in ("faults_read", "faults_write", "faults_write_protect", "faults_refault"))


def _hinted_pages(counters):
    return sum(counters[name] for name in ("hint_pages_in", "hint_refaults", "hint_protection_cleared"))


def coverage(counters):
    """Share of the faults that hints spared; None where there was next to nothing to spare."""
    all_of_them = _hinted_pages(counters) + _faults(counters)
    return _hinted_pages(counters) / all_of_them if all_of_them >= 100 else None


def _counters_between(document):
    """What the measured part added to each counter; {} where nobody looked."""
    looks = document.get("around", [])
    if len(looks) != 2:
        return {}
    before, after = (look["programs"][0]["counters"] for look in looks)
    return {name: after[name] - before[name] for name in after}


class Bench:
    """Runs them. `tools` as ways.py wants it, with `apps`, the folder of the built programs, and `options` for all."""

    def __init__(self, tools, apps, options):
        self._tools, self._apps, self._options = tools, apps, tuple(options)
        self._peaks, self._answers = {}, {}

    def argv(self, run, hinted, more=()):
        program = os.path.join(self._apps, f"app_{run.app}{'' if hinted else '_plain'}")
        if not os.access(program, os.X_OK):
            raise FileNotFoundError(f"no program at {program}: build it first (make; its CMakeLists.txt says which "
                                    "packages it needs)")
        if missing(run, self._apps):
            raise FileNotFoundError(f"{run.name} needs {', '.join(missing(run, self._apps))}: bench/apps/{run.app}/build "
                                    "makes them")
        return [program, *self._options, *run.options, *more]

    def prepare(self, run):
        """A native run, which tells how much memory it takes and what its result is."""
        with self._tools.folder() as folder:
            document, peak = natively(self.argv(run, False), folder)
        self._peaks[run.name] = peak
        self._answers[run.name] = {name: document[name] for name in SAME}
        return document

    def peak_bytes(self, run):
        return self._peaks[run.name]

    def place(self, series):
        return Place(series.run, series.percent, self._peaks[series.run.name])

    def sample(self, series):
        """One run of it. Failure when its result is not that of the native one."""
        more = ()
        if series.kind.startswith("far"):
            more = ("--around", f"'{self._tools.launcher.path}' stat --json ${{APP_PID:-$PPID}}")
        figures = {}
        with self._tools.folder() as folder:
            with series.way.words(self.place(series), 0, self._tools, folder, figures) as words:
                document = started.run_json([*words, *self.argv(series.run, series.hinted, more)], folder)
        for name, wanted in self._answers[series.run.name].items():
            if document[name] != wanted:
                raise Failure(f"{name} is {document[name]}, and natively {wanted}: the results differ")
        counters = _counters_between(document)
        document.pop("around", None)
        return {**document, "counters": counters, "whole_run": figures,
                "coverage": coverage(counters) if counters else None}
