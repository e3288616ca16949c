"""The programs, one file each. ALL is in the order in which they run."""

from .compile import Compile
from .git_repack import GitRepack
from .jq import Jq
from .link import Link
from .memcached import Memcached
from .numpy_arrays import NumPy, Permutation
from .pandas_frames import Pandas
from .perl_hashes import Perl
from .postgres import Postgres
from .redis import Redis
from .scripting import LuaJit, Php, Ruby
from .sort import Sort
from .sqlite import Sqlite

ALL = {program.name: program for program in (
    Redis, Memcached, Sqlite, Sort, NumPy, Permutation, Compile, Link, Pandas, Postgres, Perl, Jq, GitRepack, Ruby,
    Php, LuaJit)}
