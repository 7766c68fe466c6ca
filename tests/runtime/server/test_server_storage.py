"""Callers' stored data is bounded, with clear errors, in both eras and both stores."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from mcp.server.auth.provider import AccessToken

import amounts
import prompt_ends
from packages import generate, imported, manifest, tool
from serving import asgi
from task_wire import EXTENSION, HANDSHAKE, STATELESS, Wire, in_memory, over_http, over_stdio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

TASKS: dict[str, Any] = {"elicitation": {"form": {}}, "extensions": {EXTENSION: {}}}
ERAS = [HANDSHAKE, STATELESS]
KIB = 1024

_TASK: dict[str, Any] = {"execution": {"taskSupport": "optional"}}
_TEXT = {"text": {"type": "string"}}
_NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_BOX = {"box": {"type": "string", "x-handle": "box"}}
MANIFEST = manifest(
    [
        tool("plain", _TEXT),
        tool("work", _TEXT, **_TASK),
        tool("hold", _TEXT, **_TASK, stubwright={"task": {"most": 2}}),
        tool("report", _TEXT, **_TASK),
        tool("ask", **_TASK, stubwright={"ask": {"who": {"message": "Who?", "schema": _NAMED}}}),
        tool("raised", _TEXT, **_TASK, stubwright={"policy": {"maxArgumentBytes": "2MiB"}}),
        tool("put", _TEXT, outputSchema={"type": "object", "properties": _BOX, "required": ["box"]}),
    ],
    name="storing",
    handles={"box": {"state": {"type": "object", "properties": _TEXT}, "ttl": "1h"}},
    python={"handlers": "handlers:Handlers"},
    storage={"maxBytesPerPrincipal": "300KiB", "maxBytes": "1MiB"},
)
HANDLERS = """
class Handlers:
    async def put(self, args, ctx):
        return {"box": await ctx.handles.box.create({"text": args.text})}

    async def plain(self, args, ctx):
        return f"{len(args.text or ''):,}"

    raised = hold = report = ask = work = plain
"""


class Handlers:
    def __init__(self) -> None:
        self.go = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def plain(self, args: Any, _ctx: Any) -> str:
        return f"{len(args.text or ''):,}"

    work = raised = plain

    async def hold(self, _args: Any, _ctx: Any) -> str:
        self._loop = asyncio.get_running_loop()
        await self.go.wait()
        return "held"

    def let_go(self) -> None:
        """Release tasks that wait in the loop of another thread, so that the server need not wait for them."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.go.set)

    async def report(self, _args: Any, _ctx: Any) -> str:
        return "x" * 400 * KIB

    async def ask(self, _args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    async def put(self, args: Any, ctx: Any) -> Any:
        return {"box": await ctx.handles.box.create({"text": args.text})}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("storing")
    generate(folder, MANIFEST)
    (folder / "handlers.py").write_text(HANDLERS)
    return folder


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[ModuleType]:
    with imported(folder, "storing_mcp") as made:
        yield made


async def started(wire: Wire, name: str, text: str = "") -> dict[str, Any]:
    """What the call of a task gives."""
    more: dict[str, Any] = {"task": {}} if wire.revision == HANDSHAKE else {}
    arguments = {} if name == "ask" else {"text": text}
    return await wire("tools/call", name=name, arguments=arguments, **more)


def known(said: dict[str, Any]) -> str:
    """The id of a task that was made."""
    found: str = said["task"]["taskId"] if "task" in said else said["taskId"]
    return found


def told(said: dict[str, Any]) -> str:
    """The text of a refusal."""
    assert said["isError"], said
    text: str = said["content"][0]["text"]
    return text


@pytest.mark.parametrize("revision", amounts.sample(ERAS, 1))
async def test_tasks_and_handles_share_the_bytes_of_their_caller(
    package: ModuleType, revision: str, state: str
) -> None:
    handlers = Handlers()
    server = package.build_server(handlers, state=state)
    async with in_memory(server, revision, TASKS) as wire:
        held = known(await started(wire, "hold", "x" * 200 * KIB))
        refused = told(await started(wire, "work", "x" * 100 * KIB))
        assert refused.startswith("work was not started. You have 20")
        assert (
            "of tasks, handles and results stored here. The limit is 300 KiB, so there is no room for this." in refused
        )
        assert "Try again in 3," in refused
        assert "or end a handle or cancel a task that you no longer need." in refused
        said = told(await wire("tools/call", name="put", arguments={"text": "x" * 100 * KIB}))
        assert said.startswith("You have 20")
        handlers.go.set()
        await wire.until(held, "completed")
        assert known(await started(wire, "work", "x" * 100 * KIB)), "arguments go when a task ends"
        assert "box" in (await wire("tools/call", name="put", arguments={"text": "x" * 100 * KIB}))["structuredContent"]


@pytest.mark.parametrize("revision", ERAS)
async def test_a_result_that_finds_no_room_fails_its_task_and_says_why(package: ModuleType, revision: str) -> None:
    async with in_memory(package.build_server(Handlers()), revision, TASKS) as wire:
        name = known(await started(wire, "report"))
        assert (await wire.until(name, "failed"))["status"] == "failed"
        said = await wire("tasks/result" if revision == HANDSHAKE else "tasks/get", taskId=name)
        assert said["error"]["message"].startswith("report finished, but its result cannot be stored. You have ")


async def test_answers_that_find_no_room_are_refused_and_may_come_again(package: ModuleType) -> None:
    async with in_memory(package.build_server(Handlers()), STATELESS, TASKS) as wire:
        name = known(await started(wire, "ask"))
        await wire.until(name, "input_required")
        large = {"who": {"action": "accept", "content": {"name": "x" * 400 * KIB}}}
        said = await wire("tasks/update", taskId=name, inputResponses=large)
        assert said["error"]["message"].startswith("The answers were not accepted. You have ")
        small = {"who": {"action": "accept", "content": {"name": "Ada"}}}
        await wire("tasks/update", taskId=name, inputResponses=small)
        assert (await wire.until(name, "completed"))["result"]["content"][0]["text"] == "Ada"


class _Names:
    """Whoever says a name has it."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id=token, scopes=[], subject=token)


@pytest.mark.parametrize("revision", amounts.sample(ERAS, 2))
async def test_each_principal_has_bytes_of_its_own_over_http(package: ModuleType, revision: str, state: str) -> None:
    handlers = Handlers()
    app = package.asgi_app(handlers, state=state, token_verifier=_Names())
    with asgi(app) as url:
        for name in ("ann", "bob"):
            bearer = {"authorization": f"Bearer {name}"}
            async with over_http(f"{url}/mcp", revision, TASKS, headers=bearer) as wire:
                assert known(await started(wire, "hold", "x" * 200 * KIB))
                assert "The limit is 300 KiB" in told(await started(wire, "work", "x" * 100 * KIB))
        handlers.let_go()


async def test_sessions_without_a_token_share_one_budget_and_one_number_of_tasks(package: ModuleType) -> None:
    with asgi(package.asgi_app(Handlers())) as url:
        made: list[bool] = []
        for _ in range(3):
            async with over_http(f"{url}/mcp", HANDSHAKE, TASKS) as wire:
                made.append("task" in await started(wire, "hold", "x" * 60 * KIB))
        assert made == [True, True, False], "of `most: 2`"
        async with over_http(f"{url}/mcp", HANDSHAKE, TASKS) as wire:
            assert "The limit is 300 KiB" in told(await started(wire, "work", "x" * 200 * KIB))


@pytest.mark.parametrize(("revision", "way"), amounts.sample(product(ERAS, ["stdio", "http"]), 3))
async def test_arguments_are_bounded_where_the_manifest_says_nothing(
    revision: str, way: str, folder: Path, package: ModuleType
) -> None:
    async def tried(wire: Wire) -> None:
        room = KIB * KIB - len('{"text": ""}')
        said = await wire("tools/call", name="plain", arguments={"text": "x" * room})
        assert said["content"][0]["text"] == f"{room:,}"
        assert told(await wire("tools/call", name="plain", arguments={"text": "x" * (room + 1)})) == (
            "The arguments of plain are too large: 1,048,577 bytes; the limit is 1,048,576. Send smaller arguments."
        )
        refused = told(await started(wire, "work", "x" * 256 * KIB))
        assert refused.startswith("The arguments of a task of work are too large: 262,156 bytes; the limit is 262,144.")
        assert known(await started(wire, "raised", "x" * 256 * KIB)), "a manifest may allow more"

    if way == "stdio":
        async with over_stdio("storing_mcp", folder, revision, TASKS) as wire:
            await tried(wire)
    else:
        with asgi(package.asgi_app(Handlers())) as url:
            async with over_http(f"{url}/mcp", revision, TASKS) as wire:
                await tried(wire)
