"""SQLite in memory, through its shell: rows, indexes, aggregates, updates, an integrity check; output compared."""

from harness.program import Batch, need

ROWS = 220_000  # about 85 MiB at scale 1

SCRIPT = """
.bail on
PRAGMA cache_size = -{cache_kib};
PRAGMA temp_store = MEMORY;
CREATE TABLE item(id INTEGER PRIMARY KEY, family INT, weight INT, name TEXT, body TEXT);
-- Numbers and texts are scrambled by multiplication, so that every run has the same.
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO item SELECT i, (i * 7919 + {seed}) % 1009, (i * 2654435761 + {seed}) % 1000003,
  printf('%08x-%d', (i * 2246822519 + {seed}) % 4294967291, i % 97),
  printf('%.*c%x%x', i % 120, 'ab', i * 6364136223846793005, i * 1442695040888963407) FROM n;
CREATE INDEX item_name ON item(name);
CREATE INDEX item_family ON item(family, weight);
CREATE TABLE family(id INTEGER PRIMARY KEY, title TEXT, rows INT, heaviest INT);
INSERT INTO family SELECT family, min(name), count(*), max(weight) FROM item GROUP BY family;
SELECT count(*), sum(weight), min(name), max(name), sum(length(body)) FROM item;
SELECT f.id, f.title, f.rows, sum(i.weight), max(i.body) FROM family f JOIN item i ON i.family = f.id
  WHERE f.id % 10 = 3 GROUP BY f.id ORDER BY f.title LIMIT 50;
UPDATE item SET weight = weight * 3 % 1000003, body = body || id WHERE id % 7 = 0;
DELETE FROM item WHERE id % 11 = 0;
SELECT family, count(*), avg(weight), group_concat(id) FROM item WHERE name BETWEEN '4' AND '48'
  GROUP BY family ORDER BY family LIMIT 200;
SELECT a.id, b.id FROM item a JOIN item b ON b.name = a.name AND b.id > a.id ORDER BY a.id LIMIT 20;
SELECT id, weight, name FROM item ORDER BY weight DESC, id LIMIT 100;
PRAGMA integrity_check;
"""


class Sqlite(Batch):
    name = "sqlite"
    help = "sqlite3 in memory: rows, indexes, joins, aggregates"

    def prepare(self):
        self._shell = need("sqlite3")
        text = SCRIPT.format(rows=int(ROWS * self.scale), seed=self.seed % 1000, cache_kib=64 * 1024)
        with open(self.path("script.sql"), "w", encoding="utf-8") as file:
            file.write(text)

    def command(self):
        return [self._shell, "-batch", "-init", "/dev/null", ":memory:", f".read {self.path('script.sql')}"]
