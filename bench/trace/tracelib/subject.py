"""One application on its way from no hints to those that `advise` wrote, and the runs that show what they bring."""

import dataclasses
import glob
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess

from benchlib import app_runs, runner, started, ways
from harness.errors import Failure
from harness.process import environment

from . import rebuilt

APPS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "apps")
# Far, without hints; with those of `advise`; with those of bench/apps.
KINDS = ("plain", "advised", "by hand")
ADVISE_SECONDS_MAX = 600


@dataclasses.dataclass
class Settings:
    launcher: object
    build: str
    folder: str
    size_bytes: int
    traced_bytes: int
    threads: int
    local_percent: int
    url: str
    memcached_source: str = None


def memcached_build():
    """The module bench/apps/memcached/build, which has no ending."""
    path = os.path.join(APPS, "memcached", "build")
    loader = importlib.machinery.SourceFileLoader("memcached_build", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("memcached_build", loader))
    loader.exec_module(module)
    return module


class Memcached:
    """As rebuilt.Copy, of Debian's source package: nothing of it knows of hints until the patch is applied."""

    def __init__(self, settings, folder):
        self._module = memcached_build()
        self.source = os.path.join(folder, "source")
        try:
            if settings.memcached_source:
                shutil.copytree(settings.memcached_source, self.source)
            else:
                self._module.check_tools()
                shutil.move(self._module.fetch(os.path.join(folder, "fetched")), self.source)
        except self._module.Failed as failure:
            raise Failure(str(failure)) from None

    def build(self, output):
        try:
            shutil.copy2(self._module.compile_it(self.source, output + ".objects", ""), output)
        except self._module.Failed as failure:
            raise Failure(str(failure)) from None
        return output

    apply = rebuilt.Copy.apply


class Subject:
    """A run of bench/apps. `failure` ends it; `samples` by kind."""

    def __init__(self, run, settings):
        self.run, self.failure = run, ""
        self.samples = {kind: [] for kind in KINDS}
        self.advice, self.patch = None, ""  # what advise said
        self._settings = settings
        self._folder = os.path.join(settings.folder, run.name)
        self._apps = os.path.join(settings.build, "bench", "apps")
        self._programs, self._answer, self._peak = {}, None, 0

    # --- getting ready
    def get_ready(self):
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)
        copy = (Memcached(self._settings, self._folder) if self.run.app == "memcached" else
                rebuilt.Copy(self._settings.build, APPS, self.run.app, self._folder))
        self._programs["plain"] = copy.build(os.path.join(self._folder, "plain"))
        self._programs["by hand"] = None
        traced = self._natively(self._settings.traced_bytes)
        trace = self._trace(traced)
        self._advise(trace, copy.source)
        copy.apply(self._path("hints.patch"))
        self._programs["advised"] = copy.build(os.path.join(self._folder, "advised"))
        own = self._natively(self._settings.size_bytes)
        self._answer, self._peak = {name: own[0][name] for name in app_runs.SAME}, own[1]

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _words(self, kind, size_bytes):
        """The program with its options."""
        if self.run.app == "memcached":
            hand = os.path.join(self._apps, "memcached-hinted")
            words = [os.path.join(self._apps, "app_memcached_plain"), "--program", self._programs[kind] or hand]
        else:
            words = [self._programs[kind] or os.path.join(self._apps, f"app_{self.run.app}")]
        return [*words, "--size", str(size_bytes), "--threads", str(self._settings.threads), *self.run.options]

    def _natively(self, size_bytes):
        """(what it printed, the most memory that it took)."""
        try:
            return app_runs.natively(self._words("plain", size_bytes), self._folder)
        except Failure as error:
            raise Failure(f"natively: {error}") from None

    def _local(self, peak):
        return max(app_runs.SMALLEST_LOCAL, peak * self._settings.local_percent // 100 // 4096 * 4096)

    def _trace(self, traced):
        """The trace of the process with most faults."""
        size_bytes, local = self._settings.traced_bytes, self._local(traced[1])
        answer = started.run_json(
            [self._settings.launcher.path, "trace", "--quiet", "--local", str(local), "--far", self._settings.url,
             "--rate", "20000", "--read-ahead", "0", "--takeover", "start", "-o", self._path("t.trace"), "--",
             *self._words("plain", size_bytes)], self._folder)
        for name in app_runs.SAME:
            if answer[name] != traced[0][name]:
                raise Failure(f"traced: {name} is {answer[name]}, and natively {traced[0][name]}: the results differ")
        traces = glob.glob(self._path("t.trace*"))
        if not traces:
            raise Failure(f"no fault was traced with {local >> 20} MiB local: give a larger --traced-size")
        return max(traces, key=os.path.getsize)

    def _advise(self, trace, source):
        done = self._ask("advise", trace, "--source", source, "--patch", self._path("hints.patch"), "--json")
        self.advice = json.loads(done.stdout)
        with open(self._path("advice.json"), "w", encoding="utf-8") as file:
            file.write(done.stdout)
        with open(self._path("advice.txt"), "w", encoding="utf-8") as file:
            file.write(self._ask("advise", trace, "--source", source).stdout + "\n" + done.stderr)
        with open(self._path("hints.patch"), encoding="utf-8") as file:
            self.patch = file.read()

    def _ask(self, *words):
        try:
            done = subprocess.run([self._settings.launcher.path, *words], capture_output=True, text=True, check=False,
                                  timeout=ADVISE_SECONDS_MAX, env=environment(), cwd=self._folder)
        except subprocess.TimeoutExpired:
            raise Failure(f"advise: still running after {ADVISE_SECONDS_MAX} s") from None
        if done.returncode != 0:
            raise Failure(f"advise: exit status {done.returncode}: {done.stderr.strip()[-600:]}")
        return done

    # --- measuring
    def sample(self, kind):
        """One run of it far. Failure when its result is not that of the native one."""
        look = f"'{self._settings.launcher.path}' stat --json ${{APP_PID:-$PPID}}"
        with ways.Far(self._settings.url).words(self, 0, runner.Tools(self._settings.launcher), self._folder, {}) as words:
            document = started.run_json([*words, *self._words(kind, self._settings.size_bytes), "--around", look],
                                        self._folder)
        for name, wanted in self._answer.items():
            if document[name] != wanted:
                raise Failure(f"{kind}: {name} is {document[name]}, and natively {wanted}: the results differ")
        before, after = (each["programs"][0]["counters"] for each in document["around"])
        measured = {name: after[name] - before[name] for name in after}
        self.samples[kind].append({"seconds": document["seconds"], "counters": measured, "counters_until_end": after,
                                   "coverage": app_runs.coverage(measured),
                                   "coverage_with_setting_up": app_runs.coverage(after)})

    # What ways.Far asks of a benchmark.
    run_options, must_page = (), True

    def local_bytes(self, _=None):
        return self._local(self._peak)

    def far_bytes(self, _=None):
        return 2 * self._peak
