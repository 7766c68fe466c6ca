"""What a client in Python makes of each tool; it runs in the environments of the clients, and needs nothing but Python.

Takes a client; prints a JSON object that has for each tool what a call gives its user, or how it failed, and the schema
of its arguments that goes on to a model.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Read = Callable[[str], Awaitable[Any]]
"""Calls a tool without arguments; gives what the client's user gets."""

Report = Callable[[dict[str, Any], Read], Awaitable[None]]
"""Notes what is made of all tools, given the schemas of their arguments by name."""


def main(look: Callable[[list[str], Report], Awaitable[None]]) -> None:
    """Connect to the server whose command the command line has as JSON, and print what the client makes of it."""
    outcome: dict[str, Any] = {}

    async def report(schemas: dict[str, Any], read: Read) -> None:
        outcome["schemas"] = schemas
        outcome["values"] = {name: await _value(read, name) for name in schemas}

    asyncio.run(look(json.loads(sys.argv[1]), report))
    print(json.dumps(outcome))


async def _value(read: Read, name: str) -> dict[str, Any]:
    try:
        return {"value": await read(name)}
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it makes of a result
        return {"error": f"{type(error).__name__}: {error}"}
