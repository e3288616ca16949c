"""GNU sort in memory with two threads; its output compared, and checked to be sorted by a hash of the same lines."""

from harness.data import Data
from harness.program import Batch, need

LINES = 900_000  # 25 bytes each: about 80 MiB with sort's own tables at scale 1


class Sort(Batch):
    name = "sort"
    help = "GNU sort -S with two threads"

    def prepare(self):
        self._sort = need("sort")
        random = Data(self.seed).random
        lines = int(LINES * self.scale)
        with open(self.path("input"), "wb") as file:
            for first in range(0, lines, 10_000):
                count = min(10_000, lines - first)
                file.write(b"".join(b"%016x %d\n" % (random.getrandbits(64), number)
                                    for number in range(first, first + count)))

    def command(self):
        # A buffer that holds everything: no temporary files, one big sort in memory.
        return [self._sort, "-S", f"{int(256 * max(1, self.scale))}M", "--parallel=2", self.path("input")]
