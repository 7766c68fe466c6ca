"""Effects that are recorded in the transaction that makes them, in SQLite and in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
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
    with postgres_server.running() as variables:
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


async def test_asyncpg_has_its_own_status() -> None:
    answers = ["INSERT 0 1", "INSERT 0 0"]

    class Connection:
        __module__ = "asyncpg.connection"

        async def execute(self, statement: str, key: str) -> str:
            assert (statement, key) == (
                "INSERT INTO stubwright_once (key) VALUES ($1) ON CONFLICT DO NOTHING",
                "a",
            )
            return answers.pop(0)

    connection = Connection()
    assert [await record_effect(connection, "a") for _ in range(2)] == [True, False]


async def test_another_connection_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a connection of sqlite3, .* is expected, not builtins\.object"):
        await record_effect(object(), "a")
