#!/usr/bin/env python3
"""Shows check_docs.py small trees with one fault each: every fault must be found, and a good tree pass."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_docs  # noqa: E402

GOOD = {
    "README.md": "# Far\nSee [use](docs/use.md#first-steps-now), [the top](#far) and ![a picture](docs/house.svg).\n"
                 "The code is in `src/base/units.hpp` and `src/base/`. `hinterland run --local 1G -- ls --all` works.\n\n"
                 "    $ hinterland run --local 64M -v -- sort --parallel=1 | wc --lines\n"
                 "    hinterland: sort ended with status 0\n\nElsewhere: [far](https://example.org/docs/none.md).\n",
    "docs/use.md": "# Use\n## First `steps`, now\n```\n# not a heading, [not a link](none.md)\n```\nBack: [up](../README.md)\n",
    "docs/house.svg": "<svg/>",
    "src/base/units.hpp": "// Units: docs/use.md.\n",
}


class FakeHelp:
    commands = {"run", "stat"}

    def options(self, command):
        return {"run": {"--local", "-v"}, "stat": {"--json"}}[command]


class DocsTest(unittest.TestCase):
    def findings(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**GOOD, **changes}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            checker = check_docs.Checker(root, FakeHelp())
            checker.run()
            return checker.findings

    def assert_one_finding(self, changes, place, words):
        findings = self.findings(changes)
        self.assertEqual(len(findings), 1, findings)
        self.assertTrue(findings[0].startswith(place + ":"), findings[0])
        self.assertIn(words, findings[0])

    def test_good_tree(self):
        self.assertEqual(self.findings({}), [])

    def test_link_to_nothing(self):
        self.assert_one_finding({"docs/use.md": GOOD["docs/use.md"] + "[gone](gone.md)\n"}, "docs/use.md:7", "gone.md")

    def test_picture_that_is_not_there(self):
        self.assert_one_finding({"docs/more.md": "![x](images/x.svg)\n"}, "docs/more.md:1", "images/x.svg")

    def test_heading_that_is_not_there(self):
        self.assert_one_finding({"docs/more.md": "[x](use.md#last-steps)\n"}, "docs/more.md:1", "#last-steps")

    def test_heading_in_a_code_block_is_none(self):
        self.assert_one_finding({"docs/more.md": "[x](use.md#not-a-heading-not-a-link)\n"}, "docs/more.md:1", "heading")

    def test_docs_path_in_a_comment(self):
        self.assert_one_finding({"src/base/more.hpp": "// See docs/gone.md.\n"}, "src/base/more.hpp:1", "docs/gone.md")

    def test_source_path_in_a_page(self):
        self.assert_one_finding({"docs/more.md": "It is in `src/base/gone.hpp`.\n"}, "docs/more.md:1", "gone.hpp")

    def test_unknown_command(self):
        self.assert_one_finding({"docs/more.md": "Try `hinterland fly`.\n"}, "docs/more.md:1", "hinterland fly")

    def test_unknown_option(self):
        self.assert_one_finding({"docs/more.md": "Try\n\n    $ build/bin/hinterland stat --xml 17\n"},
                                "docs/more.md:3", "--xml")

    def test_help_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            command = pathlib.Path(folder, "hinterland")
            command.write_text("#!/bin/sh\n[ $# = 1 ] && printf 'X\\n\\nCommands:\\n  run       runs\\n\\nFirst\\n'\n"
                               "[ $# = 2 ] && printf '  -v, --verbose\\n  --far URL  where: see --local-ish\\n'\ntrue\n")
            command.chmod(0o755)
            help_ = check_docs.Help(str(command))
            self.assertEqual(help_.commands, {"run"})
            self.assertLessEqual({"-v", "--verbose", "--far"}, help_.options("run"))


if __name__ == "__main__":
    unittest.main()
