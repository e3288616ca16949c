#!/usr/bin/python3
"""insert_hints.py on made-up sources: where hints go, and what it says where they do not fit."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import insert_hints  # noqa: E402

SOURCE = """static int find(int key);
int find(int key) {
    while (key) {
        key = key->next;
    }
    return key; /* find(key) { */
}

int other(int a,
          int b)
{
    return find(a); }
    b++;
    b++;
}
"""


class Insert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "x.c")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(SOURCE)

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def test_before_the_line_with_its_margin(self):
        insert_hints.insert(self.folder, [("x.c", "find", "key = key->next;", "hl_read(key);"),
                                          ("x.c", "other", "return find(a); }", "hl_write(a);"),
                                          ("x.c", "find", "while (key) {", "hl_read(1);")])
        self.assertEqual(self.text(), SOURCE.replace("        key = ", "        hl_read(key);\n        key = ")
                         .replace("    return find", "    hl_write(a);\n    return find")
                         .replace("    while", "    hl_read(1);\n    while"))

    def test_all_or_nothing(self):
        for hint, message in ((("x.c", "find", "b++;", "h"), "0 lines 'b\\+\\+;'"),
                              (("x.c", "other", "b++;", "h"), "2 lines"),
                              (("x.c", "none", "b++;", "h"), "x.c has no function none"),
                              (("y.c", "find", "b++;", "h"), "y.c: No such file")):
            with self.assertRaisesRegex(insert_hints.DoesNotFit, message):
                insert_hints.insert(self.folder, [("x.c", "find", "while (key) {", "hl_read(1);"), hint])
            self.assertEqual(self.text(), SOURCE)


class Parse(unittest.TestCase):
    def test_what_is_right(self):
        text = "# why\nfile a.c\nfunction f\n# this\nbefore x = y;\ninsert hl_read(y);\n\n\nfile b.c\nbefore q\ninsert r\nfunction g"
        self.assertEqual(insert_hints.parse(text, "list"), [("a.c", "f", "x = y;", "hl_read(y);"), ("b.c", "g", "q", "r")])

    def test_what_is_not(self):
        for text, message in (("file a.c\nfunction f\n\n", "list, line 3: .*has file, function only"),
                              ("fail a.c\n", "list, line 1: 'fail a.c'"), ("file a.c\nfile b.c\n", "list, line 2"),
                              ("file\n", "list, line 1")):
            with self.assertRaisesRegex(insert_hints.DoesNotFit, message):
                insert_hints.parse(text, "list")

    def test_ours(self):
        with open(os.path.join(HERE, "hints.list"), encoding="utf-8") as file:
            hints = insert_hints.parse(file.read(), "hints.list")
        self.assertTrue(3 <= len(hints) <= 10, len(hints))
        self.assertTrue(all(hint[3].startswith("hl_") for hint in hints))


if __name__ == "__main__":
    unittest.main()
