"""Counts the functions and files that a plain call enters, in a server over ASGI and stdio, and in a typed client.

    python call_traces.py asgi | stdio | client

prints both numbers as JSON. A function counts each time that it is entered or resumed, except for event loop functions.
Files count if they belong to the product. The numbers differ between minor Python versions.
"""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
KINDS: Final = ("asgi", "stdio", "client")

_FOLDERS: Final = [str(ROOT / folder) for folder in ("generated", "examples", "tests/support")]
_OURS: Final = ("/stubwright_runtime/", "/weather_mcp/", "/weather.py")
_LOOP: Final = (str(Path(asyncio.__file__).parent), selectors.__file__)  # its calls depend on time
_CALLS: Final = 10
_STATELESS: Final = "2026-07-28"
_CALL: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "get_weather",
        "arguments": {"location": "Paris"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": _STATELESS,
            "io.modelcontextprotocol/clientInfo": {"name": "trace", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


def count_calls(kind: str) -> Mapping[str, int]:
    """Return the counts for one kind, measured in a separate process."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(_FOLDERS)}
    done = subprocess.run([sys.executable, __file__, kind], env=env, capture_output=True, text=True, check=True)
    numbers: Mapping[str, int] = json.loads(done.stdout.splitlines()[-1])
    return {f"{kind} {name}": number for name, number in numbers.items()}


def count_all() -> Mapping[str, int]:
    """Return the counts for all kinds."""
    return {name: number for kind in KINDS for name, number in count_calls(kind).items()}


class _Trace:
    """Traces the functions that all threads in this process enter."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._marks: list[int] = []
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)

    def _enter(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and not frame.f_code.co_filename.startswith(_LOOP):
            self._files.append(frame.f_code.co_filename)

    def mark(self) -> None:
        """Mark the boundary between two calls."""
        self._marks.append(len(self._files))

    def summarize(self) -> dict[str, int]:
        """Return the counts for the call with the fewest functions."""
        sys.setprofile(None)
        calls = [self._files[start:end] for start, end in zip(self._marks, self._marks[1:], strict=False)]
        least = min(calls[1:], key=len)
        return {"functions": len(least), "files": len({file for file in least if any(part in file for part in _OURS)})}


async def _trace_asgi() -> dict[str, int]:
    import weather
    from weather_mcp import asgi_app

    app = asgi_app(weather.Weather())
    body = json.dumps(_CALL).encode()
    headers = {
        "host": "127.0.0.1:8000",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        "mcp-protocol-version": _STATELESS,
        "mcp-method": "tools/call",
        "mcp-name": "get_weather",
    }
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 1),
    }
    async with app.router.lifespan_context(app):
        trace = _Trace()
        trace.mark()
        for _ in range(_CALLS):
            requests = [{"type": "http.request", "body": body, "more_body": False}]
            answers: list[dict[str, Any]] = []

            async def receive(requests: list[dict[str, Any]] = requests) -> dict[str, Any]:
                return requests.pop() if requests else await asyncio.sleep(60, {"type": "http.disconnect"})

            async def send(answer: Any, answers: list[dict[str, Any]] = answers) -> None:
                answers.append(answer)

            await app({**scope, "state": {}}, receive, send)
            trace.mark()
            assert b'"temperature":22.5' in answers[-1]["body"].replace(b" ", b""), answers
        return trace.summarize()


def _trace_stdio() -> dict[str, int]:
    """Call a server that measures from the start of a handler to the start of its next call."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, __file__, "serve"], stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        for number in range(_CALLS):
            server.stdin.write(json.dumps({**_CALL, "id": number}).encode() + b"\n")
            server.stdin.flush()
            assert "result" in json.loads(server.stdout.readline())
        server.stdin.close()
        numbers: dict[str, int] = json.loads(server.stderr.readlines()[-1])
        return numbers


def _serve() -> None:
    import weather
    from stubwright_runtime.generated import main as serve
    from weather_mcp.registry import PACKAGE

    trace = _Trace()

    class Traced(weather.Weather):
        async def get_weather(self, args: Any, ctx: Any) -> Any:
            trace.mark()
            return await super().get_weather(args, ctx)

        async def __aenter__(self) -> Traced:
            return self

        async def __aexit__(self, *_: object) -> None:
            print(json.dumps(trace.summarize()), file=sys.stderr, flush=True)

    handlers = ModuleType("traced")
    vars(handlers)["Traced"] = Traced
    sys.modules["traced"] = handlers
    serve(PACKAGE, ["--handlers", "traced:Traced"])


async def _trace_client() -> dict[str, int]:
    from weather_mcp import WeatherClient

    command = [sys.executable, "-m", "weather_mcp", "--handlers", "weather:Weather"]
    environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    async with WeatherClient.connect(command, env=environment) as client:
        trace = _Trace()
        trace.mark()
        for _ in range(_CALLS):
            result = await client.get_weather(location="Paris")
            trace.mark()
            assert result.temperature == 22.5
        return trace.summarize()


def main() -> None:
    """Print the counts for one kind."""
    kinds: dict[str, Callable[[], dict[str, int]]] = {
        "asgi": lambda: asyncio.run(_trace_asgi()),
        "stdio": _trace_stdio,
        "client": lambda: asyncio.run(_trace_client()),
    }
    if sys.argv[1] == "serve":
        _serve()
    else:
        print(json.dumps(kinds[sys.argv[1]]()))


if __name__ == "__main__":
    main()
