#!/usr/bin/env python3
"""Each knob that exists is found in docs/tuning.md, and each figure that the page names exists.

tuning_test.py HINTERLAND
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HINTERLAND = sys.argv.pop(1)
PAGE = (ROOT / "docs/tuning.md").read_text(encoding="utf-8")
CODE = set(re.findall(r"`([^`]+)`", PAGE))


def header(name):
    return (ROOT / "include/hinterland" / name).read_text(encoding="utf-8")


def fields(struct, text):
    body = re.search(rf"struct {struct} \{{(.*?)\n\}};", text, re.DOTALL)[1]
    body = re.sub(r"//.*|/\*.*?\*/", "", body, flags=re.DOTALL if "/*" in body else 0)
    return set(re.findall(r"(\w+)(?:\s*=[^;]*|\{[^;]*\})?;", body))


class Tuning(unittest.TestCase):
    def test_each_option_of_run(self):
        text = subprocess.run([HINTERLAND, "help", "run"], capture_output=True, text=True, check=True).stdout
        options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)) - {"--help"}
        self.assertGreater(len(options), 10)
        for option in options:
            self.assertRegex(PAGE, rf"{option}\b", "an option that docs/tuning.md does not name")

    def test_each_policy(self):
        text = subprocess.run([HINTERLAND, "help", "run"], capture_output=True, text=True, check=True).stdout
        listed = re.search(r"--policy NAME.*?Valid: ([^.]*)\.", text, re.DOTALL)[1]
        policies = re.split(r",\s+", listed)  # the list goes over several lines
        self.assertIn("fifo", policies)
        for policy in policies:
            self.assertIn(policy, CODE)

    def test_each_field_of_regions_fibers_and_hints(self):
        region = fields("hl_region_options", header("region.h"))
        fiber = fields("run_options", header("fiber.hpp"))
        hint = fields("options", header("hint.hpp"))
        self.assertEqual((len(region), len(fiber), len(hint)), (5, 4, 5), (region, fiber, hint))
        for field in region | fiber | hint:
            self.assertIn(field, CODE)

    def test_each_figure_exists(self):
        stats = (ROOT / "src/base/stats.hpp").read_text(encoding="utf-8")
        named = {word for word in CODE if re.fullmatch(r"(?:faults|pages|reclaim|hint|device|handlers|fault|fetch)_\w+", word)}
        self.assertGreater(len(named), 12)
        for word in named:
            self.assertRegex(stats, rf"\b{word}\b", "a figure that does not exist")


if __name__ == "__main__":
    unittest.main()
