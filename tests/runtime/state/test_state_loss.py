"""Behaviour while the contents of the store are unknown, by the manifest's setting."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import mcp
import pytest
from mcp_types import ElicitResult

import amounts
from packages import generate, imported, manifest, tool

pytestmark = pytest.mark.anyio

NOWHERE = "redis://127.0.0.1:1/0"
"""An unreachable store."""

NOTHING_DONE = "The server's store cannot be reached; the request had no effect. Try again in 5 seconds."
UNKNOWN = (
    "The server's store cannot be reached; the request may have taken effect. "
    "Check its effects, and try again in 5 seconds."
)

LIMITED = tool("limited", stubwright={"policy": {"rateLimit": "1/minute"}})
ASKS = tool("asks", stubwright={"ask": {"sure": {"message": "Sure?", "schema": {"type": "object", "properties": {}}}}})
ERAS = ("legacy", "2026-07-28")


class Handlers:
    async def limited(self, _args: Any, _ctx: Any) -> str:
        return "let in"

    async def plain(self, _args: Any, ctx: Any) -> str:
        await ctx.tools.disable("limited")
        return "switched"

    async def asks(self, _args: Any, ctx: Any) -> str:
        return type(await ctx.ask.sure()).__name__


@pytest.fixture
def policy(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {} if request.param is None else {"policy": {"onStateLoss": request.param}}


@pytest.fixture
def package(policy: dict[str, Any], tmp_path: Path) -> Iterator[ModuleType]:
    value = manifest([LIMITED, ASKS, tool("plain")], name="lossy", emit=["server"], **policy)
    with imported(tmp_path, generate(tmp_path, value)) as found:
        yield importlib.import_module(f"{found.__name__}.server")


@pytest.mark.parametrize(
    ("policy", "mode"), amounts.sample([*product(["closed", "open", None], ERAS)], 4), indirect=["policy"]
)
async def test_limited_calls_are_refused_or_let_through(
    mode: Any, policy: dict[str, Any], package: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with mcp.Client(package.build_server(Handlers(), state=NOWHERE), mode=mode) as client:
        results = [await client.call_tool("limited", {}) for _ in range(3)]
    is_open = policy.get("policy") == {"onStateLoss": "open"}
    assert [result.is_error for result in results] == [not is_open] * 3
    said: Any = [result.content[0] for result in results]
    assert {block.text for block in said} == {"let in" if is_open else NOTHING_DONE}
    assert ("2 so far (`onStateLoss: open`)" in caplog.text) == is_open
    assert caplog.text.count(" is unavailable: E") == 1


@pytest.mark.parametrize(
    ("policy", "mode"), amounts.sample([*product([None, "closed", "open"], ERAS)], 2), indirect=["policy"]
)
async def test_what_needs_no_state_goes_on(mode: Any, package: ModuleType) -> None:
    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async with mcp.Client(
        package.build_server(Handlers(), state=NOWHERE), mode=mode, elicitation_callback=answer
    ) as client:
        assert {one.name for one in (await client.list_tools()).tools} == {"limited", "asks", "plain"}
        switched: Any = await client.call_tool("plain", {})
        assert switched.is_error, "it would be off in this process alone"
        assert switched.content[0].text == UNKNOWN
        if mode == "legacy":
            asked: Any = (await client.call_tool("asks", {})).content[0]
            assert asked.text == "Declined"
        else:
            refused: Any = await client.call_tool("asks", {})
            assert refused.is_error
            assert refused.content[0].text == UNKNOWN
