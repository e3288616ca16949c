"""Python with pandas: merge, group, sort, pivot and strings; hashes of the (exact) results compared."""

import os
import subprocess

from harness.errors import Skip
from harness.program import Batch

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's pandas
ROWS = 1_200_000


class Pandas(Batch):
    name = "pandas"
    help = "Python with pandas: merge, group, sort, pivot, strings"

    def prepare(self):
        if subprocess.run([PYTHON, "-c", "import pandas"], capture_output=True, check=False).returncode != 0:
            raise Skip("python3-pandas is not installed")

    def command(self):
        return [PYTHON, os.path.join(HERE, "inside", "pandas_work.py"), int(ROWS * self.scale), self.seed]
