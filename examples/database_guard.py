"""Restricted connections to SQLite files, safe for any statement.

Nothing here inspects the text of a statement. SQLite enforces three restrictions, each of which alone prevents writes:

- the file is opened read-only (`mode=ro`);
- `query_only` rejects writes;
- an authorizer rejects every unlisted action when a statement is prepared, even in views, triggers, common table
  expressions and table-valued functions: https://www.sqlite.org/c3ref/set_authorizer.html.

The size of statements, values and rows, memory, and time are bounded. There are no temporary files, because sorting
could fill the disk.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

MEMORY = 64 * 1024 * 1024
"""SQLite's memory limit in bytes, for all statements in this process together."""

LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,  # bytes in a value, and in a row
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""https://www.sqlite.org/limits.html"""

_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)

STEPS = 10_000
"""SQLite VM steps between two checks for cancellation; a few tenths of a millisecond."""

REFUSALS = (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, ValueError)
"""Exceptions from running a statement: the last two for integers of more than 64 bits and strings that contain NUL."""

TABLES = """SELECT name, iif(sql LIKE 'CREATE VIRTUAL %', 'virtual', type) FROM sqlite_schema
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"""
COLUMNS = """SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid"""
STATEMENTS = """SELECT group_concat(sql || ';', char(10)) FROM (
    SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type <> 'table', rowid)"""

_VIRTUAL = """SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL %'
    UNION ALL VALUES ('json_each'), ('json_tree')"""


@contextmanager
def opened(
    file: Path, *, may_write: bool, stop: Callable[[Callable[[], object]], object]
) -> Iterator[sqlite3.Connection]:
    """Open a connection for the duration of a block.

    Args:
        file: The database file.
        may_write: Whether to open it for writing.
        stop: Registers a function that stops running statements; it can be called in any thread.
    """
    stopped = threading.Event()
    stop(stopped.set)
    uri = f"{file.absolute().as_uri()}?mode={'rw' if may_write else 'ro'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=1, isolation_level=None)) as connection:
        connection.text_factory = _text
        connection.set_progress_handler(stopped.is_set, STEPS)
        for pragma, value in {
            "hard_heap_limit": MEMORY,
            "temp_store": "MEMORY",
            "trusted_schema": "OFF",
            "cell_size_check": "ON",
            "foreign_keys": "ON",
            "query_only": "OFF" if may_write else "ON",
        }.items():
            connection.execute(f"PRAGMA {pragma} = {value}")
        for limit, value in LIMITS.items():
            connection.setlimit(limit, value)
        for (name,) in connection.execute(_VIRTUAL).fetchall():  # which declare their schema on first use
            with suppress(sqlite3.OperationalError):  # this SQLite lacks the table's module
                connection.execute(COLUMNS, [name]).fetchall()
        yield connection


def reading(action: int, first: str | None, second: str | None, schema: str | None, inner: str | None) -> int:
    """SQLite authorizer for statements that read."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second in ("load_extension", "fts3_tokenizer") else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA:  # full-text search needs it
        return sqlite3.SQLITE_OK if (first, second) == ("data_version", None) else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY


def writing(action: int, first: str | None, second: str | None, schema: str | None, inner: str | None) -> int:
    """SQLite authorizer for statements that write: may also change table rows."""
    if action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE):
        return sqlite3.SQLITE_DENY if str(first).startswith("sqlite_") else sqlite3.SQLITE_OK
    return reading(action, first, second, schema, inner)


def told(error: Exception) -> str:
    """The message for the caller, with a suggestion if there is one."""
    if isinstance(error, MemoryError):
        return "The statement needs too much memory: sort, group or join less."
    text = str(error).rstrip(".")
    if "authoriz" in text:
        return f"The statement does what this tool does not do ({text})."
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG:
        return f"A value is too large ({text}): read a part of it with substr(…)."
    return f"SQLite does not run the statement: {text}."


def _text(value: bytes) -> str:
    """Decode text that may not be UTF-8, which SQLite does not check."""
    return value.decode("utf-8", "replace")
