"""Effects recorded in the transaction that makes them, in SQLite and in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import postgres_server
from stubwright_runtime.server.features.transactions import record_effect

pytestmark = pytest.mark.anyio

TABLE = "CREATE TABLE stubwright_once (key TEXT PRIMARY KEY)"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@contextmanager
def sqlite(folder: Path) -> Iterator[Callable[[], Any]]:
    yield lambda: sqlite3.connect(folder / "database", check_same_thread=False)


@contextmanager
def psycopg(_folder: Path) -> Iterator[Callable[[], Any]]:
    driver = pytest.importorskip("psycopg")
    with postgres_server.run_postgres() as variables:
        words = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
        place = {word: variables[name] for word, name in words.items() if name in variables}
        yield lambda: driver.connect(**place)


@pytest.mark.parametrize("database", [sqlite, pytest.param(psycopg, marks=pytest.mark.long)])
async def test_an_effect_is_recorded_once_with_its_transaction(database: Any, tmp_path: Path) -> None:
    with database(tmp_path) as connect:
        first, second = connect(), connect()
        first.execute(TABLE)
        first.commit()
        assert await record_effect(first, "a")
        first.rollback()  # its process died
        assert await record_effect(first, "a")
        assert not await record_effect(first, "a")
        waiting = asyncio.create_task(asyncio.to_thread(asyncio.run, record_effect(second, "a")))
        first.commit()
        assert not await waiting
        assert await record_effect(second, "b")
        first.close()
        second.close()


class Asyncpg:
    """A connection of asyncpg: `execute` returns the status of the command."""

    __module__ = "asyncpg.connection"

    def __init__(self) -> None:
        self.is_in_transaction = lambda: True
        self.keys: list[str] = []

    async def execute(self, statement: str, key: str) -> str:
        assert statement == "INSERT INTO stubwright_once (key) VALUES ($1) ON CONFLICT DO NOTHING"
        self.keys.append(key)
        return f"INSERT 0 {int(self.keys.count(key) == 1)}"


class Psycopg:
    """A connection of psycopg in pipeline mode: results, and their count, exist when they are fetched."""

    __module__ = "psycopg"
    rowcount = -1

    def __init__(self) -> None:
        self.autocommit, self.info = True, SimpleNamespace(transaction_status=2)
        self.keys: list[str] = []

    async def execute(self, statement: str, keys: tuple[str]) -> Psycopg:
        assert statement == "INSERT INTO stubwright_once (key) VALUES (%s) ON CONFLICT DO NOTHING RETURNING key"
        self.keys += keys
        return self

    async def fetchone(self) -> tuple[str] | None:
        return (self.keys[-1],) if self.keys.count(self.keys[-1]) == 1 else None


def idle(make: Callable[[], Any], **more: Any) -> Any:
    """A connection without an open transaction."""
    connection = make()
    for name, value in more.items():
        setattr(connection, name, value)
    return connection


@pytest.mark.parametrize("make", [Asyncpg, Psycopg])
async def test_drivers_of_postgresql_report_the_insertion_each_in_its_way(make: Callable[[], Any]) -> None:
    connection = make()
    assert [await record_effect(connection, "a") for _ in range(2)] == [True, False]


class Autocommit(sqlite3.Connection):
    """A connection with `autocommit=True`, which Python 3.12 and later have; `isolation_level` is ignored then."""

    autocommit = True


@pytest.mark.parametrize(
    "connection",
    [
        idle(Asyncpg, is_in_transaction=lambda: False),
        idle(Psycopg, info=SimpleNamespace(transaction_status=0)),
        sqlite3.connect(":memory:", isolation_level=None),
        sqlite3.connect(":memory:", factory=Autocommit),
    ],
)
async def test_a_connection_that_commits_each_statement_is_refused(connection: Any) -> None:
    with pytest.raises(
        RuntimeError, match=r"`ctx\.once_in` requires an open transaction, but this connection commits each"
    ):
        await record_effect(connection, "a")
    if not isinstance(connection, sqlite3.Connection):
        assert connection.keys == []
        return
    connection.execute(TABLE)
    connection.execute("BEGIN")
    assert await record_effect(connection, "a")
    connection.close()


async def test_another_connection_is_refused() -> None:
    with pytest.raises(TypeError, match=r"the connection must be from sqlite3, .*, not builtins\.object"):
        await record_effect(object(), "a")
