#!/usr/bin/python3
"""Linux swap to compare with: an unused zram device or a file on a disk, a memory cgroup (v1 or v2) and
vm.page-cluster, set up for the length of a `with` and always taken down again.

    import swap_baseline
    swap_baseline.check()                                   # Unavailable says why not; changes nothing
    with swap_baseline.limited(local_bytes, swap_bytes, page_cluster=0) as words:
        subprocess.run([*words, "program", "argument"])     # has local_bytes of memory, the rest is swapped

With a fourth argument, a folder, the swap is a file there.

Swap that is on already is never touched: then there is no comparison. What is set up is taken down when the `with`
ends, at exit should that not happen, and it is noted in RECORD, so that after a SIGKILL

    bench/swap_baseline.py clean

takes down just that. Signals are the caller's: turn them into exceptions (harness.endings does), because a process
that dies of one takes nothing down. Called by one thread at a time.

A loop device is never used, and no file on anything but a disk (benchlib/disk.py): what needs memory itself in order
to write, as tmpfs does, deadlocks the kernel.
"""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from benchlib import decoys, disk

ZRAM = "/dev/zram0"
ZRAM_SETTINGS = "/sys/block/zram0"
CGROUP = "/sys/fs/cgroup"
PAGE_CLUSTER = "/proc/sys/vm/page-cluster"
SWAP_FILE = "hinterland-swap-%d"  # in the folder that is asked for; %d is our process
RECORD = "/run/hinterland-swap-baseline.json"
PREFERRED_ALGORITHM = "lz4"  # the one that zmem: uses


class Unavailable(Exception):
    """Why there is no swap to compare with."""


class LeftBehind(RuntimeError):
    """Something could not be taken down; the text says what, and the commands that do it."""


class System:
    """What is read, written and called; a fake one stands in its place in the tests."""

    def exists(self, path):
        return os.path.exists(path)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read().strip()

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(text))

    def remove(self, path):
        os.unlink(path)

    def make_file(self, path, size_bytes):
        """A file without holes that nobody else can read. Nothing is left of it when that fails."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
            os.fsync(descriptor)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)

    def disk_folder(self, path):
        return disk.Folder(path)

    def make_folder(self, path):
        os.mkdir(path)

    def remove_folder(self, path):
        os.rmdir(path)

    def decoys(self, procs):
        return decoys.Decoys(procs)

    def is_root(self):
        return os.geteuid() == 0

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)

    def tool(self, *argv):
        # A session of its own: an interrupt at the terminal is for us, and must not end a swapoff half-way.
        done = subprocess.run(argv, capture_output=True, text=True, check=False, start_new_session=True)
        if done.returncode != 0:
            raise OSError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")


def _start_of(pid, system):
    """When a process was started, in ticks, or None: a pid alone may belong to another one by now."""
    try:
        return system.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


class Baseline:
    """What is set up at the moment, and how it is taken down. One a process (see the functions below)."""

    def __init__(self, system=None):
        self.system = system or System()
        self._standing = {}  # kind: what take_down() must know; in the order of setting up
        self.kills_diverted = 0  # from the program to decoys, under the last memory_limit()

    # --- what there is ------------------------------------------------------------------------------------------
    def check(self, file_folder=None):
        """Unavailable unless everything is there and nothing of it is in use. Changes nothing. file_folder: for swap
        in a file there, otherwise for zram."""
        system = self.system
        if not system.is_root():
            raise Unavailable("only root can set up swap")
        self._check_record()
        if len(system.read("/proc/swaps").splitlines()) > 1:
            raise Unavailable("swap is on already (swapon --show), and is not touched")
        if file_folder is None:
            self._check_zram()
        else:
            self._check_folder(file_folder, 0)
        self.cgroup_version()

    def _check_folder(self, folder, size_bytes):
        try:
            disk.check_swap_folder(folder, self.system.disk_folder(folder))
            disk.check_free(folder, size_bytes, self.system.disk_folder(folder))
        except disk.Unfit as reason:
            raise Unavailable(f"no swap file: {reason}") from None

    def _check_zram(self):
        system = self.system
        if not system.exists(ZRAM) or not system.exists(f"{ZRAM_SETTINGS}/disksize"):
            raise Unavailable(f"there is no {ZRAM} (modprobe zram)")
        if system.read(f"{ZRAM_SETTINGS}/disksize") != "0":
            raise Unavailable(f"{ZRAM} is in use, and is not touched (echo 1 > {ZRAM_SETTINGS}/reset frees it, "
                              f"if nobody needs what is on it)")

    def _check_record(self):
        record = self._record()
        if record is None or record.get("pid") == os.getpid():
            return
        if _start_of(record["pid"], self.system) == record["start"]:
            raise Unavailable(f"process {record['pid']} has set it up for itself at the moment")
        raise Unavailable("a run that was killed has left its swap behind: bench/swap_baseline.py clean")

    def cgroup_version(self):
        """1 or 2. Unavailable when there is no memory cgroup to be had."""
        if self.system.exists(f"{CGROUP}/memory/memory.limit_in_bytes"):
            return 1
        if self.system.exists(f"{CGROUP}/cgroup.subtree_control"):
            if "memory" in self.system.read(f"{CGROUP}/cgroup.subtree_control").split():
                return 2
            raise Unavailable(f"the root cgroup does not hand out memory (echo +memory > "
                              f"{CGROUP}/cgroup.subtree_control)")
        raise Unavailable("there is no memory cgroup")

    # --- setting up ---------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def zram_swap(self, size_bytes):
        """Swap on the zram device until the `with` ends. Gives the name of its compression."""
        self.check()
        algorithms = self.system.read(f"{ZRAM_SETTINGS}/comp_algorithm")
        was = algorithms.partition("[")[2].partition("]")[0]
        known = algorithms.replace("[", " ").replace("]", " ").split()
        chosen = PREFERRED_ALGORITHM if PREFERRED_ALGORITHM in known else was
        with self._standing_as("zram", {"algorithm": was}):
            try:
                if chosen != was:
                    self.system.write(f"{ZRAM_SETTINGS}/comp_algorithm", chosen)
                self.system.write(f"{ZRAM_SETTINGS}/disksize", size_bytes)
                self.system.tool("mkswap", ZRAM)
                self.system.tool("swapon", ZRAM)
            except OSError as error:
                raise Unavailable(f"setting up swap on {ZRAM}: {error}") from error
            yield chosen

    @contextlib.contextmanager
    def file_swap(self, folder, size_bytes):
        """Swap in a file in that folder until the `with` ends."""
        self.check(folder)
        self._check_folder(folder, size_bytes)
        path = os.path.join(folder, SWAP_FILE % os.getpid())
        if self.system.exists(path):  # not ours: it must not be removed when we are done
            raise Unavailable(f"{path} exists, and is not touched: remove it, if nobody needs it")
        with self._standing_as("swap_file", {"path": path}):
            try:
                self.system.make_file(path, size_bytes)
                self.system.tool("mkswap", path)
                self.system.tool("swapon", path)
            except OSError as error:
                raise Unavailable(f"setting up swap in a file in {folder}: {error}. Its file system may not allow it: "
                                  "give another --disk-folder") from error
            yield path

    @contextlib.contextmanager
    def memory_limit(self, size_bytes):
        """Words to put before a program, which then has at most so much memory. The cgroup goes when the `with` ends,
        and what still runs in it."""
        version = self.cgroup_version()
        folder = f"{CGROUP}{'/memory' if version == 1 else ''}/hinterland-{os.getpid()}"
        with self._standing_as("cgroup", {"folder": folder}):
            try:
                self.system.make_folder(folder)
                self.system.write(f"{folder}/{'memory.limit_in_bytes' if version == 1 else 'memory.max'}", size_bytes)
            except OSError as error:
                raise Unavailable(f"setting up a memory cgroup: {error}") from error
            self.kills_diverted = 0
            with self.system.decoys(f"{folder}/cgroup.procs") as there:
                try:
                    yield ["/bin/sh", "-c", f'echo $$ >{folder}/cgroup.procs && exec "$@"', "sh"]
                finally:
                    self.kills_diverted = there.lost

    @contextlib.contextmanager
    def page_cluster(self, value):
        """vm.page-cluster (2^value pages are read at once) until the `with` ends."""
        with self._standing_as("page_cluster", {"value": self.system.read(PAGE_CLUSTER)}):
            self.system.write(PAGE_CLUSTER, value)
            yield

    @contextlib.contextmanager
    def limited(self, memory_bytes, swap_bytes, page_cluster, file_folder=None):
        """Swap on zram, or in a file of a folder; page-cluster and limit. Gives the words to put before a program."""
        swap = self.file_swap(file_folder, swap_bytes) if file_folder else self.zram_swap(swap_bytes)
        with swap, self.page_cluster(page_cluster), self.memory_limit(memory_bytes) as words:
            yield words

    # --- taking down --------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _standing_as(self, kind, what):
        """Noted before it is set up, so that whatever comes in between, it is taken down."""
        if kind in self._standing:
            raise Unavailable(f"{kind} is set up already")
        self._standing[kind] = what
        try:
            self._write_record()
            yield
        finally:
            self._take_down(kind, what)
            self._standing.pop(kind, None)
            self._write_record()

    def take_down_all(self):
        """Everything that still stands, last first. LeftBehind names all that could not be."""
        failures = []
        for kind, what in reversed(list(self._standing.items())):
            try:
                self._take_down(kind, what)
                self._standing.pop(kind)
            except LeftBehind as failure:
                failures.append(str(failure))
        self._write_record()
        if failures:
            raise LeftBehind("\n".join(failures))

    def _take_down(self, kind, what):
        {"zram": self._zram_down, "swap_file": self._swap_file_down, "cgroup": self._cgroup_down,
         "page_cluster": self._page_cluster_down}[kind](what)

    def _swap_off(self, name):
        lines = self.system.read("/proc/swaps").splitlines()[1:]
        if any(line.split()[0].replace("\\040", " ") == name for line in lines):
            self.system.tool("swapoff", name)

    def _swap_file_down(self, what):
        """As for zram: whatever of it was set up, and a second try."""
        path = what["path"]
        for last_try in (False, False, True):
            try:
                self._swap_off(path)
                if self.system.exists(path):
                    self.system.remove(path)
                return
            except OSError as error:
                if last_try:
                    raise LeftBehind(f"the swap file {path} could not be taken down: {error}. By hand: swapoff {path}; "
                                     f"rm {path}") from error
                time.sleep(0.3)

    def _zram_down(self, what):
        """Whatever of it was set up. Swapping off may need a second try while the pages of the dead are freed."""
        for last_try in (False, False, True):
            try:
                self._swap_off(ZRAM)
                self.system.write(f"{ZRAM_SETTINGS}/reset", "1")
                if what["algorithm"]:
                    self.system.write(f"{ZRAM_SETTINGS}/comp_algorithm", what["algorithm"])
                return
            except OSError as error:
                if last_try:
                    raise LeftBehind(f"{ZRAM} could not be taken down: {error}. By hand: swapoff {ZRAM}; "
                                     f"echo 1 > {ZRAM_SETTINGS}/reset") from error
                time.sleep(0.3)

    def _cgroup_down(self, what):
        """Its processes are killed, and may take a moment to be gone."""
        folder = what["folder"]
        for last_try in (False,) * 50 + (True,):
            if not self.system.exists(folder):
                return
            try:
                for pid in self.system.read(f"{folder}/cgroup.procs").split():
                    with contextlib.suppress(ProcessLookupError):
                        self.system.kill(int(pid))
                self.system.remove_folder(folder)
                return
            except OSError as error:
                if last_try:
                    raise LeftBehind(f"{folder} could not be removed: {error}. By hand: rmdir {folder}") from error
                time.sleep(0.1)

    def _page_cluster_down(self, what):
        try:
            self.system.write(PAGE_CLUSTER, what["value"])
        except OSError as error:
            raise LeftBehind(f"vm.page-cluster could not be set back: {error}. By hand: "
                             f"sysctl vm.page-cluster={what['value']}") from error

    # --- after a SIGKILL ----------------------------------------------------------------------------------------
    def _record(self):
        try:
            return json.loads(self.system.read(RECORD))
        except FileNotFoundError:
            return None
        except ValueError:
            raise Unavailable(f"{RECORD} is damaged; look what it says, and remove it") from None

    def _write_record(self):
        if self._standing:
            pid = os.getpid()
            self.system.write(RECORD, json.dumps({"pid": pid, "start": _start_of(pid, self.system),
                                                  "standing": self._standing}))
        elif self.system.exists(RECORD):
            self.system.remove(RECORD)

    def clean(self):
        """Takes down what a killed run has left behind. What was done, for people; Unavailable while it still runs."""
        if not self.system.is_root():
            raise Unavailable("only root can take swap down")
        record = self._record()
        if record is None:
            return f"nothing was left behind (there is no {RECORD})"
        if _start_of(record["pid"], self.system) == record["start"]:
            raise Unavailable(f"process {record['pid']}, which set it up, still runs: end it, and it takes it down")
        self._standing = record["standing"]
        kinds = ", ".join(self._standing)
        self.take_down_all()
        return f"taken down: {kinds}"


_OURS = Baseline()
check, zram_swap, memory_limit = _OURS.check, _OURS.zram_swap, _OURS.memory_limit
file_swap, page_cluster, limited = _OURS.file_swap, _OURS.page_cluster, _OURS.limited


@atexit.register
def _at_exit():
    """The last resort: normally nothing stands here any more."""
    if _OURS._standing:
        _OURS.take_down_all()


def kills_diverted():
    """How often the kernel would have killed the program under the last limit, swap or no swap (decoys.py)."""
    return _OURS.kills_diverted


def pages_moved():
    """(in, out) of all swap since the machine started."""
    counts = dict(line.split() for line in _OURS.system.read("/proc/vmstat").splitlines())
    return int(counts["pswpin"]), int(counts["pswpout"])


def main():
    if sys.argv[1:] not in (["check"], ["clean"]):
        print("usage: swap_baseline.py check | clean", file=sys.stderr)
        return 2
    try:
        if sys.argv[1] == "check":
            check()
            print("swap can be set up here")
        else:
            print(_OURS.clean())
    except (Unavailable, LeftBehind) as reason:
        print(f"swap_baseline: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
