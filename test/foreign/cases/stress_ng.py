"""stress-ng's memory stressors with --verify. Those that take their memory past libc, or more than there is, are not
here:

    brk, bigheap, stack, resources, oom-pipe    grow until the machine has no memory left
    mmapfork                                    writes to as much memory as the machine has free
    userfaultfd, memfd, shm, shm-sysv, ksm      memory that stays local, or a fault descriptor of their own
    physpage, secretmem, numa                   need what a virtual machine or its kernel may not have
"""

from harness.program import need

from .commands import Commands

# (stressor, its options): sizes beyond the budget, for those that have one.
STRESSORS = (
    ("vm", "--vm-bytes 96M --vm-method all"),
    ("vm-keep", "--vm 1 --vm-bytes 48M --vm-keep --vm-populate"),
    ("malloc", "--malloc-bytes 64M --malloc-max 4096"),  # 65,536, as it does by itself: docs/running.md, sizing
    ("malloc-threads", "--malloc 1 --malloc-bytes 32M --malloc-pthreads 2 --malloc-touch"),
    ("mmap", "--mmap-bytes 40M"),  # some of its rounds lock all of that, or ask for a stack: local by right
    ("mmap-mprotect", "--mmap 1 --mmap-bytes 48M --mmap-mprotect --mmap-mmap2"),
    ("mremap", "--mremap-bytes 16M"),
    ("vm-addr", ""), ("vm-rw", "--vm-rw-bytes 32M"), ("vm-splice", ""), ("msync", ""), ("mincore", ""), ("mprotect", ""),
    ("madvise", ""), ("mlock", ""), ("mmapaddr", ""), ("mmapfixed", ""), ("mmaphuge", ""),
    ("munmap", ""), ("stackmmap", ""), ("pagemove", ""), ("remap", ""), ("rmap", ""), ("fork", ""), ("vfork", ""),
    ("qsort", "--qsort-size 2097152"), ("heapsort", "--heapsort-size 1048576"),
    ("mergesort", "--mergesort-size 1048576"), ("radixsort", "--radixsort-size 1048576"),
    ("shellsort", "--shellsort-size 1048576"), ("bsearch", "--bsearch-size 1048576"),
    ("tsearch", "--tsearch-size 131072"), ("hsearch", "--hsearch-size 131072"), ("lsearch", ""),
    ("tree", "--tree-size 200000"), ("list", "--list-size 100000"), ("skiplist", "--skiplist-size 65536"),
    ("judy", "--judy-size 262144"), ("memcpy", ""), ("str", ""), ("wcs", ""), ("matrix", "--matrix-size 1024"),
    ("matrix-3d", ""), ("stream", "--stream-l3-size 8M"), ("zlib", ""), ("jpeg", ""), ("memthrash", ""),
    ("prefetch", ""), ("sparsematrix", "--sparsematrix-items 20000"), ("context", ""), ("aio", ""), ("splice", ""),
)


class StressNg(Commands):
    name = "stress-ng"
    help = "stress-ng: memory stressors with --verify"
    in_short = False
    # Most of them need little, one half a gigabyte: a share of the largest would leave the others alone.
    local_bytes_max = 6 << 20
    options = ("--takeover", "start")

    def prepare(self):
        self._program = need("stress-ng")

    def commands(self):
        for name, options in STRESSORS:
            start = "" if options.startswith(f"--{name.split('-')[0]} 1") else f"--{name} 1 "
            yield name, (f"{self._program} {start}{options} -t {max(1, int(3 * self.scale))} --verify --temp-path . >log"
                         " 2>&1 && ! grep -E 'fail:|error:|unsuccessful' log && echo well || { tail -3 log >&2; false; }")
