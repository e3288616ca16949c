#!/usr/bin/env python3
"""Runs the RUN lines of the pass's tests: filecheck.py PLUGIN FILE...

In them opt, llc and FileCheck are those of LLVM 19, opt with the plug-in loaded; %s is the file, %t a temporary one.
Exit status 77 when LLVM's tools are not installed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = {"opt": "opt-19", "llc": "llc-19", "FileCheck": "FileCheck-19"}


def commands_of(path):
    return re.findall(r"^; RUN: (.*)$", path.read_text(), re.MULTILINE)


def prepared(command, plugin, path, temporary):
    command = command.replace("%s", str(path)).replace("%t", temporary)
    words = {"opt": f"{TOOLS['opt']} -load-pass-plugin={plugin}", "llc": TOOLS["llc"], "FileCheck": TOOLS["FileCheck"]}
    command = re.sub(r"-passes=(\S+)", r"'-passes=\1'", command)
    return re.sub(r"(?:(?<=^)|(?<=\| ))(opt|llc|FileCheck)\b", lambda match: words[match.group(1)], command)


def main():
    plugin, files = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    missing = [tool for tool in TOOLS.values() if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed (packages llvm-19, llvm-19-tools)")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            commands = commands_of(path)
            if not commands:
                print(f"{path}: has no RUN line")
                failed += 1
            for command in commands:
                line = prepared(command, plugin, path, os.path.join(folder, "t"))
                done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=60)
                if done.returncode != 0:
                    print(f"{path}: {command}\n{done.stdout}{done.stderr}")
                    failed += 1
    print(f"{len(files)} files, {failed} failures")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
