"""What is measured once a round and gives several figures by name, not one in several ways: the floor, and what idle
costs."""

import json
import os
import select
import subprocess
import time

from harness import endings, memory, report
from harness.errors import Failure
from harness.launcher import Server
from harness.process import Process

from . import started

FLOOR, IDLE = "floor", "idle"
SETTLE_SECONDS = 2
FILL_SECONDS = 300


class Floor:
    """build/bench/floor: the kernel's primitives, and loops that do nothing but page."""
    name = group = FLOOR
    about = "the kernel's primitives alone, loops that do nothing but page, pages over loopback"

    def figures(self, tools, folder, _size_bytes):
        """{name: {"unit", "values" or "skipped"}}."""
        path = os.path.join(folder, "floor.json")
        started.run([tools.floor, "--json", path, *tools.floor_options], folder)
        with open(path, encoding="utf-8") as file:
            return {figure["name"]: figure for figure in json.load(file)["figures"]}


class Idle:
    """CPU time and memory of a program that does nothing with most of its memory far, and of its server."""
    name = group = IDLE
    about = "a program with three quarters far that does nothing, and its server: CPU time, the server's memory"

    def figures(self, tools, folder, size_bytes):
        """{name: {"unit", "values"}}; Failure also when a page is not what it was at the end."""
        with open(os.path.join(folder, "server.log"), "wb") as log, \
                Server(tools.launcher, 2 * size_bytes, log) as server:
            figures = self._watch(tools, folder, size_bytes, server)
            server.stop()
        return figures

    def _watch(self, tools, folder, size_bytes, server):
        path, errors = os.path.join(folder, "report.json"), os.path.join(folder, "stderr")
        words = tools.launcher.run(local_bytes=size_bytes // 4, url=server.url, report=path,
                                   options=(*tools.run_options, "--stat-dir", folder))
        reading, writing = os.pipe()
        try:
            with open(errors, "wb") as stderr, \
                    Process([*words, tools.access, "hold", "--size", str(size_bytes)], stdin=reading,
                            stdout=subprocess.PIPE, stderr=stderr, cwd=folder, sample=False) as program:
                os.close(reading)
                reading = -1
                _wait_until_filled(program, errors)
                figures = _look(tools, folder, program.pid, server.pid)
                os.close(writing)  # it looks at every page, and ends
                writing = -1
                code = program.wait(started.SECONDS_MAX)
        finally:
            for descriptor in (reading, writing):
                if descriptor >= 0:
                    os.close(descriptor)
        if code != 0:
            raise Failure(f"exit status {code}: {started.last_words(errors)}")
        lost = report.read(path).get("pages_lost", 0)
        if lost:
            raise Failure(f"the report says pages_lost: {lost}")
        return figures


def _wait_until_filled(program, errors):
    with endings.waiting:
        ready, _, _ = select.select([program.stdout], [], [], FILL_SECONDS)
    if not ready or not program.stdout.readline():
        raise Failure(f"the program did not fill its memory: {started.last_words(errors)}")


def _wait_until_far(tools, folder):
    """On a busy machine paging may begin after the memory was filled, and its figures are some time old."""
    until = time.monotonic() + FILL_SECONDS
    while _stored_bytes(tools, folder) == 0:
        if time.monotonic() > until:
            raise Failure("hinterland stat says that nothing is stored far: the figures would mean nothing")
        with endings.waiting:
            time.sleep(0.1)


def _look(tools, folder, pid, server_pid):
    _wait_until_far(tools, folder)
    with endings.waiting:
        time.sleep(SETTLE_SECONDS)  # what is under way comes to rest
    before = time.monotonic(), _cpu_ns(memory.tree(pid)), _cpu_ns([server_pid])
    with endings.waiting:
        time.sleep(tools.idle_seconds)
    after = time.monotonic(), _cpu_ns(memory.tree(pid)), _cpu_ns([server_pid])
    stored = _stored_bytes(tools, folder)
    spent_ns = (after[0] - before[0]) * 1e9
    shares = [max(0, after[side] - before[side]) / spent_ns * 100 for side in (1, 2)]
    above = (_memory_bytes(server_pid) - stored) / stored * 100
    return {"idle/program-cpu": {"unit": "% of a core", "values": [shares[0]]},
            "idle/server-cpu": {"unit": "% of a core", "values": [shares[1]]},
            "idle/server-memory-above-stored": {"unit": "%", "values": [above]}}


def _cpu_ns(pids):
    """CPU time of all their threads that live."""
    spent = 0
    for pid in pids:
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                    spent += int(file.read().split()[0])
            except FileNotFoundError:
                if not os.path.exists("/proc/self/schedstat"):
                    raise Failure("/proc/PID/schedstat is missing: the kernel has no CONFIG_SCHED_INFO") from None
    return spent


def _memory_bytes(pid):
    """Its data in RAM: anonymous, shared and huge pages. Not its program and libraries, which are files."""
    names = ("RssAnon:", "RssShmem:", "HugetlbPages:")
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(names))


def _stored_bytes(tools, folder):
    """What all programs of this folder of figures have stored on their devices."""
    done = subprocess.run([tools.launcher.path, "stat", "--json", "--stat-dir", folder], capture_output=True, text=True,
                          timeout=30, check=False)
    if done.returncode != 0:
        raise Failure(f"hinterland stat: {done.stderr.strip()[:200]}")
    return sum(program["gauges"]["device_stored_bytes"] for program in json.loads(done.stdout)["programs"])
