"""Pages that hosts show next to results (MCP Apps, SEP-1865): announcement, and metadata for hosts."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from packages import generate, imported, manifest, tool
from ways import REVISIONS, WAYS, Opening, by_lines

pytestmark = pytest.mark.anyio

UI = "io.modelcontextprotocol/ui"
MIME = "text/html;profile=mcp-app"
CSP = {"ui": {"csp": {"connectDomains": ["https://api.example.com"]}}}
MANIFEST = manifest(
    [tool("show", _meta={"ui": {"resourceUri": "ui://desk/page"}})],
    name="desk",
    resources=[
        {"uri": "ui://desk/page", "name": "page", "mimeType": MIME, "_meta": CSP, "stubwright": {"text": "<p>Page"}},
        {"uri": "ui://desk/made", "name": "made", "mimeType": MIME, "_meta": {**CSP, "kept": 1}},
        {"uri": "desk://plain", "name": "plain", "_meta": {"a": 1}, "stubwright": {"text": "plain"}},
    ],
    resourceTemplates=[{"uriTemplate": "ui://desk/tickets/{id}", "name": "ticket", "mimeType": MIME, "_meta": CSP}],
)


class Desk:
    async def show(self, args: Any, ctx: Any) -> str:
        return "shown"

    async def read_made(self, ctx: Any) -> Any:
        embedded = importlib.import_module("desk_mcp").embedded

        block = embedded("ui://desk/made", text="<p>Made", mime_type=MIME)
        block.resource.meta = {"ui": {"prefersBorder": True}}
        return block

    async def read_ticket(self, args: Any, ctx: Any) -> str:
        return f"<p>{args.id}"


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    with imported(tmp_path, generate(tmp_path, MANIFEST)) as package:
        yield package


@REVISIONS
@WAYS
async def test_a_page_is_announced_and_described(desk: ModuleType, opened: Opening, revision: str) -> None:
    async with opened(desk, Desk(), revision) as wire:
        offered = wire.offered or (await wire("server/discover"))["capabilities"]
        assert offered["extensions"] == {UI: {}}
        [page] = (await wire("resources/read", uri="ui://desk/page"))["contents"]
        assert page == {"uri": "ui://desk/page", "mimeType": MIME, "text": "<p>Page", "_meta": CSP}
        [made] = (await wire("resources/read", uri="ui://desk/made"))["contents"]
        assert made["_meta"] == {"ui": {"prefersBorder": True}, "kept": 1}
        [ticket] = (await wire("resources/read", uri="ui://desk/tickets/7"))["contents"]
        assert (ticket["text"], ticket["_meta"]) == ("<p>7", CSP)
        [plain] = (await wire("resources/read", uri="desk://plain"))["contents"]
        assert "_meta" not in plain
        listed = {each["uri"]: each for each in (await wire("resources/list"))["resources"]}
        assert listed["ui://desk/page"]["_meta"] == CSP


async def test_a_server_without_pages_announces_no_extension(tmp_path: Path) -> None:
    value = manifest([tool("show")], name="bare", resources=[MANIFEST["resources"][2]])
    with imported(tmp_path, generate(tmp_path, value)) as package:
        async with by_lines(package, Desk(), "2025-11-25") as wire:
            assert "extensions" not in wire.offered
