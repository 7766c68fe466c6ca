"""The business logic of the database server; everything else is generated from `specs/database.yaml`.

The databases are the `*.sqlite` files in the folder in `DATABASES`. Without that variable, `database.sql` creates a
temporary one. SQLite itself, not the text of a statement, decides what the statement can do: `database_guard.py` opens
restricted connections.
"""

from __future__ import annotations

import base64
import json
import math
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Literal

import database_guard as guard
import database_mcp as db

SCHEMA = Path(__file__).with_suffix(".sql").read_text("utf-8")
PAGE = 64 * 1024
"""Page size limit in bytes."""

EXACT = 2**53
"""Integers from here on lose precision in many JSON parsers (RFC 8259, 6)."""

Stored = str | int | float | bytes | None
Type = Literal["integer", "real", "text", "blob", "null"]
Value = str | int | float | db.Exact | None


class Databases(db.DatabaseHandlers):
    """Runs statements. Methods are plain `def`, because they block; the server runs them in worker threads."""

    async def __aenter__(self) -> None:
        self.made = None if "DATABASES" in os.environ else tempfile.TemporaryDirectory()
        self.folder = Path(os.environ["DATABASES"] if self.made is None else self.made.name)
        if self.made is not None:
            library = sqlite3.connect(self.folder / "library.sqlite")
            library.executescript(SCHEMA)
            library.close()

    async def __aexit__(self, *_: object) -> None:
        if self.made is not None:
            self.made.cleanup()

    def list_tables(self, args: db.ListTablesInput, ctx: db.Context) -> db.ListTablesOutput:
        with self.opened(args.database, ctx, may_write=False) as connection:
            return db.ListTablesOutput(tables=[table(connection, *row) for row in connection.execute(guard.TABLES)])

    def execute_sql(self, args: db.ExecuteSqlInput, ctx: db.Context) -> db.ExecuteSqlOutput:
        with self.opened(args.database, ctx, may_write=False) as connection:
            connection.set_authorizer(guard.reading)
            rows = connection.execute(args.sql, [stored(value) for value in args.parameters])
            return page(rows, int(args.cursor or 0), args.limit)

    def execute_write(self, args: db.ExecuteWriteInput, ctx: db.Context) -> db.ExecuteWriteOutput:
        with self.opened(args.database, ctx, may_write=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.set_authorizer(guard.writing)
            done = connection.execute(args.sql, [stored(value) for value in args.parameters])
            done.fetchall()
            connection.set_authorizer(None)
            connection.execute("COMMIT")
            return db.ExecuteWriteOutput(changed=max(0, done.rowcount))

    async def read_databases(self, ctx: db.Context) -> str:
        return json.dumps(sorted(self.files()))

    def read_table(self, args: db.ReadTableParams, ctx: db.Context) -> str | None:
        if args.database not in self.files():
            return None
        with self.opened(args.database, ctx, may_write=False) as connection:
            [(text,)] = connection.execute(guard.STATEMENTS, [args.table])
            return text if text is None else str(text)

    def complete_read_table(self, args: db.Completing, ctx: db.Context) -> list[str]:
        tables = sorted(self.files())
        if args.argument == "table":
            name = args.given.get("database")
            if name not in tables:
                return []
            with self.opened(name, ctx, may_write=False) as connection:
                tables = [table for table, *_ in connection.execute(guard.TABLES)]
        return [each for each in tables if each.startswith(args.value)]

    def files(self) -> dict[str, Path]:
        """Database files by name. A caller's name is looked up here, and never used as a path."""
        return {file.stem: file for file in self.folder.glob("*.sqlite") if file.is_file() and not file.is_symlink()}

    @contextmanager
    def opened(self, name: str, ctx: db.Context, *, may_write: bool) -> Iterator[sqlite3.Connection]:
        """A connection whose statements stop when the call is cancelled or times out."""
        file = self.files().get(name)
        if file is None:
            raise db.ToolError(f"There is no database {name!r}; there are: {', '.join(sorted(self.files()))}.")
        try:
            with guard.opened(file, may_write=may_write, stop=ctx.on_cancel) as connection:
                yield connection
        except guard.REFUSALS as error:
            raise db.ToolError(guard.told(error)) from None


def page(rows: sqlite3.Cursor, start: int, limit: int) -> db.ExecuteSqlOutput:
    """One page of rows. The first row is included whatever its size, so that every page makes progress."""
    if rows.description is None:
        raise db.ToolError("There is no statement.")
    output = db.ExecuteSqlOutput(columns=[], rows=[], next_cursor=None)
    types: list[set[Type]] = [set() for _ in rows.description]
    size = 0
    for number, row in enumerate(islice(rows, start, None), start):
        values = [shown(value) for value in row]
        size += len(json.dumps([value.text if isinstance(value, db.Exact) else value for value in values]))
        if output.rows and (len(output.rows) == limit or size > PAGE):
            output.next_cursor = str(number)
            break
        output.rows.append(values)
        for kinds, value in zip(types, row, strict=True):
            kinds.add(kind(value))
    names = [name for name, *_ in rows.description]
    output.columns = [db.Column(name=name, types=sorted(found)) for name, found in zip(names, types, strict=True)]
    return output


def table(connection: sqlite3.Connection, name: str, kind: Literal["table", "view", "virtual"]) -> db.Table:
    """A table with its columns."""
    columns = connection.execute(guard.COLUMNS, [name])
    return db.Table.model_validate(
        {
            "name": name,
            "kind": kind,
            "columns": [
                {"name": column, "type": declared, "required": bool(required), "key": bool(key)}
                for column, declared, required, key in columns
            ],
        }
    )


def kind(value: Stored) -> Type:
    """The SQLite type name of a value."""
    names: dict[type, Type] = {str: "text", int: "integer", float: "real", bytes: "blob"}
    return names.get(type(value), "null")


def shown(value: Stored) -> Value:
    """A value as JSON."""
    if isinstance(value, bytes):
        return db.Exact(type="blob", text=base64.b64encode(value).decode())
    if isinstance(value, int) and abs(value) >= EXACT:
        return db.Exact(type="integer", text=str(value))
    if isinstance(value, float) and math.isinf(value):
        return db.Exact(type="real", text="Infinity" if value > 0 else "-Infinity")
    return value


def stored(value: Value) -> Stored:
    """A parameter as an SQLite value. Raises ToolError."""
    if not isinstance(value, db.Exact):
        return value
    try:
        if value.type == "blob":
            return base64.b64decode(value.text, validate=True)
        return int(value.text) if value.type == "integer" else float(value.text)
    except ValueError as error:
        raise db.ToolError(f"A parameter is no {value.type}: {error}.") from None
