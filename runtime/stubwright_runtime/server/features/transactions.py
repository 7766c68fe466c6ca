"""Records effects in the database transaction that makes them.

The application creates the table: `CREATE TABLE stubwright_once (key TEXT PRIMARY KEY)`.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

_INSERT: Final = "INSERT INTO stubwright_once (key) VALUES (?) ON CONFLICT DO NOTHING"
_MARKS: Final = {"sqlite3": "?", "aiosqlite": "?", "psycopg": "%s", "asyncpg": "$1"}
"""The parameter placeholders, by driver."""


async def record_effect(connection: Any, key: str) -> bool:
    """Record a key in the open transaction of a connection; return whether the key is new.

    The database waits for concurrent transactions with the same key.

    Raises:
        TypeError: The driver of the connection is not supported.
    """
    modules = (each.__module__.partition(".")[0] for each in type(connection).__mro__)
    driver = next((module for module in modules if module in _MARKS), None)
    if driver is None:
        name = f"{type(connection).__module__}.{type(connection).__qualname__}"
        raise TypeError(f"a connection of {', '.join(_MARKS)} is expected, not {name}; use `ctx.idempotency_key`")
    done = connection.execute(_INSERT.replace("?", _MARKS[driver]), *([key] if driver == "asyncpg" else [(key,)]))
    done = await done if inspect.isawaitable(done) else done
    return bool(done == "INSERT 0 1" if driver == "asyncpg" else done.rowcount == 1)
