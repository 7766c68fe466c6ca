"""Complete responses of calls, additional arguments of open schemas, structured content without a schema, and trust."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mcp
import pytest

import amounts
import forked
import prompt_ends
from packages import generate, imported, manifest, tool
from server_fixture import exchange
from serving import serve
from stubwright.compile import pipeline
from stubwright.project.files import disk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
PLACE: Final = {"place": {"type": "string"}}
FORECAST: Final = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}


def open_tool(name: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tool with a whole schema."""
    return {"name": name, "inputSchema": {"type": "object", **schema}, **more}


TOOLS: Final = [
    open_tool("forecast", {"properties": PLACE, "additionalProperties": {"type": "integer"}}, outputSchema=FORECAST),
    open_tool("anything", {}),
    open_tool(
        "labelled", {"properties": {"extra": {"type": "string"}}, "patternProperties": {"^x-": {"type": "string"}}}
    ),
    open_tool("headed", {"additionalProperties": False, "patternProperties": {"^x-": {"type": "string"}}}),
    open_tool("both", {"properties": {"extra": {}, "extra_": {}}}),
    open_tool("closed", {"properties": {"from": {"type": "string"}}, "additionalProperties": False}),
    open_tool("sealed", {"unevaluatedProperties": False}),
    open_tool("evaluated", {"patternProperties": {"^x-": {"type": "string"}}, "unevaluatedProperties": False}),
    open_tool("matched", {"patternProperties": {"^x-": {}}, "unevaluatedProperties": False}),
    open_tool("renamed", {"properties": {"from": {"type": "string"}}}),
    open_tool("failing", {}),
    open_tool("old", {"properties": PLACE}, stubwright={"deprecated": {"since": "2", "use": "forecast"}}),
]
HANDLERS: Final = """
from open_mcp import Reply, ToolError, text

def sent(args):
    return repr(sorted(args.model_dump(mode="json").items()))

class Open:
    def forecast(self, args, ctx):
        from open_mcp import ForecastOutput
        more = [text("sent " + sent(args)), text("dirty\\x1b[31m")]
        return Reply(ForecastOutput(degrees=21.5), content=more, meta={"example.com/age": 3})

    def anything(self, args, ctx):
        value = args.model_dump(mode="json")
        return Reply(sent(args), structured=value["structured"]) if "structured" in value else sent(args)

    labelled = headed = both = closed = sealed = renamed = old = lambda self, args, ctx: sent(args)
    evaluated = matched = headed

    def failing(self, args, ctx):
        raise ToolError("no such place; try Paris")
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("open")
    generate(folder, manifest(TOOLS, name="open"))
    (folder / "handling.py").write_text(HANDLERS)
    return folder


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[Any]:
    with imported(folder, "open_mcp") as package:
        yield package
        sys.modules.pop("handling", None)


@pytest.fixture(scope="module")
def server(package: Any) -> Any:
    return package.build_server(importlib.import_module("handling").Open())


@pytest.fixture(params=["stdio-legacy", "http-auto", *map(amounts.mark_long, ["stdio-auto", "http-legacy"])])
async def target(request: pytest.FixtureRequest, folder: Path, server: Any) -> AsyncIterator[Any]:
    kind, mode = request.param.split("-")
    if kind == "http":
        with serve(server) as url:
            yield mcp.Client(url, mode=mode)
    else:
        start = [*forked.interpreter(), "-m", "open_mcp", "--handlers", "handling:Open"]
        yield mcp.Client(mcp.StdioServerParameters(command=start[0], args=start[1:], cwd=folder), mode=mode)


def text(content: Any) -> str:
    """The text of the first block."""
    said: str = content[0].text
    return said


async def test_a_response_has_all_that_the_server_said(package: Any, target: Any) -> None:
    events: list[Any] = []
    async with package.OpenClient.connect(target, on_call=events.append) as client:
        response = await client.with_raw_response.forecast(place="Paris")
        assert isinstance(response, package.CallResponse)
        assert response.model == package.ForecastOutput(degrees=21.5)
        assert response.parse() == response.model == await client.forecast(place="Paris")
        assert response.structured == {"degrees": 21.5}
        assert response.meta["example.com/age"] == 3
        assert not response.is_error
        assert json.loads(text(response.content)) == {"degrees": 21.5}
        assert response.text.splitlines()[1:] == ["sent [('place', 'Paris')]", "dirty"]
        assert response.result.content == response.content

        failed = await client.with_raw_response.failing()
        assert (failed.is_error, failed.model, failed.text) == (True, None, "no such place; try Paris")
        assert events[-1].outcome == "failed"
        with pytest.raises(package.ToolFailed, match="no such place; try Paris"):
            failed.parse()
        with pytest.raises(package.ToolFailed, match="no such place; try Paris"):
            await client.failing()

        blocks = await client.with_raw_response.anything()
        assert blocks.model == blocks.content == blocks.parse()
        assert (blocks.structured, text(blocks.content)) == (None, "[]")

        with pytest.deprecated_call(match="use forecast"):
            old = await client.with_raw_response.old(place="Oslo")
        assert old.text == "[('place', 'Oslo')]"


async def test_options_hold_for_responses(package: Any, server: Any) -> None:
    async with package.OpenClient.connect(server, confirm=lambda *_: False, confirm_all=True) as client:
        with pytest.raises(package.CallRefused):
            await client.with_raw_response.forecast(place="Paris")
        bounded = client.with_options(confirm=None, confirm_all=False, max_result_bytes=50)
        with pytest.raises(package.ResultTooLarge, match="the result of 'forecast' has"):
            await bounded.with_raw_response.forecast(place="Paris")


def test_a_response_is_where_its_method_is(package: Any) -> None:
    responses = type(package.OpenClient(None, None, None).with_raw_response)
    names = {name for name in vars(responses) if not name.startswith("_")}
    assert names == {one["name"] for one in TOOLS}
    assert responses.forecast.__doc__ == package.OpenClient.forecast.__doc__


async def test_what_an_open_schema_allows_can_be_sent(package: Any, target: Any) -> None:
    async with package.OpenClient.connect(target) as client:
        assert text(await client.anything(extra={"b": [1], "ä": None})) == "[('b', [1]), ('ä', None)]"
        assert text(await client.anything(extra={})) == text(await client.anything(extra=None)) == "[]"
        response = await client.with_raw_response.forecast(place="Oslo", extra={"days": 3})
        assert "sent [('days', 3), ('place', 'Oslo')]" in response.text
        with pytest.raises(package.ToolFailed, match="days"):  # the schema is the server's to enforce
            await client.forecast(place="Oslo", extra={"days": "three"})
        assert text(await client.headed(extra={"x-a": "1"})) == "[('x-a', '1')]"
        assert text(await client.evaluated(extra={"x-a": "1"})) == "[('x-a', '1')]"
        assert text(await client.matched(extra={"x-a": "1"})) == "[('x-a', '1')]"
        assert text(await client.labelled(extra="e", extra_={"x-a": "1"})) == "[('extra', 'e'), ('x-a', '1')]"
        assert text(await client.both(extra=1, extra_=2, extra__={"c": 3})) == (
            "[('c', 3), ('extra', 1), ('extra_', 2)]"
        )


async def test_extra_takes_no_argument_of_the_method(package: Any, server: Any) -> None:
    events: list[Any] = []
    async with package.OpenClient.connect(server, on_call=events.append) as client:
        with pytest.raises(
            TypeError, match="forecast: 'place' in `extra` is a parameter of the method; pass it directly"
        ):
            await client.forecast(extra={"place": "Paris"})
        with pytest.raises(TypeError, match="renamed: 'from' in `extra` is a parameter of the method"):
            await client.renamed(from_="a", extra={"from": "b"})
        with pytest.raises(TypeError, match="anything: names in `extra` must be strings, not 5"):
            await client.anything(extra={5: 1})
        for method in (client.closed, client.sealed, client.with_raw_response.closed):
            with pytest.raises(TypeError, match="unexpected keyword argument 'extra'"):
                await method(extra={"a": 1})
        assert events == []


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("value", [{"a": [1, None]}, [1], "text", 5, True])
async def test_structured_content_needs_no_schema(server: Any, revision: str, value: Any) -> None:
    (result,) = await exchange(
        server, revision, ("tools/call", {"name": "anything", "arguments": {"structured": value}})
    )
    assert not result.get("isError")
    if revision == "2026-07-28" or isinstance(value, dict):
        assert result["structuredContent"] == value
    else:
        assert "structuredContent" not in result


async def test_a_client_reaches_structured_content_without_a_schema(package: Any, target: Any) -> None:
    async with package.OpenClient.connect(target) as client:
        response = await client.with_raw_response.anything(extra={"structured": {"a": 1}})
        assert response.structured == {"a": 1}
        assert response.text == "[('structured', {'a': 1})]"


class Odd:
    """Is no JSON."""


@pytest.mark.parametrize("odd", [Odd(), float("inf"), {"a": {1, 2}}])
async def test_structured_content_is_json(package: Any, odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Handlers(importlib.import_module("handling").Open):  # type: ignore[misc]  # it is made by the test
        def anything(self, args: Any, ctx: Any) -> Any:
            return package.Reply("x", structured=odd)

    (result,) = await exchange(package.build_server(Handlers()), "2025-11-25", ("tools/call", {"name": "anything"}))
    assert result["isError"]
    assert result["content"][0]["text"].startswith("Internal error in anything (reference ")
    assert "structuredContent" not in result


async def test_structured_content_of_a_schema_is_the_model(package: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Handlers(importlib.import_module("handling").Open):  # type: ignore[misc]  # it is made by the test
        def forecast(self, args: Any, ctx: Any) -> Any:
            return package.Reply(package.ForecastOutput(degrees=1), structured={"degrees": 2})

        def anything(self, args: Any, ctx: Any) -> Any:
            return package.Reply("x", structured=package.ForecastOutput(degrees=2))

    calls: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": name, "arguments": {}}) for name in ("forecast", "anything")
    ]
    refused, modelled = await exchange(package.build_server(Handlers()), "2025-11-25", *calls)
    assert refused["isError"]
    assert "the tool forecast has an outputSchema, so the structured content must come from the model" in caplog.text
    assert modelled["structuredContent"] == {"degrees": 2}


CALLER: Final = """
from typing import assert_type

from mcp_types import ContentBlock
from open_mcp import CallResponse, ForecastOutput, OpenClient, Reply, ToolContent, text


async def call(client: OpenClient) -> None:
    whole = await client.with_raw_response.forecast(place="Paris", extra={"days": 3})
    assert_type(whole, CallResponse[ForecastOutput])
    assert_type(whole.model, ForecastOutput | None)
    assert_type(whole.parse(), ForecastOutput)
    assert_type(whole.content, list[ContentBlock])
    assert_type(whole.text, str)
    blocks = await client.with_raw_response.anything(extra={"a": [1], "b": None})
    assert_type(blocks.parse(), ToolContent)
    plain: list[ContentBlock] = await client.anything()
    assert_type((await client.anything()).text, str)
    plain.append(text("more"))
    await client.labelled(extra="a", extra_={"x-a": object()})
    await client.with_options(timeout=None, confirm_all=True, sanitize="none").headed(extra={"x-a": "b"})


def reply() -> Reply[str]:
    return Reply("text", [text("more")], structured={"a": 1})
"""
WRONG: Final = {
    'await client.with_raw_response.forecast(town="Paris")': "town",
    "await client.with_raw_response.forecast(place=1)": "place|str",
    'await client.with_raw_response.forecast(extra={"days": "three"})': "int",
    'await client.headed(extra={"x-a": 1})': "str",
    "await client.closed(extra={})": "extra",
    "await client.sealed(extra={})": "extra",
    "await client.with_raw_response.closed(extra={})": "extra",
    "await client.with_raw_response.nothing()": "nothing",
}


@pytest.mark.long
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_know_responses_and_extra(folder: Path, checker: str, mypy: list[str], tmp_path: Path) -> None:
    lines = [f"async def wrong_{number}(client: OpenClient) -> None:\n    {line}" for number, line in enumerate(WRONG)]
    (tmp_path / "right.py").write_text(CALLER)
    (tmp_path / "wrong.py").write_text("\n\n".join(["from open_mcp import OpenClient", *lines]) + "\n")
    (tmp_path / "open_mcp").symlink_to(folder / "open_mcp")
    config = {"pythonVersion": "3.11", "strict": ["open_mcp", "right.py", "wrong.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [*mypy, "--no-error-summary"]
    if checker == "pyright":
        found = Path(sys.executable).with_name("pyright")
        if not found.exists():
            pytest.skip("pyright is not installed")
        command = [str(found), "--pythonpath", sys.executable]

    command += ["right.py", "open_mcp/client.py", "wrong.py"]  # in one run: its start costs most
    ran = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    told = [line for line in ran.stdout.splitlines() if "error:" in line]
    assert [line for line in told if "wrong.py:" not in line] == []
    for number, (line, what) in enumerate(WRONG.items()):
        at = [one for one in told if f"wrong.py:{4 + 3 * number}:" in one]
        assert at, (line, told)
        assert any(word in at[0] for word in what.split("|")), (line, at)


HINTS: Final = {"readOnlyHint": True, "destructiveHint": False}


def trusting(folder: Path, name: str, **more: Any) -> str:
    """Return a package of a client whose tools are declared as harmless."""
    tools = [tool(one, annotations=HINTS) for one in ("harmless", "liar", "settled", "guarded")]
    tools[2]["stubwright"] = {"policy": {"confirm": False}}
    tools[3]["stubwright"] = {"policy": {"confirm": True}}
    return generate(folder, manifest(tools, name=name, emit=["client"], python={"features": ["elicitation"]}, **more))


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, ["guarded"]),
        ({"client": {"hints": "trusted"}}, ["guarded"]),
        ({"client": {"hints": "untrusted"}}, ["harmless", "liar", "guarded"]),
        (
            {"client": {"hints": "untrusted"}, "overlay": {"tools": {"harmless": {"policy": {"trusted": True}}}}},
            ["liar", "guarded"],
        ),
    ],
)
def test_hints_of_others_count_where_somebody_trusts_them(tmp_path: Path, more: Any, asked: list[str]) -> None:
    with imported(tmp_path, trusting(tmp_path, "liars", **more)) as package:
        dangerous = importlib.import_module("stubwright_runtime.client.core.confirmation").is_dangerous
        assert [name for name, each in package.TOOLS.items() if dangerous(each)] == asked


def test_trust_is_no_default_of_all_tools_and_stands_in_the_entry(tmp_path: Path) -> None:
    def codes(value: dict[str, Any]) -> list[str]:
        (tmp_path / "m.json").write_text(json.dumps(value))
        found = pipeline.compile_manifest(str(tmp_path / "m.json"), disk.Disk(), "m.json").diagnostics
        return [f"{one.code} {one.message}" for one in found if one.severity == "error"]

    assert codes(manifest([tool("a")], client={"hints": "untrusted"}, emit=["client"])) == []
    (wrong,) = codes(manifest([tool("a")], policy={"trusted": True}))
    assert wrong.startswith("SW102") or "trusted" in wrong
    (wrong,) = codes(manifest([tool("a")], client={"hints": "maybe"}))
    assert "trusted" in wrong
    (wrong,) = codes(manifest([tool("a")], client={"trust": "untrusted"}))
    assert "trust" in wrong
