"""Broken, unclean, oversized or deeply nested content in generated clients."""

from __future__ import annotations

import json
import resource
import sys
from itertools import product
from pathlib import Path
from typing import Any, Final

import anyio
import mcp
import mcp_types
import pytest

import amounts
import hostile
from hostile import HANDSHAKE, STATELESS, Attacker, Said, listen
from stubwright_runtime.client.core.errors import InvalidResult, ResultTooLarge, ToolFailed
from stubwright_runtime.client.core.options import CallEvent
from stubwright_runtime.client.features.primitives import PrimitivesBinding
from stubwright_runtime.models.base import Model
from stubwright_runtime.package import Package, Tool

pytestmark = pytest.mark.anyio

ERAS: Final = (HANDSHAKE, STATELESS)
TRANSPORTS: Final = ("stdio", "http", "events")
_BOUND: Final = 60.0

PIXEL: Final = "iVBORw0KGgo="
NASTY: Final = "a\x1b[31mb\x07\u202ec\x9b2Jd"
CLEAN: Final = "abcd"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class RenderOutput(Model):
    area: float
    label: str | None = None


_OUTPUT: Final = {"properties": {"area": {"type": "number"}, "label": {"type": "string"}}, "required": ["area"]}
PACKAGE = Package("shapes_mcp", tools=[Tool("render"), Tool("ping")])
PACKAGE.manifest = {
    "stubwright": 1,
    "server": {"name": "shapes", "version": "1"},
    "formats": "annotate",
    "tools": [
        {"name": "render", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", **_OUTPUT}},
        {"name": "ping", "inputSchema": {"type": "object"}},
    ],
}


class ShapeClient(PrimitivesBinding):
    _package = PACKAGE

    async def render(self) -> RenderOutput:
        return await self._call("render", {}, RenderOutput)

    async def ping(self) -> list[mcp_types.ContentBlock]:
        return await self._call_content("ping", {})


def said(content: Any, **more: Any) -> bytes:
    """A result as the server sends it."""
    result = json.dumps({"resultType": "complete", "content": content, **more})
    return f'{{"jsonrpc":"2.0","id":$ID,"result":{result}}}'.encode()


@pytest.mark.parametrize(("era", "transport"), amounts.sample(product(ERAS, TRANSPORTS), 3))
async def test_a_model_needs_no_content_beside_it(transport: str, era: str, tmp_path: Path) -> None:
    attacker = Attacker(transport, era, "tools/call", tmp_path)
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            attacker.say(b'{"jsonrpc":"2.0","id":$ID,"result":{"structuredContent":{"area":2}}}')
            assert (await client.render()).area == 2
            assert await client.ping() == []
            attacker.say(b'{"jsonrpc":"2.0","id":$ID,"result":{"structuredContent":{"area":"two"}}}')
            with pytest.raises(InvalidResult):
                await client.render()
            attacker.say(b'{"jsonrpc":"2.0","id":$ID,"result":{"isError":true}}')
            with pytest.raises(mcp.MCPError):
                await client.render()


BROKEN: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "an image of no base64": (
        {"type": "image", "data": "not base64!!", "mimeType": "image/png"},
        "content[0].data: the data is not base64",
    ),
    "a sound of half base64": (
        {"type": "audio", "data": "YWJ", "mimeType": "audio/wav"},
        "content[0].data: the data is not base64",
    ),
    "an image that is a page": (
        {"type": "image", "data": PIXEL, "mimeType": "text/html"},
        "content[0].mimeType: 'text/html' is not a MIME type for an image block",
    ),
    "an image with a header": (
        {"type": "image", "data": PIXEL, "mimeType": "image/png\r\nSet-Cookie: a"},
        "content[0].mimeType: ",
    ),
    "a blob of no base64": (
        {"type": "resource", "resource": {"uri": "a://b", "blob": "%%%"}},
        "content[0].resource.blob: the data is not base64",
    ),
    "a text of no MIME type": (
        {"type": "resource", "resource": {"uri": "a://b", "text": "x", "mimeType": "html"}},
        "content[0].resource.mimeType: 'html' is not a MIME type",
    ),
    "a link of no MIME type": (
        {"type": "resource_link", "uri": "a://b", "name": "b", "mimeType": "a b/c"},
        "content[0].mimeType: 'a b/c' is not a MIME type",
    ),
}


@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_broken_content_is_an_error_that_says_where(transport: str, era: str, tmp_path: Path) -> None:
    attacker = Attacker(transport, era, "tools/call", tmp_path)
    events: list[CallEvent] = []
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND, on_call=events.append) as client:
            for name, (block, told) in BROKEN.items():
                attacker.say(said([block]))
                with pytest.raises(InvalidResult) as raised:
                    await client.ping()
                assert told in str(raised.value), name
                assert str(raised.value).startswith("the result of 'ping' is not valid MCP:"), name
                assert raised.value.result.content[0].type == block["type"]
                assert events[-1].outcome == "invalid"
                (kept,) = await client.with_options(sanitize="none").ping()
                assert kept.type == block["type"], name
            blocks = [block for block, _ in BROKEN.values()]
            attacker.say(said(blocks, structuredContent={"area": 1}))
            with pytest.raises(InvalidResult) as raised:
                await client.render()  # it is a part of the result, even if it is not accessed
            assert len(raised.value.violations) == len(BROKEN)
            attacker.say(said(blocks * 10))
            with pytest.raises(InvalidResult) as raised:
                await client.ping()
            assert len(raised.value.violations) == 21
            attacker.say(said([BROKEN["an image of no base64"][0]], isError=True))
            with pytest.raises(ToolFailed):  # that it failed says more than that it is broken
                await client.ping()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_dirty_content_is_clean_when_it_arrives(transport: str, era: str, tmp_path: Path) -> None:
    annotations = {"audience": ["user"], "priority": 0.5}
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": NASTY},
        {"type": "text", "text": "clean", "annotations": annotations, "_meta": {NASTY: [NASTY, 1]}},
        {"type": "resource_link", "uri": f"a://{NASTY}", "name": NASTY, "title": NASTY, "description": NASTY},
        {"type": "resource", "resource": {"uri": "a://b", "text": NASTY}},
        image,
    ]
    attacker = Attacker(transport, era, "tools/call", tmp_path)
    attacker.say(said(blocks, structuredContent={"area": 1, "label": NASTY}, _meta={"who": NASTY}))
    events: list[CallEvent] = []
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND, on_call=events.append) as client:
            made = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in await client.ping()]
            assert made == [
                {"type": "text", "text": CLEAN},
                {"type": "text", "text": "clean", "annotations": annotations, "_meta": {CLEAN: [CLEAN, 1]}},
                {"type": "resource_link", "uri": f"a://{CLEAN}", "name": CLEAN, "title": CLEAN, "description": CLEAN},
                {"type": "resource", "resource": {"uri": "a://b", "text": CLEAN}},
                image,
            ]
            assert [(event.outcome, event.cleaned) for event in events] == [(None, 0), ("ok", 8)]
            assert (await client.render()).label == NASTY
            assert (await client.with_options(sanitize="all").render()).label == CLEAN
            assert events[-1].cleaned == 10
            first = (await client.with_options(sanitize="none").ping())[0]
            assert isinstance(first, mcp_types.TextContent)
            assert first.text == NASTY
            assert events[-1].cleaned == 0


def test_how_to_sanitize_is_one_of_three() -> None:
    odd: Any = "some"
    with pytest.raises(ValueError, match="sanitize must be 'text', 'all' or 'none', not 'some'"):
        ShapeClient.connect("http://localhost/mcp", sanitize=odd)


@pytest.mark.parametrize("era", ERAS)
async def test_resources_and_prompts_are_looked_at_too(era: str) -> None:
    answers: dict[str, dict[str, Any]] = {}

    def answer(method: str, number: Any) -> Said | None:
        if method not in answers:
            return None
        hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        return Said(lambda: iter((hostile.response(number, {**hints, **answers[method]}),)))

    with listen(era, answer) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND) as client:
            answers["resources/read"] = {"contents": [{"uri": "a://b", "text": NASTY, "mimeType": "text/plain"}]}
            (text,) = await client._read("a://b")
            assert isinstance(text, mcp_types.TextResourceContents)
            assert text.text == CLEAN
            answers["resources/read"] = {"contents": [{"uri": "a://b", "blob": "%%%"}]}
            with pytest.raises(mcp.MCPError, match=r"contents\[0\].blob: the data is not base64") as raised:
                await client._read("a://b")
            assert raised.value.code == mcp_types.PARSE_ERROR
            answers["prompts/get"] = {"messages": [{"role": "user", "content": {"type": "text", "text": NASTY}}]}
            (message,) = await client._prompt("p", {})
            assert isinstance(message.content, mcp_types.TextContent)
            assert message.content.text == CLEAN
            image = {"type": "image", "data": PIXEL, "mimeType": "html"}
            answers["prompts/get"] = {"messages": [{"role": "user", "content": image}]}
            with pytest.raises(mcp.MCPError, match=r"messages\[0\].content.mimeType: 'html' is not a MIME type"):
                await client._prompt("p", {})


def _peak() -> int:
    """The most bytes that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.parametrize(("transport", "era"), amounts.sample([*product(TRANSPORTS, ERAS)], 1))
async def test_very_many_blocks_are_refused_before_they_are_objects(transport: str, era: str, tmp_path: Path) -> None:
    """Their objects would take seven times as long as parsing their JSON, and half as much memory again."""
    attacker = Attacker(transport, era, "tools/call", tmp_path)
    attacker.say(said([{"type": "text", "text": "x"}] * 60_000))
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            before = _peak()
            with pytest.raises(mcp.MCPError, match="its 'content' has 60,000 entries, more than 10,000") as raised:
                await client.ping()
            assert raised.value.code == mcp_types.PARSE_ERROR
            assert _peak() - before < 120 << 20
            attacker.say(said([{"type": "text", "text": "x"}] * 10_000))
            assert len(await client.ping()) == 10_000


@pytest.mark.parametrize(
    ("levels", "place", "transport", "era"),
    amounts.sample([*product([195, 400, 50_000], ["structuredContent", "_meta", "content"], TRANSPORTS, ERAS)], 7),
)
async def test_a_result_that_nests_too_deeply_is_an_error(
    levels: int, place: str, transport: str, era: str, tmp_path: Path
) -> None:
    bomb = '{"a":' * levels + "1" + "}" * levels
    value = f'[{{"type":"text","text":"x","_meta":{bomb}}}]' if place == "content" else bomb
    more = "" if place == "content" else '"content":[],'
    body = f'{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"complete",{more}"{place}":{value}}}}}'
    attacker = Attacker(transport, era, "tools/call", tmp_path)
    attacker.say(body.encode())
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            with anyio.fail_after(_BOUND), pytest.raises((mcp.MCPError, InvalidResult)) as raised:
                await client.ping()
            if isinstance(raised.value, mcp.MCPError):
                assert raised.value.code == mcp_types.PARSE_ERROR
            attacker.say(said([]))
            assert await client.ping() == []


async def test_results_of_servers_in_this_process_are_bounded_too() -> None:
    from mcp.server import MCPServer

    server = MCPServer("shapes")

    @server.tool()
    def ping() -> str:
        return "x" * 5_000

    for era in ("legacy", STATELESS):
        async with ShapeClient.connect(mcp.Client(server, mode=era)) as client:
            assert len(await client.ping()) == 1
            with pytest.raises(ResultTooLarge, match=r"the result of 'ping' has at least \S+ bytes") as raised:
                await client.with_options(max_result_bytes=2_000).ping()
            assert raised.value.size > 5_000
            assert raised.value.limit == 2_000
