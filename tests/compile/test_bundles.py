"""Schemas shared by many tools are stored once in a package, and are complete on the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

import amounts
import packages
from packages import tool
from stubwright.compile import bundles

LONG = {"type": "string", "description": "x" * 300}


def schemas(count: int) -> dict[str, Any]:
    """Return schemas that reference each other, each with distinct keywords."""
    return {
        f"Part{index}": {
            "type": "object",
            "properties": {"next": {"$ref": f"#/schemas/Part{(index + 1) % count}"}, f"own_{index}": LONG},
        }
        for index in range(count)
    }


def made(folder: Path, count: int, **more: Any) -> tuple[Path, dict[str, Any]]:
    uses = [
        tool("first", {"part": {"$ref": "#/schemas/Part1"}}, outputSchema={"$ref": "#/schemas/Part2"}),
        {
            "name": "second",
            "description": "x",
            "inputSchema": {
                "type": "object",
                "$defs": {"Own": {"type": "object", "properties": {"part": {"$ref": "#/schemas/Part0"}}}},
                "properties": {"own": {"$ref": "#/$defs/Own"}},
            },
        },
        tool("third", {"n": {"type": "integer"}}),
    ]
    package = packages.generate(folder, packages.manifest(uses, name="parts", schemas=schemas(count), **more))
    return folder / package, json.loads((folder / package / "manifest.json").read_text())


def test_what_is_large_is_kept_once(tmp_path: Path) -> None:
    root, manifest = made(tmp_path, 60)
    assert [*manifest["bundled"]["schemas"]] == sorted(schemas(60))
    assert manifest["bundled"]["tools"] == {
        "first": {"inputSchema": ["Part1"], "outputSchema": ["Part2"]},
        "second": {"inputSchema": ["Part0"]},
    }
    assert manifest["tools"][0]["outputSchema"] == {"$ref": "#/$defs/Part2"}
    assert [*manifest["tools"][1]["inputSchema"]["$defs"]] == ["Own"]
    text = (root / "manifest.json").read_text()
    assert text.count('"own_7"') == 1


def test_what_is_small_stays_where_it_is_used(tmp_path: Path) -> None:
    _root, manifest = made(tmp_path, 3)
    assert "bundled" not in manifest
    assert [*manifest["tools"][0]["outputSchema"]["$defs"]] == ["Part2", "Part0", "Part1"]


@pytest.mark.parametrize("more", amounts.sample([{}, {"emit": ["client"]}, {"emit": ["server"]}], 1))
def test_the_definitions_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    found = []
    for large in (0, 10**9):
        monkeypatch.setattr(bundles, "LARGE", large)
        folder = tmp_path / str(large)
        folder.mkdir()
        _, manifest = made(folder, 40, **more)
        assert ("bundled" in manifest) is (large == 0)
        with packages.imported(folder, "parts_mcp") as package:
            found.append(json.dumps({name: tool.definition for name, tool in package.TOOLS.items()}))
    assert found[0] == found[1]  # with the order of keys


@pytest.mark.long
@pytest.mark.anyio
async def test_a_client_gets_whole_schemas(tmp_path: Path) -> None:
    made(tmp_path, 60, python={"handlers": "nothing:Nothing"})
    with packages.imported(tmp_path, "parts_mcp") as package:

        class Parts(package.PartsHandlers):  # type: ignore[misc,name-defined]
            async def first(self, args: Any, ctx: Any) -> Any:
                return package.Part2(next=package.Part3(own_3=args.part.own_1))

            async def second(self, args: Any, ctx: Any) -> str:
                return "x"

            async def third(self, args: Any, ctx: Any) -> str:
                return "x"

        async with Client(package.build_server(Parts())) as client:
            listed = {one.name: one for one in (await client.list_tools()).tools}
            assert listed["first"].output_schema is not None
            assert len(listed["first"].output_schema["$defs"]) == 60
            result = await client.call_tool("first", {"part": {"own_1": "a"}})
            assert result.structured_content == {"next": {"own_3": "a"}}
            wrong = await client.call_tool("second", {"own": {"part": {"next": {"own_1": 1}}}})
            assert wrong.is_error
