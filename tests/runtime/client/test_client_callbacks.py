"""Servers' requests to generated clients in both eras: elicitation, sampling, roots; prompts, resources and lists."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal

import anyio
import anyio.lowlevel
import mcp
import mcp_types
import pydantic
import pytest

import amounts
import forked
import prompt_ends
from serving import KINDS, Handler, ScriptedServer, ask, reach
from stubwright_runtime.client.core.binding import OMIT, Omit
from stubwright_runtime.client.core.pending_requests import PendingRequests
from stubwright_runtime.client.features.callbacks import adapt_for_sdk
from stubwright_runtime.client.features.live import list_prompts, list_resource_templates, list_resources, list_tools
from stubwright_runtime.client.features.primitives import PrimitivesBinding
from stubwright_runtime.client.features.questions import Callbacks, Question
from stubwright_runtime.client.transports.replies import HttpClient, HttpRequest, Reply
from stubwright_runtime.mcp.elicitation_answers import Accepted, Cancelled, Declined
from stubwright_runtime.mcp.vocabulary import LOG_LEVELS
from stubwright_runtime.models.base import Model
from stubwright_runtime.package import Package, Tool

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# --- what `generate` writes for a small manifest -----------------------------------------------------------------

PACKAGE = Package("town_mcp", tools=[Tool("ask")])
PACKAGE.manifest = {
    "tools": [{"name": "ask", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
}


class TownClient(PrimitivesBinding):
    _package = PACKAGE

    async def ask(self) -> list[mcp_types.ContentBlock]:
        return await self._call_content("ask", {})

    async def read_readme(self) -> list[mcp_types.TextResourceContents | mcp_types.BlobResourceContents]:
        return await self._read("file:///readme.md")

    async def read_current(
        self, *, city: str, days: Sequence[str] | Omit = OMIT
    ) -> list[mcp_types.TextResourceContents | mcp_types.BlobResourceContents]:
        return await self._read_from("weather://{city}/now{?days}", {"city": city, "days": days})

    async def prompt_code_review(self, *, code: str, language: str | Omit = OMIT) -> list[mcp_types.PromptMessage]:
        return await self._prompt("code_review", {"code": code, "language": language})

    async def complete_prompt_code_review(
        self, argument: Literal["language"], value: str, given: Mapping[str, str] | None = None
    ) -> mcp_types.Completion:
        return await self._complete("prompt", "code_review", argument, value, given)

    async def complete_read_current(
        self, argument: Literal["city"], value: str, given: Mapping[str, str] | None = None
    ) -> mcp_types.Completion:
        return await self._complete("template", "weather://{city}/now{?days}", argument, value, given)


@asynccontextmanager
async def _town(kind: str, handling: ScriptedServer, **options: Any) -> AsyncIterator[TownClient]:
    """A client of the server, reached in one of several ways."""
    async with reach(kind, handling) as target, TownClient.connect(target, **options) as client:
        yield client


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _said(content: Sequence[mcp_types.ContentBlock]) -> Any:
    """The JSON of the one text block that there is."""
    (block,) = content
    assert isinstance(block, mcp_types.TextContent)
    return json.loads(block.text)


_FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
        "pets": {"type": "array", "items": {"type": "string", "enum": ["cat", "dog"]}, "default": ["cat"]},
    },
    "required": ["name"],
}


async def _ask_form(ctx: Any) -> Mapping[str, Any]:
    answer = await ask(ctx, "who", "elicitation/create", {"mode": "form", "message": "Who?", "requestedSchema": _FORM})
    return _text(json.dumps(answer))


class Person(Model):
    name: str
    age: int | None = None


DEFAULTS = {"age": 30, "score": 95.5, "status": "active", "verified": True, "pets": ["cat"]}


# --- questions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_question_is_answered(kind: str) -> None:
    handling = ScriptedServer(tools_call=_ask_form)
    asked: list[Question] = []

    async def answer(question: Question) -> Person:
        await anyio.lowlevel.checkpoint()
        asked.append(question)
        return Person(name="Ada", age=36)

    async with _town(kind, handling, on_question=answer) as client:
        said = _said(await client.ask())
    assert said == {"action": "accept", "content": {**DEFAULTS, "name": "Ada", "age": 36}}
    assert asked == [Question("Who?", _FORM, None, None if kind.endswith("legacy") else "who")]
    assert handling.capabilities["elicitation"].keys() >= {"form", "url"}
    assert handling.capabilities.keys() == {"elicitation"}


_ASKING_PROCESS = """
import json, sys
asked = None
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method", "")
    if method == "initialize":
        server = {"name": "asking", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/call":
        asked = message["id"]
        params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
        print(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}), flush=True)
        continue
    elif message.get("id") == "q":
        message["id"] = asked
        result = {"content": [{"type": "text", "text": json.dumps(message["result"])}]}
    elif "id" in message:
        error = {"code": -32601, "message": "?"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
_MODERN_PROCESS = """
import json
import anyio
from mcp.server.stdio import stdio_server
from serving import ScriptedServer, ask

async def handle(ctx):
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    answer = await ask(ctx, "who", "elicitation/create", {"message": "Who?", "requestedSchema": form})
    return {"content": [{"type": "text", "text": json.dumps(answer)}]}

async def main():
    server = ScriptedServer(tools_call=handle).server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


@pytest.mark.parametrize(("program", "revision"), [(_ASKING_PROCESS, "2025-11-25"), (_MODERN_PROCESS, "2026-07-28")])
async def test_a_process_asks(program: str, revision: str) -> None:
    env = {"PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    command = [*forked.interpreter(), "-c", program]
    async with TownClient.connect(command, env=env, on_question=lambda _: {"name": "Ada"}) as client:
        assert client.raw.protocol_version == revision
        assert _said(await client.ask()) == {"action": "accept", "content": {"name": "Ada"}}


@pytest.mark.parametrize("kind", ["memory", "pipe legacy"])
@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (
            {"name": "Ada", "status": "inactive", "pets": []},
            {"action": "accept", "content": {**DEFAULTS, "name": "Ada", "status": "inactive", "pets": []}},
        ),
        (Person(name="Ada"), {"action": "accept", "content": {**DEFAULTS, "name": "Ada"}}),
        ({"name": "Ada", "age": OMIT}, {"action": "accept", "content": {**DEFAULTS, "name": "Ada"}}),
        (Declined(), {"action": "decline"}),
        (Cancelled(), {"action": "cancel"}),
    ],
)
async def test_answers_of_all_kinds(kind: str, answer: Any, sent: Mapping[str, Any]) -> None:
    handling = ScriptedServer(tools_call=_ask_form)
    async with _town(kind, handling, on_question=lambda _: answer) as client:
        assert _said(await client.ask()) == sent


_BREAKS = "the answer violates the question's schema:\n  "


UNFIT: Final = [
    ({"name": "A"}, ValueError, _BREAKS + 'name: expected at least 2 characters, got the string "A"'),
    ({"name": "Ada", "age": "36"}, ValueError, _BREAKS + 'age: expected an integer, got the string "36"'),
    (Accepted(), ValueError, _BREAKS + "name: required, but missing"),
    (True, TypeError, "an answer must be a mapping, a model, Accepted(), Declined() or Cancelled(), not True"),
    ({"name": {1}}, TypeError, "name: a value of type set cannot be converted to JSON"),
]


@pytest.mark.parametrize(
    ("kind", "answer", "error", "message"),
    amounts.sample(((kind, *case) for kind in KINDS for case in UNFIT), 11),
)
async def test_an_answer_that_does_not_fit_is_the_callers_error(
    kind: str, answer: Any, error: type[Exception], message: str
) -> None:
    handling = ScriptedServer(tools_call=_ask_form)
    async with _town(kind, handling, on_question=lambda _: answer) as client:
        with pytest.raises(error) as raised:
            await client.ask()
    assert str(raised.value) == message
    assert len(handling.seen) == 1


async def test_a_session_whose_end_is_not_answered_delays_closing_by_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = HttpClient.send
    waited: list[float] = []

    async def hang(client: HttpClient, request: HttpRequest) -> Reply:
        if request.method == "DELETE":
            begun = anyio.current_time()
            try:
                await anyio.sleep_forever()
            finally:
                waited.append(anyio.current_time() - begun)
        return await send(client, request)

    monkeypatch.setattr(HttpClient, "send", hang)
    handling = ScriptedServer(tools_call=_ask_form)
    with anyio.fail_after(60):
        async with _town("http legacy", handling, on_question=lambda _: Declined(), timeout=1) as client:
            assert _said(await client.ask()) == {"action": "decline"}
    assert len(waited) == 1
    assert waited[0] < 8  # the SDK's own limit is ten seconds


@pytest.mark.parametrize(("kind", "format_", "value"), [(KINDS[0], "email", "ada"), (KINDS[-1], "date", "today")])
async def test_an_answer_that_breaks_a_format_is_not_sent(kind: str, format_: str, value: str) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "format": format_}}}

    async def handler(ctx: Any) -> Mapping[str, Any]:
        params = {"mode": "form", "message": "?", "requestedSchema": schema}
        return _text(json.dumps(await ask(ctx, "q", "elicitation/create", params)))

    async with _town(kind, ScriptedServer(tools_call=handler), on_question=lambda _: {"name": value}) as client:
        with pytest.raises(ValueError, match="the answer violates the question's schema"):
            await client.ask()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({"type": "array"}, 'type: expected "object", got the string "array"'),
        ({"properties": ["name"]}, "properties: expected an object, got an array of 1 item"),
        ({"properties": {"name": True}}, "properties.name: expected an object, got true"),
        (
            {"properties": {"name": {"minLength": "2"}}},
            'properties.name.minLength: expected an integer, got the string "2"',
        ),
        ({"properties": {"name": {"items": False}}}, "properties.name.items: expected an object, got false"),
        (
            {"properties": {"name": {"enumNames": [[]]}}},
            "properties.name.enumNames[0]: expected a string, got an array",
        ),
        ({"properties": {"name": {"$ref": "#/$defs/Name"}}}, "Pointer '/$defs/Name' does not exist"),
    ],
)
async def test_a_question_with_an_invalid_form_is_rejected(revision: str, form: Any, fault: str) -> None:
    params: Any = mcp_types.ElicitRequestFormParams(message="?", requested_schema=form)
    context: Any = SimpleNamespace(session=SimpleNamespace(protocol_version=revision), request_id="q")
    callbacks = adapt_for_sdk(Callbacks(on_question=lambda _: {}), PendingRequests(expects_questions=True))
    error = await callbacks["elicitation_callback"](context, params)
    assert isinstance(error, mcp_types.ErrorData)
    assert error.code == mcp_types.INVALID_PARAMS
    assert error.message.startswith(f"The question's form is invalid: {fault}")


@pytest.mark.parametrize("kind", ["memory", "pipe legacy"])
@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (Accepted(), {"action": "accept"}),
        (Declined(), {"action": "decline"}),
        (Cancelled(), {"action": "cancel"}),
        ({}, "answer a question with a URL with Accepted(), Declined() or Cancelled(), not {}"),
    ],
)
async def test_a_question_with_a_url(kind: str, answer: Any, sent: Any) -> None:
    url = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "7"}

    async def handler(ctx: Any) -> Mapping[str, Any]:
        return _text(json.dumps(await ask(ctx, "sign", "elicitation/create", url)))

    asked: list[Question] = []

    def agree(question: Question) -> Any:
        asked.append(question)
        return answer

    async with _town(kind, ScriptedServer(tools_call=handler), on_question=agree) as client:
        if isinstance(sent, str):
            with pytest.raises(TypeError) as raised:
                await client.ask()
            assert str(raised.value) == sent
        else:
            assert _said(await client.ask()) == sent
    key = None if kind.endswith("legacy") else "sign"
    assert asked == [Question("Sign in", url="https://example.com/in", key=key, elicitation="7")]


def test_no_answer_is_false() -> None:
    assert Accepted()
    assert not Declined()
    assert not Cancelled()
    assert (Accepted(), Declined(), Cancelled()) == (Accepted(), Declined(), Cancelled())


@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_without_callbacks_nothing_is_announced(kind: str) -> None:
    async def handler(ctx: Any) -> Mapping[str, Any]:
        return _text("[]")

    handling = ScriptedServer(tools_call=handler)
    async with _town(kind, handling) as client:
        await client.ask()
    assert handling.capabilities == {}


async def test_where_several_requests_wait_the_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Before 2026-07-28, it is ambiguous for which request the server asks."""
    waiting = anyio.Event()

    async def handler(ctx: Any) -> Mapping[str, Any]:
        if len(handling.seen) == 1:
            await waiting.wait()
            return _text("[]")
        try:
            return await _ask_form(ctx)
        finally:
            waiting.set()

    def answer(question: Question) -> Any:
        raise LookupError("nobody is at home")

    handling = ScriptedServer(tools_call=handler)
    async with _town("pipe legacy", handling, on_question=answer) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.ask)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(mcp.MCPError, match=r"^The client could not answer$"):
            await client.ask()
    assert "a callback for the server's question failed" in caplog.text
    assert "nobody is at home" in caplog.text


@pytest.mark.parametrize("kind", ["memory", "pipe legacy", "http legacy"])
async def test_the_clock_rests_while_a_person_is_asked(kind: str) -> None:
    async def slow(question: Question) -> Any:
        await anyio.sleep(0.5)
        return {"name": "Ada"}

    async def handler(ctx: Any) -> Mapping[str, Any]:
        answer = await _ask_form(ctx)
        if len(handling.seen) > last:
            await anyio.sleep(30)
        return answer

    last = 1 if kind.endswith("legacy") else 2
    handling = ScriptedServer(tools_call=handler)
    async with _town(kind, handling, on_question=slow) as client:
        hurried = client.with_options(timeout=0.3)
        assert _said(await hurried.ask())["action"] == "accept"
        with pytest.raises(mcp.MCPError) as raised:
            await hurried.ask()
    assert raised.value.code == mcp_types.REQUEST_TIMEOUT


# --- samples -----------------------------------------------------------------------------------------------------

_SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "Capital?"}}], "maxTokens": 5}


async def _ask_model(ctx: Any) -> Mapping[str, Any]:
    return _text(json.dumps(await ask(ctx, "s", "sampling/createMessage", _SAMPLING)))


@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_a_model_is_asked(kind: str) -> None:
    asked: list[mcp_types.CreateMessageRequestParams] = []

    async def sample(params: mcp_types.CreateMessageRequestParams) -> mcp_types.CreateMessageResult:
        asked.append(params)
        content = mcp_types.TextContent(type="text", text="Paris")
        return mcp_types.CreateMessageResult(role="assistant", content=content, model="m-1", stop_reason="endTurn")

    handling = ScriptedServer(tools_call=_ask_model)
    async with _town(kind, handling, on_sample=sample) as client:
        said = _said(await client.ask())
    assert said["content"] == {"type": "text", "text": "Paris"}
    assert (said["model"], said["stopReason"]) == ("m-1", "endTurn")
    assert [params.max_tokens for params in asked] == [5]
    assert handling.capabilities == {"sampling": {}}


async def test_a_model_may_give_a_text() -> None:
    async with TownClient.connect(ScriptedServer(tools_call=_ask_model).server, on_sample=lambda _: "Oslo") as client:
        said = _said(await client.ask())
    assert said == {"role": "assistant", "content": {"type": "text", "text": "Oslo"}, "model": "unknown"}


@pytest.mark.parametrize("kind", ["memory", "pipe legacy"])
async def test_a_callback_may_refuse_by_an_error_of_the_protocol(kind: str) -> None:
    def refuse(params: mcp_types.CreateMessageRequestParams) -> str:
        raise mcp.MCPError(code=-1, message="User rejected sampling request")

    async with _town(kind, ScriptedServer(tools_call=_ask_model), on_sample=refuse) as client:
        with pytest.raises(mcp.MCPError, match=r"^User rejected sampling request$"):
            await client.ask()


async def test_a_model_is_not_asked_to_call_tools() -> None:
    async def handler(ctx: Any) -> Mapping[str, Any]:
        params = {**_SAMPLING, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        return _text(json.dumps(await ask(ctx, "s", "sampling/createMessage", params)))

    async with TownClient.connect(ScriptedServer(tools_call=handler).server, on_sample=lambda _: "?") as client:
        with pytest.raises(mcp.MCPError, match=r"^This client does not support tools in sampling$"):
            await client.ask()


# --- the log -----------------------------------------------------------------------------------------------------


async def _log_each_level(ctx: Any) -> Mapping[str, Any]:
    for level in LOG_LEVELS:
        await ctx.session.send_log_message(level, {"of": level}, "town", ctx.request_id)
    return _text("done")


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_the_log_is_heard_from_the_level_that_is_wanted(kind: str) -> None:
    heard: list[Any] = []

    async def hear(level: str, logger: str | None, data: Any) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append((level, logger, data))
        if level == "critical":
            raise RuntimeError("what it raises ends no call")

    handling = ScriptedServer(tools_call=_log_each_level)
    async with _town(kind, handling, on_log=hear, log_level="warning") as client:
        await client.ask()
    assert heard == [(level, "town", {"of": level}) for level in LOG_LEVELS[3:]]
    assert handling.capabilities == {}  # a callback that only hears announces nothing


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_a_callback_may_hear_the_log_at_once(kind: str) -> None:
    heard: list[str] = []

    def hear(level: str, logger: str | None, data: Any) -> None:
        heard.append(level)

    async with _town(kind, ScriptedServer(tools_call=_log_each_level), on_log=hear) as client:
        await client.ask()
    assert heard == [*LOG_LEVELS[1:]]


class _Logging:
    """A server that logs from the level on that its client prompts for, `warning` at first."""

    def __init__(self, answer: Callable[[str], Mapping[str, Any]] = lambda _: {}, *, declares: bool = True) -> None:
        self.asked: list[str] = []
        self._least = "warning"
        self._answer = answer
        self.handling = ScriptedServer(logging_setLevel=self._set_level, tools_call=self._log)
        if declares:
            self.handling.server.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, self._never)

    async def _never(self, ctx: Any, params: Any) -> Any:
        raise AssertionError  # it is only what the capability is declared for

    async def _set_level(self, ctx: Any) -> Mapping[str, Any]:
        self.asked.append(ctx.params["level"])
        answer = self._answer(ctx.params["level"])
        self._least = ctx.params["level"]
        return answer

    async def _log(self, ctx: Any) -> Mapping[str, Any]:
        for level in LOG_LEVELS[LOG_LEVELS.index(self._least) :]:
            await ctx.session.send_log_message(level, {}, "town", ctx.request_id)
        return _text("done")


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("level", ["debug", "info"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("legacy")])
async def test_an_older_server_is_asked_once_for_the_level(kind: str, level: Any) -> None:
    server, heard = _Logging(), list[str]()
    async with _town(kind, server.handling, on_log=lambda level, *_: heard.append(level), log_level=level) as client:
        await client.ask()
        await client.ask()
    assert server.asked == [level]
    assert heard == [*LOG_LEVELS[LOG_LEVELS.index(level) :]] * 2


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("legacy")])
async def test_a_server_that_refuses_the_level_is_connected_to_all_the_same(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(level: str) -> Mapping[str, Any]:
        raise mcp.MCPError(code=mcp_types.INVALID_PARAMS, message="no\nlevels")

    server, heard = _Logging(refuse), list[str]()
    async with _town(kind, server.handling, on_log=lambda level, *_: heard.append(level), log_level="debug") as client:
        await client.ask()
    assert server.asked == ["debug"]
    assert heard == [*LOG_LEVELS[3:]]
    assert "the server rejected the log level debug and uses its own: no levels" in caplog.text


@pytest.mark.parametrize(
    ("kind", "declares", "options"),
    [
        ("pipe legacy", False, {"on_log": print}),
        ("pipe legacy", True, {}),
        ("pipe", True, {"on_log": print}),  # each request has the level, from 2026-07-28 on
        ("memory", True, {"on_log": print}),
    ],
)
async def test_no_level_is_asked_for_in_vain(kind: str, declares: bool, options: dict[str, Any]) -> None:
    server = _Logging(declares=declares)
    async with _town(kind, server.handling, **options):
        pass
    assert server.asked == []


def test_a_level_that_is_none_and_a_client_with_its_own_callback_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^log_level must be one of debug, info, .*, emergency, not 'verbose'$"):
        TownClient.connect("http://localhost/mcp", on_log=print, log_level="verbose")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"do not pass on_log$"):
        TownClient.connect(mcp.Client(ScriptedServer().server), on_log=print)


# --- roots -------------------------------------------------------------------------------------------------------


async def _ask_roots(ctx: Any) -> Mapping[str, Any]:
    return _text(json.dumps(await ask(ctx, "r", "roots/list")))


@pytest.mark.parametrize(("kind", "how"), amounts.sample(product(KINDS, ["fixed", "asked", "later"]), 7))
async def test_roots_are_listed(kind: str, how: str, tmp_path: Path) -> None:
    named = mcp_types.Root(uri=pydantic.FileUrl("file:///srv/docs"), name="Docs")
    roots = [tmp_path, f"{tmp_path}/a b", "file:///srv/x", named]

    async def later() -> list[Any]:
        await anyio.lowlevel.checkpoint()
        return roots

    given: Any = {"fixed": roots, "asked": lambda: roots, "later": later}[how]
    handling = ScriptedServer(tools_call=_ask_roots)
    async with _town(kind, handling, roots=given) as client:
        said = _said(await client.ask())
    assert said["roots"] == [
        {"uri": tmp_path.as_uri()},
        {"uri": f"{tmp_path.as_uri()}/a%20b"},
        {"uri": "file:///srv/x"},
        {"uri": "file:///srv/docs", "name": "Docs"},
    ]
    assert handling.capabilities.keys() == {"roots"}


@pytest.mark.parametrize(
    ("roots", "error", "message"),
    [
        ("/srv", TypeError, "roots must be a sequence of paths, file:// URIs or mcp_types.Root, not '/srv'"),
        (["https://example.com"], ValueError, "'https://example.com' is not a root; pass a path or a file:// URI"),
        ([3], TypeError, "3 is not a root; pass a path, a file:// URI or an mcp_types.Root"),
    ],
)
def test_what_is_no_root_is_refused(roots: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        TownClient.connect("http://localhost/mcp", roots=roots)
    assert str(raised.value) == message


def test_a_client_of_the_sdk_brings_its_own_callbacks() -> None:
    with pytest.raises(ValueError, match=r"^a connected client has its own callbacks; do not pass on_question, roots$"):
        TownClient.connect(mcp.Client("http://localhost/mcp"), on_question=lambda _: {}, roots=[])


# --- prompts, resources, completions, lists ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_prompts_and_resources_may_ask(kind: str) -> None:
    async def prompt(ctx: Any) -> Mapping[str, Any]:
        said = (await _ask_form(ctx))["content"][0]
        return {"messages": [{"role": "user", "content": said}]}

    async def read(ctx: Any) -> Mapping[str, Any]:
        said = (await _ask_form(ctx))["content"][0]["text"]
        return {"contents": [{"uri": ctx.params["uri"], "text": said}], "ttlMs": 0, "cacheScope": "private"}

    handling = ScriptedServer(prompts_get=prompt, resources_read=read)
    async with _town(kind, handling, on_question=lambda _: {"name": "Ada"}) as client:
        (message,) = await client.prompt_code_review(code="x = 1")
        (readme,) = await client.read_readme()
        (current,) = await client.read_current(city="São Paulo", days=["1", "2"])
        await client.read_current(city="Oslo")
    answer = {"action": "accept", "content": {**DEFAULTS, "name": "Ada"}}
    assert _said([message.content]) == answer
    assert isinstance(readme, mcp_types.TextResourceContents)
    assert json.loads(readme.text) == answer
    assert current.uri == "weather://S%C3%A3o%20Paulo/now?days=1,2"
    rounds = 1 if kind.endswith("legacy") else 2
    assert [method for method, _ in handling.seen] == ["prompts/get"] * rounds + ["resources/read"] * 3 * rounds
    assert handling.seen[0][1]["arguments"] == {"code": "x = 1"}
    assert handling.seen[-1][1]["uri"] == "weather://Oslo/now"
    if rounds == 2:
        assert handling.seen[1][1]["requestState"] == handling.seen[3][1]["requestState"] == "sealed"


async def test_arguments_are_completed() -> None:
    async def complete(ctx: Any) -> Mapping[str, Any]:
        return {"completion": {"values": ["python", "pyret"], "total": 2, "hasMore": False}}

    handling = ScriptedServer(completion_complete=complete)
    async with TownClient.connect(handling.server) as client:
        completion = await client.complete_prompt_code_review("language", "py", {"code": "x"})
        await client.complete_read_current("city", "Pa")
    assert (completion.values, completion.total, completion.has_more) == (["python", "pyret"], 2, False)
    first, second = ({k: v for k, v in params.items() if k != "_meta"} for _, params in handling.seen)
    assert first == {
        "ref": {"type": "ref/prompt", "name": "code_review"},
        "argument": {"name": "language", "value": "py"},
        "context": {"arguments": {"code": "x"}},
    }
    assert second == {
        "ref": {"type": "ref/resource", "uri": "weather://{city}/now{?days}"},
        "argument": {"name": "city", "value": "Pa"},
    }


def _lists(cursors: Callable[[int], int | None]) -> Handler:
    """Pages with one entry each, numbered; `cursors` gives the number of the page that follows."""

    async def page(ctx: Any) -> Mapping[str, Any]:
        number = int((ctx.params or {}).get("cursor") or 0)
        key = {"resources/templates/list": "resourceTemplates"}.get(ctx.method, ctx.method.split("/")[0])
        entries: dict[str, dict[str, Any]] = {
            "tools": {"inputSchema": {"type": "object"}},
            "resources": {"uri": f"test://{number}"},
            "resourceTemplates": {"uriTemplate": f"test://{number}/{{x}}"},
            "prompts": {},
        }
        follows = cursors(number)
        more = {} if follows is None else {"nextCursor": str(follows)}
        return {key: [{"name": f"n{number}", **entries[key]}], "ttlMs": 60_000, "cacheScope": "public", **more}

    return page


@pytest.mark.parametrize("kind", ["memory", "pipe legacy"])
async def test_lists_are_whole_and_new(kind: str) -> None:
    page = _lists(lambda number: number + 1 if number < 2 else None)
    handling = ScriptedServer(tools_list=page, prompts_list=page, resources_list=page, resources_templates_list=page)
    async with _town(kind, handling) as client:
        for _ in range(2):
            for listed in (
                await list_tools(client),
                await list_prompts(client),
                await list_resources(client),
                await list_resource_templates(client),
            ):
                assert [entry.name for entry in listed] == ["n0", "n1", "n2"]
    assert len(handling.seen) == 24


@pytest.mark.parametrize("kind", ["memory", "pipe legacy"])
async def test_an_empty_cursor_leads_to_the_next_page(kind: str) -> None:
    async def page(ctx: Any) -> Mapping[str, Any]:
        is_first = "cursor" not in (ctx.params or {})
        more = {"nextCursor": ""} if is_first else {}
        return {"prompts": [{"name": "first" if is_first else "last"}], "ttlMs": 0, "cacheScope": "private", **more}

    async with _town(kind, ScriptedServer(prompts_list=page)) as client:
        assert [entry.name for entry in await list_prompts(client)] == ["first", "last"]


@pytest.mark.parametrize(
    ("follows", "message"),
    [
        (lambda number: number % 3 + 1, "the server's list is cyclic: the cursor '1' repeats"),
        (lambda number: number + 1, "the server's list has more than 1000 pages"),
    ],
)
async def test_a_list_without_an_end_is_an_error(follows: Callable[[int], int], message: str) -> None:
    async with TownClient.connect(ScriptedServer(prompts_list=_lists(follows)).server) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await list_prompts(client)
    assert raised.value.message == message


async def test_an_empty_cursor_on_each_page_is_explained() -> None:
    async def page(ctx: Any) -> Mapping[str, Any]:
        return {"prompts": [], "nextCursor": "", "ttlMs": 0, "cacheScope": "private"}

    async with TownClient.connect(ScriptedServer(prompts_list=page).server) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await list_prompts(client)
    why = "the cursor '' repeats; omit `nextCursor` on the last page instead of leaving it empty"
    assert raised.value.message == f"the server's list is cyclic: {why}"


async def test_a_list_may_take_too_long() -> None:
    async def never(ctx: Any) -> Mapping[str, Any]:
        await anyio.sleep(30)
        return {}

    async with TownClient.connect(ScriptedServer(resources_list=never).server) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await list_resources(client.with_options(timeout=0.05))
    assert raised.value.code == mcp_types.REQUEST_TIMEOUT


@pytest.mark.parametrize("is_connection", [False, True], ids=["callback", "connection"])
async def test_a_request_that_failed_does_not_wait_for_the_next_question(is_connection: bool) -> None:
    pending = PendingRequests(expects_questions=True)
    pending.start()
    answered: list[str] = []

    async def ask_twice() -> None:
        if is_connection:
            pending.fail(OSError("no camera"))
        else:
            with pytest.raises(mcp.MCPError), pending.pause_for_question():
                raise OSError("no camera")
        with pending.pause_for_question():
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            answered.append("second")

    with pytest.raises(OSError, match="no camera"), pending.request(None):
        await ask_twice()
    assert not answered
