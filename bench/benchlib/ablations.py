"""The runtime without one of its features at a time: what each is worth (bench/run --ablate)."""

import dataclasses
import subprocess

from .ways import Far


@dataclasses.dataclass(frozen=True)
class Ablation:
    without: str    # the feature, for people
    options: tuple  # of hinterland run, that turn it off

    def way(self, url):
        return Far(url, f"without {self.without}", self.options)


def _part(name, words=None):
    return Ablation(words or name.replace("-", " "), ("--without", name))


FEEDBACK = _part("feedback")  # for Redis under open load, too
ABLATIONS = (
    FEEDBACK,
    _part("background-reclaim"),
    _part("second-chance"),
    _part("batching", "batched unmapping"),
    _part("second-reclaimer", "a second reclaimer"),
    _part("write-back-thread", "a write-back thread"),
    _part("write-forecast"),
    _part("read-ahead", "read-ahead"),
    _part("second-mapper"),
    Ablation("long read-ahead", ("--read-ahead", "8")),
    _part("move", "pages moved away"),
    _part("write-protect", "write protection"),
    Ablation("waiting for pressure", ("--takeover", "start")),
)

# bench/run --signal: faults served by the threads that have them, beside those served by message.
SIGNAL_OPTIONS = ("--fault", "signal")


def by_signal(url):
    return Far(url, "by signal", SIGNAL_OPTIONS)


class Known:
    """The options that a command has, by its help."""

    def __init__(self, hinterland):
        done = subprocess.run([hinterland, "help", "run"], capture_output=True, text=True, timeout=30, check=False)
        self._words = {word.strip(",.[]()") for word in done.stdout.split()}

    def missing(self, ablation):
        """Why it cannot be tried, or None."""
        return self.missing_option(ablation.options)

    def missing_option(self, options):
        flags = [word for word in options if word.startswith("--")]
        if "--without" in flags:
            flags.append(options[-1])  # what it leaves out must be among those named there
        return next((f"this hinterland has no {flag}" for flag in flags if flag not in self._words), None)
