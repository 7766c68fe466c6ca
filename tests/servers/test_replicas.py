"""Several processes that serve one manifest with one Redis: any process can handle any request."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp
import pytest

import amounts
import forked
import redis_server
from packages import generate, manifest, tool
from server_process import Process

pytestmark = pytest.mark.anyio

MANIFEST = manifest(
    [
        tool("hit", stubwright={"policy": {"rateLimit": "100/minute"}}),
        tool("often", stubwright={"policy": {"rateLimit": "20/second"}}),
        tool("plain"),
        tool("switch", {"name": {"type": "string"}, "on": {"type": "boolean"}}),
        tool("touch", {"uri": {"type": "string"}}),
        tool("slow", {"seconds": {"type": "number"}}),
        tool(
            "order",
            {"what": {"type": "string"}},
            stubwright={
                "ask": {
                    "size": {
                        "message": "Which size?",
                        "schema": {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]},
                    }
                }
            },
        ),
    ],
    name="process",
    resources=[{"uri": "shop://stock", "name": "stock", "stubwright": {"text": "12"}}],
)

HANDLERS = """
import asyncio
import time

class Shop:
    async def hit(self, args, ctx):
        return "hit"

    plain = hit

    async def often(self, args, ctx):
        return str(time.monotonic())

    async def switch(self, args, ctx):
        await (ctx.tools.enable if args.on else ctx.tools.disable)(args.name)
        return "done"

    async def touch(self, args, ctx):
        await ctx.resources.updated(args.uri)
        return "done"

    async def slow(self, args, ctx):
        await ctx.log("info", "begun")
        await asyncio.sleep(args.seconds)
        return "slept"

    async def order(self, args, ctx):
        answer = await ctx.ask.size()
        return f"{args.what} in {answer.size}"
"""

ERAS = ("legacy", "2026-07-28")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replicas")
    generate(folder, MANIFEST)
    (folder / "shop.py").write_text(HANDLERS)
    return folder


def _remove_clock(process: int) -> None:
    """Remove what a killed `faketime` leaves: another process may get its number."""
    for path in Path("/dev/shm").glob(f"*faketime_s*_{process}"):
        path.unlink(missing_ok=True)


class Replicas:
    """Processes of one server."""

    def __init__(self, project: Path, state: str, number: int, *options: str, skews: Sequence[int] = ()) -> None:
        self._ending = ExitStack()
        common = ("--handlers", "shop:Shop", "--http", "127.0.0.1:0", "--state", state, "--log-level", "warning")
        self.processes: list[Process] = []
        for each in range(number):
            python = ("faketime", "-f", f"{skews[each]:+d}s", sys.executable) if skews and skews[each] else ()
            process = Process(project, *common[:-1], "info", *options, python=python)
            self._ending.callback(_remove_clock, process.popen.pid)
            self._ending.callback(process.kill)
            self.processes.append(process)
        self.urls = [process.url() for process in self.processes]

    def close(self) -> None:
        self._ending.close()


@pytest.fixture
def replicas(project: Path, redis_url: str) -> Iterator[Callable[..., Replicas]]:
    with ExitStack() as ending:

        def start(number: int, *options: str, state: str = redis_url, skews: Sequence[int] = ()) -> Replicas:
            made = Replicas(project, state, number, *options, skews=skews)
            ending.callback(made.close)
            return made

        yield start


@asynccontextmanager
async def connected(url: str, mode: Any = "2026-07-28", **more: Any) -> AsyncIterator[mcp.Client]:
    async with mcp.Client(url, mode=mode, **more) as client:
        yield client


async def told(client: mcp.Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    [block] = result.content
    return str(getattr(block, "text", block))


@pytest.mark.long
async def test_a_rate_holds_for_all_processes_together(replicas: Callable[..., Replicas]) -> None:
    urls = replicas(4).urls
    async with AsyncExitStack() as open_:
        clients = [
            await open_.enter_async_context(connected(urls[number % 4], ERAS[number // 4 % 2])) for number in range(16)
        ]
        began = time.monotonic()
        answers = await asyncio.gather(*(told(client, "hit") for client in clients for _ in range(8)))
        assert time.monotonic() - began < 50, "all in one window"
    assert answers.count("hit") == 100
    assert {answer[:44] for answer in answers} == {"hit", "hit may be called 100 times in a minute; the"}


@pytest.mark.long
@pytest.mark.parametrize("skews", [(0, 61), amounts.mark_long(pytest.param((-61, 61)))])
async def test_a_rate_holds_where_clocks_differ(
    skews: tuple[int, int], replicas: Callable[..., Replicas], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("faketime") is None:
        if os.environ.get("CI") == "true":
            raise FileNotFoundError("faketime is not installed")
        pytest.skip("faketime is not installed")
    for name in ("FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC"):
        monkeypatch.setenv(name, "1")
    urls = replicas(2, skews=skews).urls
    async with AsyncExitStack() as open_:
        clients = [await open_.enter_async_context(connected(url)) for url in urls * 2]
        answers = await asyncio.gather(*(told(client, "hit") for client in clients for _ in range(40)))
    assert answers.count("hit") == 100
    waits = {int(answer.split()[-2]) for answer in answers if answer != "hit"}
    assert 1 <= min(waits) <= max(waits) <= 60, waits


@pytest.mark.long
async def test_no_window_has_more_than_the_rate(replicas: Callable[..., Replicas]) -> None:
    urls, end = replicas(4).urls, time.monotonic() + 2.2
    times: list[float] = []

    async def call(url: str) -> None:
        async with connected(url) as client:
            while time.monotonic() < end or len(times) <= 40:  # the windows that come later let calls in, too
                answer = await told(client, "often")
                if " " in answer:
                    await asyncio.sleep(0.02)
                else:
                    times.append(float(answer))

    await asyncio.gather(*(call(url) for url in urls for _ in range(3)))
    times.sort()
    for seconds in (1, 2):  # on a busy machine a handler may be called half a second after its call was counted
        more = times[20 * seconds :]
        assert all(last - first > seconds - 0.5 for first, last in zip(times, more, strict=False))


@pytest.mark.parametrize("mode", amounts.sample(ERAS, 1))
async def test_changes_reach_the_clients_of_all_processes(mode: str, replicas: Callable[..., Replicas]) -> None:
    one, other = replicas(2).urls
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        heard.put_nowait(type(message).__name__.removesuffix("Notification"))

    async with AsyncExitStack() as open_:
        caller = await open_.enter_async_context(connected(one, mode))
        hearing = {"message_handler": hear} if mode == "legacy" else {}
        listener = await open_.enter_async_context(connected(other, mode, **hearing))
        if mode == "legacy":
            await listener.subscribe_resource("shop://stock")
            await asyncio.sleep(0.2)  # the notification that the handshake is done is not answered
        else:
            await open_.enter_async_context(_listening(listener, heard))
        for name, arguments, expected, is_on in (
            ("switch", {"name": "plain", "on": False}, "ToolListChanged", False),
            ("touch", {"uri": "shop://stock"}, "ResourceUpdated", False),
            ("switch", {"name": "plain", "on": True}, "ToolListChanged", True),
        ):
            assert await told(caller, name, **arguments) == "done"
            assert await asyncio.wait_for(heard.get(), 20) == expected
            for client in (caller, listener):
                names = {one.name for one in (await client.list_tools(cache_mode="refresh")).tools}
                assert ("plain" in names) == is_on


@asynccontextmanager
async def _listening(client: mcp.Client, heard: asyncio.Queue[str]) -> AsyncIterator[None]:
    async with client.listen(tools_list_changed=True, resource_subscriptions=["shop://stock"]) as events:

        async def pass_on() -> None:
            async for event in events:
                heard.put_nowait(type(event).__name__.replace("ToolsList", "ToolList"))

        task = asyncio.create_task(pass_on())
        yield
        task.cancel()


async def test_what_is_off_stays_off_in_processes_that_start_later(replicas: Callable[..., Replicas]) -> None:
    first = replicas(1)
    async with connected(first.urls[0]) as client:
        assert await told(client, "switch", name="plain", on=False) == "done"
    async with connected(replicas(1).urls[0]) as client:
        assert "plain" not in {one.name for one in (await client.list_tools()).tools}
        with pytest.raises(mcp.MCPError, match="Unknown tool: plain"):
            await told(client, "plain")


async def test_a_question_is_answered_at_another_process_and_once(replicas: Callable[..., Replicas]) -> None:
    urls = replicas(3).urls
    async with httpx2.AsyncClient() as http:
        asked = await _post(http, urls[0], "tools/call", name="order", arguments={"what": "tea"})
        assert asked["result"]["resultType"] == "input_required"
        again = {
            "name": "order",
            "arguments": {"what": "tea"},
            "requestState": asked["result"]["requestState"],
            "inputResponses": {"size": {"action": "accept", "content": {"size": "L"}}},
        }
        answers = await asyncio.gather(*(_post(http, url, "tools/call", **again) for url in urls for _ in range(4)))
    given = [one["result"]["content"][0]["text"] for one in answers if "result" in one]
    assert given == ["tea in L"]
    assert {one["error"]["message"] for one in answers if "error" in one} == {"Invalid or expired requestState"}


async def _post(http: httpx2.AsyncClient, url: str, method: str, **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": str(params["name"]),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    response = await http.post(url, json=body, headers=headers)
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        [text] = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    said: dict[str, Any] = json.loads(text)
    return said


async def test_a_client_that_lost_its_stream_is_answered_by_another_process(replicas: Callable[..., Replicas]) -> None:
    both = replicas(2)
    one, other = both.urls
    async with httpx2.AsyncClient(timeout=20) as http:
        session, revision = await _shaken(http, one)
        headers = {**_ACCEPT, "mcp-session-id": session, "mcp-protocol-version": revision}
        body = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "slow", "arguments": {"seconds": 1.0}},
        }
        async with http.stream("POST", one, json=body, headers=headers) as response:
            lines = response.aiter_lines()
            last = await anext(line.removeprefix("id: ") async for line in lines if line.startswith("id: "))
        began = time.monotonic()
        response = await http.get(other, headers={**headers, "last-event-id": last})
        assert time.monotonic() - began > 0.5, "it waited for the process that still works on it"
        messages = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
        assert [one.get("method") for one in messages] == ["notifications/message", None]
        assert (messages[1]["id"], messages[1]["result"]["content"][0]["text"]) == (7, "slept")
        names = [line[4:] for line in response.text.splitlines() if line.startswith("id: ")]
        rest = await http.get(other, headers={**headers, "last-event-id": names[0]})
        assert [json.loads(line[6:])["id"] for line in rest.text.splitlines() if line.startswith("data: ")] == [7]
        for id_ in ("", "nonsense", f"{last}9", f"{last.rpartition('/')[0]}/99", f"x{last}"):
            assert (await http.get(other, headers={**headers, "last-event-id": id_})).status_code == 404
        host = {**headers, "last-event-id": last, "host": "evil.example"}
        assert (await http.get(other, headers=host)).status_code == 421
        assert (await http.post(other, json=body, headers=headers)).status_code == 404, "the session is not there"


_ACCEPT = {"accept": "application/json, text/event-stream"}


async def _shaken(http: httpx2.AsyncClient, url: str) -> tuple[str, str]:
    """A session of 2025-11-25."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    response = await http.post(url, json=body, headers=_ACCEPT)
    session = response.headers["mcp-session-id"]
    headers = {**_ACCEPT, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    return session, "2025-11-25"


async def test_without_sessions_older_clients_may_come_to_any_process(replicas: Callable[..., Replicas]) -> None:
    urls = replicas(2, "--stateless").urls
    async with connected(urls[0], "legacy") as client:
        assert await told(client, "plain") == "hit"
        capabilities: Any = client.server_capabilities
        assert not capabilities.tools.list_changed
        assert not capabilities.resources.subscribe
        assert (
            await told(client, "order", what="tea")
            == "This request requires a client with the capability 'elicitation'."
        )
    headers = {**_ACCEPT, "mcp-protocol-version": "2025-06-18"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "plain", "arguments": {}}}
    async with httpx2.AsyncClient() as http:
        for url in urls:
            response = await http.post(url, json=body, headers=headers)
            assert "mcp-session-id" not in response.headers
            assert '"text":"hit"' in response.text


@pytest.mark.parametrize("mode", amounts.sample(ERAS, 1))
async def test_a_store_that_is_lost_is_told_over_stdio(
    mode: Any, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    common = ("-m", "process_mcp", "--handlers", "shop:Shop", "--state")
    folder = tmp_path_factory.mktemp("lost")
    with redis_server.run_redis(folder) as server, (folder / "log").open("w+") as log:
        python, *options = forked.interpreter()
        command = mcp.StdioServerParameters(command=python, args=[*options, *common, server.url], cwd=project)
        async with mcp.Client(mcp.stdio_client(command, errlog=log), mode=mode) as client:
            assert await told(client, "hit") == "hit"
            server.stop(kill=True)
            for _ in range(3):
                assert "store cannot be reached; the request had no effect" in await told(client, "hit")
            server.start()
            assert await told(client, "hit") == "hit"
        log.seek(0)
        text = log.read()
    assert "Traceback" not in text
    assert (text.count("is unavailable"), text.count("exchanges failed")) == (1, 1), text


async def test_limited_calls_while_the_store_is_lost(
    project: Path, tmp_path_factory: pytest.TempPathFactory, replicas: Callable[..., Replicas]
) -> None:
    with redis_server.run_redis(tmp_path_factory.mktemp("lost")) as server:
        urls = replicas(2, "--health", state=server.url).urls
        async with connected(urls[0]) as one, connected(urls[1], "legacy") as other, httpx2.AsyncClient() as http:
            ready = [url.replace("/mcp", "/readyz") for url in urls]
            alive = [url.replace("/mcp", "/livez") for url in urls]
            assert [(await http.get(url)).status_code for url in ready] == [200, 200]
            assert await told(one, "hit") == "hit"
            server.stop(kill=True)
            for client in (one, other):
                assert "store cannot be reached; the request had no effect" in await told(client, "hit")
                assert await told(client, "plain") == "hit"
            answers = [await http.get(url, headers={"host": "10.0.0.1"}) for url in ready]
            assert [(one.status_code, one.json()) for one in answers] == [
                (503, {"status": "not ready", "state": "lost"})
            ] * 2
            assert [(await http.get(url)).status_code for url in alive] == [200, 200]
            server.start()
            for client in (one, other):
                assert await told(client, "hit") == "hit"
            assert [(await http.get(url)).json() for url in ready] == [{"status": "ready", "state": "there"}] * 2


async def test_a_process_that_is_asked_to_stop_ends_what_it_began(replicas: Callable[..., Replicas]) -> None:
    both = replicas(2, "--grace", "10")
    one, other = both.urls
    slow = {"name": "slow", "arguments": {"seconds": 1.5}}
    async with httpx2.AsyncClient(timeout=20) as http:
        session, revision = await _shaken(http, one)
        headers = {**_ACCEPT, "mcp-session-id": session, "mcp-protocol-version": revision}
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": slow}
        calls = asyncio.gather(_post(http, one, "tools/call", **slow), http.post(one, json=body, headers=headers))
        listening = asyncio.create_task(http.get(one, headers=headers))
        await asyncio.sleep(0.5)
        assert not listening.done()
        both.processes[0].popen.send_signal(signal.SIGTERM)
        new, old = await calls
        assert new["result"]["content"][0]["text"] == "slept"
        assert '"text":"slept"' in old.text
        await asyncio.wait([listening], timeout=5)
        assert (listening.result().status_code, listening.result().text) == (200, ""), "what only listens ends in order"
        assert (await _post(http, other, "tools/call", name="plain"))["result"]["content"][0]["text"] == "hit"
        status, log, _ = await asyncio.to_thread(both.processes[0].end)
        assert (status, "Traceback" in log) == (0, False)
        with pytest.raises(httpx2.TransportError):
            await http.get(one)
