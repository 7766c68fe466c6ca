"""`budget.result`: results too large for a model's context are truncated or rejected, and reported as executed."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import mcp
import mcp_types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amounts
from packages import check, generate, imported, manifest, tool
from stubwright_runtime.policy.result_budget import limit_result, measure
from stubwright_runtime.server.core.outcomes import Outcome

pytestmark = pytest.mark.anyio

MODES = ("auto", "legacy")
"""With 2026-07-28, and with a handshake and 2025-11-25."""

SIZE = {"size": {"type": "integer"}}
ROWS = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "string"}}}, "required": ["rows"]}
READ_ONLY = {"readOnlyHint": True}
OWN = {"budget": {"result": 5000}}
TOOLS = [
    tool("read", {**SIZE, "limit": {"type": "integer"}, "cursor": {"type": "string"}}, annotations=READ_ONLY),
    tool("change", {**SIZE, "page_token": {"type": "string"}}),
    tool("rows", {**SIZE, "per_page": {"type": "integer"}}, annotations=READ_ONLY, outputSchema=ROWS),
    tool("roomy", SIZE, stubwright=OWN),
    tool("fails", SIZE),
    tool("mixed", {**SIZE, "limit": {"type": "integer"}}),
    tool("json_text", {"size": {"type": "integer"}, "query": {"type": "string"}}, annotations={"idempotentHint": True}),
]


class Handlers:
    """Returns results of the requested size."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()

    def read(self, args: Any, ctx: Any) -> str:
        self.ran["read"] += 1
        return "".join(f"line {number}\n" for number in range(args.size))

    change = read

    def rows(self, args: Any, ctx: Any) -> dict[str, Any]:
        self.ran["rows"] += 1
        return {"rows": [f"row {number}" for number in range(args.size)]}

    def roomy(self, args: Any, ctx: Any) -> str:
        return str("x" * args.size)

    def fails(self, args: Any, ctx: Any) -> str:
        raise import_module("fitted_mcp").ToolError("y" * args.size)

    def mixed(self, args: Any, ctx: Any) -> list[Any]:
        module = import_module("fitted_mcp")
        link = module.link("file:///a", "a")
        return ["first\n" * args.size, module.image(b"\0" * 30_000, "image/png"), "second\n" * args.size, link]

    def json_text(self, args: Any, ctx: Any) -> str:
        return json.dumps([*range(args.size)], indent=1)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("fitted")
    with imported(folder, generate(folder, manifest(TOOLS, name="fitted", budget={"result": 200, "tool": 9000}))):
        yield import_module("fitted_mcp.server")


@asynccontextmanager
async def connected(module: Any, mode: Any) -> AsyncIterator[tuple[mcp.Client, Handlers]]:
    handlers = Handlers()
    async with mcp.Client(module.build_server(handlers), mode=mode) as client:
        yield client, handlers


async def call(client: mcp.Client, name: str, **arguments: Any) -> tuple[bool | None, str, Any]:
    """Whether a call failed, its text, and its structured content."""
    result = await client.call_tool(name, arguments)
    assert isinstance(result, mcp_types.CallToolResult)
    texts = [block.text for block in result.content if isinstance(block, mcp_types.TextContent)]
    return result.is_error, "|".join(texts), result.structured_content


@pytest.mark.parametrize("mode", MODES)
async def test_text_is_cut_at_a_whole_line_and_says_how_to_get_the_rest(mode: str, module: Any) -> None:
    async with connected(module, mode) as (client, handlers):
        assert await call(client, "read", size=80) == (False, "".join(f"line {n}\n" for n in range(80)), None)
        failed, text, _ = await call(client, "read", size=1000)
        *lines, last = text.split("\n")
        assert not failed
        assert lines == [f"line {number}" for number in range(len(lines))]
        assert len(lines) > 30
        assert len(text) <= 200 * 4.4
        assert last == (
            f"[{1000 - len(lines)} of 1,000 lines are omitted: the result was about 2,021 tokens; the limit is 200. "
            "The call was carried out. Call it again and request less, with `limit`, `cursor`.]"
        )
        assert handlers.ran == {"read": 2}


@pytest.mark.parametrize("mode", MODES)
async def test_what_had_an_effect_is_not_to_be_called_again(mode: str, module: Any) -> None:
    """A place to go on from, such as `page_token`, makes no result smaller."""
    async with connected(module, mode) as (client, handlers):
        _, text, _ = await call(client, "change", size=1000)
        assert text.endswith(
            "The call was carried out. Do not call it again only to read the rest: that would carry it out again.]"
        )
        assert handlers.ran == {"read": 1}
        _, text, _ = await call(client, "mixed", size=80)
        assert "again. To get less next time, use `limit`.]" in text


@pytest.mark.parametrize("mode", MODES)
async def test_structured_content_is_whole_or_refused(mode: str, module: Any) -> None:
    async with connected(module, mode) as (client, handlers):
        failed, text, structured = await call(client, "rows", size=50)
        assert (failed, json.loads(text), len(structured["rows"])) == (False, structured, 50)
        text = (
            "The result of rows is too large: about 478 tokens; the limit is 200. The call was carried out, and only "
            "its result is omitted. Call it again and request less, with `per_page`."
        )
        assert await call(client, "rows", size=200) == (True, text, None)
        assert handlers.ran == {"rows": 2}


async def test_json_and_single_lines_are_not_cut(module: Any) -> None:
    async with connected(module, "auto") as (client, _):
        failed, text, _ = await call(client, "json_text", size=1000)
        assert failed
        assert text.endswith("only its result is omitted. Call it again and request less, with `query`.")
        failed, text, _ = await call(client, "roomy", size=30_000)
        assert failed
        assert text.startswith("The result of roomy is too large: about 6,819 tokens; the limit is 5,000. The call was")


async def test_a_tool_may_have_a_budget_of_its_own(module: Any) -> None:
    async with connected(module, "auto") as (client, _):
        assert await call(client, "roomy", size=22_000) == (False, "x" * 22_000, None)
        assert (await call(client, "roomy", size=22_001))[0]


async def test_a_failure_stays_the_failure_that_it_was(module: Any) -> None:
    """It is cut at any position, and does not claim that the call was executed."""
    async with connected(module, "auto") as (client, _):
        failed, text, _ = await call(client, "fails", size=5000)
        assert failed
        end = "… (the rest is omitted: the message was about 1,137 tokens; the limit is 200)"
        assert text == "y" * (880 - len(end)) + end


async def test_what_is_not_text_stays_and_images_cost_nothing(module: Any) -> None:
    async with connected(module, "auto") as (client, _):
        result = await client.call_tool("mixed", {"size": 20})
        assert [block.type for block in result.content] == ["text", "image", "text", "resource_link"]
        assert "left out" not in str(result.content)
        cut: Any = await client.call_tool("mixed", {"size": 80})
        assert [block.type for block in cut.content] == ["text", "image", "text", "resource_link"]
        first, _, second, _ = cut.content
        kept = first.text.count("first\n") + second.text.count("second\n")
        assert f"[{160 - kept} of 160 lines are omitted" in first.text + second.text


class Fitting:
    """A tool with a budget, and a call of it that gives a result."""

    def __init__(self, most: int, *texts: str) -> None:
        schema = {"type": "object", "properties": {}}
        self.tool = SimpleNamespace(name="t", result_budget=most, definition={"inputSchema": schema})
        self.given = Outcome({"content": [{"type": "text", "text": text} for text in texts]})

    async def fitted(self) -> Outcome:
        tool: Any = self.tool
        request: Any = SimpleNamespace(begin=None)
        return await limit_result(tool, self._answer)(request)

    async def _answer(self, request: Any) -> Outcome:
        return self.given


@given(st.lists(st.text("ab\n", max_size=2000), min_size=1, max_size=3), st.integers(200, 400))
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_whatever_is_cut_fits_and_is_a_start_of_what_was_there(texts: list[str], most: int) -> None:
    fitting = Fitting(most, *texts)
    outcome = anyio.run(fitting.fitted)
    if measure(fitting.given.result) <= most:
        assert outcome is fitting.given
        return
    if outcome.reason == "result_size":
        assert outcome.result["isError"]
        return
    assert measure(outcome.result) <= most
    content = [block["text"] for block in outcome.result["content"]]
    note = re.search(r"\[([\d,]+) of ([\d,]+) lines are omitted: .*\]$", content[-1])
    assert note is not None
    content[-1] = content[-1][: note.start()]
    assert all(whole.startswith(part) for whole, part in zip(texts, content, strict=False))
    assert content[:-1] == texts[: len(content) - 1]
    assert content[-1] == "" or content[-1].endswith("\n")
    counts = [len(re.findall(r"[^\n]*\n|[^\n]+$", text)) or 1 for text in texts]
    kept = sum(counts[: len(content) - 1]) + content[-1].count("\n")
    left_out, lines = (int(number.replace(",", "")) for number in note.groups())
    assert (left_out, lines) == (sum(counts) - kept, sum(counts))


async def test_other_servers_do_not_load_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "stubwright_runtime.policy.result_budget"
    monkeypatch.delitem(sys.modules, name)
    for budget, is_loaded in (({"tool": 9000}, False), ({"result": 200}, True)):
        folder = tmp_path / str(is_loaded)
        folder.mkdir()
        with imported(folder, generate(folder, manifest([tool("roomy", SIZE)], name="bare", budget=budget))):
            import_module("bare_mcp.server").build_server(Handlers())
            declared = json.loads((folder / "bare_mcp" / "manifest.json").read_text())
            assert (name in sys.modules, declared.get("budget")) == (is_loaded, budget if is_loaded else None)


def test_a_budget_in_which_no_note_fits_is_a_mistake(tmp_path: Path) -> None:
    (wrong,) = check(tmp_path, manifest([tool("read")], budget={"result": 199}))
    assert wrong.message == "expected a whole number, 200 or more, found the number `199`"


def test_the_larger_of_text_and_structured_content_counts() -> None:
    text = {"content": [{"type": "text", "text": "a word " * 10}]}
    assert measure(text) < measure({**text, "structuredContent": {"words": ["word"] * 100}})
    assert measure(text) == measure({**text, "structuredContent": {}})
