"""Imports packages in every order, and prints the outcome of each order as a line of JSON.

    python import_orders.py PACKAGE…

Orders with the same prefix are forked from one process, so that the prefix is imported once.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys

_SHARED = ("jsonschema_rs", "mcp.client.client", "mcp.server.lowlevel", "starlette.applications")
"""The common imports of all orders."""


def answer(names: list[str]) -> object:
    """Return the contents of packages in a fixed order."""
    packages = {name: importlib.import_module(name) for name in sorted(names)}
    for name in ("OMIT", "ToolFailed", "ToolError"):
        assert len({id(getattr(package, name)) for package in packages.values()}) == 1, name
    return {
        name: {
            "names": sorted(package.__all__),
            "tools": [[tool.method, tool.task_support, tool.is_bound] for tool in package.TOOLS.values()],
        }
        for name, package in packages.items()
    }


async def call_server() -> object:
    """Return a server's responses. This is the most expensive step, so it runs once for each first import."""
    import weather
    from weather_mcp import WeatherClient, build_server

    async with WeatherClient.connect(build_server(weather.Weather())) as client:
        return (await client.get_weather(location="Paris")).temperature


def visit(order: list[str], left: list[str]) -> None:
    """Import the remaining packages in each order."""
    if not left:
        temperature = asyncio.run(call_server()) if order[1:] == sorted(order[1:]) else None
        os.write(1, json.dumps([order, answer(order), temperature], sort_keys=True).encode() + b"\n")
    for name in left:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            if status:
                os._exit(1)
            continue
        package = importlib.import_module(name)
        assert package.build_server
        assert package.ToolFailed
        importlib.import_module(f"{name}.client")
        importlib.import_module("stubwright_runtime.generated").build_server  # noqa: B018 - loads the server
        visit([*order, name], [other for other in left if other != name])
        os._exit(0)


for shared in _SHARED:
    importlib.import_module(shared)
gc.disable()
visit([], sys.argv[1:])
