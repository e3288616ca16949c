"""Real data that a Debian machine has: the metadata of all packages that apt knows, as tables for SQLite's .import."""

import os
import re
import shutil
import subprocess

STATUS = "/var/lib/dpkg/status"
GENERATED_PACKAGES = 60_000  # when apt knows nothing: copies of what is installed, under other names
COLUMN, ROW = "\x1f", "\x1e"  # what `.import --ascii` expects
_NAME = re.compile(r"\s*([a-z0-9][a-z0-9+.-]+)")
_PACKAGE_FIELDS = ("Package", "Version", "Section", "Priority", "Architecture", "Maintainer", "Source", "Homepage",
                   "Installed-Size", "Size", "Filename", "SHA256", "Description")
_RELATIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Provides", "Conflicts", "Breaks", "Replaces")


def _stanzas(lines):
    """{field: text} of each package; continued lines are joined."""
    fields, name = {}, None
    for line in lines:
        if line == "\n":
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            if name:
                fields[name] += " " + line.strip()
        else:
            name, _, text = line.partition(":")
            fields[name] = text.strip()
    if fields:
        yield fields


def _available():
    """Stanzas of everything that apt knows; nothing when its lists are empty."""
    if not shutil.which("apt-cache"):
        return
    with subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          encoding="utf-8", errors="replace") as process:
        yield from _stanzas(process.stdout)


def _installed():
    if os.path.exists(STATUS):
        with open(STATUS, encoding="utf-8", errors="replace") as file:
            yield from _stanzas(file)


def _generated(count):
    originals = [fields for fields in _installed() if "Package" in fields] or [{"Package": "base", "Version": "1"}]
    for number in range(count):
        fields = dict(originals[number % len(originals)])
        fields["Package"] += f"-copy{number // len(originals)}"
        yield fields


class _Tables:
    def __init__(self, folder):
        self.packages = 0
        self._files = {name: open(os.path.join(folder, name), "w", encoding="utf-8")
                       for name in ("package", "relation", "tag", "word")}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for file in self._files.values():
            file.close()

    def _row(self, table, *columns):
        self._files[table].write(COLUMN.join(columns) + ROW)

    def add(self, fields):
        name = fields.get("Package")
        if not name:
            return
        self.packages += 1
        number = str(self.packages)
        self._row("package", number, *(fields.get(field, "") for field in _PACKAGE_FIELDS))
        for kind in _RELATIONS:
            for target in re.split(r"[,|]", fields.get(kind, "")):
                found = _NAME.match(target)
                if found:
                    self._row("relation", number, kind, found[1])
        for tag in filter(None, fields.get("Tag", "").replace(",", " ").split()):
            self._row("tag", number, tag)
        for word in set(re.findall(r"[a-z]{3,}", fields.get("Description", "").lower())):
            self._row("word", number, word)


def write(folder):
    """Writes the tables into `folder`. (packages, where they come from)."""
    with _Tables(folder) as tables:
        for fields in _available():
            tables.add(fields)
        known = tables.packages
        for fields in _installed():
            tables.add(fields)
        installed = tables.packages - known
        if known >= 10_000:
            return tables.packages, f"{known} packages that apt knows, {installed} installed"
        for fields in _generated(GENERATED_PACKAGES - tables.packages):
            tables.add(fields)
        return tables.packages, (f"apt's lists are empty (apt-get update would fill them): {installed} installed "
                                 f"packages, and {tables.packages - known - installed} generated from those")
