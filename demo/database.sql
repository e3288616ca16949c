-- The demo's work: loads the tables into memory, indexes them, and asks.
.bail on
PRAGMA temp_store = MEMORY;
CREATE TABLE package(id INTEGER PRIMARY KEY, name TEXT, version TEXT, section TEXT, priority TEXT, architecture TEXT,
  maintainer TEXT, source TEXT, homepage TEXT, installed_kib INT, size_bytes INT, filename TEXT, sha256 TEXT,
  description TEXT);
CREATE TABLE relation(package INT, kind TEXT, target TEXT);
CREATE TABLE tag(package INT, tag TEXT);
CREATE TABLE word(package INT, word TEXT);
.import --ascii package package
.import --ascii relation relation
.import --ascii tag tag
.import --ascii word word
CREATE INDEX package_name ON package(name);
CREATE INDEX package_section ON package(section, installed_kib);
CREATE INDEX relation_package ON relation(package, kind, target);
CREATE INDEX relation_target ON relation(target, kind, package);
CREATE INDEX word_word ON word(word, package);
CREATE INDEX word_package ON word(package, word);
CREATE INDEX tag_tag ON tag(tag, package);
.print -- Rows
SELECT (SELECT count(*) FROM package), (SELECT count(*) FROM relation), (SELECT count(*) FROM tag),
  (SELECT count(*) FROM word);
.print -- The packages that most others need
SELECT target, count(DISTINCT package) AS n FROM relation WHERE kind = 'Depends' GROUP BY target
  ORDER BY n DESC, target LIMIT 10;
.print -- Sections: packages, installed GiB, the largest
SELECT section, count(*), printf('%.2f', sum(installed_kib) / 1048576.0), max(CAST(installed_kib AS INT)), name
  FROM package GROUP BY section ORDER BY sum(installed_kib) DESC LIMIT 10;
.print -- Everything that a desktop pulls in
WITH RECURSIVE need(name) AS (VALUES ('gnome') UNION
  SELECT r.target FROM need JOIN package p ON p.name = need.name
    JOIN relation r ON r.package = p.id AND r.kind IN ('Depends', 'Pre-Depends', 'Recommends'))
SELECT count(*), printf('%.2f GiB', sum((SELECT max(CAST(installed_kib AS INT)) FROM package p WHERE p.name = need.name))
  / 1048576.0) FROM need;
.print -- How far everything is from libc6
WITH RECURSIVE level(id, depth) AS (SELECT id, 0 FROM package WHERE name = 'libc6' UNION
  SELECT r.package, depth + 1 FROM level JOIN package p ON p.id = level.id
    JOIN relation r ON r.target = p.name AND r.kind = 'Depends' WHERE depth < 3)
SELECT depth, count(*) FROM (SELECT id, min(depth) AS depth FROM level GROUP BY id) GROUP BY depth;
.print -- Maintainers by packages, and by what depends on them
SELECT p.maintainer, count(DISTINCT p.id) AS n, count(r.package) FROM package p
  LEFT JOIN relation r ON r.target = p.name AND r.kind = 'Depends' GROUP BY p.maintainer ORDER BY n DESC LIMIT 10;
.print -- Words that go together
SELECT a.word, b.word, count(*) AS n FROM word a JOIN word b ON b.package = a.package AND b.word > a.word
  WHERE a.word IN ('memory', 'network', 'compiler', 'kernel', 'database') GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT 10;
PRAGMA integrity_check;
