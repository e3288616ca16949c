"""The programs, one file each. ALL is in the order in which they run."""

from .compile import Compile
from .memcached import Memcached
from .numpy_arrays import NumPy, Permutation
from .redis import Redis
from .sort import Sort
from .sqlite import Sqlite

ALL = {program.name: program for program in (Redis, Memcached, Sqlite, Sort, NumPy, Permutation, Compile)}
