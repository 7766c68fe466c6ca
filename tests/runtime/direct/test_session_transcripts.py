"""Events of sessions over HTTP, up to 2025-11-25.

`tests/messages/session_*.txt` was recorded from the official SDK, which once had these streams; `pytest --update`
rewrites the files. There are two intended differences. A request whose session ends is answered, because the handler
may have had an effect; the SDK ends its stream. A GET replaces the previous GET, whose client may have disconnected
undetected; the SDK rejects it with 409.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import httpx2
import pytest

import amounts
import prompt_ends
from conversations import MORE, READY, REVISIONS, handshake, request
from packages import generate, imported, manifest, tool
from serving import WAYS
from streams import Caller
from stubwright_runtime.server.protocol import sender
from stubwright_runtime.server.transports.http import post_handler
from stubwright_runtime.server.transports.http.posts.post import Post

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "messages"
TOOLS = [
    tool("tell", {"text": {"type": "string"}}),
    tool("wait", {"gate": {"type": "string"}}),
    tool("leave", {"gate": {"type": "string"}}),
    tool("switch", {"on": {"type": "boolean"}}),
    tool("extra", {}),
    tool("sure", {}, stubwright={"policy": {"confirm": True}}),
]
Scene: TypeAlias = "Callable[[Caller, Handlers], AsyncIterator[str]]"


class Moments:
    """Delays that expire when a request waits at a gate, so that a busy machine does not expire them."""

    def __init__(self) -> None:
        self._posts: list[Post] = []

    def begin(self, post: Post) -> None:
        self._posts.append(post)

    def end(self, post: Post) -> None:
        if post in self._posts:
            self._posts.remove(post)

    def end_all(self) -> None:
        posts, self._posts = self._posts, []
        for post in posts:
            post.switch_to_stream()


class Handlers:
    """Handlers that wait at gates."""

    def __init__(self) -> None:
        self.moments = Moments()
        self.gates: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        self.ends: list[str] = []
        self.core: Any = None

    async def tell(self, args: Any, ctx: Any) -> str:
        await ctx.progress(1, 2, "half")
        await ctx.log("warning", {"said": args.text})
        await ctx.log("debug", "unheard")
        return "told"

    async def wait(self, args: Any, ctx: Any) -> str:
        asyncio.get_running_loop().call_soon(self.moments.end_all)
        try:
            while not self.gates[args.gate].is_set():  # noqa: ASYNC110 - it is set in another thread
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        self.ends.append("done")
        return "waited"

    async def leave(self, args: Any, ctx: Any) -> str:
        await ctx.progress(1)
        await ctx.release_stream()
        await ctx.progress(2)
        return await self.wait(args, ctx)

    async def switch(self, args: Any, ctx: Any) -> str:
        tools = self.core.tools
        await (tools.enable("extra") if args.on else tools.disable("extra"))
        await self.core.resources.updated("docs://a")
        return "switched"

    async def extra(self, args: Any, ctx: Any) -> str:
        return "extra"

    async def sure(self, args: Any, ctx: Any) -> str:
        return "done"

    async def read_each(self, args: Any, ctx: Any) -> str:
        return "each"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("scenes")
    with imported(folder, generate(folder, manifest(TOOLS, name="scenes", **MORE))) as module:
        yield module


def call(name: str, number: int = 7, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": "t"}}
    return request(number, "tools/call", params, stateless=False)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - it changes in another thread
            await asyncio.sleep(0.005)


# Each scene has one client, in a separate session


async def telling(caller: Caller, _handlers: Handlers) -> AsyncIterator[str]:
    for line in await caller.post(call("tell", text="this")):
        yield line


async def saying_nothing(caller: Caller, handlers: Handlers) -> AsyncIterator[str]:
    stream = caller.send("POST", call("wait", gate="slow"))
    yield await stream.head()
    handlers.gates["slow"].set()
    for line in await stream.rest():
        yield line


async def asking(caller: Caller, _handlers: Handlers) -> AsyncIterator[str]:
    stream = caller.send("POST", call("sure"))
    yield (head := await stream.head())
    if "event-stream" not in head:  # in older revisions a client cannot be asked
        return
    event = await stream.next()
    if "method" not in event:
        yield event
        event = await stream.next()
    yield "a question" if '"method":"elicitation/create"' in event else event
    name = 1 if '"id":1' in event else 0
    accepted = {"action": "accept", "content": {"confirm": True}}
    yield f"answer: {await caller.post({'jsonrpc': '2.0', 'id': name, 'result': accepted})}"
    yield f"again: {await caller.post({'jsonrpc': '2.0', 'id': name, 'result': accepted})}"
    for line in await stream.rest():
        yield line


async def cancelling(caller: Caller, handlers: Handlers) -> AsyncIterator[str]:
    stream = caller.send("POST", call("wait", gate="never"))
    yield await stream.head()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    yield f"cancel: {await caller.post(cancel)}"
    for line in await stream.rest():
        yield line
    await until(lambda: handlers.ends)
    yield f"the handler: {handlers.ends}"


async def hearing(caller: Caller, _handlers: Handlers) -> AsyncIterator[str]:
    yield f"subscribe: {await caller.post(request(1, 'resources/subscribe', {'uri': 'docs://a'}, stateless=False))}"
    first = caller.send("GET")
    yield await first.head()
    stream = caller.send("GET")
    yield f"a second stream: {await stream.head()}"
    yield f"the first: {await first.rest()}"
    yield f"switch: {await caller.post(call('switch', on=False))}"
    yield await stream.next()
    yield await stream.next()
    await stream.leave()
    yield f"switch: {await caller.post(call('switch', on=True))}"
    again = caller.send("GET", last_event_id=stream.last)
    yield await again.head()
    told: list[str] = []
    while len(told) < 2:
        if (line := await again.next()) != "id retry=1000":
            told.append(line)
    yield f"missed: {sorted(told)}"
    await again.leave()


async def coming_back(caller: Caller, handlers: Handlers) -> AsyncIterator[str]:
    stream = caller.send("POST", call("leave", gate="back"))
    yield await stream.head()
    first = await stream.next()
    yield first
    if "retry" not in first:  # without a cursor at its start, the stream is not given up
        handlers.gates["back"].set()
        for line in await stream.rest():
            yield line
        return
    start = stream.last
    await stream.rest()  # its progress at that time is not recorded
    back = caller.send("GET", last_event_id=start)
    yield f"back: {await back.head()}"
    yield await back.next()
    yield await back.next()
    handlers.gates["back"].set()
    while "result" not in (line := await back.next()):
        yield line
    yield line
    await back.leave()
    for last in (start, back.last):
        late = caller.send("GET", last_event_id=last)
        yield f"late: {await late.head()}"
        if last == start:
            yield await late.next()
            yield await late.next()
            yield await late.next()
        await late.leave()


async def losing_the_connection(caller: Caller, handlers: Handlers) -> AsyncIterator[str]:
    stream = caller.send("POST", call("wait", gate="lost"))
    yield await stream.head()
    if caller.has_cursors:
        yield await stream.next()
    await stream.leave()
    await asyncio.sleep(0.1)
    handlers.gates["lost"].set()
    await until(lambda: handlers.ends)
    yield f"the handler: {handlers.ends}"
    if caller.has_cursors:
        back = caller.send("GET", last_event_id=stream.last)
        yield await back.head()
        yield await back.next()
        await back.leave()


async def odd_cursors(caller: Caller, _handlers: Handlers) -> AsyncIterator[str]:
    for odd in ("nowhere", "9/9", "/", "1/7"):
        stream = caller.send("GET", last_event_id=odd)
        yield f"{odd}: {await stream.head()}"
        await stream.leave()


async def ending(caller: Caller, handlers: Handlers) -> AsyncIterator[str]:
    listening = caller.send("GET")
    yield await listening.head()
    stream = caller.send("POST", call("wait", gate="never"))
    yield await stream.head()
    yield f"delete: {await caller.send('DELETE').head()}"
    yield f"call: {(await stream.rest())[-2:]}"
    yield f"listening: {await listening.rest()}"
    await until(lambda: handlers.ends)
    yield f"the handler: {handlers.ends}"
    for method in ("GET", "DELETE"):
        yield f"{method}: {await caller.send(method).head()}"
    yield f"POST: {await caller.post(request(1, 'ping', None, stateless=False))}"


async def strange_messages(caller: Caller, _handlers: Handlers) -> AsyncIterator[str]:
    result = {"jsonrpc": "2.0", "id": 99, "result": {}}
    for message in (result, {"jsonrpc": "2.0", "method": "notifications/unknown"}, READY):
        yield f"{message}: {await caller.post(message)}"
    session, caller.session = caller.session, None
    yield f"no session: {await caller.post(request(1, 'ping', None, stateless=False))}"
    yield f"no session: {await caller.send('GET').head()}"
    yield f"no session: {await caller.send('DELETE').head()}"
    yield f"no session: {await caller.post(READY)}"
    caller.session = "nowhere"
    yield f"unknown session: {await caller.post(request(1, 'ping', None, stateless=False))}"
    yield f"unknown session: {await caller.send('GET').head()}"
    yield f"unknown session: {await caller.send('DELETE').head()}"
    yield f"unknown session: {await caller.post(READY)}"
    caller.session = session
    yield f"PUT: {await caller.send('PUT').head()}"


SCENES: Mapping[str, Scene] = {
    scene.__name__.replace("_", " "): scene
    for scene in (
        telling,
        saying_nothing,
        asking,
        cancelling,
        hearing,
        coming_back,
        losing_the_connection,
        odd_cursors,
        ending,
        strange_messages,
    )
}


@asynccontextmanager
async def opened(url: str, revision: str, session: bool, *, ready: bool = True) -> AsyncIterator[Caller]:
    """A client that has shaken hands."""
    async with httpx2.AsyncClient(timeout=60) as http:
        caller = Caller(http, f"{url}/mcp", revision)
        if session:
            stream = caller.send("POST", handshake(revision))
            await stream.head()
            assert stream.response is not None
            caller.session = stream.response.headers["mcp-session-id"]
            if ready:
                await caller.post(READY)
        yield caller


async def played(way: Any, package: ModuleType, revision: str, *, session: bool, **options: Any) -> str:
    """What all clients are told."""
    text = ""
    for name, scene in SCENES.items():
        handlers = Handlers()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(post_handler, "StreamTimer", lambda _, moments=handlers.moments: moments)
            app = package.asgi_app(handlers, **options)
            handlers.core = app.state.server
            with way(app) as url:
                async with opened(url, revision, session) as caller:
                    text += f"{name}\n" + "".join([f"  {line}\n" async for line in scene(caller, handlers)])
    return text


def compare(name: str, said: str, *, update: bool) -> None:
    path = FOLDER / f"{name}.txt"
    if update:
        path.write_text(said, "utf-8")
    assert said.splitlines() == path.read_text("utf-8").splitlines()


@pytest.mark.parametrize(("revision", "way"), amounts.sample([*product(REVISIONS, WAYS)], 2))
async def test_sessions(revision: str, way: Any, package: ModuleType, update: bool) -> None:
    compare(f"session_{revision}", await played(way, package, revision, session=True), update=update)


@pytest.mark.parametrize(("ready", "way"), amounts.sample([*product([False, True], WAYS)], 3))
async def test_a_client_is_asked_once_it_is_ready(
    way: Any, ready: bool, package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ready:
        monkeypatch.setattr(sender, "PATIENCE", 0.05)
    with way(package.asgi_app(Handlers())) as url:
        async with opened(url, "2025-11-25", session=True, ready=False) as caller:
            stream = caller.send("POST", call("sure"))
            if not ready:
                text = f"{await stream.head()} {await stream.rest()}"
                assert "answer was missing or invalid" in text
                assert "elicitation/create" not in text
                assert "notifications/cancelled" not in text
                return
            assert "event-stream" in await stream.head()
            assert await stream.next() == "id retry=1000"
            await caller.post(READY)
            assert '"method":"elicitation/create"' in await stream.next()
            await stream.leave()
