"""The recipes of `docs/operating.md`: generated servers inside another application."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import httpx2
import mcp
import pytest
import uvicorn
from conftest import ROOT
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from packages import generate, imported, manifest, tool
from stubwright_runtime.client.core.connect_errors import Unreachable

pytestmark = pytest.mark.anyio


class Handlers(SimpleNamespace):
    """Handlers with a lifespan."""

    alive = False

    def say(self, args: object, ctx: object) -> str:
        return f"alive: {self.alive}"

    async def __aenter__(self) -> Handlers:
        self.alive = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.alive = False


@pytest.fixture
def packages(tmp_path: Path) -> Iterator[list[ModuleType]]:
    names = [generate(tmp_path, manifest([tool("say")], name=name)) for name in ("one", "two")]
    with imported(tmp_path, names[0]) as one, imported(tmp_path, names[1]) as two:
        yield [one, two]


@contextlib.contextmanager
def served(app: Starlette, prefix: str = "") -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", root_path=prefix))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            end = time.monotonic() + 10
            while not server.started and time.monotonic() < end:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.mark.parametrize("prefix", ["", "/api"])
def test_two_servers_beside_a_route(packages: list[ModuleType], prefix: str) -> None:
    """A proxy removes the prefix before the path arrives here."""
    handlers = [Handlers(), Handlers()]
    parts = [package.asgi_app(one, path="/") for package, one in zip(packages, handlers, strict=True)]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part.router.lifespan_context(part))
            yield

    def health(_: object) -> PlainTextResponse:
        return PlainTextResponse("fine")

    routes = [Route("/health", health), Mount("/one", parts[0]), Mount("/two", parts[1])]

    async def call(url: str) -> list[str]:
        async with (
            packages[0].OneClient.connect(f"{url}/one/") as one,
            packages[1].TwoClient.connect(f"{url}/two/") as two,
        ):
            return [(await client.say())[0].text for client in (one, two)]

    with served(Starlette(routes=routes, lifespan=lifespan), prefix) as url:
        assert httpx2.get(f"{url}/health").text == "fine"
        assert anyio.run(call, url) == ["alive: True", "alive: True"]
    assert [one.alive for one in handlers] == [False, False]


def test_requests_without_the_lifespan_say_what_to_do(packages: list[ModuleType]) -> None:
    """Otherwise handlers would miss what their `__aenter__` prepares, far from the cause."""
    outer = Starlette(routes=[Mount("/one", packages[0].asgi_app(Handlers(), path="/"))])

    async def ask() -> None:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(outer), base_url="http://127.0.0.1") as client:
            await client.post("/one/", json={})

    what_to_do = r"the server of one_mcp has not started: .* enter `mcp\.router\.lifespan_context\(mcp\)` there"
    with pytest.raises(RuntimeError, match=what_to_do):
        anyio.run(ask)


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
def test_clients_see_that_a_server_without_its_lifespan_fails(size: int, packages: list[ModuleType]) -> None:
    """Over a connection, on which remaining client data must not hide the response."""
    outer = Starlette(routes=[Mount("/one", packages[0].asgi_app(Handlers(), path="/"))])
    why = "the server is mounted without its lifespan; see its log"

    async def call() -> None:
        async with packages[0].OneClient.connect(f"{url}/one/") as client:
            await client.say()

    with served(outer) as url:
        answer = httpx2.post(f"{url}/one/", content=(b"x" * size for _ in range(2)))
        assert (answer.status_code, answer.text) == (500, why)
        with pytest.raises(Unreachable, match=rf"returns HTTP 500 Internal Server Error \(text/plain\): {why}$"):
            anyio.run(call)


def test_a_server_without_its_lifespan_is_not_ready(packages: list[ModuleType]) -> None:
    mcp = packages[0].asgi_app(Handlers(), health=True)

    async def ask() -> list[int]:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(mcp), base_url="http://127.0.0.1") as client:
            before = await client.get("/readyz")
            async with mcp.router.lifespan_context(mcp):
                during = await client.get("/readyz")
            return [before.status_code, during.status_code, (await client.get("/readyz")).status_code]

    assert anyio.run(ask) == [503, 200, 503]


def test_metadata_are_at_the_root(tmp_path: Path) -> None:
    auth = {"issuer": "https://auth.example.com", "audience": "https://notes.example.com/notes/"}
    [line] = re.findall(r"^routes = \[Mount.*$", (ROOT / "docs" / "operating.md").read_text("utf-8"), re.MULTILINE)
    with imported(tmp_path, generate(tmp_path, manifest([tool("say")], name="guarded", auth=auth))) as package:
        mcp = package.asgi_app(Handlers(), path="/")
        made: dict[str, list[Mount | Route]] = {}
        exec(line, {"mcp": mcp, "Mount": Mount}, made)
        outer = Starlette(routes=made["routes"], lifespan=lambda _: mcp.router.lifespan_context(mcp))
        with served(outer) as url:
            refused = httpx2.post(f"{url}/notes/", json={})
            assert refused.status_code == 401
            [place] = re.findall(
                r'resource_metadata="https://notes.example.com(.*?)"', refused.headers["www-authenticate"]
            )
            assert httpx2.get(url + place).json()["authorization_servers"] == [auth["issuer"]]


def read_blocks() -> list[str]:
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_recipe_is_python() -> None:
    assert read_blocks()
    for block in read_blocks():
        compile(block, "operating.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
async def test_clients_of_the_sdk_connect_in_process(packages: list[ModuleType], mode: Any) -> None:
    server = packages[0].build_server(Handlers())
    async with mcp.Client(server, mode=mode) as one, mcp.Client(server) as other:
        for client in (one, other):
            assert [tool.name for tool in (await client.list_tools()).tools] == ["say"]
            assert (await client.call_tool("say", {})).content[0].model_dump()["text"] == "alive: True"


async def test_connections_are_closed_in_any_order(packages: list[ModuleType]) -> None:
    server = packages[0].build_server(Handlers())
    left = asyncio.Event()

    async def stay() -> None:
        async with mcp.Client(server) as client:
            await left.wait()
            await client.list_tools()

    async with asyncio.TaskGroup() as group:
        staying = group.create_task(stay())
        await asyncio.sleep(0)
        async with mcp.Client(server) as client:
            await client.list_tools()
        left.set()
    assert staying.exception() is None


@pytest.mark.long
def test_clients_of_fastmcp_connect_in_process(tmp_path: Path) -> None:
    pytest.importorskip("fastmcp", reason="FastMCP is not installed")
    generate(tmp_path, manifest([tool("get_weather")], name="weather"))
    (tmp_path / "weather.py").write_text(
        "class Weather:\n    def get_weather(self, args, ctx):\n        return 'sunny'\n"
    )
    [recipe] = [block for block in read_blocks() if "connect_session" in block]
    body = "\n".join(f"    {line}" for line in recipe.splitlines())
    start = "import asyncio, fastmcp\nfrom weather import Weather\nfrom weather_mcp import build_server\n"
    source = f"{start}async def main():\n{body}\n    print(tools[0].name)\nasyncio.run(main())\n"
    run = subprocess.run([sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "get_weather\n"
