"""Runs a server with tasks, handles, rates and questions over HTTP, and clients with any name, for the attacks.

Writes its files to an empty folder. Processes listen on the loopback interface and stop when their block exits.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

NEW: Final = "2026-07-28"
OLD: Final = "2025-11-25"
PATIENCE: Final = 30.0

_TEXT: Final = {"text": {"type": "string"}}
_BOX: Final = {"box_id": {"type": "string", "x-handle": "box"}}
_TASK: Final = {"execution": {"taskSupport": "optional"}}
_NAMED: Final = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def _tool(name: str, properties: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": [*required]}
    return {"name": name, "inputSchema": schema, **more}


MANIFEST: Final[Mapping[str, Any]] = {
    "stubwright": 1,
    "server": {"name": "lab", "version": "1"},
    "handles": {"box": {"state": {"type": "object", "properties": _TEXT}, "ttl": "1h", "most": 1_000_000}},
    "tools": [
        _tool("store", _TEXT, **_TASK),
        _tool("hold", _TEXT, **_TASK, stubwright={"task": {"most": 5}}),
        _tool("report", {"size": {"type": "integer"}}, "size", **_TASK),
        _tool("pay", _TEXT, **_TASK),
        _tool("put", _TEXT, outputSchema={"type": "object", "properties": _BOX, "required": ["box_id"]}),
        _tool("look", _BOX, "box_id"),
        _tool("change", {**_BOX, **_TEXT}, "box_id"),
        _tool("drop", _BOX, "box_id"),
        _tool("limited", {}, stubwright={"policy": {"rateLimit": "3/hour"}}),
        _tool("greet", {}, stubwright={"ask": {"who": {"message": "Who?", "schema": _NAMED}}}),
    ],
}

HANDLERS: Final = """
import asyncio
import sys
from pathlib import Path

from lab_mcp import BoxState, PutOutput


class Handlers:
    async def store(self, args, ctx):
        return "stored"

    async def hold(self, args, ctx):
        await asyncio.sleep(3600)

    async def report(self, args, ctx):
        return "x" * args.size

    async def pay(self, args, ctx):
        with Path("paid").open("a") as paid:
            paid.write("once\\n")
        await asyncio.sleep(0.5)
        return "paid"

    async def put(self, args, ctx):
        return PutOutput(box_id=await ctx.handles.box.create(BoxState(text=args.text)))

    async def look(self, args, ctx):
        return ctx.handles["box_id"].state.text or ""

    async def change(self, args, ctx):
        await ctx.handles.box.update(ctx.handles["box_id"], BoxState(text=args.text))
        return "changed"

    async def drop(self, args, ctx):
        return str(await ctx.handles.box.delete(args.box_id))

    async def limited(self, args, ctx):
        return "ok"

    async def greet(self, args, ctx):
        answer = await ctx.ask.who()
        with Path("greeted").open("a") as greeted:
            greeted.write("once\\n")
        return f"Hello {answer.name}"
"""

APP: Final = '''
import os
import sys
from pathlib import Path

import uvicorn
from mcp.server.auth.provider import AccessToken

from handlers import Handlers
from lab_mcp import asgi_app


class Names:
    """Accepts any name as a token."""

    async def verify_token(self, token):
        return AccessToken(token=token, client_id=token, scopes=[], subject=token)


state, verifier, port = sys.argv[1], Names() if sys.argv[2] == "tokens" else None, int(sys.argv[3])
app = asgi_app(Handlers(), state=state, token_verifier=verifier)
app.state.server.tasks.works = sys.argv[4] == "works"
# The command may start this process as a child, so record the id of the server itself.
Path(f"process-{port}").write_text(str(os.getpid()))
uvicorn.run(app, port=port, log_level="critical", timeout_keep_alive=600, timeout_graceful_shutdown=1)
'''


def find_port() -> int:
    """Return an unused port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def write_package(folder: Path) -> None:
    """Generate the package and its handlers."""
    (folder / "lab.json").write_text(json.dumps(MANIFEST))
    (folder / "handlers.py").write_text(HANDLERS)
    (folder / "app.py").write_text(APP)
    subprocess.run(
        [sys.executable, "-m", "stubwright", "generate", "-q", "lab.json", "-o", "."], cwd=folder, check=True
    )


@contextmanager
def _running(command: list[str], folder: Path, port: int, **variables: str) -> Iterator[None]:
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: _answers(port, process))
        yield
    finally:
        process.kill()
        process.wait(PATIENCE)


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"{process.args!r} ended")
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def redis(folder: Path) -> Iterator[int]:
    """Run Redis as in `examples/deploy/compose.yaml`, except for persistence; yield its port."""
    port = find_port()
    options = ["--maxmemory", "256mb", "--maxmemory-policy", "noeviction", "--save", "", "--appendonly", "no"]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *options]
    with _running(command, folder, port):
        yield port


@contextmanager
def server(folder: Path, state: str, *, tokens: bool = True, works: bool = True) -> Iterator[Server]:
    """Run a server. `works` is whether it also executes tasks."""
    port = find_port()
    command = [
        sys.executable,
        "app.py",
        state,
        "tokens" if tokens else "open",
        str(port),
        "works" if works else "rests",
    ]
    with _running(command, folder, port, LAB_STATE_KEY="A" * 43 + "="):
        yield Server(port, int((folder / f"process-{port}").read_text()))


class Server:
    """A running server."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self._pid = pid

    def client(self, name: str | None, revision: str = NEW) -> Client:
        """Connect a client whose token is its name."""
        return Client(self.port, name, revision)

    def resident(self) -> float:
        """The resident memory of the process in MB."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1000


class Client:
    """A client with one connection."""

    def __init__(self, port: int, name: str | None, revision: str) -> None:
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._ids = itertools.count(1)
        self._revision = revision
        self._headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if name is not None:
            self._headers["Authorization"] = f"Bearer {name}"
        if revision == OLD:
            hello = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "lab", "version": "1"}}
            self.ask("initialize", **hello)
            self._headers["MCP-Protocol-Version"] = OLD
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a request, or `{"error": …}`."""
        routing: dict[str, str] = {}
        if self._revision == NEW:
            extensions = {"io.modelcontextprotocol/tasks": {}}
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": NEW,
                "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions, "elicitation": {"form": {}}},
                "io.modelcontextprotocol/clientInfo": {"name": "lab", "version": "1"},
            }
            routing = {"MCP-Protocol-Version": NEW, "Mcp-Method": method}
            if (name := params.get("name", params.get("taskId"))) is not None:
                routing["Mcp-Name"] = name
        body = self._post({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}, routing)
        lines = [line.removeprefix(b"data:").strip() for line in body.splitlines() if line.startswith((b"data:", b"{"))]
        answers = [json.loads(line) for line in lines if line]
        answer: dict[str, Any] = answers[-1] if answers else {"error": {"message": body.decode(errors="replace")}}
        result: dict[str, Any] = answer.get("result", {"error": answer.get("error")})
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the result of a call."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def task(self, tool: str, **arguments: Any) -> str | None:
        """Return the ID of a call's task, or `None` if the call was rejected."""
        more = {"task": {}} if self._revision == OLD else {}
        said = self.ask("tools/call", name=tool, arguments=arguments, **more)
        found: str | None = said.get("taskId") or said.get("task", {}).get("taskId")
        return found

    def wait_for_task(self, task: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait until a task has finished, and return it."""
        found: dict[str, Any] = {}

        def is_terminal() -> bool:
            found.update(self.ask("tasks/get", taskId=task))
            return found.get("status") not in ("working", "input_required")

        until(is_terminal, seconds)
        return found

    def _post(self, message: dict[str, Any], routing: Mapping[str, str]) -> bytes:
        self._link.request("POST", "/mcp", json.dumps(message).encode(), {**self._headers, **routing})
        response = self._link.getresponse()
        if (session := response.headers.get("mcp-session-id")) is not None:
            self._headers["Mcp-Session-Id"] = session
        return response.read()


def until(is_so: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError("the condition did not hold in time")
        time.sleep(0.05)


class Verdict:
    """A program's findings, one line each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.failed = False

    def say(self, what: str, value: object, limit: str, *, holds: bool) -> None:
        """Print a figure, and record whether its requirement holds."""
        self.failed = self.failed or not holds
        print(f"{self._name}: {what}: {value} ({limit}){'' if holds else ' FAILED'}", flush=True)
