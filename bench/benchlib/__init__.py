"""The parts of bench/run and bench/compare: one concept a file, standard library only (plots.py wants matplotlib)."""
