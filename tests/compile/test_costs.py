"""The token costs of a tool list cover exactly the tools that the server lists."""

from __future__ import annotations

import asyncio
from pathlib import Path

import mcp
import pytest

from packages import generate, imported, manifest, tool
from stubwright import tokens
from stubwright.calling import listings
from stubwright.compile import pipeline
from stubwright.compile.audience import costs
from stubwright.docs import views
from stubwright.project.files import disk

OUTPUT = {"type": "object", "properties": {"name": {"type": "string", "description": "The name. " * 50}}}


@pytest.mark.parametrize("output", ["strict", "lenient"])
def test_an_output_schema_that_is_not_listed_costs_nothing(output: str, tmp_path: Path) -> None:
    http = {"api": "pets", "url": "/x", "output": output}
    value = manifest(
        [tool("get", {}, outputSchema=OUTPUT, stubwright={"http": http})],
        apis={"pets": {"baseUrl": "https://pets.example"}},
    )
    name = generate(tmp_path, value)
    checked = pipeline.compile_manifest(str(tmp_path / "sample.json"), disk.Disk())
    assert checked.manifest is not None

    async def ask() -> int:
        with imported(tmp_path, name) as module:
            async with mcp.Client(module.build_server(None)) as client:
                (listed,) = (await client.list_tools()).tools
                return tokens.count(listed.model_dump(mode="json", by_alias=True, exclude_none=True))

    sent = asyncio.run(ask())
    assert (sent > 100) is (output == "strict")
    (shown,) = listings.list_manifest(checked.manifest, "2026-07-28").sections["tools"]
    view = views.view(checked.manifest, value)
    assert {costs.measure(checked.manifest).server, tokens.count(shown), view.tokens} == {sent}
