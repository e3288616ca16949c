#!/usr/bin/env python3
"""Holds the documentation to what is there: links, headings, paths, and the commands and options it shows.

Usage: check_docs.py [ROOT] [--hinterland PATH]

Prints one line a finding (file:line: what) and exits 1 when there is any. Commands and options are checked against
`hinterland help`, and only when --hinterland names the command.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

SKIPPED_FOLDERS = {"build", ".git", "__pycache__", ".cache"}
# Written from measurements, after the pages that point to it: take it out of here then.
STILL_TO_COME: set[str] = set()
TOP_FOLDERS = r"(?:docs|src|include|test|bench|demo|packaging|scripts|cmake|examples)"

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*(```|~~~)")
CODE_SPAN = re.compile(r"`([^`]+)`")
# A path of this tree, as it is written in running text or in a comment.
DOCS_PATH = re.compile(r"(?<![\w/.-])(docs/[\w./-]*\w)")
TREE_PATH = re.compile(rf"^{TOP_FOLDERS}/[\w./-]+$")
COMMAND = re.compile(r"(?:^|[\s/'\"(])hinterland ([a-z][a-z-]*)((?:\s+\S+)*)")
OPTION = re.compile(r"^\[?(--[a-z][a-z-]*|-[a-z])\b")


def slug(heading):
    """The anchor that a heading gets: lower case, words joined by hyphens, the rest dropped."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def lines_of(text):
    """(number, line, is code) for each line; code is a fenced block, or an indented one after an empty line."""
    fenced = indented = False
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
            before = line
            continue
        if not line.startswith("    "):
            indented = indented and not line.strip()
        elif not before.strip():
            indented = True
        yield number, line, fenced or (indented and line.startswith("    "))
        before = line


class Help:
    """What the command says about itself."""

    def __init__(self, path):
        self._path = path
        listing = self._ask("help").split("Commands:")[1].split("\n\n")[0]
        self.commands = set(re.findall(r"^  ([a-z]+) ", listing, re.MULTILINE))
        self._options = {}

    def _ask(self, *words):
        return subprocess.run([self._path, *words], capture_output=True, text=True, check=True, timeout=30).stdout

    def options(self, command):
        if command not in self._options:
            text = self._ask("help", command)
            self._options[command] = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])\b", text)) | {"--help", "-h"}
        return self._options[command]


class Checker:
    def __init__(self, root, help_=None):
        self.root, self.help = root, help_
        self.findings = []

    def find(self, path, line, message):
        self.findings.append(f"{path}:{line}: {message}")

    def files(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
            for name in sorted(names):
                yield pathlib.Path(folder, name)

    def anchors(self, path):
        return {slug(line.lstrip("#")) for _, line, code in lines_of(path.read_text(encoding="utf-8"))
                if not code and line.startswith("#")}

    def check_link(self, path, number, target):
        if re.match(r"[a-z]+:", target):  # http and the like: the network is not asked
            return
        name, _, anchor = target.partition("#")
        there = (self.root / path).parent / name if name else self.root / path
        if not there.exists():
            self.find(path, number, f"the link to {target} leads nowhere")
        elif anchor and there.suffix == ".md" and anchor not in self.anchors(there):
            self.find(path, number, f"{name or path} has no heading #{anchor}")

    def check_path(self, path, number, name):
        if name not in STILL_TO_COME and not (self.root / name).exists():
            self.find(path, number, f"{name} does not exist")

    def check_command(self, path, number, text):
        for match in COMMAND.finditer(text):
            command = match.group(1)
            if command not in self.help.commands:
                self.find(path, number, f"there is no command 'hinterland {command}'")
                continue
            for word in match.group(2).split():
                if word == "--" or word in {"|", "#", "&&", ";", "&"}:
                    break  # the program's own words, or another command's
                option = OPTION.match(word)
                if option and option.group(1) not in self.help.options(command):
                    self.find(path, number, f"'hinterland {command}' has no option {option.group(1)}")

    def check_page(self, path, text):
        for number, line, code in lines_of(text):
            if not code:
                for match in LINK.finditer(CODE_SPAN.sub("", line)):
                    self.check_link(path, number, match.group(1))
            for span in [line] if code else CODE_SPAN.findall(line):
                if not code and TREE_PATH.match(span):
                    self.check_path(path, number, span.rstrip("/"))
                if self.help:
                    self.check_command(path, number, span)

    def run(self):
        for full in self.files():
            path = str(full.relative_to(self.root))
            if full.stem.endswith("_test") and full.suffix == ".py":  # tests of checks name faults on purpose
                continue
            if full.suffix not in {".md", ".cpp", ".hpp", ".h", ".c", ".py", ".txt", ".cmake", ".in"} and \
                    full.name != "Makefile":
                continue
            text = full.read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                for match in DOCS_PATH.finditer(line):
                    self.check_path(path, number, match.group(1))
            if full.suffix == ".md":
                self.check_page(path, text)
        return not self.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--hinterland", metavar="PATH", help="the command whose help is the measure")
    arguments = parser.parse_args()
    checker = Checker(arguments.root.resolve(), Help(arguments.hinterland) if arguments.hinterland else None)
    good = checker.run()
    for finding in checker.findings:
        print(finding)
    print("docs: " + ("no findings" if good else f"{len(checker.findings)} findings"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
