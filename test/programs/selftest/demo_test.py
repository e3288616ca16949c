#!/usr/bin/python3
"""Parts of the demo: package metadata becomes tables."""

import os
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "demo"))
sys.dont_write_bytecode = True

import package_data  # noqa: E402

STATUS = """Package: alpha
Version: 1.0
Depends: libc6 (>= 2.3), beta | gamma
Tag: use::a,
 use::b
Description: the Alpha program

Package: beta
Version: 2
"""


class Data(unittest.TestCase):
    def tables(self, available):
        with tempfile.TemporaryDirectory() as folder:
            status = os.path.join(folder, "status")
            with open(status, "w", encoding="utf-8") as file:
                file.write(STATUS)
            with mock.patch.object(package_data, "STATUS", status), \
                    mock.patch.object(package_data, "GENERATED_PACKAGES", 10), \
                    mock.patch.object(package_data, "_available", lambda: iter(available)):
                written = package_data.write(folder)
            rows = {}
            for name in ("package", "relation", "tag", "word"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    rows[name] = [row.split(package_data.COLUMN) for row in file.read().split(package_data.ROW)[:-1]]
            return written, rows

    def test_without_apt_lists_it_says_so_and_generates(self):
        (packages, origin), rows = self.tables([])
        self.assertEqual(packages, 10)
        self.assertIn("apt's lists are empty", origin)
        self.assertEqual(rows["package"][0][1], "alpha")
        self.assertEqual(rows["package"][2][1], "alpha-copy0")
        self.assertEqual([row[1:] for row in rows["relation"][:3]],
                         [["Depends", "libc6"], ["Depends", "beta"], ["Depends", "gamma"]])
        self.assertEqual([row[1] for row in rows["tag"][:2]], ["use::a", "use::b"])
        self.assertEqual({row[1] for row in rows["word"][:3]}, {"the", "alpha", "program"})

    def test_with_apt_lists_nothing_is_generated(self):
        known = [{"Package": f"p{n}", "Version": "1"} for n in range(10_000)]
        (packages, origin), _ = self.tables(known)
        self.assertEqual(packages, 10_002)
        self.assertIn("10000 packages that apt knows, 2 installed", origin)


if __name__ == "__main__":
    unittest.main()
