#!/usr/bin/python3
"""The table of programs: which swap a figure is held against, what a cell says. Sets up no swap and runs no program."""

import contextlib
import os
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import programs_table  # noqa: E402
from harness.errors import Failure  # noqa: E402

MIB = 1 << 20


def filled(cell, *seconds):
    cell.seconds, cell.ratios = list(seconds), [each / 2 for each in seconds]
    cell.pages_in = [int(1000 * each) for each in seconds]
    return cell


def results(*cells):
    return programs_table.against_swap([cell.result() for cell in cells])


class AgainstSwap(unittest.TestCase):
    def test_the_better_swap_of_the_same_share_counts(self):
        far = filled(programs_table.Cell("mem:", 0.25), 3.0, 4.0, 5.0)
        cells = results(far, filled(programs_table.SwapCell(0, 0.25), 10.0), filled(programs_table.SwapCell(3, 0.25), 8.0),
                        filled(programs_table.SwapCell(0, 0.5), 1.0))
        self.assertEqual(cells[0]["of_swap"], 0.5)
        self.assertEqual(programs_table.cell_text(cells[0]), "2.00 (1.50-2.50), 0.50 of swap")
        self.assertEqual(programs_table.misses_text(cells[0]), "4.0 (3.0-5.0), 0.50 of swap")
        self.assertNotIn("of_swap", cells[1])

    def test_means_are_geometric(self):
        cells = results(filled(programs_table.Cell("mem:", 0.25), 4.0), filled(programs_table.SwapCell(0, 0.25), 8.0))
        cells += results(filled(programs_table.Cell("mem:", 0.5), 8.0), filled(programs_table.SwapCell(0, 0.5), 4.0))
        means = programs_table.means_against_swap({"results": [{"far": cells}]})
        self.assertAlmostEqual(means["time"], 1)
        self.assertAlmostEqual(means["misses"], 1)
        self.assertEqual(programs_table.means_against_swap({"results": [{"far": []}]}), {})

    def test_without_a_swap_that_ended_well_there_is_no_figure(self):
        failed = programs_table.SwapCell(0, 0.25)
        failed.failure = "killed"
        cells = results(filled(programs_table.Cell("mem:", 0.25), 3.0), failed)
        self.assertNotIn("of_swap", cells[0])
        self.assertEqual(programs_table.cell_text(cells[1]), "failed")


class SwapCell(unittest.TestCase):
    def run_cell(self, answer):
        """A run whose program gives `answer`, where natively it was 'same'."""
        cell, seen = programs_table.SwapCell(3, 0.25), {}

        @contextlib.contextmanager
        def limited(memory_bytes, swap_bytes, cluster):
            seen.update(memory=memory_bytes, swap=swap_bytes, cluster=cluster)
            yield ["words"]

        def compare(native, far):
            if native != far:
                raise Failure("output differs")

        program = types.SimpleNamespace(local_bytes_max=None, compare=compare)
        native = types.SimpleNamespace(peak_bytes=100 * MIB, seconds=2.0, answer="same")
        outcome = types.SimpleNamespace(answer=answer, seconds=6.0)
        with mock.patch.object(programs_table.swap_baseline, "limited", limited), \
                mock.patch.object(programs_table.swap_baseline, "pages_moved", side_effect=[(1, 2), (11, 32)]), \
                mock.patch.object(programs_table.measure, "run", return_value=outcome) as run:
            cell.run(program, native, types.SimpleNamespace(seconds_max=60, local_share=0))
        self.assertEqual(run.call_args.kwargs["around"], ["words"])
        return cell, seen

    def test_the_limit_is_the_budget(self):
        cell, seen = self.run_cell("same")
        self.assertEqual(seen, {"memory": 25 * MIB, "swap": 200 * MIB, "cluster": 3})
        self.assertEqual((cell.ratios, cell.figures), ([3.0], {"pages_out": 30}))
        self.assertEqual(cell.pages_in, [10])

    def test_a_wrong_result_is_a_failure(self):
        cell, _ = self.run_cell("other")
        self.assertEqual((cell.failure, cell.seconds), ("output differs", []))


if __name__ == "__main__":
    unittest.main()
