"""A small handwritten package in the form of `generate`'s output, for tests of the runtime's server."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from stubwright_runtime.in_process import InProcessServer


WEATHER = {
    "name": "get-weather",
    "description": "Get the weather",
    "inputSchema": {
        "type": "object",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "required": ["location"],
        "properties": {
            "units": {"enum": ["metric", "imperial"], "default": "metric"},
            "location": {"minLength": 1, "type": "string", "examples": [None]},
            "api_key": {"type": "string", "pattern": "^key-"},
        },
        "additionalProperties": False,
        "default": None,
        "x-ours": None,
    },
    "outputSchema": {
        "title": "o",
        "type": "object",
        "properties": {"temperature": {"type": "number"}, "conditions": {"type": ["string", "null"]}},
        "required": ["temperature"],
    },
    "annotations": {"readOnlyHint": True, "x-unknown": 1},
    "futureField": {"a": None},
    "stubwright": {"policy": {"redact": ["/api_key"]}},
}
SAY = {"name": "say", "inputSchema": {"type": "object"}}
CITIES = {
    "name": "cities",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "outputSchema": {"type": "array", "items": {"type": ["string", "null"]}},
}

MODELS = {
    "get_weather": """
from typing import Literal
from stubwright_runtime.generated import Model, Nullable

class GetWeatherInput(Model, extra="forbid"):
    location: str
    units: Literal["metric", "imperial"] = "metric"
    api_key: str | None = None

class GetWeatherOutput(Model):
    temperature: float
    conditions: Nullable[str] = None
""",
    "say": """
from stubwright_runtime.generated import Model

class SayInput(Model):
    pass
""",
    "cities": """
from stubwright_runtime.generated import Model, Root

class CitiesInput(Model):
    n: int | None = None

class CitiesOutput(Root[list[str | None]]):
    pass
""",
}

REGISTRY = """
from __future__ import annotations

from typing import Final

from stubwright_runtime.generated import Package, Tool

PACKAGE: Final = Package(
    __package__,
    tools=[Tool("get-weather", method="get_weather"), Tool("say"), Tool("cities")],
    handlers={handlers!r},
)
TOOLS: Final = PACKAGE.tools
"""

SERVER = """
from stubwright_runtime.server import package_server
from stubwright_runtime.server.transports.http import asgi
from .registry import PACKAGE

def build_server(handlers, *, state="memory://"):
    return package_server.build_server(PACKAGE, handlers, state=state)

def asgi_app(handlers, *, state="memory://", path="/mcp", allowed_hosts=(), token_verifier=None):
    server = build_server(handlers, state=state)
    return asgi.asgi_app(server.core, path=path, allowed_hosts=allowed_hosts, token_verifier=token_verifier)
"""

HANDLERS = """
from abc import abstractmethod
from typing import Protocol

class WeatherHandlers(Protocol):
    @abstractmethod
    def get_weather(self, args, ctx): ...
    @abstractmethod
    def say(self, args, ctx): ...
    @abstractmethod
    def cities(self, args, ctx): ...
"""

MAIN = """
from stubwright_runtime.generated import main
from .registry import PACKAGE

if __name__ == "__main__":
    main(PACKAGE)
"""


def write_package(
    folder: Path,
    name: str,
    *,
    tools: list[dict[str, Any]] | None = None,
    server: dict[str, Any] | None = None,
    handlers: str | None = None,
    **manifest: Any,
) -> None:
    """Write the package `name` below `folder`."""
    package = folder / name
    (package / "models").mkdir(parents=True)
    (package / "models" / "__init__.py").touch()
    (package / "__init__.py").touch()
    for module, text in MODELS.items():
        (package / "models" / f"{module}.py").write_text(text)
    (package / "registry.py").write_text(REGISTRY.format(handlers=handlers))
    (package / "server.py").write_text(SERVER)
    (package / "handlers.py").write_text(HANDLERS)
    (package / "__main__.py").write_text(MAIN)
    content = {
        "stubwright": 1,
        "server": server or {"name": "weather", "version": "1.2.0", "title": "Weather", "instructions": "Ask."},
        "formats": "annotate",
        "tools": tools or [WEATHER, SAY, CITIES],
        **manifest,
    }
    (package / "manifest.json").write_text(json.dumps(content))


def import_package(folder: Path, name: str) -> Any:
    """Import the module `name.server` from `folder`."""
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(f"{name}.server")
    finally:
        sys.path.remove(str(folder))


async def exchange(
    server: InProcessServer, revision: str, *requests: tuple[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the server's raw responses on one connection of this revision. Each has `result` or `error`."""
    return await exchange_each(server, revision, requests)


async def exchange_each(
    server: InProcessServer, revision: str, requests: Iterable[tuple[str, dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Exchange messages as `exchange` does, but send each request after the previous response."""
    answers: list[dict[str, Any]] = []
    async with opened(server) as (send, receive):
        opening = [(0, ("initialize", {**HELLO, "protocolVersion": revision}))] if revision < "2026" else []
        for number, (method, params) in chain(opening, enumerate(requests, 1)):
            if revision >= "2026":
                params = {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}
            await send({"id": number, "method": method, "params": params})
            while True:
                answer = await receive()
                if "method" in answer:
                    answers.append(answer)
                elif number:
                    answers.append(answer["result"] if "result" in answer else {"error": answer["error"]})
                    break
                else:
                    break
    return answers


@asynccontextmanager
async def opened(server: InProcessServer) -> AsyncIterator[Any]:
    """Open a connection to a server. Yield functions that send a message and return the next one."""
    received: asyncio.Queue[bytes] = asyncio.Queue()
    async with server.open_connection(received.put) as send_line:

        async def send(message: dict[str, Any]) -> None:
            await send_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

        async def receive() -> dict[str, Any]:
            async with asyncio.timeout(60):
                message: dict[str, Any] = json.loads(await received.get())
                return message

        yield send, receive


HELLO = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
