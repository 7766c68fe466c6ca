"""The code that wraps handlers' methods, and its exceptions, raised again in the client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import mcp
import pytest

import prompt_ends
from http_tools import called, run_package
from packages import generate, imported, manifest, tool
from stubwright_runtime import HandlerCall, Proceed, ToolError

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

ERAS: Final = ("legacy", "2026-07-28")

COUNTED: Final = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
NUMBER: Final = {"number": {"type": "integer", "maximum": 100}}

MANIFEST: Final = manifest(
    [
        tool("count", NUMBER, outputSchema=COUNTED),
        tool("count_in_thread", NUMBER, outputSchema=COUNTED),
        tool("erase", stubwright={"policy": {"confirm": True}}),
        tool("work", stubwright={"task": {"ttl": "1h"}}, execution={"taskSupport": "required"}),
        tool("around"),
    ],
    resources=[{"name": "notes", "uri": "notes://all", "mimeType": "text/plain"}],
    resourceTemplates=[{"name": "note", "uriTemplate": "notes://{id}", "stubwright": {"complete": {"id": "handler"}}}],
    prompts=[{"name": "greet", "arguments": [{"name": "who"}]}],
    name="surrounded",
)

SESSION: Final[ContextVar[str]] = ContextVar("session")


class MissingError(Exception):
    """An exception of an application."""


class Handlers:
    """Counts, and notes what runs around it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Any]] = []

    async def around(self, call: HandlerCall, proceed: Proceed) -> Any:
        args = None if call.args is None else call.args.model_dump() if hasattr(call.args, "model_dump") else call.args
        self.seen.append((call.kind, call.method, args))
        token = SESSION.set(f"session of {call.ctx.name}")
        try:
            return await proceed()
        except MissingError as error:
            raise ToolError(f"There is no {error}.") from error
        finally:
            SESSION.reset(token)

    async def count(self, args: Any, ctx: Any) -> Any:
        del ctx
        if args.number == 13:
            raise MissingError("thirteen")
        if args.number == 14:
            raise LookupError("fourteen") from ValueError("its cause")
        return {"count": args.number if SESSION.get() else 0}

    def count_in_thread(self, args: Any, ctx: Any) -> Any:
        assert (SESSION.get(), threading.current_thread()) != (f"session of {ctx.name}", threading.main_thread())
        return {"count": args.number}

    async def erase(self, args: Any, ctx: Any) -> str:
        del args, ctx
        return "erased"

    async def work(self, args: Any, ctx: Any) -> str:
        del args, ctx
        return SESSION.get()

    async def around_(self, args: Any, ctx: Any) -> str:
        del args, ctx
        return "a tool"

    async def read_notes(self, ctx: Any) -> str:
        del ctx
        return SESSION.get()

    async def read_note(self, args: Any, ctx: Any) -> str:
        del ctx
        if args.id == "13":
            raise MissingError("note 13")
        if args.id == "14":
            raise LookupError("note 14")
        return "a note"

    async def complete_read_note(self, args: Any, ctx: Any) -> list[str]:
        del args, ctx
        return [SESSION.get()]

    async def prompt_greet(self, args: Any, ctx: Any) -> str:
        del args
        return f"{ctx.name}: {SESSION.get()}"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("around")
    with imported(folder, generate(folder, MANIFEST)) as made:
        yield made


@pytest.mark.parametrize("era", ERAS)
async def test_it_runs_around_each_method(package: ModuleType, era: str) -> None:
    handlers = Handlers()
    async with mcp.Client(package.build_server(handlers), mode=era) as client:
        for name in ("count", "count_in_thread"):
            assert (await client.call_tool(name, {"number": 3})).structured_content == {"count": 3}
        resource: Any = (await client.read_resource("notes://all")).contents[0]
        assert resource.text == "session of notes://all"
        await client.read_resource("notes://12")
        text: Any = (await client.get_prompt("greet", {"who": "Ann"})).messages[0].content
        assert text.text == "greet: session of greet"
        template: Any = {"type": "ref/resource", "uri": "notes://{id}"}
        completed = await client.complete(template, {"name": "id", "value": "1"})
        assert completed.completion.values == ["session of notes://{id}"]
        assert (await client.call_tool("around", {})).content[0].text == "a tool"  # type: ignore[union-attr]
    assert [(kind, method) for kind, method, _ in handlers.seen] == [
        ("tool", "count"),
        ("tool", "count_in_thread"),
        ("resource", "read_notes"),
        ("resource", "read_note"),
        ("prompt", "prompt_greet"),
        ("completion", "complete_read_note"),
        ("tool", "around_"),
    ]
    assert [args for _, _, args in handlers.seen[:5]] == [{"number": 3}] * 2 + [None, {"id": "12"}, {"who": "Ann"}]


@pytest.mark.parametrize("era", ERAS)
async def test_it_says_what_callers_are_told(package: ModuleType, era: str) -> None:
    async with mcp.Client(package.build_server(Handlers()), mode=era) as client:
        result: Any = await client.call_tool("count", {"number": 13})
        assert (result.is_error, result.content[0].text) == (True, "There is no thirteen.")
        with pytest.raises(mcp.MCPError, match=r"^There is no note 13\.$"):
            await client.read_resource("notes://13")


@pytest.mark.parametrize("era", ERAS)
async def test_it_begins_when_all_is_checked(package: ModuleType, era: str) -> None:
    handlers = Handlers()
    async with mcp.Client(package.build_server(handlers), mode=era) as client:
        refused: Any = await client.call_tool("count", {"number": 101})
        assert "Invalid arguments" in refused.content[0].text
        if era == "legacy":
            refused = await client.call_tool("erase", {})
            assert refused.is_error
        else:
            with pytest.raises(mcp.MCPError):
                await client.call_tool("erase", {})
    assert handlers.seen == []


class Odd(Handlers):
    """Gives something else than the handler did."""

    async def around(self, call: HandlerCall, proceed: Proceed) -> Any:
        SESSION.set("of all")
        await proceed()
        return {"nothing": 1} if call.method == "count" else None


async def test_what_it_gives_is_checked_like_any_result(package: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    async with package.SurroundedClient.connect(package.build_server(Odd())) as client:
        with pytest.raises(package.ToolFailed, match="does not match its output schema"):
            await client.count(number=1)
        with pytest.raises(package.ToolFailed, match="Internal error in count_in_thread"):
            await client.count_in_thread(number=1)
    assert "add `return await proceed()`" in caplog.text


async def test_it_runs_around_tasks(package: ModuleType) -> None:
    handlers = Handlers()
    async with package.SurroundedClient.connect(package.build_server(handlers)) as client:
        (text,) = await client.work()
        assert text.text == "session of work"
    assert handlers.seen == [("tool", "work", {})]


async def test_it_runs_around_http_calls(tmp_path: Path) -> None:
    seen: list[str] = []

    class Around:
        async def around(self, call: HandlerCall, proceed: Proceed) -> Any:
            seen.append(call.method)
            return await proceed()

    with run_package(tmp_path, [called("go", {}, {"url": "/x"})], lambda _: (200, "there")) as there:
        async with mcp.Client(there.package.build_server(Around())) as client:
            result: Any = await client.call_tool("go", {})
    assert (result.content[0].text, seen) == ("there", ["go"])


def test_one_that_cannot_be_called_is_refused(package: ModuleType) -> None:
    class Plain(Handlers):
        def around(self, call: HandlerCall, proceed: Proceed) -> Any:
            del call, proceed

    class Short(Handlers):
        async def around(self, call: HandlerCall) -> Any:  # type: ignore[override]
            del call

    for kind in (Plain, Short):
        with pytest.raises(TypeError, match=r"around must be `async def around\(self, call, proceed\)`"):
            package.build_server(kind())


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_handler_raised_comes_out_of_the_client(package: ModuleType, era: str) -> None:
    server = package.build_server(Handlers())
    async with package.SurroundedClient.connect(server, raise_errors=True) as client:
        with pytest.raises(LookupError, match=r"^'?fourteen'?$") as caught:
            await client.count(number=14)
        assert isinstance(caught.value.__cause__, ValueError)
        assert caught.traceback[-1].name == "count"
        with pytest.raises(package.ToolFailed, match="There is no thirteen"):
            await client.count(number=13)
        with pytest.raises(LookupError, match="note 14"):
            await client.read_note(id="14")
        assert (await client.count(number=1)).count == 1
    async with mcp.Client(server, mode=era) as other:
        result: Any = await other.call_tool("count", {"number": 14})
        assert "Internal error in count" in result.content[0].text


async def test_a_misfit_and_a_task_that_failed_come_out_too(package: ModuleType) -> None:
    class Wrong(Handlers):
        async def count(self, args: Any, ctx: Any) -> Any:
            del args, ctx
            return {"count": "many"}

        async def work(self, args: Any, ctx: Any) -> str:
            del args, ctx
            raise LookupError("no work")

    async with package.SurroundedClient.connect(package.build_server(Wrong()), raise_errors=True) as client:
        with pytest.raises(TypeError, match=r"(?s)count returned a result that does not match.*count"):
            await client.count(number=1)
        with pytest.raises(LookupError, match="no work"):
            await client.work()


def test_only_a_server_of_this_process_has_what_was_raised(package: ModuleType) -> None:
    with pytest.raises(ValueError, match="raise_errors requires a server object created by build_server"):
        package.SurroundedClient.connect("http://127.0.0.1:1/mcp", raise_errors=True)
