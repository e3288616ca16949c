"""What bench/eden/run has measured, as markdown: for its folder, and between two marks each for docs/eden.md (plots and
tables) and docs/performance.md (targets)."""

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


def plots_and_tables(folder, made, images=""):
    """images: where the plots are, from the page."""
    lines = [heading(folder), ""]
    for name, result in made.items():
        title = name.replace("figure", "Figure ").replace("table", "Table ").capitalize()
        shows = figures.FIGURES[name].shows
        lines += [f"### {title}: {shows}", ""]
        lines += [f"![{title}: {shows}]({images}{result})", ""] if isinstance(result, str) else [*result, ""]
    return "\n".join(lines)


def targets_table(folder):
    return targets.markdown(rows(folder)) + "\n"


def markdown(folder, made, images=""):
    """All of it."""
    return f"{plots_and_tables(folder, made, images)}\n### Targets\n\n{targets_table(folder)}"


def _between_marks(path, text):
    """The page with `text` between its marks."""
    with open(path, encoding="utf-8") as file:
        before, begin, rest = file.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise OSError(f"{path} has no place for it: the lines {BEGIN} and {END} are missing")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def write_docs(folder, made, docs):
    """Copies the plots to docs/images and puts the markdown between the marks of both pages, or of neither. The page of
    plots."""
    eden, performance = os.path.join(docs, "eden.md"), os.path.join(docs, "performance.md")
    pages = {eden: _between_marks(eden, plots_and_tables(folder, made, "images/")),
             performance: _between_marks(performance, f"{heading(folder)}\n\n{targets_table(folder)}")}
    for result in made.values():
        if isinstance(result, str):
            shutil.copy(os.path.join(folder, result), os.path.join(docs, "images", result))
    for path, text in pages.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return eden
