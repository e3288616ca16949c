"""Far devices for a test: `mem:`, `zmem:`, `file:` and `tcp:` are completed by us, a full URL is taken as it is."""

import contextlib
import os

from .launcher import Server
from .units import MIB

DEFAULT = ("mem:", "zmem:", "file:", "tcp:")


def name(url):
    """Short enough for a table."""
    return url if len(url) <= 12 else url.split(":")[0] + ":"


@contextlib.contextmanager
def opened(url, launcher, folder, need_bytes):
    """The URL to give to --far; what it needs (a file's folder, a server) is there until the `with` ends."""
    size = need_bytes + 64 * MIB
    if url == "file:":
        path = os.path.join(folder, "far.device")
        yield f"file:{path}?size={size}"
        if os.path.exists(path):
            os.unlink(path)
    elif url == "tcp:":
        with open(os.path.join(folder, "server.log"), "wb") as log, Server(launcher, size, log) as server:
            yield server.url
            server.stop()
    else:
        yield url
