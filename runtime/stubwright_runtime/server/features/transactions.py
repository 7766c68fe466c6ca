"""Records an effect's key in the same database transaction as the effect.

The application creates the table: `CREATE TABLE stubwright_once (key TEXT PRIMARY KEY)`.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

_INSERT: Final = "INSERT INTO stubwright_once (key) VALUES (?) ON CONFLICT DO NOTHING"
_MARKS: Final = {"sqlite3": "?", "aiosqlite": "?", "psycopg": "%s", "asyncpg": "$1"}
"""Parameter placeholders by driver."""

_IDLE: Final = 0
"""The status of a PostgreSQL connection without an open transaction (libpq, `PQTRANS_IDLE`)."""


async def record_effect(connection: Any, key: str) -> bool:
    """Insert a key in a connection's open transaction, and return whether the key is new.

    If a concurrent transaction inserted the same key, the database waits until it finishes.

    Raises:
        TypeError: `connection` is not from a supported driver.
        RuntimeError: No transaction is open, so the connection would commit the key before the effect.
    """
    modules = (each.__module__.partition(".")[0] for each in type(connection).__mro__)
    driver = next((module for module in modules if module in _MARKS), None)
    if driver is None:
        name = f"{type(connection).__module__}.{type(connection).__qualname__}"
        drivers = ", ".join(_MARKS)
        raise TypeError(f"the connection must be from {drivers}, not {name}; otherwise, use `ctx.idempotency_key`")
    if _is_autocommitting(connection, driver):
        begin = 'execute("BEGIN")' if "sqlite" in driver else "transaction()"
        raise RuntimeError(
            "`ctx.once_in` requires an open transaction, but this connection commits each statement, so an interrupted "
            f"run would lose the effect; open one with `connection.{begin}`"
        )
    insert = _INSERT.replace("?", _MARKS[driver])
    if driver == "asyncpg":
        return bool(await connection.execute(insert, key) == "INSERT 0 1")
    if driver == "psycopg":  # in pipeline mode, the row count is unknown until the first fetch
        cursor = await _resolve(connection.execute(f"{insert} RETURNING key", (key,)))
        return await _resolve(cursor.fetchone()) is not None
    return bool((await _resolve(connection.execute(insert, (key,)))).rowcount == 1)


def _is_autocommitting(connection: Any, driver: str) -> bool:
    """Return whether no transaction is open and the connection commits each statement."""
    if driver == "asyncpg":
        return not connection.is_in_transaction()
    if driver == "psycopg":
        return bool(connection.autocommit and connection.info.transaction_status == _IDLE)
    # Since Python 3.12, a boolean `autocommit` overrides `isolation_level`.
    autocommit = getattr(connection, "autocommit", None)
    is_manual = autocommit if isinstance(autocommit, bool) else connection.isolation_level is None
    return is_manual and not connection.in_transaction


async def _resolve(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
