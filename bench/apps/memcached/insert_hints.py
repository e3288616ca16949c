"""Inserts lines into somebody else's source: each by its file, its function and the line that it comes before, so that a
newer version of the source takes them as well, or says where it does not."""

import os
import re


class DoesNotFit(Exception):
    """What is wrong with the list, or is no longer there in the source."""


def parse(text, name):
    """[(file, function, before, insert)]."""
    found, current = [], {}
    for number, line in enumerate([*text.splitlines(), ""], 1):
        line = line.strip()
        if line.startswith("#"):
            continue
        if line:
            key, _, value = line.partition(" ")
            if key not in ("file", "function", "before", "insert") or key in current or not value:
                raise DoesNotFit(f"{name}, line {number}: '{line}': a hint is four lines, file, function, before and "
                                 "insert, and a blank one after them")
            current[key] = value
        elif current:
            if len(current) != 4:
                raise DoesNotFit(f"{name}, line {number}: before it, a hint has {', '.join(current)} only")
            found.append((current["file"], current["function"], current["before"], current["insert"]))
            current = {}
    return found


def function_lines(lines, function):
    """[first, last) of its body: from a line at the margin with its name, which no `;` ends, to the brace at the margin."""
    name = re.compile(rf"^[A-Za-z_].*\b{re.escape(function)}\s*\(")
    for first, line in enumerate(lines):
        if not name.match(line):
            continue
        for last in range(first, len(lines)):
            if last > first and lines[last].startswith("}"):
                return first, last
            if lines[last].rstrip().endswith(";") and not lines[last].startswith((" ", "\t")):
                break  # a declaration
    return None


def insert(folder, hints):
    """Changes the files. All of the hints, or DoesNotFit and none."""
    files = {}
    for file, function, before, line in hints:
        path = os.path.join(folder, file)
        if path not in files:
            try:
                with open(path, encoding="utf-8") as source:
                    files[path] = source.read().split("\n")
            except OSError as error:
                raise DoesNotFit(f"{file}: {error.strerror}") from None
        lines = files[path]
        body = function_lines(lines, function)
        if body is None:
            raise DoesNotFit(f"{file} has no function {function}")
        places = [number for number in range(*body) if lines[number].strip() == before]
        if len(places) != 1:
            raise DoesNotFit(f"{file}, {function}: there are {len(places)} lines '{before}', and it must be one")
        margin = lines[places[0]][:len(lines[places[0]]) - len(lines[places[0]].lstrip())]
        lines.insert(places[0], margin + line)
    for path, lines in files.items():
        with open(path, "w", encoding="utf-8") as source:
            source.write("\n".join(lines))
