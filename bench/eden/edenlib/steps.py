"""What bench/eden/run measures: each step is one run of a tool of ours, which leaves one JSON file (or folder)."""

import dataclasses
import os
import subprocess

from harness import endings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
APPS = ("webservice", "kv", "dataframe", "psort")  # those of Eden's evaluation
OTHERS = ("hashmap", "kmeans", "snappy", "stream", "memcached")
# Of those that bench/trace/figure2 knows: not those that take minutes with 10 % local (xz, gcc).
PROGRAMS = ("sort", "awk-array", "perl-hash", "python-dict", "python-objects", "python-sort", "python-json", "numpy-sort",
            "numpy-gather", "sqlite", "zstd", "node-objects", "redis", "jq")


@dataclasses.dataclass(frozen=True)
class Step:
    """`words`: of Options, the command; "OUT" in it is the file (or the folder of `produces`) that it leaves. seconds: at 128M on a quiet machine with
    four CPUs, one round."""
    name: str
    words: object
    seconds: int
    produces: str = ""  # below the folder; NAME.json

    def path(self, folder):
        return os.path.join(folder, self.produces or self.name + ".json")


@dataclasses.dataclass(frozen=True)
class Options:
    build: str
    size_bytes: int
    repeat: int
    swap: bool
    busy_ok: bool


def _tool(path, options):
    return [os.path.join(ROOT, "bench", *path.split("/")), "--build", options.build,
            *(("--busy-ok",) if options.busy_ok else ())]


def _calls(options):
    return [os.path.join(options.build, "bench", "floor"), "--only", "scaling/", "--primitive-size", "32M", "--repeat",
            str(5 * options.repeat), "--json", "OUT"]


def _hints(options):
    return [*_tool("hints/run", options), "--quick", "--far", "mem:", "--far", "sim:latency=5us,inner=mem:", "--size",
            str(options.size_bytes), "--repeat", str(2 * options.repeat), "--out", "OUT", *(() if options.swap else ("--no-swap",))]


def _fibers(options):
    return [*_tool("fiber/run", options), "--size", str(options.size_bytes), "--reads", "60000", "--repeat",
            str(3 * options.repeat), "--out", "OUT"]


def _apps(names, rounds=1, more=()):
    def words(options):
        return [*_tool("apps/run", options), "--exactly", "--apps", names, "--size", str(options.size_bytes), "--repeat",
                str(rounds * options.repeat), "--native-times", "5", "--out", "OUT", *more, *(("--swap",) if options.swap else ())]
    return words


def _overheads(options):
    return [*_tool("apps/run", options), "--exactly", "--apps", ",".join(_there((*APPS, "pagerank", *OTHERS), options)),
            "--size", str(options.size_bytes), "--repeat", str(5 * options.repeat), "--kinds", "native,far,far-hinted",
            "--local", "100", "--out", "OUT"]


def _there(names, options):
    """Without Debian's memcached where bench/apps/memcached/build has not been run, or what was not built."""
    folder = os.path.join(options.build, "bench", "apps")
    found = [name for name in names if os.access(os.path.join(folder, f"app_{name}"), os.X_OK)]
    return [name for name in found if name != "memcached" or os.access(os.path.join(folder, "memcached-hinted"), os.X_OK)]


def _others(options):
    return _apps(",".join(_there(OTHERS, options)))(options)


def _places(options):
    names = (*PROGRAMS, *_there((*APPS, "pagerank", *OTHERS), options))
    return [os.path.join(ROOT, "bench", "trace", "figure2"), "--build", options.build, "--out", "OUT", "--quick", "--again",
            "--only", ",".join(names)]


def _memcached(apps):
    """The one with names of functions, where bench/apps/memcached/build has made it."""
    built = os.path.join(apps, "memcached-plain")
    return built if os.access(built, os.X_OK) else "/usr/bin/memcached"


def _stacks(program, *words):
    """Folded stacks of a program's faults with a quarter of its memory local, by trace and report."""
    def step(options):
        command = os.path.join(options.build, "bin", "hinterland")
        apps = os.path.join(options.build, "bench", "apps")
        inner = " ".join(f"'{word.format(apps=apps, memcached=_memcached(apps))}'" for word in (program, *words))
        script = (f"'{command}' trace --local {options.size_bytes // 4} --read-ahead 0 --takeover start --force "
                  f"-o \"$1.trace\" -- {inner} --size {options.size_bytes} >/dev/null && "
                  "report=$(ls -S \"$1\".trace* | head -1) && "  # of the process that faulted most
                  f"'{command}' report \"$report\" --folded \"$1.folded\" --force --json >\"$1\" && rm -f \"$1\".trace*")
        return ["/bin/sh", "-c", script, "sh", "OUT"]
    return step


STEPS = {step.name: step for step in (
    Step("calls", _calls, 20),
    Step("hints", _hints, 180),
    Step("fibers", _fibers, 60),
    Step("dataframe", _apps("dataframe"), 80),
    Step("webservice", _apps("webservice,webservice-flat,webservice-1600"), 200),
    Step("kv", _apps("kv,kv-blocking"), 100),
    Step("psort", _apps("psort"), 70),
    Step("pagerank", _apps("pagerank"), 80),
    Step("others", _others, 300),
    Step("overheads", _overheads, 240),
    # Its plot comes last; without it, --again does what is missing.
    Step("places", _places, 300, "places/figure2.png"),
    Step("server-stacks", _stacks("{apps}/app_memcached_plain", "--program", "{memcached}"), 15),
    Step("dataframe-stacks", _stacks("{apps}/app_dataframe_plain"), 15),
)}


def out_word(step, folder):
    """What "OUT" stands for while it runs, and the path that this becomes when it has ended."""
    if step.produces:
        path = os.path.join(folder, os.path.dirname(step.produces))
        return path, path
    return step.path(folder) + ".part", step.path(folder)


def perform(step, options, folder, log):
    """Runs it, what it says into a file; its exit status. 0 and 1 leave a result: 1 is one with failures in it."""
    part, path = out_word(step, folder)
    words = [part if word == "OUT" else word for word in step.words(options)]
    print("$ " + " ".join(words), file=log, flush=True)
    with subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:
        try:
            with endings.waiting:
                status = process.wait()
        except BaseException:
            process.terminate()  # it takes down what it has set up
            process.wait()
            raise
    if status in (0, 1) and part != path and os.path.exists(part):
        os.replace(part, path)
        if os.path.exists(part + ".folded"):
            os.replace(part + ".folded", path[:-len(".json")] + ".folded")
    return status
