"""The foreign programs, one file each (python_tests: one a module). ALL is in the order in which they run."""

from .coreutils import Coreutils
from .gcc import Gcc
from .git import Git
from .java import JAVA
from .mariadb import MariaDb
from .memcapable import Memcapable
from .node import Node
from .perl import Perl
from .postgres import Postgres
from .python_tests import PYTHON, PythonShort
from .redis_files import RedisFiles
from .sqlite_shell import SqliteShell
from .stress_ng import StressNg
from .studios import Studios
from .xz_zstd import XzZstd

ALL = {program.name: program for program in (
    PythonShort, *PYTHON, Memcapable, RedisFiles, Postgres, MariaDb, Node, *JAVA, Coreutils, SqliteShell, Perl, Git, XzZstd, Gcc,
    Studios, StressNg)}
