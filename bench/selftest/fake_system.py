"""A machine with zram, cgroups and swap that are only words in a dictionary, for the tests of swap_baseline."""

import os

import swap_baseline as swap

HEADER = "Filename\tType\tSize\tUsed\tPriority"


class FakeDisk:
    """What the kernel says about a folder."""

    def __init__(self, kind="ext4", devices=("sys", "devices", "virtio1", "block", "vda", "vda1"), free_bytes=1 << 40):
        self._kind, self._devices, self._free_bytes = kind, list(devices), free_bytes

    def file_system(self):
        return self._kind

    def block_devices(self):
        return self._devices

    def free_bytes(self):
        return self._free_bytes


class FakeDecoys:
    """Notes how it is used; the kernel has killed three."""
    lost = 3

    def __init__(self, procs, log):
        self._procs, self._log = procs, log

    def __enter__(self):
        self._log.append(("decoys", self._procs))
        return self

    def __exit__(self, *_):
        self._log.append(("no decoys", self._procs))


class FakeSystem(swap.System):
    """version: of the memory cgroup, or None. fail: names of the tools and paths that do not work."""

    def __init__(self, version=1):
        self.files = {"/proc/swaps": HEADER, swap.ZRAM: "", f"{swap.ZRAM_SETTINGS}/disksize": "0",
                      f"{swap.ZRAM_SETTINGS}/comp_algorithm": "[lzo-rle] lzo lz4", f"{swap.ZRAM_SETTINGS}/reset": "",
                      swap.PAGE_CLUSTER: "5", f"/proc/{os.getpid()}/stat": self.stat(1000)}
        if version == 1:
            self.files[f"{swap.CGROUP}/memory/memory.limit_in_bytes"] = "9223372036854771712"
        elif version == 2:
            self.files[f"{swap.CGROUP}/cgroup.subtree_control"] = "cpu memory pids"
        self.disk = FakeDisk()
        self.root, self.fail, self.killed, self.log, self.folders = True, set(), [], [], set()

    @staticmethod
    def stat(start):
        return "1 (a program) S " + "0 " * 18 + f"{start} 0 0"

    def is_root(self):
        return self.root

    def decoys(self, procs):
        return FakeDecoys(procs, self.log)

    def exists(self, path):
        return path in self.files or path in self.folders

    def read(self, path):
        if path not in self.files:
            raise FileNotFoundError(2, "no such file", path)
        return self.files[path]

    def write(self, path, text):
        self._maybe_fail(path)
        self.log.append(("write", path, str(text)))
        self.files[path] = str(text)
        if path == f"{swap.ZRAM_SETTINGS}/reset":
            self.files[f"{swap.ZRAM_SETTINGS}/disksize"] = "0"
        if path == f"{swap.ZRAM_SETTINGS}/comp_algorithm":
            self.files[path] = f"lzo-rle lzo lz4 [{text}]" if text != "lzo-rle" else "[lzo-rle] lzo lz4"

    def remove(self, path):
        del self.files[path]

    def make_file(self, path, size_bytes):
        self._maybe_fail("make_file")
        self.log.append(("make_file", path, size_bytes))
        self.files[path] = f"swap of {size_bytes} bytes"

    def disk_folder(self, path):
        return self.disk

    def make_folder(self, path):
        self._maybe_fail("mkdir")
        self.folders.add(path)
        self.files[f"{path}/cgroup.procs"] = ""

    def remove_folder(self, path):
        self._maybe_fail("rmdir")
        if self.files[f"{path}/cgroup.procs"]:
            raise OSError(16, "busy")
        self.folders.remove(path)
        self.files = {name: text for name, text in self.files.items() if not name.startswith(path)}

    def kill(self, pid):
        self.killed.append(pid)
        for name in self.files:
            if name.endswith("/cgroup.procs"):
                self.files[name] = " ".join(p for p in self.files[name].split() if int(p) != pid)

    def tool(self, *argv):
        self._maybe_fail(argv[0])
        self.log.append(argv)
        if argv[0] == "swapon":
            name = argv[1].replace(" ", "\\040")
            self.files["/proc/swaps"] = f"{HEADER}\n{name}  partition  1024  0  -2"
        if argv[0] == "swapoff":
            self.files["/proc/swaps"] = HEADER

    def _maybe_fail(self, what):
        if what in self.fail:
            raise OSError(f"{what} does not work")

    def state(self):
        """What must be as before once everything is taken down."""
        files = {name: text for name, text in self.files.items() if name != f"{swap.ZRAM_SETTINGS}/reset"}
        return files, set(self.folders)
