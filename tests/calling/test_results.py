"""The output format of results of `stubwright call`."""

from __future__ import annotations

import json
from typing import Any

import mcp
import pytest
from mcp.server.mcpserver import MCPServer

from stubwright.calling import results

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def call(value: Any, kind: Any) -> Any:
    """The result of a tool of the SDK that returns a value, whose type is `kind`."""

    def tool() -> Any:
        return value

    tool.__annotations__ = {"return": kind}
    server = MCPServer("values")
    server.add_tool(tool)
    async with mcp.Client(server) as client:
        result = await client.call_tool("tool", {})
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, int),
        (0.5, float),
        (True, bool),
        ("ok", str),
        ("3", str),
        ([1, 2], list[int]),
        (["a", "b"], list[str]),
        ([{"a": 1}, {"a": 2}], list[dict[str, int]]),
    ],
)
async def test_a_value_that_the_sdk_wraps_is_printed_once(value: Any, kind: Any) -> None:
    result = await call(value, kind)
    assert result["content"]
    assert json.loads(results.show(result)) == {"result": value}


async def test_a_text_beside_the_structured_content_is_printed() -> None:
    content = [{"type": "text", "text": text} for text in ("3", "4", "{not JSON")]
    shown = results.show({"structuredContent": {"result": 3}, "content": content})
    assert shown == '{\n  "result": 3\n}\n4\n{not JSON\n'
    assert results.show({"structuredContent": {"total": 3}, "content": content[:1]}) == '{\n  "total": 3\n}\n3\n'
