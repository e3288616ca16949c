"""Whether a folder is on a disk of its own right: one that swap may lie on, and that has room.

Swap over a loop device, or over anything else that needs memory to write, can stop the kernel for good, so only what is
known to be safe is allowed.
"""

import os

FILE_SYSTEMS = ("ext4", "ext3", "ext2", "xfs")  # files that are allocated at once, and never moved, copied or compressed
# Names of block devices that are memory, files of another file system, or at the other end of a network.
NOT_DISKS = ("loop", "zram", "ram", "nbd", "rbd", "drbd")
SPARE_SHARE, SPARE_BYTES = 1.05, 256 << 20  # what is left to others


class Unfit(OSError):
    """Why this folder cannot be used, and what to do."""


class Folder:
    """What the kernel says about a folder; a fake one stands in its place in the tests."""

    def __init__(self, path):
        self.path = path

    def file_system(self):
        """Its type, by the longest mount point above it."""
        real = os.path.realpath(self.path)
        best, kind = "", "unknown"
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            for line in file:
                left, _, right = line.partition(" - ")
                point = left.split()[4].replace("\\040", " ")
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, right.split()[0]
        return kind

    def block_devices(self):
        """Names of the device it is on and of all below that one; none for what is not on a block device."""
        number = os.stat(self.path).st_dev
        path = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
        return _with_those_below(os.path.realpath(path)) if os.path.exists(path) else []

    def free_bytes(self):
        about = os.statvfs(self.path)
        return about.f_bavail * about.f_frsize


def _with_those_below(path):
    names = [part for part in path.split("/") if part]  # a partition's path has its disk's name in it
    slaves = os.path.join(path, "slaves")
    for name in os.listdir(slaves) if os.path.isdir(slaves) else []:
        names += _with_those_below(os.path.realpath(os.path.join(slaves, name)))
    return names


def _is_one_of(name, kinds):
    return any(name.startswith(kind) and name[len(kind):].isdigit() for kind in kinds)


def check_swap_folder(path, folder=None):
    """Unfit where no swap file may be. `folder`: what answers, a Folder of the path unless said otherwise."""
    folder = folder or Folder(path)
    try:
        kind, devices = folder.file_system(), folder.block_devices()
    except OSError as error:
        raise Unfit(f"{path}: {error.strerror}. Give a folder on a disk: --disk-folder") from None
    if kind not in FILE_SYSTEMS or not devices:
        raise Unfit(f"{path} is on {kind}, and a swap file needs one of {', '.join(FILE_SYSTEMS)} on a disk: give "
                    "another --disk-folder")
    wrong = next((name for name in devices if _is_one_of(name, NOT_DISKS)), None)
    if wrong:
        raise Unfit(f"{path} is on {wrong}, over which swap can stop the kernel for good: give another --disk-folder")


def check_free(path, needed_bytes, folder=None):
    """Unfit when the folder has not so much room, and some to spare."""
    try:
        there = (folder or Folder(path)).free_bytes()
    except OSError as error:
        raise Unfit(f"{path}: {error.strerror}. Give a folder on a disk: --disk-folder") from None
    needed = int(needed_bytes * SPARE_SHARE) + SPARE_BYTES
    if there < needed:
        raise Unfit(f"{path} has {there / 2**20:.0f} MiB free, and {needed / 2**20:.0f} MiB are needed: give another "
                    "--disk-folder, or a smaller --size")
