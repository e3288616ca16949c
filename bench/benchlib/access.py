"""The access patterns of build/bench/access."""

import dataclasses

from . import machine, started

MIB = 1 << 20
SMALLEST_LOCAL = 4 * MIB  # that hinterland run takes
PIECE_FILE = 8 * MIB


@dataclasses.dataclass(frozen=True)
class Access:
    """One pattern, as every benchmark that is run in several ways (see plan.py)."""
    name: str
    about: str
    pattern: str                # of build/bench/access
    local_share: float = 0.25   # of the size
    options: tuple = ()
    floor: tuple = ()           # figures of the floor; the least of them counts
    miss_share: float = 0.75    # of the accesses that miss, by which a figure per page becomes one per access
    file_bytes: int = 0         # of page cache that the pattern works with: a cgroup counts it, a budget does not
    swap: str = "zram"          # "zram", "file", or "" where nothing goes out, so that swap is the same as native
    devices: tuple = ()         # none: those of the run
    group: str = "access"
    ablated: bool = False       # run it without each feature of the runtime, too (--ablate)
    tied: bool = False          # run it tied to 1 and 2 of the CPUs, too
    unit: str = "ns/access"
    measured: str = "time per access"
    run_options: tuple = ()     # further words for hinterland run

    @property
    def by_signal(self):
        return self.ablated

    def argv(self, access, size_bytes):
        return [access, self.pattern, "--size", str(size_bytes), *self.options]

    def size_bytes(self, size_bytes):
        return size_bytes

    def local_bytes(self, size_bytes):
        return max(SMALLEST_LOCAL, int(size_bytes * self.local_share) // 4096 * 4096)

    def cgroup_bytes(self, size_bytes):
        return self.local_bytes(size_bytes) + self.file_bytes

    def far_bytes(self, size_bytes):
        return 2 * size_bytes

    @property
    def must_page(self):
        return self.local_share < 1

    def prepare(self, stack, tools, size_bytes):
        """Nothing: it makes its own data."""

    def sample(self, words, size_bytes, tools, folder):
        """One run behind `words`: {"value": ns per access, ...}."""
        before = machine.CpuTimes()
        said = started.run_json([*words, *self.argv(tools.access, size_bytes)], folder)
        sample = {"value": said["ns_per_access"]}
        sample.update({key: said[key] for key in ("seconds", "accesses", "checksum", "resident_anonymous_bytes")})
        sample["steal_share"] = machine.CpuTimes().shares_since(before)["steal_share"]
        return sample


def _runs(kind):
    return tuple(f"paging/sequential/handler-same-cpu/{way}/run-{run}" for way in kind for run in (16, 64))


def _random(kind, more="", server="handler-same-cpu"):
    return tuple(f"paging/random/{server}/{way}{more}" for way in kind)


# The floor's move-clean and move-dirty fill frames that held the program's data, which no right pager may do (ADR 0036).
CLEAN = ("copy-clean",)
DIRTY = ("copy-dirty-move", "copy-dirty-protect")

ACCESS = (
    Access("random-read", "read a word of random pages", "random-read", floor=_random(CLEAN), ablated=True, tied=True),
    Access("random-write", "change a word of random pages", "random-write", floor=_random(DIRTY), ablated=True,
           tied=True),
    Access("random-read-hinted", "the same with a hint before each access", "random-read", options=("--hints",),
           floor=_random(CLEAN, server="hinted"), tied=True),
    Access("random-write-hinted", "the same with a hint before each access", "random-write", options=("--hints",),
           floor=_random(DIRTY, server="hinted"), tied=True),
    Access("sequential-read", "read a word of each page in order", "sequential-read", floor=_runs(CLEAN),
           miss_share=1.0, ablated=True, tied=True),
    Access("sequential-write", "change a word of each page in order", "sequential-write", floor=_runs(DIRTY),
           miss_share=1.0, ablated=True, tied=True),
    Access("sequential-read-unwritable", "read a word of each page in order; half of it, in pieces of 64 pages, may not "
           "be written", "sequential-read", options=("--unwritable", "64"), miss_share=1.0),
    Access("strided-read", "read every 32nd page, then those behind them, as the columns of a matrix", "strided-read",
           miss_share=1.0),
    Access("reverse-read", "read a word of each page from the last to the first", "reverse-read", miss_share=1.0),
    Access("random-read-2-threads", "read random pages, two threads, each its half", "random-read",
           options=("--threads", "2"), floor=_random(CLEAN, "/2-threads"), ablated=True),
    Access("random-write-2-threads", "change random pages, two threads, each its half", "random-write",
           options=("--threads", "2"), floor=_random(("copy-dirty-move",), "/2-threads"), ablated=True),
    *(Access(f"random-{kind}-4-threads", f"{kind} random pages, four threads, each its quarter", f"random-{kind}",
             options=("--threads", "4")) for kind in ("read", "write")),
    Access("first-touch", "write each page of fresh memory, most of which must go", "first-touch", ablated=True),
    Access("first-touch-fits", "write each page of fresh memory, all of which may stay", "first-touch",
           local_share=1.25, swap=""),
    Access("read-call", "read(2) in pieces of 8 MiB into it, a sixteenth local", "read-call", local_share=1 / 16,
           file_bytes=PIECE_FILE),
    Access("write-call", "write(2) in pieces of 8 MiB out of it, a sixteenth local", "write-call",
           local_share=1 / 16, file_bytes=PIECE_FILE),
    Access("temporary-blocks", "write each page of blocks of 8 MiB that live for a moment, beside memory that is far",
           "temporary", miss_share=1.0),
    Access("random-read-disk", "read random pages, eight threads, each its part; file: and swap on the same disk",
           "random-read", options=("--threads", "8"), devices=("file:",), swap="file", group="disk"),
)
