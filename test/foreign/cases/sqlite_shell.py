"""The SQLite shell on a database file: import, indexes, full text, windows, backup, dump and restore, integrity."""

from harness.program import need

from .commands import Commands

ROWS = 120_000

FILL = """
PRAGMA cache_size = -200000; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 33554432;
CREATE TABLE item(id INTEGER PRIMARY KEY, family INT, weight INT, name TEXT, body BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO item SELECT i, (i * 7919) % 1009, (i * 2654435761) % 1000003,
  printf('%08x-%d', (i * 2246822519) % 4294967291, i % 97),
  printf('%.*c%x%x', i % 300, 'ab', i * 6364136223846793005, i * 1442695040888963407) FROM n;
CREATE INDEX item_name ON item(name); CREATE INDEX item_body ON item(body);
"""
WORK = {
    "fill": "rm -f ../shop.db; sqlite3 ../shop.db \"$(cat ../fill.sql)\" &&"
            " sqlite3 ../shop.db 'SELECT count(*) FROM item'",
    "integrity": "sqlite3 ../shop.db 'PRAGMA cache_size = -200000; PRAGMA integrity_check'",
    "window": "sqlite3 ../shop.db \"PRAGMA temp_store = MEMORY; SELECT family, id, rank() OVER (PARTITION BY family"
              " ORDER BY weight, id), sum(weight) OVER (PARTITION BY family ORDER BY id) FROM item ORDER BY name, id\"",
    "group": "sqlite3 ../shop.db 'SELECT family, group_concat(name), max(length(body)) FROM item GROUP BY family'",
    "text": "sqlite3 :memory: \"ATTACH '../shop.db' AS s; CREATE VIRTUAL TABLE t USING fts5(name, body);"
            " INSERT INTO t SELECT name, body FROM s.item; INSERT INTO t(t) VALUES('optimize');"
            " SELECT rowid FROM t WHERE t MATCH 'a*' ORDER BY rowid; INSERT INTO t(t) VALUES('integrity-check')\"",
    "backup": "sqlite3 ../shop.db '.backup copy.db' && sqlite3 copy.db 'PRAGMA integrity_check; SELECT sum(weight),"
              " max(body) FROM item'",
    "dump": "sqlite3 ../shop.db .dump | tee dump.sql && sqlite3 new.db <dump.sql &&"
            " sqlite3 new.db 'PRAGMA integrity_check'",
    "sha3sum": "sqlite3 ../shop.db .sha3sum",
    "csv": "sqlite3 -csv ../shop.db 'SELECT * FROM item' >item.csv && sha256sum item.csv &&"
           " sqlite3 :memory: -cmd '.mode csv' '.import item.csv item' 'SELECT count(*) FROM item'",
    "json": "sqlite3 ../shop.db \"SELECT json_group_array(json_object('n', name, 'w', weight)) FROM item"
            " WHERE family < 200\"",
    "update": "cp ../shop.db u.db && sqlite3 u.db 'PRAGMA journal_mode = WAL; BEGIN; UPDATE item SET body = body || id"
              " WHERE id % 3 = 0; SAVEPOINT s; DELETE FROM item WHERE id % 7 = 0; ROLLBACK TO s; DELETE FROM item"
              " WHERE id % 11 = 0; COMMIT; VACUUM; PRAGMA integrity_check' && sqlite3 u.db 'SELECT * FROM item' |"
              " sha256sum",
}


class SqliteShell(Commands):
    name = "sqlite-shell"
    help = "the SQLite shell on a file: fill, full text, windows, backup, dump, import, vacuum"

    def prepare(self):
        need("sqlite3")
        with open(self.path("fill.sql"), "w", encoding="utf-8") as file:
            file.write(FILL.format(rows=int(ROWS * self.scale)))

    def commands(self):
        return WORK.items()
