#!/usr/bin/env python3
"""Code that a page shows is code of an example, which is built and run: line by line, but for its indentation."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOWN = {"docs/dataframe.md": "examples/dataframe/main.cpp"}


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


class ShownCode(unittest.TestCase):
    def test_it_is_in_the_example(self):
        for page, example in SHOWN.items():
            block = (ROOT / page).read_text(encoding="utf-8").split("```cpp\n")[1].split("```")[0]
            shown, code = lines(block), lines((ROOT / example).read_text(encoding="utf-8"))
            self.assertGreater(len(shown), 5, page)
            self.assertTrue(any(code[at:at + len(shown)] == shown for at in range(len(code))),
                            f"the first code of {page} is not in {example}: copy it from there")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
