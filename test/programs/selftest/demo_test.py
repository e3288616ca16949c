#!/usr/bin/python3
"""Parts of the demo: its text, its table and its picture say what was measured; its data is the same each time."""

import hashlib
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "demo"))
sys.dont_write_bytecode = True

import lines  # noqa: E402
import picture  # noqa: E402

MIB = 1 << 20


def way(name, seconds, here, server=0, failure=""):
    return {"name": name, "seconds": seconds, "here_bytes": here * MIB, "server_bytes": server * MIB, "failure": failure}


JOBS = [{"title": "sort <quickly>", "ways": [way("native", 2.0, 100), way("tcp:", 8.0, 30, 70), way("zmem:", 4.0, 60),
                                             way("Linux swap", 0, 0, failure="was ended by signal 9")]},
        {"title": "without swap", "ways": [way("native", 12.34, 10), way("tcp:", 20.0, 5, 5), way("zmem:", 15.0, 8)]}]


class Picture(unittest.TestCase):
    def test_bars_are_in_proportion_and_memory_is_all_of_it(self):
        text = picture.text(JOBS)
        block = "█" if "█" in "".join(text) else "#"
        native, tcp, zmem, swap = (next(line for line in text if line.lstrip().startswith(name))
                                   for name in ("native", "tcp:", "zmem:", "Linux swap"))
        self.assertIn("30 + 70 MiB", tcp)
        self.assertEqual(tcp.count(block), 2 * picture.BAR, "the longest of both")
        self.assertEqual(native.split("2.00 s ")[1].split("  ")[0].count(block), round(picture.BAR / 4))
        self.assertEqual(zmem.split("60 MiB ")[1].count(block), round(picture.BAR * 0.6))
        self.assertIn("was ended by signal 9", swap)

    def test_table_has_a_column_for_each_way_and_a_gap_where_there_is_none(self):
        rows = picture.markdown(JOBS).splitlines()
        self.assertEqual(rows[0], "| | native | tcp: | zmem: | Linux swap |")
        self.assertEqual(rows[2], "| sort <quickly> | 2.00 s, 100 MiB | 8.00 s, 30 + 70 MiB | 4.00 s, 60 MiB | was ended by "
                                  "signal 9 |")
        self.assertEqual(rows[3], "| without swap | 12.3 s, 10 MiB | 20.0 s, 5 + 5 MiB | 15.0 s, 8 MiB |  |")

    def test_picture_is_well_formed_and_in_proportion(self):
        root = xml.fromstring(picture.svg(JOBS))
        bars = [(bar.get("class"), float(bar.get("width"))) for bar in root.iter("{http://www.w3.org/2000/svg}rect")
                if bar.get("class")]
        self.assertEqual([width for kind, width in bars if kind == "time"][:3],
                         [round(share * picture._WIDTH, 1) for share in (0.25, 1, 0.5)])
        self.assertEqual([kind for kind, _ in bars].count("server"), 2)
        self.assertIn("sort &lt;quickly&gt;", picture.page(JOBS, ["all & equal"]))
        self.assertIn("all &amp; equal", picture.page(JOBS, ["all & equal"]))


class Data(unittest.TestCase):
    def test_lines_are_the_same_each_time(self):
        with tempfile.TemporaryDirectory() as folder:
            digests = []
            for name in "ab":
                path = os.path.join(folder, name)
                lines.write(path, 12_345)
                with open(path, "rb") as file:
                    content = file.read()
                self.assertEqual(content.count(b"\n"), 12_345)
                digests.append(hashlib.sha256(content).hexdigest())
            self.assertEqual(digests[0], digests[1])


if __name__ == "__main__":
    unittest.main()
