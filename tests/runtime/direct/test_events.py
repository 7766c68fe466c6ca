"""Event streams over HTTP in 2026-07-28, for calls with several messages or slow calls."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

import amounts
import prompt_ends
from conversations import request, usual
from packages import generate, imported, logging_server, manifest, tool
from serving import WAYS
from stubwright_runtime.server.transports.http import events

ends_are_prompt = prompt_ends.ends_are_prompt

REVISION = "2026-07-28"
TOOLS = [tool(name, {}) for name in ("talk", "slow", "fail", "drop")]
EVERY_WAY = pytest.mark.parametrize("way", [*WAYS[:2], amounts.mark_long(WAYS[2])], ids=["asgi", "httptools", "h11"])


class Handlers:
    def __init__(self, seconds: float = 0.4) -> None:
        self.seconds = seconds
        self.has_begun = threading.Event()
        self.has_ended = threading.Event()
        self.ends: list[str] = []

    async def talk(self, args: Any, ctx: Any) -> str:
        await ctx.progress(1, 2, "half")
        await ctx.log("info", {"said": "this"})
        return "said"

    async def slow(self, args: Any, ctx: Any) -> str:
        self.has_begun.set()
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        finally:
            self.has_ended.set()
        return "slow"

    async def fail(self, args: Any, ctx: Any) -> str:
        from mcp import MCPError

        await asyncio.sleep(0.2)
        raise MCPError(-32602, "refused late")

    async def drop(self, args: Any, ctx: Any) -> str:
        await ctx.progress(1)
        return await self.slow(args, ctx)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("events")
    with imported(folder, generate(folder, manifest(TOOLS, server=logging_server("events")))) as module:
        yield module


@contextmanager
def served(package: ModuleType, handlers: Handlers, way: Any) -> Iterator[str]:
    """The URL of a server."""
    with way(package.asgi_app(handlers)) as url:
        yield f"{url}/mcp"


def call(name: str, **meta: Any) -> tuple[Mapping[str, Any], dict[str, str]]:
    message = request(1, "tools/call", {"name": name, "arguments": {}, "_meta": meta}, stateless=True)
    return message, dict(usual(message, REVISION, None))


WANTED = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"}


@EVERY_WAY
def test_what_a_handler_says_makes_a_stream_of_its_answer(way: Any, package: ModuleType) -> None:
    message, headers = call("talk", **WANTED)
    with served(package, Handlers(), way) as url, httpx2.Client(timeout=60) as http:
        response = http.post(url, json=message, headers=headers)
    assert response.headers["content-type"] == "text/event-stream"
    progress, log, answer = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    assert progress["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
    assert log["params"] == {"level": "info", "data": {"said": "this"}}
    assert answer["result"]["content"][0]["text"] == "said"


@EVERY_WAY
def test_a_server_that_does_not_declare_logging_sends_no_message(way: Any, tmp_path: Path) -> None:
    message, headers = call("talk", **WANTED)
    with (
        imported(tmp_path, generate(tmp_path, manifest(TOOLS, name="silent"))) as package,
        served(package, Handlers(), way) as url,
        httpx2.Client(timeout=60) as http,
    ):
        response = http.post(url, json=message, headers=headers)
    received = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    assert [each.get("method") for each in received] == ["notifications/progress", None]
    assert received[1]["result"]["content"][0]["text"] == "said"


@EVERY_WAY
def test_what_the_caller_does_not_want_makes_none(way: Any, package: ModuleType) -> None:
    message, headers = call("talk")
    with served(package, Handlers(), way) as url, httpx2.Client(timeout=60) as http:
        response = http.post(url, json=message, headers=headers)
    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["content"][0]["text"] == "said"


@EVERY_WAY
@pytest.mark.parametrize(("name", "status"), [("slow", 200), ("fail", 400)])
def test_a_long_call_that_says_nothing_keeps_its_status(name: str, status: int, way: Any, package: ModuleType) -> None:
    message, headers = call(name)
    with served(package, Handlers(), way) as url, httpx2.Client(timeout=60) as http:
        response = http.post(url, json=message, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json")
    assert response.json()["id"] == 1


@EVERY_WAY
def test_a_silent_stream_is_kept_alive(way: Any, package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_SILENCE", 0.05)
    message, headers = call("slow")
    with served(package, Handlers(), way) as url, httpx2.Client(timeout=60) as http:
        response = http.post(url, json=message, headers=headers)
    assert response.text.startswith(": ping\r\n\r\n")
    assert '"text":"slow"' in response.text.splitlines()[-2]


@EVERY_WAY
@pytest.mark.parametrize("name", ["slow", "drop"])
def test_a_client_that_leaves_cancels_its_call(name: str, way: Any, package: ModuleType) -> None:
    handlers = Handlers(seconds=60)
    message, headers = call(name, **WANTED)
    with served(package, handlers, way) as url:
        parts = urlsplit(url)
        with closing(HTTPConnection(parts.netloc, timeout=60)) as client:
            client.request("POST", parts.path, json.dumps(message), headers)
            assert handlers.has_begun.wait(60)
        assert handlers.has_ended.wait(60)
    assert handlers.ends == ["cancelled"]
