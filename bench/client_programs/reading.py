"""Reads each of a server's tools with a Python client, in the client's environment. Requires only Python.

Prints a JSON object with each tool's call result or error, and its argument schema for a model.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Read = Callable[[str], Awaitable[Any]]
"""Calls a tool without arguments, and returns the value that the client's user gets."""

Report = Callable[[dict[str, Any], Read], Awaitable[None]]
"""Reads all tools, given their argument schemas by name."""


def main(look: Callable[[list[str], Report], Awaitable[None]]) -> None:
    """Connect to the server whose command is the JSON argument, and print how the client reads its tools."""
    outcome: dict[str, Any] = {}

    async def report(schemas: dict[str, Any], read: Read) -> None:
        outcome["schemas"] = schemas
        outcome["values"] = {name: await _value(read, name) for name in schemas}

    asyncio.run(look(json.loads(sys.argv[1]), report))
    print(json.dumps(outcome))


async def _value(read: Read, name: str) -> dict[str, Any]:
    try:
        return {"value": await read(name)}
    except Exception as error:  # noqa: BLE001 - any exception of a client is its reading of a result
        return {"error": f"{type(error).__name__}: {error}"}
