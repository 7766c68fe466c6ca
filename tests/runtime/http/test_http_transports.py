"""Responses of APIs over stdio and HTTP, in the revisions before and from 2026-07-28 on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp
import pytest
from starlette.responses import Response, StreamingResponse

import amounts
import forked
import prompt_ends
from fake_api import Answer, Asked
from http_tools import called, run_package
from serving import asgi

ends_are_prompt = prompt_ends.ends_are_prompt

ITEMS = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}
ONE = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
TOOLS = [
    called("odd", {}, {"url": "/odd", "method": "POST", "output": "lenient"}, outputSchema=ONE),
    called(
        "part",
        {},
        {"url": "/part", "select": ["/items/*/id"]},
        outputSchema={"type": "object", "properties": {"items": ITEMS}},
    ),
    called(
        "headed",
        {},
        {"url": "/headed", "responseHeaders": {"total": {"name": "X-Total", "type": "integer"}}},
        outputSchema=ONE,
    ),
    called(
        "pages",
        {"after": {"type": "string"}},
        {
            "url": "/pages",
            "query": {"after": "{after}"},
            "page": {"by": "cursor", "argument": "after", "items": "/items", "next": "/next"},
        },
        outputSchema={"type": "object", "properties": {"items": ITEMS, "next": {"type": "string"}}},
    ),
    called("large", {}, {"url": "/large", "large": "resource", "output": "lenient"}),
    called("events", {}, {"url": "/events", "accept": "text/event-stream"}),
    called("moved", {}, {"url": "/moved"}),
]
TOOLS[4]["stubwright"]["policy"] = {"maxResultBytes": 2000}
LARGE = "line of text\n" * 500


async def stream() -> AsyncIterator[str]:
    for number in range(3):
        yield f"data: step {number}\n\n"


def answer(asked: Asked) -> Answer:
    match asked.path.rpartition("/")[2]:
        case "odd":
            return {"id": 1, "new": 2}
        case "part":
            return {"items": [{"id": 1, "secret": "s"}, {"id": 2}], "rest": "s"}
        case "headed":
            return Response('{"id": 1}', headers={"X-Total": "12"}, media_type="application/json")
        case "pages":
            return {"items": [{"id": 2}]} if asked.query else {"items": [{"id": 1}], "next": "n"}
        case "large":
            return Response(LARGE, media_type="text/plain")
        case "events":
            return StreamingResponse(stream(), media_type="text/event-stream")
        case _:
            return Response(status_code=302, headers={"Location": "https://files.example/a.bin"})


async def odd(client: mcp.Client) -> None:
    result = await client.call_tool("odd", {})
    assert (result.is_error, result.structured_content) == (False, None)
    assert json.loads(result.content[0].text) == {"id": 1, "new": 2}  # type: ignore[union-attr]
    assert (result.meta or {})["io.stubwright/output"]["fits"] is False


async def part(client: mcp.Client) -> None:
    result = await client.call_tool("part", {})
    assert result.structured_content == {"items": [{"id": 1}, {"id": 2}]}


async def headed(client: mcp.Client) -> None:
    result = await client.call_tool("headed", {})
    assert result.structured_content == {"body": {"id": 1}, "headers": {"total": 12}}


async def pages(client: mcp.Client) -> None:
    first = (await client.call_tool("pages", {})).structured_content
    assert isinstance(first, dict)
    last = await client.call_tool("pages", {"cursor": first.pop("next")})
    assert (first, last.structured_content) == ({"items": [{"id": 1}]}, {"items": [{"id": 2}]})


async def large(client: mcp.Client) -> None:
    result = await client.call_tool("large", {})
    (link,) = [block for block in result.content if block.type == "resource_link"]
    assert not result.is_error
    assert len(result.model_dump_json()) < 4000
    (whole,) = (await client.read_resource(str(link.uri))).contents
    assert getattr(whole, "text", None) == LARGE


async def events(client: mcp.Client) -> None:
    heard: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total is None or progress <= total
        heard.append(message)

    result = await client.call_tool("events", {}, progress_callback=note)
    assert not result.is_error
    assert [str(each) for each in heard] == ["step 0", "step 1", "step 2"]


async def moved(client: mcp.Client) -> None:
    result = await client.call_tool("moved", {})
    (link,) = result.content
    assert (link.type, str(getattr(link, "uri", ""))) == ("resource_link", "https://files.example/a.bin")


USES = [odd, part, headed, pages, large, events, moved]


@pytest.mark.parametrize("mode", amounts.sample(["legacy", "2026-07-28"], 1))
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_every_result_arrives(transport: str, mode: str, tmp_path: Path) -> None:
    with run_package(tmp_path, TOOLS, answer) as server:

        async def used(target: Any) -> dict[str, str]:
            failed: dict[str, str] = {}
            async with mcp.Client(target, mode=mode) as client:
                for use in USES:
                    try:
                        await use(client)
                    except (AssertionError, mcp.MCPError, RuntimeError, ValueError, KeyError) as error:
                        failed[use.__name__] = f"{type(error).__name__}: {error}"
            return failed

        if transport == "stdio":
            environment = {"PYTHONPATH": str(tmp_path)}
            interpreter, *arguments = forked.interpreter()
            arguments += ["-m", server.package.__name__]
            command = mcp.StdioServerParameters(command=interpreter, args=arguments, env=environment)
            failed = asyncio.run(used(mcp.stdio_client(command)))
        else:
            with asgi(server.package.asgi_app(None)) as url:
                failed = asyncio.run(used(f"{url}/mcp"))
    assert failed == {}
