"""What the compiler's tests share: compiling plain and hinted, and running natively and far."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent


def skip_without(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed")
        sys.exit(SKIPPED)


def call(command, **extra):
    """Runs it and returns what it printed; ends the test when it fails."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_") and k != "LD_PRELOAD"}
    environment.update({k: str(v) for k, v in extra.items()})
    done = subprocess.run([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)
    if "userfaultfd is not permitted" in done.stderr.decode(errors="replace"):
        print("skipped: userfaultfd is not permitted here")
        sys.exit(SKIPPED)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ({extra}): status {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return done


def with_option(plugin, option):
    return ["-Xclang", "-load", "-Xclang", plugin, f"-fpass-plugin={plugin}", "-Xclang", "-mllvm", "-Xclang", option]


def with_guards(plugin):
    """Options for clang, as `hinterland cc --objects` gives them."""
    return with_option(plugin, "-hinterland-objects")


def with_static_hints(plugin):
    """The same for `hinterland cc --static-hints`."""
    return with_option(plugin, "-hinterland-static-hints")


class Runner:
    def __init__(self, preload, folder):
        self.preload, self.folder = preload, folder

    def far(self, command, local, **extra):
        """Far from the start, so that every page that the program touches is paged. Returns the output and messages."""
        done = call(command, LD_PRELOAD=self.preload, HINTERLAND_LOCAL=local, HINTERLAND_FAR="mem:",
                    HINTERLAND_TAKEOVER="start", HINTERLAND_STAT_DIR=self.folder, HINTERLAND_VERBOSE=1, **extra)
        return done.stdout, done.stderr.decode(errors="replace")


def sites_in(messages, name):
    """How many of a module's hints were on: (on, all), from the message of -v."""
    found = re.search(re.escape(name) + r": (\d+) of (\d+) hints by the compiler are on", messages)
    return (int(found.group(1)), int(found.group(2))) if found else None


def expect(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")
