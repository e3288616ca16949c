"""Python with NumPy, two jobs; hashes of the (exact) results compared."""

import os
import subprocess
import sys

from harness.errors import Skip
from harness.program import Batch

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.normpath(os.path.join(HERE, "..", "..", "..", "build"))


def _has_numpy(python):
    return os.path.exists(python) and subprocess.run([python, "-c", "import numpy"], capture_output=True,
                                                     check=False).returncode == 0


def _python_with_numpy(folder):
    """Debian's, else one from PyPI in a virtual environment below `folder`. Skip when neither can be had."""
    if _has_numpy("/usr/bin/python3"):
        return "/usr/bin/python3"
    home = os.path.join(folder, "numpy-venv")
    python = os.path.join(home, "bin", "python3")
    if _has_numpy(python):
        return python
    for argv in ([sys.executable, "-m", "venv", home], [python, "-m", "pip", "install", "--quiet", "numpy"]):
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Skip(f"no python3-numpy, and none from PyPI: {error}") from None
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise Skip(f"no python3-numpy, and none from PyPI: {words[-1] if words else argv[1:]}")
    return python


class NumPy(Batch):
    name = "numpy"
    help = "Python with NumPy: sort, gather, matrix product, FFT"
    script, elements = "numpy_work.py", 3_000_000

    def prepare(self):
        self._python = _python_with_numpy(BUILD)

    def command(self):
        script = os.path.join(HERE, "inside", self.script)
        return [self._python, script, int(self.elements * self.scale), self.seed]


class Permutation(NumPy):
    name = "permutation"
    help = "Python with NumPy: gather by a random permutation, sort, stable argsort"
    script, elements = "numpy_permutation.py", 4_000_000
