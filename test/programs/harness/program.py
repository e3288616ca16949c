"""A real program as a test: what to prepare, what to start, and which results must be equal.

A batch program runs to its end; a server is started, worked with over its socket, and told to stop.
"""

import hashlib
import os
import shutil
import socket
import time

from . import endings
from .errors import Failure, Skip


def need(command):
    """Path of a command, or Skip."""
    path = shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin")
    if not path:
        raise Skip(f"{command} is not installed")
    return path


def file_hash(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Program:
    name = ""
    help = ""
    local_bytes_max = None  # local memory, should a share of the native peak be more
    options = ()  # further words for `hinterland run`

    def __init__(self, folder, scale, seed):
        self.folder, self.scale, self.seed = folder, scale, seed

    def path(self, name):
        return os.path.join(self.folder, name)

    def prepare(self):
        """Makes the input, in self.folder. Skip when the program cannot be had."""

    def command(self):
        """Words for argv. Its stdout goes to a file."""
        raise NotImplementedError

    def wrapper(self):
        """Words before everything, the launcher's included: as which user it runs, for example."""
        return []

    def compare(self, native, far):
        """Failure that names the first result that differs."""
        for what in sorted({*native, *far}):
            if native.get(what) != far.get(what):
                raise Failure(f"{what} differs: {str(native.get(what))[:40]} natively, {str(far.get(what))[:40]} far")


class Batch(Program):
    def accept(self, code):
        """Failure when this exit status means that there is no answer."""
        if code != 0:
            raise Failure(f"exit status {code}")

    def answer(self, stdout):
        """{what: value} of results that must be equal; `stdout` is the path of what it printed."""
        return {"output": file_hash(stdout)}


class ServerProgram(Program):
    def connect(self):
        """A connection, once the server listens; None while it does not."""
        path = self.path("socket")
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(path)
        except OSError:
            link.close()
            return None
        return link

    def work(self, link):
        """Does the test's work over the connection. {what: value} of results that must be equal."""
        raise NotImplementedError

    def stop(self, link):
        """Tells the server to end."""
        raise NotImplementedError

    def wait_ready(self, process, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not process.running():
                raise Failure(f"the server ended at once, exit status {process.wait(0)}")
            link = self.connect()
            if link:
                return link
            with endings.waiting:
                time.sleep(0.01)
        raise Failure(f"the server does not listen after {seconds} s")
