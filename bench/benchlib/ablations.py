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


ABLATIONS = (
    Ablation("read-ahead", ("--read-ahead", "0")),
    Ablation("long read-ahead", ("--read-ahead", "8")),
    Ablation("second chance", ("--policy", "fifo")),
    Ablation("pages moved away", ("--without", "move")),
    Ablation("write protection", ("--without", "write-protect")),
    Ablation("batched unmapping", ("--without", "vectored-discard")),
    Ablation("waiting for pressure", ("--takeover", "start")),
)
# bench/run --signal: faults served by the threads that have them, beside those served by message.
SIGNAL_OPTIONS = ("--fault", "signal")


def by_signal(url):
    return Far(url, "by signal", SIGNAL_OPTIONS)


# For Redis under open load. Until the command has such a switch, the result says that it was left out for that.
FEEDBACK = Ablation("feedback", ("--reclaim-feedback", "off"))


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
        return next((f"this hinterland has no {flag}" for flag in flags if flag not in self._words), None)
