"""The long tests, one entry each: what `make soak` runs, in this order. Add a line for a new one."""

import dataclasses
import os
from collections.abc import Callable

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


@dataclasses.dataclass(frozen=True)
class Context:
    """What a job's command is made from."""
    build: str  # absolute path of the build directory
    minutes: float

    @property
    def seconds(self):
        return round(self.minutes * 60)

    @property
    def hinterland(self):
        return os.path.join(self.build, "bin", "hinterland")


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    minutes: float  # how long it runs; or, when it cannot be told, how long it takes about
    help: str
    command: Callable[[Context], list]  # words for argv; exit status 0: well, 77: not possible here
    timed: bool = True  # runs as long as it is told


def _script(*parts):
    return os.path.join(ROOT, "test", *parts)


def churn(device, minutes, fault="message"):
    """FAULT: how faults reach us, as in `hinterland run --fault`."""
    def command(context):
        return [_script("programs", "under.py"), "--hinterland", context.hinterland, "--far", device, "--local", "16M",
                "--space", "8G", "--timeout", context.seconds + 300, f"--option=--fault={fault}", "--",
                os.path.join(context.build, "test", "churn"), "--total", "1G", "--threads", 8, "--seconds",
                context.seconds]
    name, how = device.rstrip(":"), ""
    if fault != "message":
        name, how = f"{name}-{fault}", f", faults by {fault}"
    return Job(f"churn-{name}", minutes, f"every byte shadowed: 1 GiB through 16 MiB over {device}{how}", command)


def foreign(device, minutes):
    def command(context):
        return [_script("foreign", "run.py"), "--hinterland", context.hinterland, "--far", device]
    return Job("foreign-" + device.rstrip(":"), minutes, f"others' programs and test suites over {device}", command,
               timed=False)


def held(device, minutes, sequences=200_000, fault="message"):
    def command(context):
        return [_script("preload", "differential", "run.py"), "--hinterland", context.hinterland, "--program",
                os.path.join(context.build, "test", "siege", "siege_held"), "--far", device, "--sequences", sequences,
                f"--option=--fault={fault}"]
    name, how = "held-" + device.rstrip(":"), ""
    if fault != "message":
        name, how = f"{name}-{fault}", f", faults by {fault}"
    return Job(name, minutes, f"{sequences:,} sequences of system calls and references, over {device}{how}", command,
               timed=False)


def stack_sizes(minutes):
    return Job("stack-sizes", minutes, "every call on stacks of every size from 4 KiB to 1 MiB, in both fault modes",
               lambda context: [_script("siege", "stack", "every_size.py"), "--build", context.build], timed=False)


def limits(minutes):
    def command(context):
        return ["/usr/bin/env", f"PYTHONPATH={_script('cli')}", f"HINTERLAND_TEST_COMMAND={context.hinterland}",
                f"HINTERLAND_TEST_SOURCE={ROOT}", "HINTERLAND_TEST_SWEEP_STEP=1",
                "HINTERLAND_TEST_SWEEP=" + os.path.join(context.build, "test", "siege", "siege_sweep"),
                "/usr/bin/python3", "-B", _script("siege", "limits", "test_sweep.py")]
    return Job("limits", minutes, "every limit of setrlimit from nothing up, in both fault modes", command, timed=False)


JOBS = (
    churn("mem:", 30),
    churn("tcp:", 30),
    churn("zmem:", 10),
    churn("file:", 10),
    churn("mem:", 10, fault="signal"),
    churn("zmem:", 10, fault="signal"),
    foreign("mem:", 30),
    foreign("zmem:", 30),
    held("mem:", 15, sequences=1_000_000),
    held("zmem:", 5),
    held("file:", 10),
    held("tcp:", 10),
    held("mem:", 10, fault="signal"),
    held("zmem:", 5, fault="signal"),
    stack_sizes(40),
    limits(5),
)
