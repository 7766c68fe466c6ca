"""Limits: rate, concurrency, duration and size; waits for users and threads."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import httpx2
import mcp
import mcp_types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from mcp.server.auth.provider import AccessToken

from packages import generate, imported, manifest, tool
from server_fixture import ENVELOPE
from stubwright_runtime.policy import limits, windows
from stubwright_runtime.policy.limits import _Slots
from stubwright_runtime.policy.windows import Windows
from stubwright_runtime.values.units import describe_wait

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def _run(function: Callable[[], Any]) -> Any:
    """What a coroutine gives that waits for nothing."""
    coroutine = function()
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


class Moving(RuleBasedStateMachine):
    """`Windows` against a list of all hits."""

    keys: ClassVar[Sequence[str]] = ("a", "b", 'c"/d', "")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.patch = pytest.MonkeyPatch()
        clock = SimpleNamespace(monotonic=lambda: self.now)
        self.patch.setattr(windows, "time", clock)
        self.windows = Windows()
        self.hits: list[tuple[str, int, float]] = []

    def teardown(self) -> None:
        self.patch.undo()

    def _in(self, key: str, expiry: int) -> list[float]:
        return [at for name, length, at in self.hits if (name, length) == (key, expiry) and at > self.now - expiry]

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 9.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(key=st.sampled_from(keys), seconds=st.sampled_from([1, 10]), limit=st.integers(1, 4))
    def hit(self, key: str, seconds: int, limit: int) -> None:
        found = self._in(key, seconds)
        wait = _run(lambda: self.windows.hit(key, limit, seconds))
        if len(found) < limit:
            assert wait == 0
            self.hits.append((key, seconds, self.now))
        else:
            assert wait == found[0] + seconds - self.now

    @invariant()
    def nothing_is_kept_beyond_what_was_hit(self) -> None:
        kept = {(key, expiry) for key, expiry, _ in self.hits}
        assert len(self.windows) <= len(kept)


Moving.TestCase.settings = settings(max_examples=25, stateful_step_count=30)
TestMoving = Moving.TestCase


async def test_a_hit_leaves_its_window_while_later_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    times = (0.0, 0.5, 0.75, 1.25, 1.375, 1.5)
    monkeypatch.setattr(windows, "time", SimpleNamespace(monotonic=iter(times).__next__))
    kept = Windows()
    waits = [await kept.hit("ann", 2, 1) for _ in times]
    assert waits == [0, 0, 0.25, 0, 0.125, 0]


@given(st.floats(0, 1e8), st.integers(1, 24))
def test_the_time_to_try_again_has_no_second_too_many(now: float, hours: int) -> None:
    assert describe_wait(now + 3600 * hours - now) == f"{3600 * hours:,} seconds"
    assert describe_wait(0.0001) == "1 second"


class Places(RuleBasedStateMachine):
    """`_Slots` against a number and a line, with waits that are cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(limits, "anyio", SimpleNamespace(Event=_Event))
        self.slots = _Slots(2)
        self.taken = 0
        self.line: list[Any] = []

    def _settle(self) -> None:
        """Those that were handed a place have it."""
        while self.line and self.taken < 2:
            with pytest.raises(StopIteration):
                self.line.pop(0).send(None)
            self.taken += 1

    @rule()
    def take(self) -> None:
        assert self.slots.try_acquire() is (self.taken < 2)
        self.taken = min(2, self.taken + 1)

    @rule()
    def retake(self) -> None:
        waiting = self.slots.acquire().__await__()
        try:
            waiting.send(None)
            assert self.taken == 2
            self.line.append(waiting)
        except StopIteration:
            assert self.taken < 2
            self.taken += 1

    @rule(cancelled=st.booleans())
    def leave(self, cancelled: bool) -> None:
        if not self.taken:
            return
        self.slots.release()
        self.taken -= 1
        if cancelled and self.line:  # it was handed the place, and leaves without it
            with pytest.raises(GeneratorExit):
                self.line.pop(0).throw(GeneratorExit)
        self._settle()

    @rule(which=st.integers(0, 5))
    def give_up(self, which: int) -> None:
        if self.line:
            with pytest.raises(GeneratorExit):
                self.line.pop(which % len(self.line)).throw(GeneratorExit)

    @invariant()
    def as_many_are_taken(self) -> None:
        assert (self.slots._taken, len(self.slots._waiting)) == (self.taken, len(self.line))

    def teardown(self) -> None:
        for waiting in self.line:
            waiting.close()
        self.patch.undo()


Places.TestCase.settings = settings(max_examples=25, stateful_step_count=40)
TestPlaces = Places.TestCase


class _Event:
    """An event that needs no loop: awaiting it stops once."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    async def wait(self) -> None:
        await _Stop()
        assert self._is_set


class _Stop:
    def __await__(self) -> Generator[None, None, None]:
        yield


ASKED = {"ok": {"message": "Go on?", "schema": {"type": "object", "properties": {"yes": {"type": "boolean"}}}}}
TEXT = {"text": {"type": "string"}}


def _tool(name: str, properties: Mapping[str, Any] | None = None, ask: Any = None, **policy: Any) -> dict[str, Any]:
    return tool(name, properties, stubwright={"policy": policy, **({} if ask is None else {"ask": ask})})


TOOLS = [
    _tool("mixed", {"fails": {"type": "boolean"}}, concurrency=64, timeout="30s", rateLimit="100000/hour"),
    _tool("window", rateLimit="500/hour", concurrency=64),
    _tool("few", rateLimit="3/hour"),
    _tool("other", rateLimit="3/hour"),
    _tool("quick", {"how": {"type": "string"}}, timeout="100ms", concurrency=1),
    _tool("quick_sync", {"how": {"type": "string"}}, timeout="100ms", concurrency=1),
    _tool("single", {"how": {"type": "string"}}, concurrency=1),
    _tool("small", TEXT, maxArgumentBytes=64),
    _tool("short", TEXT, maxResultBytes="200B"),
    _tool("asking", ask=ASKED, rateLimit="3/hour", concurrency=1, timeout="200ms"),
    _tool("default", TEXT),
    _tool("own", TEXT, rateLimit="5/hour", maxArgumentBytes=1000),
]
VALUE = manifest(TOOLS, name="limited", policy={"rateLimit": "100000/hour", "maxArgumentBytes": "100KiB"})


class Handlers:
    """Work that is quick, fails, blocks, does not want to end, or asks."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.open = threading.Event()
        self.cancelled = threading.Event()
        self.begun = threading.Event()
        self.most = 0

    async def mixed(self, args: Any, ctx: Any) -> str:
        self.ran["mixed"] += 1
        if args.fails:
            raise import_module("limited_mcp").ToolError("it fails")
        await anyio.lowlevel.checkpoint()
        return "done"

    async def window(self, args: Any, ctx: Any) -> str:
        self.ran["window"] += 1
        await anyio.lowlevel.checkpoint()
        return "done"

    async def few(self, args: Any, ctx: Any) -> str:
        self.ran["few"] += 1
        return str(ctx.principal)

    other = few

    async def quick(self, args: Any, ctx: Any) -> str:
        self.ran["quick"] += 1
        try:
            if args.how == "now":
                return "now"
            await anyio.sleep(5)
        except BaseException:
            if args.how == "swallows":
                return "swallowed"
            if args.how == "swallows and waits":
                await anyio.sleep(5)
            if args.how == "fails":
                raise ValueError("it was cancelled, and fails") from None
            raise
        raise AssertionError

    def quick_sync(self, args: Any, ctx: Any) -> str:
        self.ran["quick_sync"] += 1
        if args.how == "now":
            return "now"
        ctx.on_cancel(self.cancelled.set)
        self.begun.set()
        assert self.open.wait(60)
        return "late"

    async def single(self, args: Any, ctx: Any) -> str:
        self.ran["single"] += 1
        if args.how == "waits":
            self.begun.set()
            await anyio.sleep(5)
        if args.how == "exits":
            raise SystemExit(3)
        return "done"

    async def small(self, args: Any, ctx: Any) -> str:
        return "taken"

    async def short(self, args: Any, ctx: Any) -> str:
        if args.text == "error":
            raise import_module("limited_mcp").ToolError("x" * 1000)
        return str(args.text)

    async def asking(self, args: Any, ctx: Any) -> str:
        self.ran["asking"] += 1
        answer = await ctx.ask.ok()
        self.ran["at once"] += 1
        self.most = max(self.most, self.ran["at once"])
        await anyio.sleep(0.05)
        self.ran["at once"] -= 1
        return type(answer).__name__

    async def default(self, args: Any, ctx: Any) -> str:
        return "done"

    own = default


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("limited")
    with imported(folder, generate(folder, VALUE)) as package:
        for name in MADE:
            policy = import_module(f"stubwright_runtime.policy.{name.lower()}")
            setattr(policy, name, partial(_noted, name, getattr(policy, name)))
        yield import_module(f"{package.__name__}.server")


MADE: dict[str, list[Any]] = {"Rates": [], "Limits": []}
"""The steps of the servers that were made."""


def _noted(name: str, kind: Callable[..., Any], *arguments: Any) -> Any:
    MADE[name].append(kind(*arguments))
    return MADE[name][-1]


MODES = ("auto", "legacy")
"""With 2026-07-28, and with a handshake and 2025-11-25."""


@asynccontextmanager
async def _connected(module: Any, handlers: Handlers, mode: Any = "auto", **more: Any) -> AsyncIterator[mcp.Client]:
    async with mcp.Client(module.build_server(handlers), mode=mode, **more) as client:
        yield client


async def _said(client: mcp.Client, name: str, **arguments: Any) -> str:
    """Return the text of a result; failures have a prefix."""
    result = await client.call_tool(name, arguments)
    assert isinstance(result, mcp_types.CallToolResult)
    [content] = result.content
    assert isinstance(content, mcp_types.TextContent)
    return f"! {content.text}" if result.is_error else content.text


def _kept(module: Any, name: str, attribute: str) -> Mapping[Any, Any]:
    """A table inside a step of the server that was made last."""
    table: Mapping[Any, Any] = getattr(MADE[name][-1], attribute)
    return table


def _places(module: Any) -> dict[str, int]:
    """How many places of each tool are taken."""
    bounds = _kept(module, "Limits", "_bounds")
    return {tool: one.slots._taken for tool, one in bounds.items() if one.slots is not None}


BUSY = "! {} runs one call at a time; try again when one has finished."
LATE = (
    "! {} took longer than 100ms and was stopped. Its effects until then may persist; try again with less work, "
    "or later."
)


@pytest.mark.long
async def test_ten_thousand_calls_of_64_clients(module: Any) -> None:
    """A third each is allowed, limited and failing; memory is compared after a fifth and after all of them."""
    handlers = Handlers()
    server = module.build_server(handlers)
    endings: Counter[str] = Counter()
    blocks: list[int] = []
    left = iter(range(10_000))

    async def work(client: mcp.Client, until: int) -> None:
        for number in left:
            name, fails = [("mixed", False), ("window", False), ("mixed", True)][number % 3]
            said = await _said(client, name, **({"fails": True} if fails else {}))
            endings["limited" if "; the limit is reached" in said else said] += 1
            if number >= until:
                return

    async with AsyncExitStack() as stack:
        modes: Sequence[Any] = ("auto",) * 60 + ("legacy",) * 4
        clients = [await stack.enter_async_context(mcp.Client(server, mode=mode)) for mode in modes]
        for until in (1935, 10_000):  # at most 64 more run then
            async with anyio.create_task_group() as tasks:
                for client in clients:
                    tasks.start_soon(work, client, until)
            gc.collect()
            blocks.append(sys.getallocatedblocks())
    assert endings == {"done": 3334 + 500, "limited": 3333 - 500, "! it fails": 3333}
    assert handlers.ran == {"mixed": 6667, "window": 500}
    assert _places(module) == {"mixed": 0, "window": 0}
    assert blocks[1] < 1.02 * blocks[0] + 6667, f"{blocks} blocks: a time for each hit, and nothing else"


@pytest.mark.parametrize("mode", MODES)
async def test_a_rate_is_of_a_tool_and_says_when_to_try_again(
    mode: str, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = Handlers()
    now = 4954.3509
    assert now + 3600 - now > 3600, "floating point: the hour must not become 3,601 seconds"
    clock = SimpleNamespace(monotonic=lambda: now, time=time.time)
    monkeypatch.setattr(import_module("stubwright_runtime.policy.windows"), "time", clock)
    async with _connected(module, handlers, mode) as client:
        assert [await _said(client, "few") for _ in range(3)] == ["local"] * 3
        text = "! few may be called 3 times in an hour; the limit is reached. Try again in 3,600 seconds."
        assert await _said(client, "few") == text
        assert await _said(client, "other") == "local"
        now += 3590
        assert (await _said(client, "few")).endswith("Try again in 10 seconds.")
        now += 9.5
        assert (await _said(client, "few")).endswith("Try again in 1 second.")
        now += 1
        assert await _said(client, "few") == "local"
    assert handlers.ran["few"] == 5


def _verifier() -> Any:
    """Takes any token that is JSON: the issuer, the subject and the client that it is for."""

    class Verifier:
        async def verify_token(self, token: str) -> AccessToken | None:
            issuer, subject, client = json.loads(token)
            return AccessToken(token="", client_id=client, scopes=[], subject=subject, claims={"iss": issuer})

    return Verifier()


async def _posted(client: httpx2.AsyncClient, name: str, token: Any = None, **arguments: Any) -> str:
    params = {"name": name, "arguments": arguments, "_meta": ENVELOPE}
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Accept": "application/json, text/event-stream",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
        **({} if token is None else {"Authorization": f"Bearer {json.dumps(token)}"}),
    }
    answer = await client.post("/mcp", json=said, headers=headers)
    body = answer.text.partition("data: ")[2] or answer.text
    result = json.loads(body.splitlines()[0])["result"]
    return ("! " if result.get("isError") else "") + str(result["content"][0]["text"])


@asynccontextmanager
async def _over_http(module: Any, handlers: Handlers, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    app = module.asgi_app(handlers, allowed_hosts=["here"], **options)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client,
    ):
        yield client


async def test_each_principal_has_its_own_window(module: Any) -> None:
    """Whatever the names hold; the same subject of two issuers are two, one with two programs is one."""
    people = [
        ("https://a.example.com", "alice", "c"),
        ("https://b.example.com", "alice", "c"),
        ("https://a.example.com", "bob", "c"),
        ("https://a.example.com", None, "c"),
        ("https://a.example.com", 'alice", "x', "c"),
        ("https://a.example.com", "alice/3/1/hour", "c"),
        ('https://a.example.com", "alice', "x", "c"),
    ]
    async with _over_http(module, Handlers(), token_verifier=_verifier()) as client:
        for person in people:
            said = [await _posted(client, "few", person) for _ in range(4)]
            assert [text.startswith("!") for text in said] == [False, False, False, True], person
        other = ("https://a.example.com", "alice", "another program")
        assert (await _posted(client, "few", other)).startswith("!")
        assert not (await _posted(client, "other", other)).startswith("!")


async def test_all_that_come_without_a_token_are_one(module: Any) -> None:
    async with _over_http(module, Handlers()) as client:
        assert [(await _posted(client, "few"))[:9] for _ in range(4)] == ["anonymous"] * 3 + ["! few may"]


@pytest.mark.long
async def test_many_clients_over_http_are_admitted_exactly(module: Any) -> None:
    handlers = Handlers()
    endings: Counter[str] = Counter()
    async with _over_http(module, handlers) as client:

        async def work(number: int) -> None:
            for name, arguments in (("mixed", {}), ("window", {}), ("mixed", {"fails": True})) * 4:
                said = await _posted(client, name, **arguments)
                endings["limited" if "; the limit is reached" in said else said] += 1

        async with anyio.create_task_group() as tasks:
            for number in range(64):
                tasks.start_soon(work, number)
    assert endings == {"done": 256 + 256, "! it fails": 256}
    assert _places(module) == {"mixed": 0, "window": 0}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("now", "now"),
        ("waits", LATE),
        ("fails", LATE),
        ("swallows and waits", LATE),
        ("swallows", "swallowed"),  # it ended, and its effect is reported
    ],
)
async def test_an_async_handler_is_stopped_in_time(how: str, said: str, mode: str, module: Any) -> None:
    async with _connected(module, Handlers(), mode) as client:
        before = anyio.current_time()
        assert await _said(client, "quick", how=how) == said.format("quick")
        assert anyio.current_time() - before < 2
        assert await _said(client, "quick", how="now") == "now"
        assert _places(module) == {"quick": 0}


@pytest.mark.parametrize("mode", MODES)
async def test_a_thread_keeps_its_place_until_it_ends(mode: str, module: Any) -> None:
    handlers = Handlers()
    async with _connected(module, handlers, mode) as client:
        assert await _said(client, "quick_sync", how="blocks") == LATE.format("quick_sync")
        assert await anyio.to_thread.run_sync(handlers.cancelled.wait, 60), "ctx.on_cancel is told at a timeout"
        assert await _said(client, "quick_sync", how="now") == BUSY.format("quick_sync")
        assert _places(module) == {"quick_sync": 1}
        handlers.open.set()
        with anyio.fail_after(60):
            while _places(module) != {"quick_sync": 0}:  # noqa: ASYNC110 - a thread's end has no event
                await anyio.sleep(0.01)
        assert await _said(client, "quick_sync", how="now") == "now"


async def test_what_waits_for_a_thread_in_vain_neither_runs_nor_keeps_a_place(module: Any) -> None:
    handlers, release = Handlers(), threading.Event()
    server = module.build_server(handlers, threads=1)
    async with mcp.Client(server) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server.core.threads.run, "another", release.wait))
        await anyio.sleep(0.05)
        assert await _said(client, "quick_sync", how="now") == LATE.format("quick_sync")
        assert _places(module) == {"quick_sync": 0}
        release.set()
        await anyio.sleep(0.05)
        assert handlers.ran["quick_sync"] == 0
        assert await _said(client, "quick_sync", how="now") == "now"


@pytest.mark.parametrize("mode", MODES)
async def test_a_place_is_left_however_a_call_ends(mode: str, module: Any) -> None:
    handlers = Handlers()
    async with _connected(module, handlers, mode) as client:
        assert "Internal error" in await _said(client, "single", how="exits")
        assert "Invalid arguments" in await _said(client, "single", how=7)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(_said, client, "single", how="waits"))
            with anyio.fail_after(60):
                while not handlers.begun.is_set():  # noqa: ASYNC110 - it is told from elsewhere
                    await anyio.sleep(0.01)
            assert await _said(client, "single", how="now") == BUSY.format("single")
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            while _places(module) != {"single": 0}:  # noqa: ASYNC110 - the server receives it later
                await anyio.sleep(0.01)
        assert await _said(client, "single", how="now") == "done"


@pytest.mark.parametrize("mode", MODES)
async def test_a_person_takes_neither_time_nor_place_and_is_counted_once(mode: str, module: Any) -> None:
    """Three users are asked concurrently where one call may run; calls continue in turn, and a fourth is rejected."""
    handlers, asked, answer = Handlers(), Counter[str](), anyio.Event()

    async def person(_context: Any, params: Any) -> mcp_types.ElicitResult:
        asked[params.message] += 1
        await answer.wait()
        return mcp_types.ElicitResult(action="accept", content={"yes": True})

    said: list[str] = []
    async with _connected(module, handlers, mode, elicitation_callback=person) as client:

        async def call() -> None:
            said.append(await _said(client, "asking"))

        async with anyio.create_task_group() as tasks:
            for number in range(1, 4):
                tasks.start_soon(call)
                with anyio.fail_after(60):
                    while asked["Go on?"] < number:  # noqa: ASYNC110 - the server asks when it comes to it
                        await anyio.sleep(0.01)
            await anyio.sleep(0.3)  # longer than the timeout
            answer.set()
        assert said == ["AskingOkAnswer"] * 3
        assert handlers.most == 1
        assert "; the limit is reached" in await _said(client, "asking")
        assert _places(module) == {"asking": 0}
    assert handlers.ran["asking"] == (3 if mode == "legacy" else 6)


@pytest.mark.parametrize("mode", MODES)
async def test_sizes_are_those_of_the_json_in_bytes(mode: str, module: Any) -> None:
    async with _connected(module, Handlers(), mode) as client:
        room = 64 - len('{"text": ""}')
        for text in ("x" * room, "é" * (room // 2)):
            assert await _said(client, "small", text=text) == "taken"
        for text in ("x" * (room + 1), "é" * (room // 2 + 1)):
            size = len(json.dumps({"text": text}, ensure_ascii=False).encode())
            assert await _said(client, "small", text=text) == (
                f"! The arguments of small are too large: {size:,} bytes; the limit is 64. Send smaller arguments."
            )
        assert await _said(client, "short", text="x" * 100) == "x" * 100
        too_large = (
            "! The result of short is too large: {} bytes; the limit is 200. "
            "The call was carried out; request less at a time."
        )
        assert await _said(client, "short", text="x" * 157) == "x" * 157  # exactly the limit
        assert await _said(client, "short", text="x" * 158) == too_large.format(201)
        assert await _said(client, "short", text="x" * 300) == too_large.format(343)
        assert (await _said(client, "short", text="error")).startswith(too_large[:36]), "also of a failure"


@pytest.mark.parametrize("mode", MODES)
async def test_defaults_of_the_manifest_hold_where_a_tool_says_nothing_else(mode: str, module: Any) -> None:
    async with _connected(module, Handlers(), mode) as client:
        assert await _said(client, "default", text="x" * 90_000) == "done"
        assert "limit is 102,400" in await _said(client, "default", text="x" * 110_000)
        assert "limit is 1,000" in await _said(client, "own", text="x" * 2000)
        assert [await _said(client, "own") for _ in range(4)] == ["done"] * 4
        assert "5 times in an hour" in await _said(client, "own")
        assert "limit is 1,000" not in await _said(client, "own", text="x" * 2000), "the rate comes first"


async def test_refused_work_is_not_looked_at(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither validated nor made a model of."""
    made: Counter[str] = Counter()
    handlers = Handlers()
    async with _connected(module, handlers) as client:
        for name in ("small", "few", "single"):
            model = getattr(import_module(f"limited_mcp.models.{name}"), f"{name.title()}Input")
            validate = model.model_validate
            monkeypatch.setattr(model, "model_validate", partial(_counted, made, name, validate))
        checked = import_module("stubwright_runtime.schema.validation").Validator
        validated = checked.find_errors
        monkeypatch.setattr(
            checked, "find_errors", lambda *given, **more: _counted(made, "find_errors", validated, *given, **more)
        )
        assert await _said(client, "small", text="x") == "taken"
        assert made == {"small": 1, "find_errors": 1}, "so these are counted"
        made.clear()
        assert "too large" in await _said(client, "small", text="x" * 100)
        assert made == {}
        for _ in range(3):
            await _said(client, "few")
        made.clear()
        assert "; the limit is reached" in await _said(client, "few")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(_said, client, "single", how="waits"))
            with anyio.fail_after(60):
                while not handlers.begun.is_set():  # noqa: ASYNC110 - it is told from elsewhere
                    await anyio.sleep(0.01)
            made.clear()
            assert await _said(client, "single") == BUSY.format("single")
            tasks.cancel_scope.cancel()
    assert made == {}


def _counted(made: Counter[str], name: str, function: Callable[..., Any], *given: Any, **more: Any) -> Any:
    made[name] += 1
    return function(*given, **more)
