"""Mounted servers in popular ASGI servers: calls behind middlewares, and shutdown while clients listen.

gunicorn (with uvicorn-worker), hypercorn and granian are not dependencies of the tests; cases without them are skipped.
`test_middlewares.py` has more middlewares, without a network.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest
from conftest import ROOT

import amounts
import forked
from conversations import handshake, request, usual
from packages import generate, manifest, tool
from processes import start_process

OLD, NEW = "2025-06-18", "2026-07-28"

MAIN = """
import sys
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount

from hosted_mcp import asgi_app


class Handlers:
    async def __aenter__(self):
        print("HANDLERS BEGAN", file=sys.stderr, flush=True)
        return self

    async def __aexit__(self, *error):
        print("HANDLERS ENDED", file=sys.stderr, flush=True)

    async def say(self, args, ctx):
        return "said"

    async def talk(self, args, ctx):
        await ctx.progress(1, 2, "half")
        return "talked"


async def dispatch(request, call_next):
    response = await call_next(request)
    response.headers["X-Process-Time"] = "0.1"
    response.set_cookie("visited", "yes")
    return response


parts = [asgi_app(Handlers()) for _ in range(4)]


@asynccontextmanager
async def lifespan(_):
    async with AsyncExitStack() as stack:
        for part in parts:
            await stack.enter_async_context(part.router.lifespan_context(part))
        yield


around = [
    lambda app: app,
    lambda app: GZipMiddleware(app, minimum_size=1),
    lambda app: BaseHTTPMiddleware(app, dispatch=dispatch),
    lambda app: CORSMiddleware(app, allow_origins=["http://localhost:3000"]),
]
names = ["plain", "gzip", "headers", "cors"]
app = Starlette(
    routes=[Mount(f"/{name}", wrap(part)) for name, wrap, part in zip(names, around, parts)], lifespan=lifespan
)
"""
STACKS: Mapping[str, str] = {
    "plain": "content-type",
    "gzip": "content-encoding",
    "headers": "x-process-time",
    "cors": "access-control-allow-origin",
}
"""What is in front of each server, and a header that answers have then."""

HOSTS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "uvicorn": (["uvicorn"], ["main:app", "--host", "127.0.0.1", "--port", "{port}", "--workers", "{workers}"]),
    "gunicorn": (
        ["gunicorn", "uvicorn_worker"],
        ["main:app", "-k", "uvicorn_worker.UvicornWorker", "-b", "127.0.0.1:{port}", "-w", "{workers}"],
    ),
    "hypercorn": (["hypercorn"], ["main:app", "-b", "127.0.0.1:{port}", "-w", "{workers}"]),
    "granian": (
        ["granian"],
        ["--interface", "asgi", "main:app", "--host", "127.0.0.1", "--port", "{port}", "--workers", "{workers}"],
    ),
}
"""The modules of each host, and its arguments."""

CASES = [case if case[:2] == ("uvicorn", 1) else amounts.mark_long(case) for case in product(HOSTS, (1, 2), (OLD, NEW))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hosts")
    generate(made, manifest([tool("say"), tool("talk")], name="hosted"))
    (made / "main.py").write_text(MAIN)
    return made


@contextmanager
def hosted(host: str, workers: int, folder: Path, log: Path) -> Iterator[tuple[str, subprocess.Popen[Any]]]:
    """The URL and the process of a host with that number of workers."""
    modules, arguments = HOSTS[host]
    for module in modules:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = os.pathsep.join([str(folder), str(ROOT / "runtime"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [*forked.interpreter(), "-m", modules[0]]
    command += [argument.format(port=port, workers=workers) for argument in arguments]
    with (
        log.open("wb") as err,
        start_process(
            command, stdout=err, stderr=err, cwd=folder, env={**os.environ, "PYTHONPATH": path}, start_new_session=True
        ) as process,
    ):
        # All workers: a worker may miss a stop request while it starts.
        while not (_is_open(port) and log.read_text().count("HANDLERS BEGAN") == len(STACKS) * workers):
            assert process.poll() is None, log.read_text()
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}", process


def _is_open(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


class Client:
    """Calls one server, on one connection for each request that is not answered yet."""

    def __init__(self, http: httpx2.Client, url: str, revision: str, header: str) -> None:
        self._http, self._url, self._revision, self._header = http, url, revision, header
        self._session: str | None = None

    def begin(self) -> None:
        """Discover the server, or shake hands with it."""
        message = (
            request(3, "server/discover", {}, stateless=True) if self._revision == NEW else handshake(self._revision)
        )
        answer = self.post(message)
        assert answer.status_code == 200, answer.text
        self._session = answer.headers.get("mcp-session-id")

    def call(self, name: str) -> str:
        """Return the answer to a call; a session is in one of the workers."""
        params = {"name": name, "arguments": {}, "_meta": {"progressToken": "t"}}
        message = request(1, "tools/call", params, stateless=self._revision == NEW)
        while (answer := self.post(message)).status_code == 404 and self._session is not None:
            self._http.close()
            self._http = httpx2.Client(timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.text

    def post(self, message: Mapping[str, Any], **more: str) -> httpx2.Response:
        headers = {**dict(usual(message, self._revision, self._session)), "origin": "http://localhost:3000", **more}
        answer = self._http.post(self._url, json=message, headers=headers)
        assert self._header in answer.headers or answer.headers["content-type"] == "text/event-stream"
        return answer

    def refuse(self) -> int:
        """Return the status of the answer to a call by another host's name."""
        return self.post(request(1, "ping", {}, stateless=self._revision == NEW), host="evil.example.com").status_code

    def listen(self, stack: ExitStack) -> Iterator[str]:
        """Listen, and return the lines of the stream."""
        while True:
            # Each attempt on a new connection, which may reach another worker.
            http = stack.enter_context(httpx2.Client(timeout=60))
            if self._session is not None:
                opening = http.stream("GET", self._url, headers=usual({}, self._revision, self._session))
            else:
                params = {"notifications": {"toolsListChanged": True}}
                message = request("heard", "subscriptions/listen", params, stateless=True)
                opening = http.stream("POST", self._url, json=message, headers=usual(message, NEW, None))
            response = stack.enter_context(opening)
            if response.status_code == 200:
                break
            assert response.status_code == 404
        lines = response.iter_lines()
        if self._session is None:
            assert "acknowledged" in next(line for line in lines if line.startswith("data:"))
        return lines


@pytest.mark.parametrize(("host", "workers", "revision"), CASES)
def test_mounted_servers(host: str, workers: int, revision: str, folder: Path, tmp_path: Path) -> None:
    """Calls are answered; when the host is asked to stop, streams that only listen end, and then the handlers do."""
    log = tmp_path / "log"
    with hosted(host, workers, folder, log) as (url, process), ExitStack() as stack:
        heard: list[Iterator[str]] = []
        for name, header in STACKS.items():
            client = Client(stack.enter_context(httpx2.Client(timeout=60)), f"{url}/{name}/mcp", revision, header)
            client.begin()
            assert "said" in client.call("say")
            talked = client.call("talk")
            assert talked.index("half") < talked.index("talked")
            assert client.refuse() == 421
            heard.append(client.listen(stack))
        process.send_signal(signal.SIGTERM)
        if host == "hypercorn":  # it sends its workers no signal, and cuts off streams after three seconds
            stack.close()
        else:
            for lines in heard:
                last = [line for line in lines if line.startswith("data:")]
                if revision == NEW:
                    assert json.loads(last[-1][5:])["result"]["resultType"] == "complete"
        assert process.wait(60) in (0, -signal.SIGTERM)
    # hypercorn terminates its other workers when the first of them has ended.
    least = len(STACKS) if host == "hypercorn" else len(STACKS) * workers
    assert least <= log.read_text().count("HANDLERS ENDED") <= len(STACKS) * workers, log.read_text()
