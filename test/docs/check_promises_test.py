#!/usr/bin/env python3
"""check_promises.py finds what is missing."""

import unittest

import check_promises

HEAD = check_promises.HEADING + "\n\n| promise | where | tests |\n|---|---|---|\n"


class Problems(unittest.TestCase):
    def found(self, lines):
        return check_promises.problems(HEAD + lines + "\n\n## Next\n| x | y | `nobody` |\n", {"failures_server", "Suite.Test"})

    def test_tests_that_exist(self):
        self.assertEqual(self.found("| a | README | `failures_server`, `Suite.Test`, `test/docs/check_promises.py` |"), [])

    def test_a_test_that_does_not_exist(self):
        self.assertEqual(self.found("| a | README | `failures_nowhere` |"), ["'failures_nowhere', beside 'a', is no test"])

    def test_a_promise_without_a_test(self):
        self.assertEqual(self.found("| a | README | |"), ["no test is named beside 'a'"])

    def test_no_table(self):
        self.assertEqual(len(check_promises.problems(HEAD, set())), 1)

    def test_unit_tests_are_found_in_the_sources(self):
        self.assertIn("ServerMemory.IsZeroForTheNextClient", check_promises.unit_tests())


if __name__ == "__main__":
    unittest.main()
