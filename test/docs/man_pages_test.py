#!/usr/bin/env python3
"""The library's manual pages name each public function of their header, and nothing else, its errors and options.

man_pages_test.py [ROOT]
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
PAGES = {"hl_hint": "hint.h", "hl_region": "region.h"}


def page_text(page):
    text = (ROOT / "docs/man" / f"{page}.3").read_text(encoding="utf-8")
    return text.replace("\\-", "-")


def header_text(header):
    return (ROOT / "include/hinterland" / header).read_text(encoding="utf-8")


def public_names(header):
    declared = re.findall(r"^(?:HL__INLINE [\w *]*?|#define )(hl_(?!_)\w+)\(", header_text(header), re.MULTILINE)
    return set(declared)


class ManPages(unittest.TestCase):
    def test_each_function_has_its_page(self):
        for page, header in PAGES.items():
            names = re.search(r'^\.SH NAME\n(.*) - ', page_text(page), re.MULTILINE)[1].split(", ")
            self.assertGreater(len(names), 2)
            self.assertEqual(set(names), public_names(header), page)

    def test_each_name_is_in_the_synopsis(self):
        for page, header in PAGES.items():
            synopsis = page_text(page).split(".SH SYNOPSIS")[1].split(".SH DESCRIPTION")[0]
            for name in public_names(header):
                self.assertIn(name + "(", synopsis)

    def test_errors_and_options_are_those_of_the_header(self):
        for page, header in PAGES.items():
            listed = set(re.findall(r"^\.B (E[A-Z]+)$", page_text(page), re.MULTILINE))
            comments = "\n".join(re.findall(r"/\*.*?\*/", header_text(header), re.DOTALL))
            self.assertEqual(listed, set(re.findall(r"\b(E[A-Z]{3,})\b(?!_)", comments)), page)
        for field in re.findall(r"^  \w[\w ]*\*?\b(\w+);", re.search(r"struct hl_region_options \{.*?\};",
                                header_text("region.h"), re.DOTALL)[0], re.MULTILINE):
            self.assertRegex(page_text("hl_region"), rf"\.I {field}\b")
        for field in re.findall(r"\b(size|rdahead|mut|seq|ev_prio);", header_text("hint.h")):
            self.assertIn(f".{field} ", page_text("hl_hint"))

    def test_groff_has_no_complaint(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        for page in PAGES:
            done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tascii", ROOT / "docs/man" / f"{page}.3"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
