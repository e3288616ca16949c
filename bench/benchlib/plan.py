"""Which benchmarks there are: what each runs, with how much local memory, and which floor it is held against."""

import dataclasses
import difflib

MIB = 1 << 20
SIZE = 1024 * MIB
QUICK_SIZE = 128 * MIB
SMALLEST_LOCAL = 4 * MIB  # that hinterland run takes
PIECE_FILE = 8 * MIB
DEVICES = ("mem:", "zmem:", "tcp:")
FLOOR = "floor"


class Unknown(Exception):
    """No benchmark has this name."""


@dataclasses.dataclass(frozen=True)
class Benchmark:
    name: str
    about: str
    pattern: str                # of build/bench/access
    local_share: float = 0.25   # of the size
    options: tuple = ()
    floor: tuple = ()           # figures of the floor; the least of them counts
    miss_share: float = 0.75    # of the accesses that miss, by which a figure per page becomes one per access
    file_bytes: int = 0         # of page cache that the pattern works with: a cgroup counts it, a budget does not
    swap: bool = True           # false where nothing goes out, so that swap is the same as native

    def argv(self, access, size_bytes):
        return [access, self.pattern, "--size", str(size_bytes), *self.options]

    def local_bytes(self, size_bytes):
        return max(SMALLEST_LOCAL, int(size_bytes * self.local_share) // 4096 * 4096)

    def cgroup_bytes(self, size_bytes):
        return self.local_bytes(size_bytes) + self.file_bytes


def _runs(kind):
    return tuple(f"paging/sequential/handler-same-cpu/{way}/run-{run}" for way in kind for run in (16, 64))


def _random(kind, more=""):
    return tuple(f"paging/random/handler-same-cpu/{way}{more}" for way in kind)


CLEAN = ("copy-clean", "move-clean")
DIRTY = ("copy-dirty-move", "copy-dirty-protect", "move-dirty")

BENCHMARKS = (
    Benchmark("random-read", "read a word of random pages", "random-read", floor=_random(CLEAN)),
    Benchmark("random-write", "change a word of random pages", "random-write", floor=_random(DIRTY)),
    Benchmark("sequential-read", "read a word of each page in order", "sequential-read", floor=_runs(CLEAN),
              miss_share=1.0),
    Benchmark("sequential-write", "change a word of each page in order", "sequential-write", floor=_runs(DIRTY),
              miss_share=1.0),
    Benchmark("random-read-2-threads", "read random pages, two threads, each its half", "random-read",
              options=("--threads", "2"), floor=_random(("copy-clean",), "/2-threads")),
    Benchmark("first-touch", "write each page of fresh memory, most of which must go", "first-touch"),
    Benchmark("first-touch-fits", "write each page of fresh memory, all of which may stay", "first-touch",
              local_share=1.25, swap=False),
    Benchmark("read-call", "read(2) in pieces of 8 MiB into it, a sixteenth local", "read-call", local_share=1 / 16,
              file_bytes=PIECE_FILE),
    Benchmark("write-call", "write(2) in pieces of 8 MiB out of it, a sixteenth local", "write-call",
              local_share=1 / 16, file_bytes=PIECE_FILE),
)
NAMES = (*(benchmark.name for benchmark in BENCHMARKS), FLOOR)


def choose(names):
    """(benchmarks, whether the floor is wanted); all for no names. Unknown with the nearest name there is."""
    for name in names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1, 0.4)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise Unknown(f"there is no benchmark '{name}'{hint} (--list shows all)")
    wanted = names or NAMES
    return tuple(b for b in BENCHMARKS if b.name in wanted), FLOOR in wanted


def listing():
    lines = [f"{benchmark.name:<24} {benchmark.about}" for benchmark in BENCHMARKS]
    return "\n".join([*lines, f"{FLOOR:<24} the kernel's primitives alone, and loops that do nothing but page"])
