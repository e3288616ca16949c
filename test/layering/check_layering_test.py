#!/usr/bin/env python3
"""Shows check_layering.py small trees with one fault each: every fault must be found, and a good tree pass."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layering  # noqa: E402

GOOD = {
    "CMakeLists.txt": "set(HINTERLAND_ROOMS base far paging\n  cli)\n",
    "include/hinterland/hint.h": "/* Hints. */\n#include <stdint.h>\nuint32_t hl_hint(uint32_t page);\n",
    "src/base/units.hpp": "// Units.\n#pragma once\n",
    "src/far/device.hpp": '// Devices.\n#pragma once\n#include "base/units.hpp"\n#include "hinterland/hint.h"\n',
    "src/paging/pager.cpp": '// The pager.\n#include <cstdio>\n#include "far/device.hpp"\n'
                            "int text(char* b) { return snprintf(b, 9, \"printf(%d)\", 1'000'000); }\n",
    "src/cli/main.cpp": '// The command.\n#include "paging/pager.cpp"\nvoid say() { puts("here"); }\n',
}


class LayeringTest(unittest.TestCase):
    def check(self, changes):
        """Findings and notes for the good tree with these files added or replaced."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**GOOD, **changes}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            checker = check_layering.Checker(root, check_layering.read_rooms(root))
            checker.run()
            return checker

    def assert_one_finding(self, changes, place, words):
        findings = self.check(changes).findings
        self.assertEqual(len(findings), 1, findings)
        self.assertTrue(findings[0].startswith(place + ":"), findings[0])
        self.assertIn(words, findings[0])

    def test_good_tree_passes(self):
        checker = self.check({})
        self.assertEqual(checker.findings, [])
        self.assertEqual(checker.notes, [])

    def test_a_comment_that_names_no_document(self):
        self.assert_one_finding({"src/base/far.hpp": "// As in OTHER.md 2.\n#pragma once\n"}, "src/base/far.hpp:1", "no OTHER.md")
        self.assertEqual(self.check({"src/base/far.hpp": "// As in docs/there.md.\n#pragma once\n",
                                     "docs/there.md": "# There\n"}).findings, [])

    def test_include_of_a_higher_room(self):
        self.assert_one_finding({"src/base/up.cpp": '// Up.\n#include "far/device.hpp"\n'}, "src/base/up.cpp:2",
                                "far is a higher room")

    SUBROOMS = {"src/paging/CMakeLists.txt": "set(SUBROOMS page in)\n",
                "src/paging/page/word.hpp": "// Words.\n#pragma once\n",
                "src/paging/in/fetcher.hpp": '// Fetches.\n#pragma once\n#include "paging/page/word.hpp"\n'}

    def test_sub_rooms_in_order(self):
        top = {"src/paging/top.cpp": '// Top.\n#include "paging/in/fetcher.hpp"\n'}
        self.assertEqual(self.check({**self.SUBROOMS, **top}).findings, [])

    def test_include_of_a_higher_sub_room(self):
        up = {"src/paging/page/up.hpp": '// Up.\n#pragma once\n#include "paging/in/fetcher.hpp"\n'}
        self.assert_one_finding({**self.SUBROOMS, **up}, "src/paging/page/up.hpp:3", "sub-room paging/page includes")

    def test_include_of_the_room_from_a_sub_room(self):
        up = {"src/paging/in/up.hpp": '// Up.\n#pragma once\n#include "paging/pager.cpp"\n'}
        self.assert_one_finding({**self.SUBROOMS, **up}, "src/paging/in/up.hpp:3", "which is above it")

    def test_a_private_header(self):
        lists = {"src/paging/CMakeLists.txt": "set(SUBROOMS page in)\nset(PRIVATE_HEADERS page/word.hpp)\n"}
        self.assert_one_finding({**self.SUBROOMS, **lists}, "src/paging/in/fetcher.hpp:3", "is private to paging/page")

    def test_a_unit_test_in_a_sub_room_may_use_the_whole_room(self):
        test = {"src/paging/in/fetcher_test.cpp": '// Test.\n#include "paging/pager.cpp"\n'}
        self.assertEqual(self.check({**self.SUBROOMS, **test}).findings, [])

    def test_an_unknown_sub_room(self):
        self.assert_one_finding({**self.SUBROOMS, "src/paging/attic/old.hpp": "// Old.\n#pragma once\n"},
                                "src/paging/attic/old.hpp:1", "is not a sub-room")

    def test_include_of_a_higher_room_from_a_unit_test(self):
        self.assert_one_finding({"src/far/device_test.cpp": '// Up.\n#  include "paging/pager.cpp"\n'},
                                "src/far/device_test.cpp:2", "paging is a higher room")

    def test_include_of_a_higher_room_in_angle_brackets(self):
        self.assert_one_finding({"src/base/up.cpp": "// Up.\n#include <far/device.hpp>\n"}, "src/base/up.cpp:2",
                                "far is a higher room")

    def test_include_in_a_comment_is_none(self):
        text = '// Up.\n// #include "far/device.hpp"\n/*\n#include "far/device.hpp"\n*/\n'
        self.assertEqual(self.check({"src/base/up.cpp": text}).findings, [])

    def test_include_by_neighbour_name(self):
        self.assert_one_finding({"src/far/near.cpp": '// Near.\n#include "device.hpp"\n'}, "src/far/near.cpp:2",
                                "is not in src/")

    def test_missing_public_header(self):
        self.assert_one_finding({"src/far/near.cpp": '// Near.\n#include "hinterland/none.h"\n'},
                                "src/far/near.cpp:2", "is not in include/")

    def test_unknown_room(self):
        self.assert_one_finding({"src/cellar/a.cpp": "// A.\n"}, "src/cellar/a.cpp:1", "is not a room")

    def test_public_header_that_includes_the_inside(self):
        checker = self.check({"include/hinterland/in.h": '/* In. */\n#include "base/units.hpp"\n'})
        self.assertTrue(any("a public header includes" in f for f in checker.findings), checker.findings)

    def test_public_header_that_needs_another_first(self):
        text = "/* Needs stdint.h. */\nuint32_t hl_bad(void);\n"
        findings = self.check({"include/hinterland/bad.h": text}).findings
        self.assertTrue(any("alone as c11" in f and "uint32_t" in f for f in findings), findings)
        self.assertTrue(any("alone as c++20" in f for f in findings), findings)

    def test_public_c_header_that_is_only_cpp(self):
        self.assert_one_finding({"include/hinterland/bad.h": "/* Bad. */\nnamespace a {}\n"},
                                "include/hinterland/bad.h:1", "alone as c11")

    def test_public_cpp_header_is_not_compiled_as_c(self):
        self.assertEqual(self.check({"include/hinterland/good.hpp": "// Good.\nnamespace a {}\n"}).findings, [])

    def test_file_lengths(self):
        self.assert_one_finding({"src/base/long.cpp": "// Long.\n" * 801}, "src/base/long.cpp:800", "801 lines")
        checker = self.check({"src/base/long.cpp": "// Long.\n" * 401})
        self.assertEqual(checker.findings, [])
        self.assertEqual(len(checker.notes), 1)

    def test_unfinished_marks(self):
        for word in ("TO" "DO", "FIX" "ME"):
            self.assert_one_finding({"src/base/a.cpp": f"// A.\n// {word}: later\n"}, "src/base/a.cpp:2",
                                    "unfinished")

    def test_printing_library_code(self):
        for call in ('printf("x")', 'std::printf("x")', "std::cout << 1", 'fprintf(stderr, "x")', 'puts("x")'):
            self.assert_one_finding({"src/far/a.cpp": f"// A.\nvoid f() {{ {call}; }}\n"}, "src/far/a.cpp:2",
                                    "in library code")

    def test_printing_where_it_is_allowed(self):
        text = '// A.\nvoid f() { printf("x"); }\n'
        self.assertEqual(self.check({"src/cli/a.cpp": text, "src/far/a_test.cpp": text}).findings, [])

    def test_header_without_purpose(self):
        self.assert_one_finding({"src/base/a.hpp": "#pragma once\n"}, "src/base/a.hpp:1", "what it is for")

    def test_source_without_purpose_is_only_noted(self):
        checker = self.check({"src/base/a.cpp": "int a;\n"})
        self.assertEqual(checker.findings, [])
        self.assertEqual(len(checker.notes), 1)

    def test_trailing_white_space(self):
        self.assert_one_finding({"src/base/a.cpp": "// A.\nint a; \n"}, "src/base/a.cpp:2", "trailing")
        self.assert_one_finding({"docs/a.md": "words\t\n"}, "docs/a.md:1", "trailing")

    def test_tree_without_room_order(self):
        with self.assertRaises(SystemExit):
            self.check({"CMakeLists.txt": "project(x)\n"})


if __name__ == "__main__":
    unittest.main()
