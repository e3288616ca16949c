"""What bench/eden/run has measured, as markdown: for its folder, and for docs/eden.md between two marks."""

import json
import os
import shutil

from . import documents, figures, plots, targets

BEGIN, END = "<!-- measured: bench/eden/run --docs writes what follows -->", "<!-- measured: end -->"


def heading(folder):
    """Where and how: from the first result that says so."""
    for name in ("overheads", *figures.ALL_APPS, "hints", "fibers"):
        document = documents.read(folder, name)
        if document:
            machine = document["machine"]
            busy = ("The machine was quiet." if document["busy"]["cpu_share"] <= 0.1
                    else "The machine was BUSY: other work took part of it, so take none of this for a result.")
            return (f"{machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}, commit "
                    f"{document['commit']}. {busy}")
    return "Nothing was measured yet."


def rows(folder):
    hints, apps = documents.read(folder, "hints"), figures.apps_of(folder)
    overheads = documents.Apps([documents.read(folder, "overheads")])
    return targets.rows(apps, overheads, documents.Hints(hints) if hints else None, documents.read(folder, "fibers"))


def make(folder, names, say):
    """Draws the figures of these names; {name: PNG or lines of a table}."""
    made, pyplot = {}, plots.import_pyplot()
    for name in names:
        try:
            made[name] = figures.FIGURES[name].make(pyplot, folder)
        except (plots.Nothing, OSError, KeyError, json.JSONDecodeError) as reason:
            say(f"eden: {name}: not drawn: {reason!s}")
    return made


def markdown(folder, made, images=""):
    """images: where the plots are, from the page."""
    lines = [heading(folder), ""]
    for name, result in made.items():
        title = name.replace("figure", "Figure ").replace("table", "Table ").capitalize()
        shows = figures.FIGURES[name].shows
        lines += [f"### {title}: {shows}", ""]
        lines += [f"![{title}: {shows}]({images}{result})", ""] if isinstance(result, str) else [*result, ""]
    return "\n".join([*lines, "### Targets", "", targets.markdown(rows(folder))]) + "\n"


def write_docs(folder, made, docs):
    """Copies the plots to docs/images and puts the markdown between the marks of docs/eden.md. Its path."""
    path = os.path.join(docs, "eden.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise OSError(f"{path} has no place for it: the lines {BEGIN} and {END} are missing")
    for result in made.values():
        if isinstance(result, str):
            shutil.copy(os.path.join(folder, result), os.path.join(docs, "images", result))
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{markdown(folder, made, 'images/')}\n{END}{after}")
    return path
