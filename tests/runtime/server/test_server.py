"""An in-process server: raw requests in every revision, the SDK's client, and the context of handlers."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import httpx2
import mcp
import pytest

from server_fixture import CITIES, ENVELOPE, SAY, WEATHER, exchange, import_package, opened, write_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stubwright_runtime.server.package_server import PackageServer

pytestmark = pytest.mark.anyio

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
STAMP = {
    "io.modelcontextprotocol/serverInfo": {"name": "weather", "title": "Weather", "version": "1.2.0"},
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("packages")
    write_package(folder, "sdk_weather_mcp")
    return import_package(folder, "sdk_weather_mcp")


@pytest.fixture(scope="module")
def api(package: Any) -> Any:
    """The names that handlers use, from the package itself: its classes are not stubwright's."""
    tools = importlib.import_module("sdk_weather_mcp.registry").TOOLS
    content = importlib.import_module("stubwright_runtime.server.handlers.content")
    return SimpleNamespace(
        Reply=importlib.import_module("stubwright_runtime.server.handlers.returns").Reply,
        text=content.text,
        audio=content.audio,
        link=content.link,
        ToolError=importlib.import_module("stubwright_runtime.errors").ToolError,
        Weather=tools["get-weather"].Output,
        Cities=tools["cities"].Output,
    )


def serve(package: Any, *, weather: Any = None, say: Any = None, cities: Any = None) -> PackageServer:
    """A server whose handlers are these functions of `args` and `ctx`."""

    handlers = SimpleNamespace(
        get_weather=weather or (lambda args, ctx: {"temperature": 1}),
        say=say or (lambda args, ctx: "hello"),
        cities=cities or (lambda args, ctx: ["Paris", None]),
    )
    server: PackageServer = package.build_server(handlers)
    return server


async def call(server: PackageServer, name: str, arguments: Any = None, revision: str = "2025-11-25") -> dict[str, Any]:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return (await exchange(server, revision, ("tools/call", params)))[-1]


async def weather(server: PackageServer) -> dict[str, Any]:
    return await call(server, "get-weather", {"location": "Paris"})


def error_text(result: dict[str, Any]) -> str:
    assert result["isError"] is True
    assert "structuredContent" not in result
    (block,) = result["content"]
    return str(block["text"])


# The list


@pytest.mark.parametrize("revision", REVISIONS)
async def test_tools_go_out_as_the_manifest_has_them(package: Any, revision: str) -> None:
    first, second = await exchange(serve(package), revision, ("tools/list", {}), ("tools/list", {}))
    cities = CITIES if revision == "2026-07-28" else {k: v for k, v in CITIES.items() if k != "outputSchema"}
    tools = [{k: v for k, v in tool.items() if k != "stubwright"} for tool in (WEATHER, SAY, cities)]
    assert json.dumps(first["tools"]) == json.dumps(tools), "key order and nulls included"
    assert first == second
    rest = {key: value for key, value in first.items() if key != "tools"}
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": STAMP}
    assert rest == (modern if revision == "2026-07-28" else {})


@pytest.mark.parametrize("cursor", ["x", ""], ids=["unknown", "empty"])
async def test_a_cursor_that_was_never_given(package: Any, cursor: str) -> None:
    """An empty string is a cursor, too: it does not mean the first page, which is cached by then."""
    first, answer = await exchange(serve(package), "2025-11-25", ("tools/list", {}), ("tools/list", {"cursor": cursor}))
    assert "error" not in first
    assert answer == {"error": {"code": -32602, "message": "Invalid cursor"}}


async def test_capabilities_in_both_eras(package: Any) -> None:
    eras: tuple[tuple[Any, dict[str, Any]], ...] = (("legacy", {"logging": {}}), ("auto", {}))
    for mode, logs in eras:
        async with mcp.Client(serve(package), mode=mode) as client:
            assert client.server_capabilities is not None
            declared = client.server_capabilities.model_dump(exclude_none=True)
            assert declared == {**logs, "tools": {"list_changed": True}}


async def test_changes_of_the_list_can_be_listened_to(package: Any) -> None:
    async with mcp.Client(serve(package)) as client, client.listen(tools_list_changed=True):
        assert client.protocol_version == "2026-07-28"


# A call


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_result_in_every_revision(package: Any, api: Any, revision: str) -> None:
    async def handler(args: Any, ctx: Any) -> Any:
        assert (args.location, args.units, ctx.revision, ctx.name) == ("Paris", "metric", revision, "get-weather")
        return api.Weather(temperature=22.5, conditions="dry\x1b[1m\ud800")

    result = await call(serve(package, weather=handler), "get-weather", {"location": "Paris"}, revision)
    assert result == {
        "content": [{"type": "text", "text": '{"temperature": 22.5, "conditions": "dry\\u001b[1m\ufffd"}'}],
        "structuredContent": {"temperature": 22.5, "conditions": "dry\x1b[1m\ufffd"},
        **({"resultType": "complete", "_meta": STAMP} if revision == "2026-07-28" else {}),
    }


async def test_what_an_older_revision_cannot_carry(package: Any, api: Any) -> None:
    server = serve(package, say=lambda args, ctx: [api.audio(b"x", "audio/wav"), api.link("a:b", "n", priority=1)])
    sound = {"type": "audio", "data": "eA==", "mimeType": "audio/wav"}
    blob = {"type": "resource", "resource": {"uri": "embedded://audio/1", "mimeType": "audio/wav", "blob": "eA=="}}
    link = {"type": "resource_link", "name": "n", "uri": "a:b", "annotations": {"priority": 1.0}}
    words = {"type": "text", "text": "n: a:b", "annotations": {"priority": 1.0}}
    expected = [[blob, words], [sound, words], [sound, link], [sound, link], [sound, link]]
    for revision, content in zip(REVISIONS, expected, strict=True):
        assert (await call(server, "say", revision=revision))["content"] == content
        result = await call(server, "cities", revision=revision)
        assert result["content"] == [{"type": "text", "text": '["Paris", null]'}]
        assert result.get("structuredContent") == (["Paris", None] if revision == "2026-07-28" else None)


async def test_arguments_are_checked_by_the_schema(package: Any) -> None:
    server = serve(package)
    assert error_text(await call(server, "get-weather")) == (
        "Invalid arguments for get-weather:\n- location: required, but missing"
    )
    secret = await call(server, "get-weather", {"location": "x", "api_key": "hunter2"})
    assert error_text(secret) == (
        "Invalid arguments for get-weather:\n- api_key: expected a match for the pattern ^key-"
    )


async def test_half_characters_in_arguments_become_whole(package: Any) -> None:
    seen = []

    def handler(args: Any, ctx: Any) -> Any:
        seen.append(args.location)
        return {"temperature": 1}

    server = serve(package, weather=handler)
    await call(server, "get-weather", {"location": "a\ud800"})
    assert seen == ["a\ufffd"]


async def test_protocol_errors(package: Any) -> None:
    server = serve(package)
    for revision in ("2024-11-05", "2026-07-28"):
        assert await call(server, "no\ud800", revision=revision) == {
            "error": {"code": -32602, "message": "Unknown tool: no\ufffd"}
        }
        assert (await call(server, "say", [1], revision))["error"]["code"] == -32602


# What handlers give


async def test_every_form_of_a_result(package: Any, api: Any) -> None:
    async def later(args: Any, ctx: Any) -> Any:
        return api.Weather(temperature=1)

    forms: list[Callable[[Any, Any], Any]] = [
        later,
        lambda args, ctx: api.Weather(temperature=1),
        lambda args, ctx: later(args, ctx),
        lambda args, ctx: api.Reply(api.Weather(temperature=1)),
        lambda args, ctx: {"temperature": 1},
    ]
    for form in forms:
        assert (await weather(serve(package, weather=form)))["structuredContent"] == {"temperature": 1}


async def test_a_reply_sends_more_than_the_mirror(package: Any, api: Any) -> None:
    reply = api.Reply(api.Weather(temperature=1), [api.text("warm\x07")], meta={"k": None})
    assert await weather(serve(package, weather=lambda args, ctx: reply)) == {
        "content": [{"type": "text", "text": '{"temperature": 1}'}, {"type": "text", "text": "warm"}],
        "structuredContent": {"temperature": 1},
        "_meta": {"k": None},
    }


async def test_content_and_root_models(package: Any, api: Any) -> None:
    server = serve(package, say=lambda args, ctx: api.text("x"), cities=lambda args, ctx: api.Cities(["a"]))
    assert (await call(server, "say"))["content"] == [{"type": "text", "text": "x"}]
    assert (await call(server, "cities", revision="2026-07-28"))["structuredContent"] == ["a"]
    server = serve(package, say=lambda args, ctx: api.Reply("x", meta={"a": 1}))
    assert await call(server, "say") == {"content": [{"type": "text", "text": "x"}], "_meta": {"a": 1}}


@pytest.mark.parametrize(
    ("handler", "logged"),
    [
        (lambda args, ctx: None, "get_weather returned None; expected GetWeatherOutput"),
        (lambda args, ctx: "warm", "get_weather returned a value of type str; expected GetWeatherOutput"),
        (lambda args, ctx: args, "a value of type GetWeatherInput; expected GetWeatherOutput"),
        (lambda args, ctx: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
async def test_mistakes_of_a_handler_are_only_in_the_log(
    package: Any, handler: Any, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = error_text(await weather(serve(package, weather=handler)))
    assert text.startswith("Internal error in get-weather (reference ")
    (record,) = [one for one in caplog.records if one.name == "sdk_weather_mcp"]
    assert logged in caplog.text
    assert record.getMessage() == f"get_weather failed (reference {text[-18:-2]})"


async def test_a_wrong_answer_without_a_schema(package: Any, caplog: pytest.LogCaptureFixture) -> None:
    error_text(await call(serve(package, say=lambda args, ctx: None), "say"))
    assert (
        "say returned None; expected a string, a content block, or a list of strings and content blocks" in caplog.text
    )


async def test_text_stands_among_blocks(package: Any, api: Any) -> None:
    """In content, and in the additions of a `Reply`: like a text block, and sanitized like it."""
    blocks = [{"type": "text", "text": text} for text in ("a", "b", "c")]
    server = serve(package, say=lambda args, ctx: ["a\x07", api.text("b"), "c"])
    assert (await call(server, "say"))["content"] == blocks
    server = serve(package, say=lambda args, ctx: api.Reply("a", [api.text("b"), "c\x1b[31m"]))
    assert (await call(server, "say"))["content"] == blocks
    server = serve(package, say=lambda args, ctx: [])
    assert (await call(server, "say"))["content"] == []


async def test_a_list_with_something_else_is_told(package: Any, caplog: pytest.LogCaptureFixture) -> None:
    error_text(await call(serve(package, say=lambda args, ctx: ["a", 1]), "say"))
    assert "say returned a list with a value of type int; expected a string, a content block, or" in caplog.text


async def test_a_reply_holds_blocks(package: Any, api: Any, caplog: pytest.LogCaptureFixture) -> None:
    wrong = api.Reply("said", content=[1])
    assert error_text(await call(serve(package, say=lambda args, ctx: wrong), "say")).startswith("Internal error")
    assert "content contains a value of type int; expected only strings and content blocks" in caplog.text


@pytest.mark.parametrize(
    ("result", "logged"),
    [
        (lambda api: {"temperature": "warm"}, 'temperature: expected a number, got the string "warm"'),
        (lambda api: {"temperature": object()}, "temperature: expected a JSON value, got a value of type object"),
        (lambda api: {"temperature": 1, "x": [float("inf")]}, "x[0]: expected a JSON value, got inf"),
        (lambda api: api.Weather(temperature=float("nan")), "temperature: expected a JSON value, got nan"),
        (lambda api: {"temperature": 1, (1, 2): 1}, "result: is not JSON: keys must be str"),
        (
            lambda api: api.Weather.model_construct(temperature="warm"),
            'temperature: expected a number, got the string "warm"',
        ),
    ],
)
@pytest.mark.filterwarnings("error:Pydantic serializer warnings")
async def test_a_result_that_breaks_its_schema(
    package: Any, api: Any, result: Any, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = error_text(await weather(serve(package, weather=lambda args, ctx: result(api))))
    assert text.startswith("The result of get-weather does not match its output schema (reference ")
    assert logged in caplog.text


async def test_a_number_that_json_has_not_is_never_sent_as_null(package: Any, api: Any) -> None:
    assert api.Weather(temperature=float("inf")).model_dump(mode="json") == {"temperature": float("inf")}


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
@pytest.mark.parametrize("is_async", [True, False])
async def test_nothing_that_a_handler_raises_ends_the_server(
    package: Any, error: BaseException, is_async: bool
) -> None:
    def fail(args: Any, ctx: Any) -> Any:
        raise error

    async def fail_later(args: Any, ctx: Any) -> Any:
        raise error

    server = serve(package, weather=fail_later if is_async else fail)
    for _ in range(2):
        assert error_text(await weather(server)).startswith("Internal error in get-weather")


async def test_a_tool_error_is_told_whoever_defines_it(package: Any, api: Any) -> None:
    from stubwright_runtime.errors import ToolError

    async def group(args: Any, ctx: Any) -> None:
        async with anyio.create_task_group():
            raise api.ToolError("in a group")

    for make, expected in (
        (lambda args, ctx: _raise(api.ToolError("no\x1b[1m station")), "no station"),
        (lambda args, ctx: _raise(ToolError("from another package")), "from another package"),
        (group, "in a group"),
    ):
        assert error_text(await weather(serve(package, weather=make))) == expected


def _raise(error: Exception) -> None:
    raise error


async def test_awaiting_what_was_cancelled_is_an_error_of_the_handler(package: Any) -> None:
    async def handler(args: Any, ctx: Any) -> None:
        raise anyio.get_cancelled_exc_class()

    assert error_text(await weather(serve(package, weather=handler))).startswith("Internal error")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_cancellation_reaches_the_handler(package: Any, mode: Any) -> None:
    started, cancelled = anyio.Event(), anyio.Event()

    async def handler(args: Any, ctx: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with mcp.Client(serve(package, say=handler), mode=mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "say", {})
        await started.wait()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(60):
        await cancelled.wait()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_thread_learns_that_its_call_was_cancelled(
    package: Any, mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    started, stop, ended = threading.Event(), threading.Event(), threading.Event()

    def handler(args: Any, ctx: Any) -> str:
        ctx.on_cancel(lambda: 1 / 0)
        ctx.on_cancel(stop.set)
        started.set()
        assert stop.wait(60)
        ctx.on_cancel(ended.set)  # immediately, because it has already happened
        return "late"

    async with mcp.Client(serve(package, say=handler), mode=mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "say", {})
        assert await anyio.to_thread.run_sync(started.wait, 5)
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(ended.wait, 5)
    assert "a callback registered with `ctx.on_cancel` failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_nobody_is_told_of_a_call_that_ends_by_itself(package: Any) -> None:
    told: list[str] = []

    async def handler(args: Any, ctx: Any) -> str:
        ctx.on_cancel(lambda: told.append(ctx.name))
        return "done"

    async with mcp.Client(serve(package, say=handler)) as client:
        await client.call_tool("say", {})
    assert told == []


async def test_a_blocked_thread_holds_up_nobody(package: Any) -> None:
    def handler(args: Any, ctx: Any) -> str:
        time.sleep(0.5)
        return "late"

    server = serve(package, say=handler)
    finished: list[str] = []

    async def ask(name: str) -> None:
        await client.call_tool(name, {"location": "x"} if name == "get-weather" else {})
        finished.append(name)

    async with mcp.Client(server) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "say")
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(ask, "get-weather")
    assert finished == ["get-weather", "say"]


# The context


def notes(answers: list[dict[str, Any]], method: str) -> list[dict[str, Any]]:
    return [answer["params"] for answer in answers if answer.get("method") == method]


async def test_progress_goes_to_who_asked(package: Any) -> None:
    async def handler(args: Any, ctx: Any) -> str:
        await ctx.progress(1, 3, "one\x1b[1m")
        return "done"

    def blocking(args: Any, ctx: Any) -> str:
        ctx.wait(ctx.progress(1, 3, "one"))
        return "done"

    for function in (handler, blocking):
        for revision in ("2025-11-25", "2026-07-28"):
            server = serve(package, say=function)
            asked = ("tools/call", {"name": "say", "_meta": {"progressToken": "t"}})
            answers = await exchange(server, revision, asked, ("tools/call", {"name": "say"}))
            assert notes(answers, "notifications/progress") == [
                {"progressToken": "t", "progress": 1, "total": 3, "message": "one"}
            ]


@pytest.mark.parametrize("send", [lambda ctx, done: ctx.progress(done), lambda ctx, _: ctx.log("error", "busy")])
async def test_a_handler_that_only_sends_messages_can_be_cancelled(package: Any, send: Any) -> None:
    sent: list[int] = []
    has_begun = asyncio.Event()

    async def handler(args: Any, ctx: Any) -> str:
        has_begun.set()
        for done in range(1000):
            await send(ctx, done)
            sent.append(done)
        return "done"

    async with opened(serve(package, say=handler)) as (write, receive):
        await write({"id": 1, "method": "tools/call", "params": {"name": "say", "_meta": ENVELOPE}})
        await has_begun.wait()
        await write({"method": "notifications/cancelled", "params": {"requestId": 1}})
        await write({"id": 2, "method": "tools/list", "params": {"_meta": ENVELOPE}})
        assert (await receive())["id"] == 2
    assert len(sent) < 1000


async def test_log_levels_of_both_eras(package: Any, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    async def handler(args: Any, ctx: Any) -> str:
        for level in ("debug", "info", "error"):
            await ctx.log(level, {"at": level + "\ud800"}, "part")
        return "done"

    server = serve(package, say=handler)
    ask = ("tools/call", {"name": "say"})

    async def levels(revision: str, *requests: Any) -> list[str]:
        sent = notes(await exchange(server, revision, *requests), "notifications/message")
        assert all(note["logger"] == "part" and note["data"] == {"at": note["level"] + "\ufffd"} for note in sent)
        return [note["level"] for note in sent]

    assert await levels("2025-11-25", ask) == ["info", "error"]
    assert await levels("2025-11-25", ("logging/setLevel", {"level": "error"}), ask) == ["error"]
    assert await levels("2024-11-05", ("logging/setLevel", {"level": "debug"}), ask) == ["debug", "info", "error"]
    assert await levels("2025-11-25", ask) == ["info", "error"], "one connection's level is not another's"
    asked = ("tools/call", {"name": "say", "_meta": {"io.modelcontextprotocol/logLevel": "info"}})
    assert await levels("2026-07-28", asked, ask) == [], "the server does not declare `logging`"
    described = {"name": "logs", "version": "1", "capabilities": {"logging": True}}
    write_package(tmp_path, "sdk_logging_mcp", server=described)
    server = serve(import_package(tmp_path, "sdk_logging_mcp"), say=handler)
    assert await levels("2026-07-28", ask) == []
    assert await levels("2026-07-28", asked, ask) == ["info", "error"]
    assert not [warning for warning in recwarn if "deprecated" in str(warning.message)]


@pytest.mark.parametrize(
    ("use", "logged"),
    [
        (lambda ctx: ctx.log("loud", "x"), "ValueError: unknown log level 'loud'; expected one of debug, info,"),
        (lambda ctx: ctx.log("info", object()), "TypeError: Object of type object is not JSON serializable"),
        (lambda ctx: ctx.progress(float("inf")), "ValueError: progress must be finite, not inf of None"),
        (lambda ctx: ctx.wait(ctx.progress(1)), "RuntimeError: ctx.wait is for plain `def` handlers"),
    ],
)
async def test_misuse_of_the_context(package: Any, use: Any, logged: str, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(args: Any, ctx: Any) -> None:
        await use(ctx)

    error_text(await call(serve(package, say=handler), "say"))
    assert logged in caplog.text


# The handlers object


async def test_what_is_missing_or_wrong_is_told_at_once(package: Any) -> None:
    class Handlers:
        cities = 5

        def say(self, args: Any) -> None: ...

    with pytest.raises(TypeError) as caught:
        package.build_server(Handlers())
    assert str(caught.value) == (
        "Handlers has methods with the wrong signature:\n"
        "    say(args: 'Any') -> 'None' must accept the arguments (args, ctx)\n"
        "    cities is int, not a method\n\n"
        "Handlers lacks a method. Add it:\n\n"
        "    async def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:\n"
        "        raise NotImplementedError"
    )
    with pytest.raises(TypeError) as caught:
        package.build_server(Handlers)
    assert str(caught.value) == "Handlers is a class; server 'weather' needs an instance: Handlers()"


async def test_state_needs_a_place(package: Any) -> None:
    with pytest.raises(
        ValueError, match="with the scheme sqlite:// is not supported for state; use memory:// or redis://"
    ):
        package.build_server(object(), state="sqlite:///x")


class Managed:
    """Handlers with a lifespan, which must exit in the task that entered it."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def __aenter__(self) -> Managed:
        self._scope = anyio.CancelScope()
        self._scope.__enter__()
        self.log.append("enter")
        return self

    async def __aexit__(self, *_: object) -> None:
        await anyio.sleep(0.01)
        self._scope.__exit__(None, None, None)
        self.log.append("exit")

    def get_weather(self, args: Any, ctx: Any) -> Any:
        return {"temperature": 1}

    def say(self, args: Any, ctx: Any) -> str:
        return ",".join(self.log)

    def cities(self, args: Any, ctx: Any) -> Any:
        return []


async def test_handlers_are_entered_once_for_many_connections(package: Any) -> None:
    handlers = Managed()
    server = package.build_server(handlers)
    async with mcp.Client(server, mode="legacy"):
        async with mcp.Client(server) as second:
            assert "text='enter'" in str(await second.call_tool("say", {}))
        assert handlers.log == ["enter"]
    assert handlers.log == ["enter", "exit"]
    first_over, second_over = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def connect(over: anyio.Event) -> None:
            async with mcp.Client(server):
                await over.wait()

        tasks.start_soon(connect, first_over)
        tasks.start_soon(connect, second_over)
        await anyio.sleep(0.1)
        first_over.set()
        await anyio.sleep(0.1)
        assert handlers.log == ["enter", "exit", "enter"]
        second_over.set()
    assert handlers.log == ["enter", "exit", "enter", "exit"]


async def test_handlers_that_cannot_start(package: Any) -> None:
    class Broken(Managed):
        async def __aenter__(self) -> Managed:
            raise ConnectionError("no database")

    with pytest.raises(ConnectionError, match="no database"):
        async with mcp.Client(package.build_server(Broken())):
            pass


async def test_handlers_of_an_http_application(package: Any) -> None:
    handlers = Managed()
    app = package.asgi_app(handlers)
    async with app.router.lifespan_context(app):
        assert handlers.log == ["enter"]
    assert handlers.log == ["enter", "exit"]


# Over HTTP


@pytest.mark.parametrize(
    ("headers", "status", "logged"),
    [
        ({"host": "localhost:8000"}, 200, ""),
        ({"host": "127.0.0.1"}, 200, ""),
        ({"host": "api.example.com"}, 200, ""),
        ({"host": "api.example.com:8443", "origin": "https://api.example.com:8443"}, 200, ""),
        ({"host": "LOCALHOST:8000", "origin": "HTTP://LocalHost:3000"}, 200, ""),
        ({"host": "api.EXAMPLE.com", "origin": "https://API.example.com"}, 200, ""),
        ({"host": "evil.example"}, 421, "its Host is 'evil.example'; to allow it, use `--allow-host`"),
        (
            {"host": "localhost", "origin": "https://evil.example"},
            403,
            "its Origin is 'https://evil.example'; to allow it, use `--allow-origin`",
        ),
        ({"host": "localhost", "origin": ""}, 403, "its Origin is ''; to allow it, use `--allow-origin`"),
    ],
)
async def test_hosts_and_origins(
    package: Any, headers: dict[str, str], status: int, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = package.asgi_app(Managed(), path="/tools", allowed_hosts=["Api.Example.COM"])
    assert (await post(app, "/tools", headers)).status_code == status
    assert logged in caplog.text
    assert ("requests refused: 1" in caplog.text) == bool(logged)


async def test_a_token_verifier_is_asked(package: Any) -> None:
    from mcp.server.auth.provider import AccessToken

    class Verifier:
        async def verify_token(self, token: str) -> AccessToken | None:
            return AccessToken(token=token, client_id="c", scopes=[]) if token == "good" else None

    for token, status in (("good", 200), ("bad", 401)):
        app = package.asgi_app(Managed(), token_verifier=Verifier())
        assert (await post(app, "/mcp", {"authorization": f"Bearer {token}"})).status_code == status


async def post(app: Any, path: str, headers: dict[str, str]) -> httpx2.Response:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost:80") as client,
    ):
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        accept = {"accept": "application/json, text/event-stream"}
        return await client.post(path, json=request, headers={**accept, **headers})


async def test_headers_that_mirror_arguments_are_checked(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"location": {"type": "string", "x-mcp-header": "Place"}}}
    write_package(tmp_path, "sdk_headers_mcp", tools=[{**WEATHER, "inputSchema": schema}, SAY, CITIES])
    app = import_package(tmp_path, "sdk_headers_mcp").asgi_app(Managed())
    params = {"name": "get-weather", "arguments": {"location": "Paris"}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }}  # fmt: skip
    headers = {
        "accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call", "mcp-name": "get-weather",
    }  # fmt: skip
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost:80") as client,
    ):
        for place, status in (("Paris", 200), ("Rome", 400)):
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await client.post("/mcp", json=request, headers={**headers, "mcp-param-place": place})
            assert answer.status_code == status


@pytest.mark.parametrize(("number", "status"), [(2**53 - 1, 200), (1 - 2**53, 200), (2**53, 400), (-(2**53), 400)])
async def test_a_mirrored_integer_beyond_the_safe_range_is_refused(number: int, status: int, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"location": {"type": "integer", "x-mcp-header": "Place"}}}
    write_package(tmp_path, "sdk_safe_mcp", tools=[{**WEATHER, "inputSchema": schema}, SAY, CITIES])
    app = import_package(tmp_path, "sdk_safe_mcp").asgi_app(Managed())
    params = {"name": "get-weather", "arguments": {"location": number}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }}  # fmt: skip
    headers = {
        "accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call", "mcp-name": "get-weather", "mcp-param-place": str(number),
    }  # fmt: skip
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost:80") as client,
    ):
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await client.post("/mcp", json=request, headers=headers)
    assert answer.status_code == status
    if status == 400:
        assert "must be between -9007199254740991 and 9007199254740991" in answer.json()["error"]["message"]


# Many tools, many packages


async def test_a_thousand_tools_load_nothing_at_start(tmp_path: Path) -> None:
    import sys

    write_package(tmp_path, "sdk_lazy_mcp")
    package = import_package(tmp_path, "sdk_lazy_mcp")
    server = serve(package)
    await exchange(server, "2025-11-25", ("tools/list", {}))
    assert not [name for name in sys.modules if name.startswith("sdk_lazy_mcp.models.")]


async def test_two_packages_do_not_meet(package: Any, api: Any, tmp_path: Path) -> None:
    write_package(tmp_path, "sdk_other_mcp", server={"name": "other", "version": "0"})
    other = import_package(tmp_path, "sdk_other_mcp")
    handler = lambda args, ctx: _raise(api.ToolError("shared"))  # noqa: E731 - the same function for both
    for module in (package, other):
        assert error_text(await weather(serve(module, weather=handler))) == "shared"
    logging.getLogger("sdk_other_mcp").handlers.clear()
