"""Statements that must not change data, use many resources or access files, with each one's outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

REFUSED: Final = "The statement does what this tool does not do"
BROKEN: Final = "SQLite does not run the statement"
MEMORY: Final = "The statement needs too much memory"
LARGE: Final = "A value is too large"

_NUMBERS: Final = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r)"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement.

    Attributes:
        sql: Its text. `{folder}` is a writable folder.
        says: Part of the error message, if it is rejected.
        rows: Its rows, if it is accepted.
    """

    sql: str
    says: str | None = None
    rows: list[list[Any]] | None = None


def _nested(width: int, depth: int) -> str:
    """Return common table expressions that each use the previous one several times, which expand exponentially."""
    tables = ["c0 AS (SELECT 1)"]
    for level in range(1, depth):
        uses = ", ".join(f"c{level - 1} AS t{use}" for use in range(width))
        tables.append(f"c{level} AS (SELECT 1 FROM {uses} LIMIT 1)")
    return f"WITH {', '.join(tables)} SELECT * FROM c{depth - 1}"


HOSTILE: Final = (
    # Writes, plain and disguised.
    Statement("DROP TABLE book", REFUSED),
    Statement("INSERT INTO author VALUES (9, 'x') RETURNING *", REFUSED),
    Statement("WITH gone AS (SELECT 1) DELETE FROM book WHERE id IN gone RETURNING id", REFUSED),
    Statement("REPLACE INTO author SELECT * FROM author", REFUSED),
    Statement("UPDATE sqlite_master SET sql = ''", "may not be modified"),
    Statement("CREATE TEMP TABLE t AS SELECT * FROM book", REFUSED),
    Statement("CREATE TEMP TRIGGER t AFTER INSERT ON book BEGIN DELETE FROM book; END", REFUSED),
    Statement("CREATE VIRTUAL TABLE t USING fts5(x)", REFUSED),
    Statement("ALTER TABLE book RENAME TO books", REFUSED),
    Statement("EXPLAIN DELETE FROM book", REFUSED),
    Statement("BEGIN EXCLUSIVE", REFUSED),
    Statement("SAVEPOINT here", REFUSED),
    Statement("VACUUM", REFUSED),
    Statement("REINDEX", REFUSED),
    Statement("ANALYZE", REFUSED),
    # Settings.
    Statement("PRAGMA writable_schema = ON", REFUSED),
    Statement("PRAGMA journal_mode = WAL", REFUSED),
    Statement("PRAGMA query_only = OFF", REFUSED),
    Statement("PRAGMA user_version = 7", REFUSED),
    Statement("PRAGMA data_version = 7", REFUSED),
    Statement("SELECT * FROM pragma_journal_mode('wal')", REFUSED),
    # Access to other files, and code.
    Statement("ATTACH '{folder}/new.db' AS new", REFUSED),
    Statement("ATTACH ':memory:' AS new", REFUSED),
    Statement("VACUUM INTO '{folder}/copy.db'", REFUSED),
    Statement("SELECT load_extension('{folder}/x.so')", REFUSED),
    Statement("SELECT fts3_tokenizer('simple', x'00')", REFUSED),
    Statement("SELECT readfile('/etc/passwd')", "no such function: readfile"),
    Statement("SELECT writefile('{folder}/out', 'x')", "no such function: writefile"),
    Statement("SELECT * FROM dbstat", BROKEN),
    Statement("SELECT * FROM sqlite_dbpage", BROKEN),
    # Strings that look like another statement.
    Statement("SELECT 1; DROP TABLE book", "one statement at a time"),
    Statement("SELECT 1 /* ; DROP TABLE book */ -- ; DROP TABLE book", rows=[[1]]),
    Statement("/* SELECT */ DELETE /* SELECT */ FROM book", REFUSED),
    Statement("SELECT 'DROP TABLE book' AS \"; DELETE\"", rows=[["DROP TABLE book"]]),
    Statement("-- nothing", "There is no statement."),
    Statement(".tables", "syntax error"),
    Statement(".shell echo hello", "syntax error"),
    Statement("\uff24\uff32\uff2f\uff30 TABLE book", "syntax error"),
    Statement("DROP\u00a0TABLE book", "syntax error"),
    Statement("SELECT 1\x00; DROP TABLE book", "null character"),
    Statement("SELECT '\u202e\u0000'", "null character"),
    # Excessive use of memory, disk or the parser.
    Statement("SELECT zeroblob(1000000000)", LARGE),
    Statement("SELECT length(randomblob(1000000000))", LARGE),
    Statement("SELECT printf('%1000000000d', 1)", rows=[[None]]),
    Statement(f"SELECT {', '.join(['zeroblob(999999)'] * 150)}", MEMORY),
    Statement(f"{_NUMBERS} SELECT group_concat(x, zeroblob(99999)) FROM (SELECT x FROM r LIMIT 1000)", LARGE),
    Statement(f"{_NUMBERS} SELECT randomblob(900000) AS bytes FROM r ORDER BY bytes", MEMORY),
    Statement(_nested(10, 8), MEMORY),
    Statement(f"SELECT {'(' * 200}1{')' * 200}", BROKEN),
    Statement(f"SELECT {' + '.join('1' * 500)}", "Expression tree is too large"),
    Statement(" UNION ALL ".join(["SELECT 1"] * 100), "too many terms in compound SELECT"),
    Statement(f"SELECT {', '.join('1' * 300)}", "too many columns"),
    Statement(f"SELECT count(*) FROM book WHERE id IN ({', '.join(map(str, range(3000)))})", rows=[[5]]),
    Statement("SELECT 'aaaaaaaaaaaaaaaaaaaaaaaa' LIKE '" + "%a" * 600 + "b'", "pattern too complex"),
    Statement("SELECT abs(-9223372036854775808)", "integer overflow"),
    # Values without a JSON representation.
    Statement("SELECT 0.0 / 0, 9e999 - 9e999", rows=[[None, None]]),
    Statement(
        "SELECT 9e999, -9e999, x'00ff', 9007199254740993",
        rows=[
            [
                {"type": "real", "text": "Infinity"},
                {"type": "real", "text": "-Infinity"},
                {"type": "blob", "text": "AP8="},
                {"type": "integer", "text": "9007199254740993"},
            ]
        ],
    ),
    Statement("SELECT CAST(x'ff41' AS TEXT), char(0), char(55296)", rows=[["\ufffdA", "\0", "\ufffd\ufffd\ufffd"]]),
    # Harmless reads.
    Statement("SELECT name FROM sqlite_master WHERE type = 'view'", rows=[["lent"]]),
    Statement("SELECT value FROM json_each('[1, 2]')", rows=[[1], [2]]),
    Statement("EXPLAIN QUERY PLAN SELECT * FROM book", rows=[[2, 0, 0, "SCAN book"]]),
)

ENDLESS: Final = (
    f"{_NUMBERS} SELECT max(x) FROM r",
    f"{_NUMBERS} SELECT x FROM r WHERE x < 0",
    "SELECT count(*) FROM loan AS a, loan AS b, loan AS c, loan AS d, loan AS e",
    "SELECT 1 FROM loan AS a, loan AS b, loan AS c, loan AS d WHERE a.reader || b.day LIKE '%x%y%' || c.day",
)
"""Statements that practically never end, and use little memory."""
