"""Calls a server that FastMCP generates from an OpenAPI document, for `openapi.py`; needs FastMCP.

    python openapi_fastmcp.py DOCUMENT URL < CALLS

The calls are a JSON list of `{"method", "path", "arguments"}`, with stubwright's argument names. Each request carries
the number of its call in `X-Call`. Prints a JSON object: the seconds until tools are listed, the size of the list in
bytes, and for each call whether FastMCP has the tool and its arguments.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import yaml
from fastmcp import Client, FastMCP


def credentials(document: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return made-up credentials for all security schemes, as headers and query parameters."""
    headers, query = {}, {}
    for scheme in document.get("components", {}).get("securitySchemes", {}).values():
        if scheme.get("type") != "apiKey":
            kind = "Basic" if scheme.get("scheme", "").lower() == "basic" else "Bearer"
            headers["Authorization"] = f"{kind} bWFkZTp1cA=="
        elif scheme["in"] == "query":
            query[scheme["name"]] = "made-up"
        elif scheme["in"] == "cookie":
            headers["Cookie"] = f"{scheme['name']}=made-up"
        else:
            headers[scheme["name"]] = "made-up"
    return headers, query


def rename_arguments(arguments: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments under FastMCP's names, or `None` if FastMCP lacks one."""
    made: dict[str, Any] = {}
    for name, value in arguments.items():
        place = re.fullmatch("(path|query|header|cookie)_(.+)", name)
        other = f"{place[2]}__{place[1]}" if place else name
        found = next((each for each in (name, other, place[2] if place else name) if each in properties), None)
        if found is not None:
            made[found] = value
        elif name == "body" and isinstance(value, dict) and value.keys() <= properties.keys():
            made |= value
        else:
            return None
    return made


def shape(path: str) -> str:
    """Return a path with its parameters anonymized."""
    return re.sub(r"\{[^}]*\}", "{}", path)


async def main(document: Mapping[str, Any], url: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    headers, query = credentials(document)
    called: list[bool] = []

    async def mark(request: httpx2.Request) -> None:
        request.headers["X-Call"] = str(len(called))

    before = time.perf_counter()
    http = httpx2.AsyncClient(base_url=url, headers=headers, params=query, timeout=60, event_hooks={"request": [mark]})
    server = FastMCP.from_openapi({**document}, client=http)
    async with http, Client(server) as client:
        listed = await client.list_tools()
        seconds = time.perf_counter() - before
        tools = {(tool._route.method, shape(tool._route.path)): tool for tool in await server.list_tools()}
        for call in calls:
            tool = tools.get((call["method"], shape(call["path"])))
            arguments = rename_arguments(call["arguments"], tool.parameters["properties"]) if tool else None
            if tool and arguments is not None:
                with contextlib.suppress(RuntimeError):  # the client's error for a response without structured content
                    await client.call_tool(tool.name, arguments, raise_on_error=False)
            called.append(arguments is not None)
        size = len(json.dumps([each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in listed]))
    return {"seconds": seconds, "tools": len(listed), "bytes": size, "called": called}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    text = Path(sys.argv[1]).read_text("utf-8")
    loaded = (
        yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if not text.startswith("{") else json.loads(text)
    )
    loaded = json.loads(json.dumps(loaded, default=str))
    print(json.dumps(asyncio.run(main(loaded, sys.argv[2], json.load(sys.stdin)))))
