"""What `policy.redact` names is in no log, wherever it stands in the arguments and whatever brings it there."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from packages import generate, manifest, tool

SECRET = "s3cr3t-Ωmega\n\"quoted\" 'twice' & 100%/part"
LONG = "".join(f"{number:x}." for number in range(5000, 5060))  # cut by whatever shows it in short
NUMBER = 4111222233334444

PLACES: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "a field": ("/api_key", {"api_key": SECRET}, (SECRET,)),
    "long": ("/api_key", {"api_key": LONG}, (LONG,)),
    "a number": ("/pin", {"pin": NUMBER}, (NUMBER,)),
    "nested": ("/login/password", {"login": {"password": SECRET}}, (SECRET,)),
    "a whole object": ("/whole", {"whole": {"one": SECRET, "more": {"two": LONG}}}, (SECRET, LONG)),
    "an item": ("/keys/1", {"keys": ["public", SECRET]}, (SECRET,)),
    "in an item": ("/logins/0/password", {"logins": [{"password": SECRET}]}, (SECRET,)),
    "shared": ("/creds/token", {"creds": {"token": SECRET}}, (SECRET,)),
    "a union": ("/either/password", {"either": {"kind": "b", "password": SECRET}}, (SECRET,)),
    "extra": ("/extra", {"extra": SECRET}, (SECRET,)),
    "JSON text": ("/any/password", {"any": json.dumps({"password": SECRET})}, (SECRET,)),
    "by default": ("/common", {"common": SECRET}, (SECRET,)),
}

_LOGIN = {"type": "object", "properties": {"user": {"type": "string"}, "password": {"type": "string"}}}
PROPERTIES = {
    "way": {"type": "string"},
    "api_key": {"type": "string"},
    "pin": {"type": "integer"},
    "login": _LOGIN,
    "whole": {"type": "object", "properties": {"one": {"type": "string"}, "more": {"type": "object"}}},
    "keys": {"type": "array", "items": {"type": "string"}},
    "logins": {"type": "array", "items": _LOGIN},
    "creds": {"$ref": "#/schemas/Creds"},
    "either": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
            {
                "type": "object",
                "properties": {"kind": {"const": "b"}, "password": {"type": "string"}},
                "required": ["kind"],
            },
        ]
    },
    "any": {},
    "common": {"type": "string"},
}

WAYS = (
    "text",
    "repr",
    "nested repr",
    "cause",
    "notes",
    "group",
    "json",
    "pydantic",
    "bytes",
    "debug",
    "wrong format",
    "warning",
    "thread",
    "task",
    "plain def",
    "result",
    "serializer",
    "cancelled",
)

HANDLERS = '''
import asyncio, gc, json, logging, threading, urllib.parse, warnings
import pydantic
from secrets_mcp import RunOutput
from secrets_mcp.handlers import SecretsHandlers

LOG = logging.getLogger("handlers")

class Other(pydantic.BaseModel):
    number: int

def texts(value):
    """All that the arguments hold."""
    if isinstance(value, dict):
        for below in value.values():
            yield from texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from texts(below)
    else:
        yield value

class Secrets(SecretsHandlers):
    async def run(self, args, ctx):
        data = args.model_dump(mode="json")
        way = data.pop("way")
        found = list(texts(data))
        said = " and ".join(map(str, found))
        match way:
            case "text":
                raise RuntimeError(f"no login with {said}")
            case "repr":
                raise RuntimeError(f"no login with {args!r} or {args}")
            case "nested repr":
                raise KeyError(args.model_dump(), [args.login, args.creds, args.logins, args.whole])
            case "cause":
                try:
                    raise ValueError(said)
                except ValueError as error:
                    raise LookupError("outer") from error
            case "notes":
                error = RuntimeError("outer")
                error.add_note(f"with {said}\\nand {found!r}")
                raise error
            case "group":
                raise ExceptionGroup("several", [ValueError(said), ExceptionGroup("inner", [KeyError(*found)])])
            case "json":
                raise RuntimeError(json.dumps(data), json.dumps(json.dumps(data)), urllib.parse.urlencode(data))
            case "pydantic":
                Other.model_validate({"number": data, "more": found})
            case "bytes":
                raise OSError(5, said, f"/tmp/{urllib.parse.quote(said)}")
            case "debug":
                LOG.debug("called with %s, %r and %s", said, data, args)
                logging.getLogger().warning("said", extra={"said": said}, stack_info=True)
            case "wrong format":
                LOG.info("called with %d", said)
            case "warning":
                warnings.warn(f"odd: {said}")
            case "thread":
                def fail():
                    raise RuntimeError(f"a thread with {said}")
                thread = threading.Thread(target=fail)
                thread.start()
                thread.join()
            case "task":
                async def fail_later():
                    raise RuntimeError(f"a task with {said}")
                task = asyncio.create_task(fail_later())
                await asyncio.sleep(0.01)
                del task
                gc.collect()
            case "result":
                return {"number": said, said: True}
            case "serializer":
                return RunOutput.model_construct(number=said)
            case "cancelled":
                ctx.on_cancel(lambda: 1 / 0)
        return {"number": 1}

    def blocking(self, args, ctx):
        raise RuntimeError(f"no login with {args.model_dump()} and {args}")
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("secrets")
    redact = [pointer for pointer, _, _ in PLACES.values() if pointer != "/common"]
    output = {"type": "object", "properties": {"number": {"type": "integer"}}, "additionalProperties": False}
    ours = {"policy": {"redact": [*redact, "/common"]}}
    tools = [
        tool("run", PROPERTIES, outputSchema=output, toolwright=ours),
        tool("blocking", PROPERTIES, toolwright=ours),
        tool("by_default", PROPERTIES),
    ]
    value = manifest(
        tools,
        name="secrets",
        policy={"redact": ["/common"]},
        schemas={"Creds": {"type": "object", "properties": {"token": {"type": "string"}}}},
    )
    generate(folder, value)
    (folder / "handlers.py").write_text(
        HANDLERS + "\n    def by_default(self, args, ctx):\n        raise RuntimeError(str(args.common), repr(args))\n"
    )
    yield folder


@asynccontextmanager
async def server(project: Path, transport: str, era: str, log: IO[str]) -> AsyncIterator[mcp.Client]:
    """The generated server in a process of its own, at debug level."""
    command = ["-m", "secrets_mcp", "--handlers", "handlers:Secrets", "--log-level", "debug"]
    if transport == "stdio":
        process = StdioServerParameters(command=sys.executable, args=command, cwd=project)
        async with mcp.Client(stdio_client(process, errlog=log), mode=era) as client:
            yield client
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    running = subprocess.Popen([sys.executable, *command, "--http", address], cwd=project, stderr=log)
    try:
        for _ in range(300):
            with anyio.move_on_after(0.1):
                try:
                    await (await anyio.connect_tcp(*address.split(":"))).aclose()  # type: ignore[arg-type]
                    break
                except OSError:
                    pass
            await anyio.sleep(0.05)
        async with mcp.Client(f"http://{address}/mcp", mode=era) as client:
            yield client
    finally:
        running.terminate()
        running.wait(20)


def leaks(log: str, secrets: tuple[Any, ...]) -> list[str]:
    """The lines of a log that show a secret, or a part of it that is long enough to be recognized."""
    parts = {
        part
        for secret in map(str, secrets)
        for part in [secret, *(secret[at : at + 12] for at in range(0, len(secret) - 11, 3))]
    }
    return [line for line in log.splitlines() if any(part in line for part in parts)]


@pytest.mark.parametrize("era", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_no_secret_is_logged(
    project: Path, transport: str, era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", "2025-06-18")
    path = tmp_path / "log"
    found: dict[tuple[str, str], list[str]] = {}

    async def use(log: IO[str]) -> None:
        mode = "legacy" if era < "2026" else era
        with anyio.fail_after(120):
            async with server(project, transport, mode, log) as client:
                for place, (_, arguments, secrets) in PLACES.items():
                    for way in WAYS:
                        before = path.stat().st_size
                        name = "blocking" if way == "plain def" else "run"
                        result = await client.call_tool(name, {"way": way, **arguments})
                        assert result.content or result.is_error
                        if shown := leaks(path.read_bytes()[before:].decode(), secrets):
                            found[place, way] = shown
                await client.call_tool("by_default", {"common": SECRET})
                # What is refused before a tool runs, or never reaches one.
                for arguments in ({"api_key": [SECRET]}, {"api_key": {"more": SECRET}}, {"login": SECRET}):
                    await client.call_tool("run", {"way": "text", **arguments})
                with pytest.raises(mcp.MCPError):
                    await client.call_tool(f"unknown\n2026-01-01 00:00:00,000 CRITICAL root: {SECRET}", {})

    with path.open("w") as log:
        anyio.run(use, log)
    text = path.read_text()
    assert not found, found
    everything = tuple(secret for _, _, secrets in PLACES.values() for secret in secrets)
    assert leaks(text, everything) == []
    assert "[redacted]" in text
    assert "RuntimeError" in text
    assert not re.search(r"\b[0-9a-f]{32}\b", text), "a session id"
    records = [line for line in text.splitlines() if not line.startswith(" ")]
    assert all(re.match(r"\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+ [\w.]+: ", line) for line in records), records
