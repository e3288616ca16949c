"""What the figures were taken on, and whether they may be taken there: the build, the commit, how busy the machine is."""

import os
import platform
import subprocess
import time

FAST_BUILDS = ("Release", "RelWithDebInfo", "MinSizeRel")
BUSY_SHARE_MAX = 0.10   # of all CPU time, used by others
STEAL_SHARE_MAX = 0.02  # of all CPU time, taken by the hypervisor


class Refused(Exception):
    """What must not be measured, why, and what to do."""


def build_type(build_folder):
    """CMAKE_BUILD_TYPE of a build tree. Refused for one whose figures mean nothing."""
    cache = os.path.join(build_folder, "CMakeCache.txt")
    try:
        with open(cache, encoding="utf-8") as file:
            lines = [line.strip() for line in file if "=" in line and line[0] not in "#/"]
    except OSError:
        raise Refused(f"there is no {cache}, so this may be a debug build. Build with: make bench-build") from None
    settings = {name.split(":")[0]: value for name, _, value in (line.partition("=") for line in lines)}
    kind = settings.get("CMAKE_BUILD_TYPE", "")
    wrong = [] if kind in FAST_BUILDS else [f"{kind or 'plain'} build"]
    if settings.get("HINTERLAND_SANITIZE"):
        wrong.append(f"build with the {settings['HINTERLAND_SANITIZE']} sanitizer")
    if settings.get("HINTERLAND_COVERAGE", "OFF").upper() in ("ON", "1", "YES", "TRUE"):
        wrong.append("build that counts lines")
    flags = settings.get("CMAKE_CXX_FLAGS_" + kind.upper(), "") + settings.get("CMAKE_CXX_FLAGS", "")
    if kind in FAST_BUILDS and "-DNDEBUG" not in flags:
        wrong.append("build without NDEBUG")
    if wrong:
        raise Refused(f"{build_folder} is a {' and a '.join(wrong)}: its figures mean nothing. Build with: make bench-build")
    return kind


def commit(root):
    words = ["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _first(path, default=""):
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip()
    except OSError:
        return default


def memory(name):
    """Bytes of a line of /proc/meminfo."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))


def description():
    """Fields that tell machines apart; compare holds `processor`, `processors` and `memory_gib` to be equal."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return {"processor": model, "processors": os.cpu_count(), "memory_gib": round(memory("MemTotal") / 2**30, 1),
            "kernel": platform.release(), "virtual": "hypervisor" in _flags(),
            "huge_pages": _first("/sys/kernel/mm/transparent_hugepage/enabled"),
            "page_cluster": _first("/proc/sys/vm/page-cluster")}


def _flags():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split() for line in file if line.startswith("flags")), [])


class CpuTimes:
    """Ticks of all CPUs: in all, busy, and stolen by the hypervisor."""

    def __init__(self, line=None):
        ticks = [int(word) for word in (line or _first("/proc/stat")).split()[1:9]]
        user, nice, system, idle, waiting, interrupt, soft, steal = ticks
        self.total, self.steal = sum(ticks), steal
        self.busy = user + nice + system + interrupt + soft
        del idle, waiting

    def shares_since(self, before):
        """{"cpu_share", "steal_share"} of the time between."""
        total = max(1, self.total - before.total)
        return {"cpu_share": round((self.busy - before.busy) / total, 4),
                "steal_share": round((self.steal - before.steal) / total, 4)}


def load(seconds, wait):
    """How busy the machine is without us, looked at for so long. wait(seconds) sleeps, and may be interrupted."""
    before = CpuTimes()
    wait(seconds)
    return {**CpuTimes().shares_since(before), "load_average_1min": os.getloadavg()[0]}


def check_quiet(seen, busy_ok):
    """Refused on a busy machine, unless busy_ok. True when it was busy."""
    reasons = []
    if seen["cpu_share"] > BUSY_SHARE_MAX:
        reasons.append(f"others use {seen['cpu_share']:.0%} of its CPU time ({BUSY_SHARE_MAX:.0%} is the most)")
    if seen["steal_share"] > STEAL_SHARE_MAX:
        reasons.append(f"its host takes {seen['steal_share']:.0%} away ({STEAL_SHARE_MAX:.0%} is the most)")
    if reasons and not busy_ok:
        raise Refused(f"the machine is busy: {', and '.join(reasons)}. Try when it is quiet, or give --busy-ok, which "
                      "the result will say")
    return bool(reasons)


def check_memory(needed_bytes):
    there = memory("MemAvailable")
    if needed_bytes > there:
        raise Refused(f"these sizes need {needed_bytes / 2**20:.0f} MiB, and {there / 2**20:.0f} MiB are free: give a "
                      "smaller --size")


def pause(seconds):
    time.sleep(seconds)
