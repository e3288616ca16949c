"""Interpreters with a garbage collector of their own kind each: Ruby, PHP and LuaJIT fill a table, go through it in another
order and sort; what they print compared."""

import os

from harness.program import Batch, need

HERE = os.path.dirname(os.path.abspath(__file__))


class Script(Batch):
    interpreter, script, entries = "", "", 0

    def prepare(self):
        self._interpreter = need(self.interpreter)

    def command(self):
        return [self._interpreter, os.path.join(HERE, "inside", self.script), int(self.entries * self.scale), self.seed]


class Ruby(Script):
    name = "ruby"
    help = "Ruby: lists of strings in a hash, and a child that sorts them (marks and sweeps)"
    interpreter, script, entries = "ruby", "ruby_hash.rb", 600_000


class Php(Script):
    name = "php"
    help = "PHP: lists of strings in an array, sorted by key (counts references)"
    interpreter, script, entries = "php", "php_array.php", 900_000


class LuaJit(Script):
    name = "luajit"
    help = "LuaJIT: an array of tables, sorted by a field (marks and sweeps in steps)"
    interpreter, script, entries = "luajit", "luajit_tables.lua", 400_000
