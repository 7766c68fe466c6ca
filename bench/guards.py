"""Measures guards: a call with a rate limit, scopes and an audit file, compared with a call without guards.

`compare` generates packages in a folder, and prints ratios. All servers run at the same time and are called in
alternating blocks, so that other load on the machine slows them equally. Scopes over HTTP require access tokens, so a
third server requires tokens without other guards.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import truediv
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from over_http import HANDSHAKE, STATELESS, Connection
from servers import Process, serve
from timing import by_turns
from tools import tools

TARGET = 1.25
BLOCK = 20
"""Consecutive calls of one server before the next server's block."""

CONNECTIONS = (1, 10)
SCOPE = "items:read"
AUDIENCE = "http://127.0.0.1/mcp"
OPEN, TOKENS, GUARDED = "open", "tokens", "guarded"

HANDLERS = """
class Handlers:
    def __getattr__(self, name):
        if not name.startswith("search_items"):
            raise AttributeError(name)
        async def found(args, ctx):
            return {"items": [], "total": 0}
        return found
"""


def compare(folder: Path, calls: int, call: Mapping[str, Any]) -> None:
    """Print the ratios for `calls` calls to each server."""
    (folder / "guarded_handlers.py").write_text(HANDLERS)
    with run_issuer() as (url, token):
        auth = {"issuer": url, "audience": AUDIENCE, "jwksUri": f"{url}/keys"}
        for name, more in (
            (OPEN, {}),
            (TOKENS, {"auth": auth}),
            (GUARDED, {"auth": auth, "policy": {"rateLimit": "1000000/minute", "scopes": [SCOPE]}}),
        ):
            generate(folder, name, more)
        commands = {name: _command(folder, name) for name in (OPEN, TOKENS, GUARDED)}
        _over_stdio({name: commands[name] for name in (OPEN, GUARDED)}, folder, calls, call)
        with ExitStack() as running:
            ports = {
                name: running.enter_context(serve([*command, "--http", "127.0.0.1:"], folder))
                for name, command in commands.items()
            }
            asyncio.run(_over_http(ports, calls, call, token))


@contextmanager
def run_issuer() -> Iterator[tuple[str, str]]:
    """Run an authorization server with a JWKS. Yield its URL and an access token."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = {**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": "1", "alg": "ES256", "use": "sig"}

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": [public]}).encode())

        def log_message(self, *_: object) -> None:
            """Suppress the access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Keys)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    claims = {"iss": url, "aud": AUDIENCE, "sub": "ada", "client_id": "bench", "scope": SCOPE}
    try:
        yield url, jwt.encode({**claims, "exp": time.time() + 3600}, key, "ES256", {"kid": "1", "typ": "at+jwt"})
    finally:
        server.shutdown()
        server.server_close()


def generate(folder: Path, name: str, more: Mapping[str, Any]) -> None:
    """Generate a package of ten tools with additional manifest keys."""
    manifest = {"stubwright": 1, "server": {"name": name, "version": "1"}, "tools": tools(10), **more}
    (folder / f"{name}.json").write_text(json.dumps(manifest))
    command = [sys.executable, "-m", "stubwright", "generate", "-q", f"{name}.json", "-o", "."]
    subprocess.run(command, cwd=folder, check=True)


def _command(folder: Path, name: str) -> list[str]:
    command = [sys.executable, "-m", f"{name}_mcp", "--handlers", "guarded_handlers:Handlers"]
    if name != GUARDED:
        return [*command, "--log-level", "warning"]
    said = subprocess.run([*command, "--help"], cwd=folder, check=True, capture_output=True, text=True).stdout
    audit = ["--audit", "audit.jsonl"] if "--audit" in said else []
    if not audit:
        print("without an audit file, which this server does not support")
    return [*command, "--log-level", "warning", *audit]


def _over_stdio(commands: Mapping[str, Sequence[str]], folder: Path, calls: int, call: Mapping[str, Any]) -> None:
    processes = {name: Process([*command, "--scope", SCOPE], folder) for name, command in commands.items()}

    async def ask(process: Process) -> None:
        for _ in range(BLOCK):
            result = process.ask("tools/call", dict(call))["result"]
            if result.get("isError"):
                raise RuntimeError(f"the call failed: {result}")

    try:
        asyncio.run(_tell("stdio", {name: partial(ask, process) for name, process in processes.items()}, calls))
    finally:
        for process in processes.values():
            process.stop()


async def _over_http(ports: Mapping[str, int], calls: int, call: Mapping[str, Any], token: str) -> None:
    async def ask(connections: Sequence[Connection]) -> None:
        async def repeat(connection: Connection) -> None:
            await connection.repeat(call["name"], call["arguments"], max(1, BLOCK // len(connections)))

        await asyncio.gather(*map(repeat, connections))

    headers = {"Authorization": f"Bearer {token}"}
    for revision in (HANDSHAKE, STATELESS):
        for number in CONNECTIONS:
            opened = {
                name: [await Connection.open(port, revision, headers) for _ in range(number)]
                for name, port in ports.items()
            }
            label = f"HTTP, {revision}, connections: {number}"
            await _tell(label, {name: partial(ask, each) for name, each in opened.items()}, calls)
            for connection in (each for some in opened.values() for each in some):
                connection.close()


async def _tell(label: str, asking: Mapping[str, Callable[[], Awaitable[None]]], calls: int) -> None:
    """Print the median time of a call, and the median ratio of the blocks of one turn."""
    times = await by_turns(asking, max(2, calls // BLOCK))
    cost = {name: statistics.median(found) / BLOCK * 1000 for name, found in times.items()}
    others = ", ".join(
        f"{statistics.median(map(truediv, times[GUARDED], times[name])):.2f} of {name} ({one:.2f} ms)"
        for name, one in cost.items()
        if name != GUARDED
    )
    print(f"a guarded call, {label}: {cost[GUARDED]:.2f} ms; {others}  (target: at most {TARGET} of {OPEN})")
