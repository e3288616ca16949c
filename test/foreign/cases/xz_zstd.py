"""xz and zstd with two threads, gzip and bzip2: what comes out is what went in."""

from harness.data import Data
from harness.program import need

from .commands import Commands

MEBIBYTES = 24

WORK = (
    ("xz", "xz -T2 -3 --block-size=8MiB -c ../data >data.xz && xz -t data.xz && xz -T2 -dc data.xz | cmp - ../data &&"
           " sha256sum data.xz"),
    ("xz-9", "head -c 4M ../data | xz -9 -c | tee nine.xz | xz -dc | sha256sum && sha256sum nine.xz"),
    ("zstd", "zstd -q -T2 -3 -c ../data >data.zst && zstd -q -t data.zst && zstd -q -dc data.zst | cmp - ../data &&"
             " sha256sum data.zst"),
    ("zstd-19", "zstd -q -T2 -19 --long=27 -c ../data | tee long.zst | zstd -q -dc --long=27 | sha256sum"),
    ("zstd-train", "split -b 4k ../few s. && zstd -q --train s.* -o dictionary --maxdict=16K && sha256sum dictionary"),
    ("gzip", "gzip -6 -n -c ../data | tee data.gz | gzip -dc | cmp - ../data && sha256sum data.gz"),
    ("bzip2", "head -c 8M ../data | bzip2 -9 -c | tee data.bz2 | bzip2 -dc | sha256sum && sha256sum data.bz2"),
)


class XzZstd(Commands):
    name = "xz-zstd"
    help = "xz and zstd with two threads, gzip, bzip2: there and back"
    in_short = False

    def prepare(self):
        for name in ("xz", "zstd", "gzip", "bzip2"):
            need(name)
        data = Data(self.seed)
        size = int(MEBIBYTES * self.scale) << 20
        for name, length in (("data", size), ("few", 1 << 20)):
            with open(self.path(name), "wb") as file:
                written = 0
                while written < length:
                    written += file.write(data.value(min(20_000, length - written)))

    def commands(self):
        return WORK
