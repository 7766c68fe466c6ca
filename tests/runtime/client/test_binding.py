"""Generated clients with scripted servers: in this process in both eras, over HTTP, and over stdio."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, assert_type, cast

import anyio
import anyio.lowlevel
import mcp
import mcp_types
import pydantic
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server

import forked
import prompt_ends
from serving import serve
from stubwright.naming import CLIENT_NAMES
from stubwright_runtime.client.core.binding import OMIT, Binding, CallEvent, Omit
from stubwright_runtime.client.core.confirmation import is_dangerous
from stubwright_runtime.client.core.connect_errors import ServerNotFound
from stubwright_runtime.client.core.errors import CallRefused, InvalidResult, ToolFailed
from stubwright_runtime.client.transports.parameter_headers import ParameterHeaders
from stubwright_runtime.models.base import Model, Root
from stubwright_runtime.observability.redaction import redact
from stubwright_runtime.package import Package, Tool

if TYPE_CHECKING:
    from pathlib import Path

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

Answer = Callable[[Any], Awaitable[Mapping[str, Any]]]
ERAS = ("legacy", "auto")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# --- what `generate` writes for a small manifest -----------------------------------------------------------------


class Point(Model):
    x: float
    y: float | None = None


class RenderOutput(Model):
    area: float
    label: str | None = None


class CountOutput(Root[list[int]]):
    pass


def _tool(name: str, input_schema: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": input_schema or {"type": "object"}, **more}


_REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}

PACKAGE = Package(
    "shapes_mcp",
    tools=[Tool("render-shape", method="render_shape"), Tool("count"), Tool("ping"), Tool("erase"), Tool("query")],
)
PACKAGE.manifest = {
    "stubwright": 1,
    "server": {"name": "shapes", "version": "1"},
    "formats": "annotate",
    "tools": [
        _tool(
            "render-shape",
            outputSchema={
                "type": "object",
                "properties": {"area": {"type": "number", "minimum": 0}, "label": {"type": "string"}},
                "required": ["area"],
            },
            annotations={"readOnlyHint": True},
        ),
        _tool(
            "count",
            outputSchema={"type": "array", "items": {"type": "integer"}},
            annotations={"destructiveHint": False},
        ),
        _tool("ping", annotations={"readOnlyHint": True}),
        _tool("erase", stubwright={"policy": {"redact": ["/token", "/users/0/api~1key"]}}),
        _tool("query", _REGION, annotations={"readOnlyHint": True}),
    ],
}


class ShapesClient(Binding):
    _package = PACKAGE

    async def render_shape(
        self,
        *,
        points: Sequence[Point],
        unit: Literal["cm", "in"] | Omit | None = OMIT,
        scale: float | Omit = OMIT,
        extra: Any | Omit = OMIT,
    ) -> RenderOutput:
        return await self._call(
            "render-shape", {"points": points, "unit": unit, "scale": scale, "extra": extra}, RenderOutput
        )

    async def count(self) -> CountOutput:
        return await self._call("count", {}, CountOutput)

    async def ping(self) -> list[mcp_types.ContentBlock]:
        return await self._call_content("ping", {})

    async def erase(self, *, token: str | Omit = OMIT, users: Any | Omit = OMIT) -> list[mcp_types.ContentBlock]:
        return await self._call_content("erase", {"token": token, "users": users})

    async def query(self, *, region: str) -> list[mcp_types.ContentBlock]:
        return await self._call_content("query", {"region": region})


# --- scripted servers --------------------------------------------------------------------------------------------


class Script:
    """A server with scripted responses to `tools/call` that records its requests."""

    def __init__(self, answer: Answer | Mapping[str, Any], *pages: Sequence[Mapping[str, Any]]) -> None:
        self.asked: list[str] = []
        self.calls: list[Mapping[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.pages = pages or ((),)
        self.slow_list = 0.0
        self.server: Server[Any] = Server("script", version="1")
        self.server.middleware.append(self._answer)
        self._script = answer

    async def _answer(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if ctx.method.startswith("tools/"):
            self.asked.append(ctx.method)
        if ctx.method == "tools/list":
            await anyio.sleep(self.slow_list)
            number = int((ctx.params or {}).get("cursor") or 0)
            more = {"nextCursor": str(number + 1)} if number + 1 < len(self.pages) else {}
            page = {"tools": self.pages[number], "ttlMs": 0, "cacheScope": "private", **more}
            return {"resultType": "complete", **page}
        if ctx.method != "tools/call":
            return await call_next(ctx)
        self.calls.append(ctx.params)
        if ctx.request is not None:
            self.headers.append(dict(ctx.request.headers))
        if callable(self._script):
            return {"resultType": "complete", **await self._script(ctx)}
        return {"resultType": "complete", **self._script}

    def as_target(self, era: str) -> mcp.Client:
        return mcp.Client(self.server, mode=era)


def _text(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts], **more}


def _render(area: float = 2.5) -> dict[str, Any]:
    return _text(json.dumps({"area": area}), structuredContent={"area": area})


_STDIO_SERVER = """
import json, os, sys
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

server = Server("stdio", version="1")

async def answer(ctx, call_next):
    if ctx.method != "tools/call":
        return await call_next(ctx)
    if ctx.params["name"] == "ping":
        await anyio.sleep(30)
    seen = {"arguments": ctx.params.get("arguments"), "cwd": os.getcwd(), "env": os.environ.get("SHAPES")}
    content = [{"type": "text", "text": json.dumps(seen)}]
    return {"content": content, "structuredContent": {"area": 1, **seen}, "resultType": "complete"}

server.middleware.append(answer)

async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


def stdio(program: str = _STDIO_SERVER) -> list[str]:
    """The command of a server on stdio."""
    return [*forked.interpreter(), "-c", program]


@asynccontextmanager
async def _reached(kind: str, script: Script, **options: Any) -> AsyncIterator[ShapesClient]:
    """The scripted server, reached in one of four ways."""
    if kind == "http":
        with serve(script.server) as url:
            async with ShapesClient.connect(url, **options) as client:
                yield client
    elif kind == "http legacy":
        with serve(script.server) as url:
            async with ShapesClient.connect(mcp.Client(url, mode="legacy"), **options) as client:
                yield client
    else:
        async with ShapesClient.connect(script.as_target(kind), **options) as client:
            yield client


# --- OMIT --------------------------------------------------------------------------------------------------------


def test_omit_is_one_false_value() -> None:
    assert repr(OMIT) == "OMIT"
    assert not OMIT
    assert Omit() is OMIT
    assert copy.copy(OMIT) is OMIT
    assert copy.deepcopy({"a": [OMIT]})["a"][0] is OMIT
    assert pickle.loads(pickle.dumps(OMIT)) is OMIT


@pytest.mark.parametrize(("value", "said"), [("given", "given"), (OMIT, "nothing")])
def test_omit_narrows(value: str | Omit, said: str) -> None:
    if isinstance(value, Omit):
        assert_type(value, Omit)
        assert said == "nothing"
    else:
        assert_type(value, str)
        assert value == said


# --- targets -----------------------------------------------------------------------------------------------------


_NO_TARGET = (
    "cannot connect to b'http://localhost'; pass a URL (str), a command (a sequence of str), a server object, "
    "a client, a session, or an SDK transport"
)


@pytest.mark.parametrize(
    ("target", "options", "error", "message"),
    [
        (
            "python 'a b'",
            {},
            ValueError,
            "\"python 'a b'\" is not an http or https URL; pass a command as a sequence of strings: ['python', 'a b']",
        ),
        (
            "it's",
            {},
            ValueError,
            '"it\'s" is not an http or https URL; pass a command as a sequence of strings: ["it\'s"]',
        ),
        (
            "ws://localhost/mcp",
            {},
            ValueError,
            "'ws://localhost/mcp' is not an http or https URL, such as 'http://localhost:8000/mcp'",
        ),
        (
            "http:///mcp",
            {},
            ValueError,
            "'http:///mcp' is not an http or https URL, such as 'http://localhost:8000/mcp'",
        ),
        ("", {}, ValueError, "'' is not an http or https URL, such as 'http://localhost:8000/mcp'"),
        (
            "localhost:8000/mcp",
            {},
            ValueError,
            "'localhost:8000/mcp' is not an http or https URL; did you mean 'http://localhost:8000/mcp'?",
        ),
        ([], {}, ValueError, "the command is empty; its first item is the program to start"),
        (["python", 3], {}, TypeError, "a command must be a sequence of strings; 3 is of type int"),
        (
            b"http://localhost",
            {},
            TypeError,
            _NO_TARGET,
        ),
        (["python"], {"headers": {"a": "b"}}, ValueError, "headers and auth require a URL as the target"),
        ("http://localhost/mcp", {"env": {}}, ValueError, "env and cwd require a command as the target"),
        ("http://localhost/mcp", {"cwd": "/"}, ValueError, "env and cwd require a command as the target"),
        ("http://localhost/mcp", {"timeout": 0}, ValueError, "timeout must be a positive number of seconds, not 0"),
    ],
)
def test_connect_refuses(target: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        ShapesClient.connect(target, **options)
    assert str(raised.value) == message


async def test_connect_takes_a_server_object() -> None:
    async with ShapesClient.connect(Script(_text("pong")).server) as client:
        assert_type(client, ShapesClient)
        assert [block.type for block in await client.ping()] == ["text"]
        assert isinstance(client.raw, mcp.Client)
        assert client.raw.protocol_version == "2026-07-28"


async def test_a_client_outside_of_its_block_says_what_to_do() -> None:
    script = Script(_text("pong"))
    connection: Any = ShapesClient.connect(script.server)
    block = r"in an `async with` statement: `async with ShapesClient\.connect\(…\) as client:`; "
    with pytest.raises(AttributeError, match=block + "the return value of connect has no 'ping'"):
        await connection.ping()
    with pytest.raises(TypeError, match=block + "do not await it"):
        await connection
    async with connection as client:
        await client.ping()
    for use in (client.ping, lambda: client.raw):
        with pytest.raises(RuntimeError, match="the client is closed: its `async with` block was exited"):
            await use()


async def test_connect_takes_a_high_level_server() -> None:
    from mcp.server import MCPServer

    server = MCPServer("shapes")

    @server.tool()
    def ping() -> str:
        return "pong"

    async with ShapesClient.connect(server) as client:
        assert await client.ping() == [mcp_types.TextContent(type="text", text="pong")]


async def test_connect_takes_a_transport() -> None:
    with serve(Script(_text("pong")).server) as url:
        async with ShapesClient.connect(streamable_http_client(url)) as client:
            assert await client.ping() == [mcp_types.TextContent(type="text", text="pong")]


async def test_connect_takes_a_command(tmp_path: Path) -> None:
    async with ShapesClient.connect(stdio(), env={"SHAPES": "blue"}, cwd=tmp_path) as client:
        seen = (await client.render_shape(points=[Point(x=1)], extra="\ud800ü")).model_dump(mode="json")
    assert seen == {
        "area": 1,
        "arguments": {"points": [{"x": 1}], "extra": "\ufffdü"},
        "cwd": str(tmp_path),
        "env": "blue",
    }


async def test_headers_go_with_every_request() -> None:
    script = Script(_text("pong"))
    with serve(script.server) as url:
        async with ShapesClient.connect(url, headers={"Authorization": "Bearer t"}) as client:
            await client.ping()
    assert script.headers[0]["authorization"] == "Bearer t"


# --- what is sent ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*ERAS, "http", "http legacy"])
async def test_arguments_arrive_as_they_are(kind: str) -> None:
    script = Script(_render())
    async with _reached(kind, script) as client:
        result = await client.render_shape(
            points=(Point(x=1.0), Point(x=2**70, y=0.1)),
            unit=None,
            extra={"none": None, "list": [None, {"a": None}], "one": 1.0, "yes": True, "half \ud800": ["\udfff!"]},
        )
    assert_type(result, RenderOutput)
    assert result == RenderOutput(area=2.5)
    assert script.asked == ["tools/call"]
    call = script.calls[0]
    assert call["name"] == "render-shape"
    # By `repr`, which tells 1 from 1.0 and from True.
    assert repr(call["arguments"]) == repr(
        {
            "points": [{"x": 1.0}, {"x": 2**70, "y": 0.1}],
            "unit": None,
            "extra": {
                "none": None,
                "list": [None, {"a": None}],
                "one": 1.0,
                "yes": True,
                "half \ufffd": ["\ufffd!"],
            },
        }
    )


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (float("nan"), ValueError, "extra: JSON cannot represent the number nan"),
        (Point(x=float("nan")), ValueError, "extra.x: JSON cannot represent the number nan"),
        ([10**4300], ValueError, "extra[0]: an integer with more than 4300 digits cannot be sent"),
        ({"a": [1, float("-inf")]}, ValueError, "extra.a[1]: JSON cannot represent the number -inf"),
        ({1: 2}, TypeError, "extra: the key 1 is not a string"),
        ([1j], TypeError, "extra[0]: a value of type complex cannot be converted to JSON"),
        ([OMIT], TypeError, "extra[0]: a value of type Omit cannot be converted to JSON"),
        (nested(192), ValueError, "extra is nested more than 192 levels deep, too deep for a message"),
        (nested(5000), ValueError, "extra is nested more than 192 levels deep, too deep for a message"),
    ],
)
async def test_what_json_has_not_is_not_sent(value: Any, error: type[Exception], message: str) -> None:
    script = Script(_render())
    events: list[CallEvent] = []
    async with ShapesClient.connect(script.server, on_call=events.append) as client:
        with pytest.raises(error) as raised:
            await client.render_shape(points=[], extra=value)
    assert str(raised.value) == message
    assert (script.asked, events) == ([], [])


# --- what comes back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*ERAS, "http", "http legacy"])
async def test_a_call_is_one_request(kind: str) -> None:
    script = Script(_render())
    async with _reached(kind, script) as client:
        for _ in range(3):
            await client.render_shape(points=[])
    assert script.asked == ["tools/call"] * 3


@pytest.mark.parametrize("era", ERAS)
async def test_a_failed_tool_raises(era: str) -> None:
    script = Script(_text("no such shape", "try a circle", isError=True, _meta={"trace": "7"}))
    with pytest.raises(ToolFailed) as raised:  # around the block: nothing wraps what is raised in it
        async with ShapesClient.connect(script.as_target(era)) as client:
            await client.render_shape(points=[])
    assert str(raised.value) == "no such shape\ntry a circle"
    assert raised.value.result.is_error
    assert (raised.value.result.meta or {})["trace"] == "7"


@pytest.mark.parametrize("era", ERAS)
async def test_an_invalid_result_raises(era: str) -> None:
    script = Script(_text("?", structuredContent={"area": -1, "label": 3}))
    async with ShapesClient.connect(script.as_target(era)) as client:
        with pytest.raises(InvalidResult) as raised:
            await client.render_shape(points=[])
    assert str(raised.value) == (
        "the result of 'render-shape' violates its outputSchema:\n"
        "  area: expected at least 0, got -1\n"
        "  label: expected a string, got 3"
    )
    assert raised.value.tool == "render-shape"
    assert len(raised.value.violations) == 2
    assert raised.value.result.content == [mcp_types.TextContent(type="text", text="?")]


async def test_a_missing_structured_result_raises() -> None:
    async with ShapesClient.connect(Script(_text('{"area": 1}')).as_target("auto")) as client:
        with pytest.raises(InvalidResult) as raised:
            await client.render_shape(points=[])
    assert str(raised.value) == (
        "the result of 'render-shape' violates its outputSchema:\n  result: structuredContent is required but missing"
    )


async def test_before_structured_content_the_text_is_read() -> None:
    async with ShapesClient.connect(Script(_text("Three numbers:", "[1, 2, 3]")).as_target("legacy")) as client:
        result = await client.count()
    assert_type(result, CountOutput)
    assert result.root == [1, 2, 3]


@pytest.mark.parametrize(
    ("texts", "violation"),
    [
        (["no JSON"], "result: structuredContent is required but missing, and no text block is JSON"),
        (['[1, "two"]'], 'result[1]: expected an integer, got the string "two"'),
        (["[1, NaN]"], "result[1]: expected a JSON value, got nan"),
        (['["\\ud800"]'], "result: contains a lone surrogate, which is not a character"),
    ],
)
async def test_a_text_that_is_no_result_raises(texts: list[str], violation: str) -> None:
    async with ShapesClient.connect(Script(_text(*texts)).as_target("legacy")) as client:
        with pytest.raises(InvalidResult) as raised:
            await client.count()
    assert raised.value.violations == (violation,)


async def test_a_result_that_is_no_object_is_structured_from_2026_07_28_on() -> None:
    async with ShapesClient.connect(Script(_text("[]", structuredContent=[4])).as_target("auto")) as client:
        assert (await client.count()).root == [4]


async def test_a_result_that_does_not_say_that_it_is_complete_is() -> None:
    async def forget(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        return _text("pong") if ctx.method == "tools/call" else await call_next(ctx)

    server: Server[Any] = Server("forgetful", version="1")
    server.middleware.append(forget)
    with serve(server) as url:
        async with ShapesClient.connect(url) as client:
            assert client.raw.protocol_version == "2026-07-28"
            assert await client.ping() == [mcp_types.TextContent(type="text", text="pong")]
    process = stdio(_STDIO_SERVER.replace(', "resultType": "complete"', ""))
    async with ShapesClient.connect(process) as client:
        assert client.raw.protocol_version == "2026-07-28"
        assert (await client.render_shape(points=[])).area == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_lists_oddly_can_be_called(era: str) -> None:
    odd: list[dict[str, Any]] = [{"name": "render-shape", "outputSchema": {"type": "nonsense"}}, {"name": 7}]
    async with ShapesClient.connect(Script(_render(4), odd).as_target(era)) as client:
        assert (await client.render_shape(points=[])).area == 4


@pytest.mark.parametrize("era", ERAS)
async def test_protocol_errors_are_the_sdks_own(era: str) -> None:
    async def unknown(ctx: Any) -> Mapping[str, Any]:
        raise mcp.MCPError(code=mcp_types.INVALID_PARAMS, message="Unknown tool: ping")

    async with ShapesClient.connect(Script(unknown).as_target(era)) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await client.ping()
    assert (raised.value.code, raised.value.message) == (mcp_types.INVALID_PARAMS, "Unknown tool: ping")


# --- options -----------------------------------------------------------------------------------------------------


async def _never(ctx: Any) -> Mapping[str, Any]:
    await anyio.sleep(30)
    return _text("late")


@pytest.mark.parametrize("kind", [*ERAS, "http"])
async def test_an_answer_may_take_too_long(kind: str) -> None:
    async with _reached(kind, Script(_never)) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await client.with_options(timeout=0.05).ping()
    assert raised.value.code == mcp_types.REQUEST_TIMEOUT


async def test_a_process_may_take_too_long() -> None:
    async with ShapesClient.connect(stdio()) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await client.with_options(timeout=0.05).ping()
        assert (await client.render_shape(points=[])).area == 1
    assert raised.value.code == mcp_types.REQUEST_TIMEOUT


@pytest.mark.parametrize(
    ("given", "own", "seconds"),
    [
        ({}, None, 60.0),
        ({}, 5.0, 5.0),
        ({"timeout": None}, 5.0, None),
        ({"timeout": 7}, 5.0, 7),
        ({"timeout": 7}, 0, 7),
    ],
)
async def test_an_answer_has_60_seconds_unless_said_otherwise(given: Any, own: float | None, seconds: Any) -> None:
    server = Script(_text("done")).server
    target = server if own == 0 else mcp.Client(server, read_timeout_seconds=own)
    async with ShapesClient.connect(target, **given) as client:
        assert client.__stubwright__[2].timeout == seconds


@pytest.mark.parametrize("kind", [*ERAS, "http"])
async def test_a_silent_server_is_given_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stubwright_runtime.client.core.binding.TIMEOUT", 0.3)
    async with _reached(kind, Script(_never)) as client:
        with anyio.fail_after(60), pytest.raises(mcp.MCPError) as raised:
            await client.ping()
    assert raised.value.code == mcp_types.REQUEST_TIMEOUT


async def test_options_are_inherited_and_taken_away() -> None:
    async def slow(ctx: Any) -> Mapping[str, Any]:
        await anyio.sleep(0.2)
        return _text("pong")

    events: list[CallEvent] = []
    target = mcp.Client(Script(slow).server, read_timeout_seconds=0.05)
    async with ShapesClient.connect(target, on_call=events.append) as client:
        assert client.with_options() is not client
        for hurried in (client, client.with_options(on_call=None), client.with_options(confirm=None)):
            with pytest.raises(mcp.MCPError):
                await hurried.ping()
        patient = client.with_options(timeout=None)
        assert_type(patient, ShapesClient)
        assert patient.raw is client.raw
        assert await patient.ping() == [mcp_types.TextContent(type="text", text="pong")]
        with pytest.raises(mcp.MCPError):
            await client.ping()
        with pytest.raises(ValueError, match=r"^timeout must be a positive number of seconds, not -1$"):
            client.with_options(timeout=-1)
    assert [event.outcome for event in events if event.phase == "end"] == ["timeout", "timeout", "ok", "timeout"]


async def test_progress_is_told() -> None:
    async def work(ctx: Any) -> Mapping[str, Any]:
        await ctx.session.report_progress(1, 2, "half")
        await ctx.session.report_progress(2)
        return _text("done")

    seen: list[tuple[float, float | None, str | None]] = []

    async def later(done: float, total: float | None, message: str | None) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append((done, total, message))

    async with ShapesClient.connect(Script(work).server) as client:
        await client.with_options(on_progress=lambda *told: seen.append(told)).ping()
        await client.with_options(on_progress=later).ping()
    assert seen == [(1, 2, "half"), (2, None, None)] * 2


# --- consent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "policy", "dangerous"),
    [
        (None, None, True),
        ({}, {}, True),
        ({"title": "Erase"}, None, True),
        ({"readOnlyHint": False}, None, True),
        ({"destructiveHint": True}, None, True),
        ({"readOnlyHint": False, "destructiveHint": False}, None, False),
        ({"destructiveHint": False}, None, False),
        ({"readOnlyHint": True}, None, False),
        ({"readOnlyHint": True, "destructiveHint": True}, None, False),
        ({"readOnlyHint": True}, {"confirm": True}, True),
        ({"readOnlyHint": True}, {"confirm": {"fallback": "allow"}}, True),
        ({"destructiveHint": True}, {"confirm": False}, False),
        ({"destructiveHint": True}, {"timeout": "10s"}, True),
    ],
)
def test_what_is_dangerous(annotations: Any, policy: Any, dangerous: bool) -> None:
    package = Package("p", tools=[Tool("t")])
    ours = {} if policy is None else {"stubwright": {"policy": policy}}
    package.manifest = {"tools": [_tool("t", **({} if annotations is None else {"annotations": annotations}), **ours)]}
    assert is_dangerous(package.tools["t"]) is dangerous


async def test_confirm_is_asked_before_a_dangerous_tool_alone() -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def confirm(tool: str, arguments: Mapping[str, Any]) -> bool:
        asked.append((tool, arguments))
        return True

    # What the server says now changes nothing.
    script = Script(_text("done"), [_tool("erase", annotations={"readOnlyHint": True})])
    async with ShapesClient.connect(script.server, confirm=confirm) as client:
        await client.raw.list_tools()
        await client.erase(token="s3cret")
        await client.ping()
        await client.with_options(confirm=None).erase()
    assert asked == [("erase", {"token": "s3cret"})]
    assert len(script.calls) == 3


@pytest.mark.parametrize("answer", [False, None, 1, "yes"])
@pytest.mark.parametrize("later", [False, True])
async def test_a_call_is_refused_by_all_but_true(answer: Any, later: bool) -> None:
    async def wait() -> Any:
        await anyio.lowlevel.checkpoint()
        return answer

    script = Script(_text("done"))
    async with ShapesClient.connect(script.server, confirm=lambda *_: wait() if later else answer) as client:
        with pytest.raises(CallRefused) as raised:
            await client.erase(users=["ada"])
    assert str(raised.value) == "the call to 'erase' was not confirmed"
    assert (raised.value.tool, raised.value.arguments) == ("erase", {"users": ["ada"]})
    assert script.asked == []


async def test_confirm_all_asks_before_every_call() -> None:
    asked: list[str] = []

    async def confirm(tool: str, arguments: Mapping[str, Any]) -> bool:
        asked.append(tool)
        await anyio.sleep(0.2)  # a person's time is not the server's
        return tool != "ping"

    script = Script(_text("done"))
    async with ShapesClient.connect(script.server, confirm=confirm, confirm_all=True, timeout=0.15) as client:
        await client.query(region="eu")
        with pytest.raises(CallRefused):
            await client.ping()
        await client.with_options(confirm_all=False).query(region="eu")
        assert asked == ["query", "ping"]
        with pytest.raises(ValueError, match="confirm_all=True requires `confirm`"):
            client.with_options(confirm=None)
        await client.with_options(confirm=None, confirm_all=False).erase()
    async with ShapesClient.connect(script.server, confirm=confirm) as client:
        await client.query(region="eu")
        await client.with_options(confirm_all=True).query(region="eu")
    assert asked == ["query", "ping", "query"]
    with pytest.raises(ValueError, match="confirm_all=True requires `confirm`"):
        ShapesClient.connect(script.server, confirm_all=True)


async def test_what_confirm_does_to_the_arguments_is_not_sent() -> None:
    async def confirm(tool: str, arguments: Any) -> bool:
        arguments["users"].append("eve")
        return True

    script = Script(_text("done"))
    async with ShapesClient.connect(script.server, confirm=confirm) as client:
        await client.erase(users=["ada"])
    assert script.calls[0]["arguments"] == {"users": ["ada"]}


# --- the audit log -----------------------------------------------------------------------------------------------


async def test_each_call_is_told_at_its_start_and_its_end() -> None:
    seen: list[tuple[str, CallEvent]] = []
    script = Script(_text("done"))

    async def later(event: CallEvent) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(("later", event))

    async with ShapesClient.connect(script.server, on_call=lambda event: seen.append(("now", event))) as client:
        await client.erase(token="s3cret", users=[{"api/key": "k", "name": "ada"}, {"api/key": "kept"}])
        await client.with_options(on_call=later).ping()
    assert [kind for kind, _ in seen] == ["now", "now", "later", "later"]
    start, end, ping, _ = (event for _, event in seen)
    arguments = {"token": "[redacted]", "users": [{"api/key": "[redacted]", "name": "ada"}, {"api/key": "kept"}]}
    assert start == CallEvent(start.call, "start", "erase", arguments)
    assert end == CallEvent(start.call, "end", "erase", arguments, "ok", end.duration)
    assert end.duration is not None
    assert 0 < end.duration < 5
    assert ping.call == start.call + 1
    assert script.calls[0]["arguments"]["token"] == "s3cret"


async def test_arguments_are_told_whole() -> None:
    users = [{"name": "x" * 100_000, "notes": [str(number) for number in range(5_000)]}]
    events: list[CallEvent] = []
    async with ShapesClient.connect(Script(_text("done")).server, on_call=events.append) as client:
        await client.erase(users=users)
    assert [event.arguments for event in events] == [{"users": users}] * 2


@pytest.mark.parametrize(
    ("pointers", "seen"),
    [
        ([], {"a": {"b/c": [1, {"~": 2}]}, "": 3}),
        (["/a"], {"a": "[redacted]", "": 3}),
        (["/"], {"a": {"b/c": [1, {"~": 2}]}, "": "[redacted]"}),
        ([""], {"a": "[redacted]", "": "[redacted]"}),
        (["/a/b~1c/0", "/a/b~1c/1/~0"], {"a": {"b/c": ["[redacted]", {"~": "[redacted]"}]}, "": 3}),
        (["/x", "/a/b", "/a/b~1c/7", "/a/b~1c/0/y"], {"a": {"b/c": [1, {"~": 2}]}, "": 3}),
    ],
)
def test_redaction_follows_json_pointers(pointers: list[str], seen: Any) -> None:
    given = {"a": {"b/c": [1, {"~": 2}]}, "": 3}
    assert redact(given, pointers) == seen
    assert given == {"a": {"b/c": [1, {"~": 2}]}, "": 3}


def test_a_text_that_may_hold_a_secret_is_redacted() -> None:
    assert redact({"a": '{"b": "hunter2"}', "c": "x"}, ["/a/b", "/d"]) == {"a": "[redacted]", "c": "x"}


@pytest.mark.parametrize(
    ("answer", "confirm", "outcome"),
    [
        (_text("done"), None, "ok"),
        (_text("no", isError=True), None, "failed"),
        (_text("done"), lambda *_: False, "refused"),
        ({"content": 3}, None, "error"),
    ],
)
async def test_the_outcome_is_told(answer: Any, confirm: Any, outcome: str) -> None:
    events: list[CallEvent] = []
    async with ShapesClient.connect(Script(answer).server, on_call=events.append, confirm=confirm) as client:
        with suppress(ToolFailed, CallRefused, mcp.MCPError, pydantic.ValidationError):
            await client.erase()
    assert [event.outcome for event in events] == [None, outcome]


async def test_an_invalid_result_is_told() -> None:
    events: list[CallEvent] = []
    async with ShapesClient.connect(Script(_text("?")).server, on_call=events.append) as client:
        with pytest.raises(InvalidResult):
            await client.count()
    assert [event.outcome for event in events] == [None, "invalid"]


async def test_a_cancelled_call_is_told() -> None:
    events: list[CallEvent] = []

    async def log(event: CallEvent) -> None:
        await anyio.lowlevel.checkpoint()
        events.append(event)

    async with ShapesClient.connect(Script(_never).server, on_call=log) as client:
        with anyio.move_on_after(0.05):
            await client.ping()
    assert [event.outcome for event in events] == [None, "cancelled"]


async def test_a_log_that_fails_stops_the_call() -> None:
    def full(event: CallEvent) -> None:
        raise OSError("disk full")

    script = Script(_text("pong"))
    async with ShapesClient.connect(script.server, on_call=full) as client:
        with pytest.raises(OSError, match=r"^disk full$"):
            await client.ping()
    assert script.asked == []


# --- connections -------------------------------------------------------------------------------------------------


async def test_what_is_raised_in_the_block_is_not_wrapped() -> None:
    script = Script(_text("pong"))
    for kind in (*ERAS, "http"):
        with pytest.raises(LookupError, match=r"^mine$"):
            async with _reached(kind, script):
                raise LookupError("mine")
    with pytest.raises(LookupError, match=r"^mine$"):
        async with ShapesClient.connect(stdio()):
            raise LookupError("mine")


async def test_why_there_is_no_connection_is_not_wrapped() -> None:
    with pytest.raises(mcp.MCPError) as raised:
        async with ShapesClient.connect("http://user:s3cret@127.0.0.1:9/mcp?token=s3cret"):
            pass
    assert raised.value.message == ("`http://127.0.0.1:9/mcp` cannot be reached: connection refused")
    with pytest.raises(mcp.MCPError, match="`python` exited with status 0"):
        async with ShapesClient.connect([sys.executable, "-c", ""]):
            pass
    with pytest.raises(
        ServerNotFound, match=r"^`no-such-program` cannot be started: program not found; is it installed\?$"
    ):
        async with ShapesClient.connect(["no-such-program"]):
            pass


async def test_a_network_that_fails_fails_one_call() -> None:
    script = Script(_text("pong"))
    with serve(script.server) as url:
        port = int(url.split(":")[2].split("/")[0])
        connecting = ShapesClient.connect(url)
        client = await connecting.__aenter__()
        await client.ping()
    with pytest.raises(mcp.MCPError) as raised:
        await client.ping()
    assert raised.value.code == mcp_types.CONNECTION_CLOSED
    assert raised.value.message == f"`{url}` cannot be reached: connection refused"
    with serve(Script(_text("again")).server, port):
        assert await client.ping() == [mcp_types.TextContent(type="text", text="again")]
    await connecting.__aexit__(None, None, None)


async def test_cancellation_ends_the_block() -> None:
    with anyio.move_on_after(0.05) as scope:
        async with ShapesClient.connect(Script(_never).server) as client:
            await client.ping()
    assert scope.cancelled_caught


# --- rounds of `input_required` ----------------------------------------------------------------------------------


def _question(state: str, *keys: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    asks = {
        key: {"method": "elicitation/create", "params": {"mode": "form", "message": key, "requestedSchema": schema}}
        for key in keys
    }
    return {"resultType": "input_required", "requestState": state, **({"inputRequests": asks} if asks else {})}


async def test_questions_are_answered_by_the_clients_callbacks() -> None:
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> mcp_types.ElicitResult:
        asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"name": f"{params.message}!"})

    async def answer(ctx: Any) -> Mapping[str, Any]:
        rounds = [_question("s1", "who", "where"), _question("s2"), _text("done")]
        return rounds[len(script.calls) - 1]

    script = Script(answer)
    async with ShapesClient.connect(mcp.Client(script.server, elicitation_callback=elicit)) as client:
        assert await client.erase(token="t") == [mcp_types.TextContent(type="text", text="done")]
    assert asked == ["who", "where"]
    assert [call.get("requestState") for call in script.calls] == [None, "s1", "s2"]
    assert [call["arguments"] for call in script.calls] == [{"token": "t"}] * 3
    assert [call.get("inputResponses") for call in script.calls] == [
        None,
        {
            "who": {"action": "accept", "content": {"name": "who!"}},
            "where": {"action": "accept", "content": {"name": "where!"}},
        },
        None,
    ]


async def test_a_question_that_nobody_answers_is_an_error() -> None:
    script = Script(_question("s", "who"))
    async with ShapesClient.connect(script.server) as client:
        with pytest.raises(mcp.MCPError, match="Elicitation not supported"):
            await client.ping()
    assert len(script.calls) == 1


async def test_a_server_cannot_ask_for_ever() -> None:
    script = Script(_question("s"))
    async with ShapesClient.connect(mcp.Client(script.server, input_required_max_rounds=2)) as client:
        with pytest.raises(mcp.MCPError, match="asked for input in more than 2 rounds"):
            await client.ping()
    assert len(script.calls) == 3


# --- arguments that are mirrored into headers --------------------------------------------------------------------


async def test_arguments_are_mirrored_into_headers() -> None:
    script = Script(_text("rows"), [_tool("query", _REGION)])
    async with _reached("http", script) as client:
        await client.query(region="us-west1")
        await client.query(region="eu")
        await client.ping()
    assert script.asked == ["tools/list", "tools/call", "tools/call", "tools/call"]
    assert [headers.get("mcp-param-region") for headers in script.headers] == ["us-west1", "eu", None]


async def test_an_integer_beyond_the_safe_range_is_not_sent() -> None:
    region = {"properties": {"id": {"type": "integer", "x-mcp-header": "Region"}, "free": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"region": region}}
    tool = SimpleNamespace(name="query", definition={"name": "query", "inputSchema": schema})
    sent: list[int] = []

    async def send(_params: object) -> None:
        sent.append(1)

    script = Script(_text("rows"), [_tool("query", schema)])
    async with _reached("http", script) as client:
        headers = ParameterHeaders(client.raw)
        await headers.send_with_headers(
            cast("Any", tool), 60, send, {"arguments": {"region": {"id": 2**53 - 1, "free": 2**60}}}
        )
        told = r"`region.id` is sent in a header and must be within ±9007199254740991, not -9007199254740992"
        with pytest.raises(ValueError, match=told):
            await headers.send_with_headers(cast("Any", tool), 60, send, {"arguments": {"region": {"id": -(2**53)}}})
    assert sent == [1]


async def test_the_list_is_read_as_far_as_the_tool() -> None:
    script = Script(_text("rows"), [_tool("ping")], [_tool("query", _REGION)], [_tool("erase")])
    async with _reached("http", script) as client:
        await client.query(region="eu")
    assert script.asked == ["tools/list", "tools/list", "tools/call"]
    assert script.headers[0]["mcp-param-region"] == "eu"


@pytest.mark.parametrize("kind", [*ERAS, "http legacy"])
async def test_where_there_are_no_such_headers_nothing_is_listed(kind: str) -> None:
    async def refuse(_: Any) -> Mapping[str, Any]:
        raise mcp.MCPError(code=mcp_types.HEADER_MISMATCH, message="Mcp-Param-Region is missing")

    script = Script(refuse, [_tool("query", _REGION)])
    async with _reached(kind, script) as client:
        with pytest.raises(mcp.MCPError, match="Mcp-Param-Region is missing"):
            await client.query(region="us-west1")
    assert script.asked == ["tools/call"]


async def test_headers_that_the_server_wants_now_are_learnt() -> None:
    async def strict(ctx: Any) -> Mapping[str, Any]:
        if "mcp-param-shape" not in ctx.request.headers:
            raise mcp.MCPError(code=mcp_types.HEADER_MISMATCH, message="Mcp-Param-Shape is missing")
        return _text("done")

    schema = {"type": "object", "properties": {"token": {"type": "string", "x-mcp-header": "Shape"}}}
    script = Script(strict, [_tool("erase", schema)])
    async with _reached("http", script) as client:
        await client.erase(token="round")
        with pytest.raises(mcp.MCPError, match="Mcp-Param-Shape is missing"):
            await client.erase()
    assert script.asked == ["tools/call", "tools/list", "tools/call", "tools/call", "tools/list", "tools/call"]


async def test_an_unreadable_list_does_not_stop_the_call(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(_text("rows"), [{"name": 7}])
    async with _reached("http", script) as client:
        await client.query(region="us-west1")
    assert script.asked == ["tools/list", "tools/call"]
    assert "calls to 'query' without Mcp-Param headers: tools/list cannot be read" in caplog.text


async def test_a_slow_list_does_not_stop_the_call(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(_text("rows"), [_tool("query", _REGION)])
    script.slow_list = 30
    async with _reached("http", script, timeout=0.3) as client:
        await client.query(region="us-west1")
    assert script.asked == ["tools/list", "tools/call"]
    assert "calls to 'query' without Mcp-Param headers: tools/list cannot be read" in caplog.text


# --- the class itself --------------------------------------------------------------------------------------------


def test_tools_can_have_all_names_but_these() -> None:
    public = {name for name in dir(Binding) if not name.startswith("_")}
    assert public | {"with_raw_response"} == CLIENT_NAMES - {"tasks"}  # generated clients have one


def test_importing_a_client_does_not_import_the_sdk() -> None:
    heavy = "{'mcp', 'mcp_types', 'anyio', 'httpx2'}"
    code = f"import sys, stubwright_runtime.client.core.binding; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
