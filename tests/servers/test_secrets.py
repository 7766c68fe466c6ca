"""Values of `policy.redact` never appear in a log, at any place in the arguments."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import anyio
import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server
from starlette.responses import Response

import amounts
import forked
from fake_api import Asked, api
from packages import generate, imported, manifest, tool
from processes import start_process
from serving import asgi
from stubwright_runtime.observability.redaction import mask

SECRET = "s3cr3t-Ωmega\n\"quoted\" 'twice' & 100%/part"
IN_A_URL = SECRET.replace("\n", " ")
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
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    redact = [pointer for pointer, _, _ in PLACES.values() if pointer != "/common"]
    output = {"type": "object", "properties": {"number": {"type": "integer"}}, "additionalProperties": False}
    ours = {"policy": {"redact": [*redact, "/common"]}}
    call = {
        "api": "fake",
        "method": "GET",
        "url": "/{api_key}",
        "query": {"common": "{common}"},
        "headers": {"X-Key": "{pin}"},
    }
    tools = [
        tool("fetch", PROPERTIES, stubwright={**ours, "http": call}),
        tool("run", PROPERTIES, outputSchema=output, stubwright=ours),
        tool("blocking", PROPERTIES, stubwright=ours),
        tool("by_default", PROPERTIES),
    ]
    value = manifest(
        tools,
        name="secrets",
        python={"features": ["elicitation"]},
        policy={"redact": ["/common"]},
        apis={"fake": {"baseUrl": "http://127.0.0.1:9", "baseUrlEnv": "FAKE_URL", "retries": 0}},
        schemas={"Creds": {"type": "object", "properties": {"token": {"type": "string"}}}},
    )
    generate(folder, value)
    (folder / "handlers.py").write_text(
        HANDLERS + "\n    def by_default(self, args, ctx):\n        raise RuntimeError(str(args.common), repr(args))\n"
    )
    return folder


ANSWERS: list[Callable[[Asked], Any]] = [
    lambda asked: (500, {"said": [asked.path, asked.query, dict(asked.headers)]}),
    lambda asked: Response(status_code=302, headers={"Location": f"http://other{asked.path}?{asked.query}"}),
    lambda asked: Response(status_code=302, headers={"Location": f"{asked.path}?{asked.query}"}),
    lambda asked: Response("x", headers={"Content-Encoding": "gzip", "X-Echo": asked.path}),
    lambda asked: {"echo": asked.path},
]
"""What an API makes of a call whose URL and headers hold secrets."""


def starting(*options: str) -> list[str]:
    """The command of the generated server."""
    handlers = ["--handlers", "handlers:Secrets", "--log-level", "debug"]
    return [*forked.interpreter(), "-m", "secrets_mcp", *handlers, *options]


@contextmanager
def over_http(project: Path, log: TextIO, environment: Mapping[str, str]) -> Iterator[str]:
    """Run the generated server over HTTP in a separate process; yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    command = starting("--http", f"{host}:{port}")
    with start_process(command, cwd=project, stderr=log, env=environment) as process:
        try:
            for _ in range(600):
                with suppress(OSError), socket.create_connection((host, port), 1):
                    break
                time.sleep(0.05)
            yield f"http://{host}:{port}/mcp"
        finally:
            process.terminate()
            process.wait(20)


@contextmanager
def server(project: Path, transport: str, log: TextIO, api: str) -> Iterator[Any]:
    """What connects to the generated server, at debug level."""
    environment = {**os.environ, "FAKE_URL": api}
    if transport == "stdio":
        program, *arguments = starting()
        process = StdioServerParameters(command=program, args=arguments, cwd=project, env=environment)
        yield stdio_client(process, errlog=log)
    else:
        with over_http(project, log, environment) as url:
            yield url


def leaks(log: str, secrets: tuple[Any, ...]) -> list[str]:
    """The lines of a log that show a secret, or a part of it that is long enough to be recognized."""
    parts = {
        part
        for secret in map(str, secrets)
        for part in [secret, *(secret[at : at + 12] for at in range(0, len(secret) - 11, 3))]
    }
    return [line for line in log.splitlines() if any(part in line for part in parts)]


@pytest.mark.parametrize(
    ("transport", "era"),
    [
        ("http", "2026-07-28"),
        *map(amounts.mark_long, [("stdio", "2025-06-18"), ("stdio", "2026-07-28"), ("http", "2025-06-18")]),
    ],
)
def test_no_secret_is_logged(
    project: Path, transport: str, era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", "2025-06-18")
    path = tmp_path / "log"
    found: dict[tuple[str, str], list[str]] = {}

    async def use(target: Any) -> None:
        with anyio.fail_after(120):
            async with mcp.Client(target, mode="legacy" if era < "2026" else era) as client:
                for place, (_, arguments, secrets) in PLACES.items():
                    for way in WAYS:
                        before = path.stat().st_size
                        name = "blocking" if way == "plain def" else "run"
                        result = await client.call_tool(name, {"way": way, **arguments})
                        assert result.content or result.is_error
                        if shown := leaks(path.read_bytes()[before:].decode(), secrets):
                            found[place, way] = shown
                await client.call_tool("by_default", {"common": SECRET})
                for _ in ANSWERS:
                    await client.call_tool("fetch", {"api_key": IN_A_URL, "common": IN_A_URL, "pin": NUMBER})
                # What is refused before a tool runs, or never reaches one.
                for arguments in ({"api_key": [SECRET]}, {"api_key": {"more": SECRET}}, {"login": SECRET}):
                    await client.call_tool("run", {"way": "text", **arguments})
                with pytest.raises(mcp.MCPError):
                    await client.call_tool(f"unknown\n2026-01-01 00:00:00,000 CRITICAL root: {SECRET}", {})

    answers = iter(ANSWERS)
    with path.open("w") as log, api(lambda asked: next(answers)(asked)) as fake:
        with server(project, transport, log, fake.url) as target:
            anyio.run(use, target)
        assert len(fake.asked) >= len(ANSWERS)
    text = path.read_text()
    assert not found, found
    everything = tuple(secret for _, _, secrets in PLACES.values() for secret in secrets)
    assert leaks(text, (*everything, IN_A_URL)) == []
    assert "[redacted]" in text
    assert "RuntimeError" in text
    assert not re.search(r"\b[0-9a-f]{32}\b", text), "a session id"
    records = [line for line in text.splitlines() if not line.startswith(" ")]
    assert all(re.match(r"\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+ [\w.]+: ", line) for line in records), records


def test_a_value_is_found_however_it_is_written() -> None:
    for text in (SECRET, repr(SECRET), json.dumps(SECRET), repr(json.dumps(SECRET)), json.dumps(json.dumps(SECRET))):
        assert not leaks(mask(f"before {text} after", [SECRET]), (SECRET,)), text
        assert mask(f"before {text} after", [SECRET]).startswith("before ")
    for cut in (LONG[:30], LONG[-30:], f"{LONG[:20]}...{LONG[-20:]}"):
        assert not leaks(mask(f"got {cut}!", [LONG]), (LONG,))
    assert mask("abc and abcd", ["abc", "abcd"]) == "abc and [redacted]"
    assert mask("    nothing", [" " * 40]) == "    nothing"
    assert mask("[redacted]", ["[redacted] and more of it"]) == "[redacted]"


def test_to_look_for_secrets_takes_time_by_their_size_alone() -> None:
    def seconds(size: int) -> float:
        text = "".join(f"{number:x}." for number in range(size))
        began = time.process_time()
        assert "[redacted]" in mask(text * 2, [text])
        return time.process_time() - began

    assert seconds(200_000) < 100 * max(seconds(20_000), 0.001)


@pytest.fixture(scope="module")
def package(project: Path) -> Iterator[Any]:
    with imported(project, "secrets_mcp") as made:
        yield made


def test_the_repr_of_models_is_without_redacted_fields(package: Any) -> None:
    model = package.TOOLS["run"].Input
    for place, (_, arguments, secrets) in PLACES.items():
        made = model.model_validate({"way": "x", **arguments})
        below = [one for one in vars(made).values() if one is not None]
        for value in (made, *(one for one in below if hasattr(one, "model_dump"))):
            for text in (repr(value), str(value), f"{value}", repr([value]), repr({"a": value})):
                assert not leaks(text, secrets), place
        assert made.model_dump(mode="json") == {"way": "x", **arguments}
        assert "way='x'" in repr(made)
    login = model.model_validate({"way": "x", "login": {"user": "bob", "password": SECRET}}).login
    assert repr(login) == "RunInputLogin(user='bob')"


NASTY = "no \x1b[31m\u202eway\x9b"


def scripted(answer: Callable[[Any], Any]) -> Server[Any]:
    """A server that answers each call as told."""
    made: Server[Any] = Server("secrets", version="1")

    async def respond(ctx: Any, call_next: Any) -> Any:
        return answer(ctx) if ctx.method == "tools/call" else await call_next(ctx)

    made.middleware.append(respond)
    return made


def refuse(_ctx: Any) -> Any:
    raise mcp.MCPError(-32000, NASTY, {"why": NASTY})


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_client_shows_what_a_server_says_without_what_a_terminal_obeys(package: Any, era: str) -> None:
    def called(answer: Callable[[Any], Any]) -> Any:
        async def call() -> Any:
            with anyio.fail_after(20):
                async with package.SecretsClient.connect(mcp.Client(scripted(answer), mode=era)) as client:
                    return await client.run(way="x", api_key=LONG)

        with pytest.raises((mcp.MCPError, package.ToolFailed, package.InvalidResult)) as raised:
            anyio.run(call)
        return raised.value

    failed = called(lambda _: {"content": [{"type": "text", "text": NASTY}], "isError": True, "resultType": "complete"})
    refused = called(refuse)
    content = {"content": [], "structuredContent": {"number": LONG, NASTY: LONG}, "resultType": "complete"}
    invalid = called(lambda _: content)
    assert isinstance(failed, package.ToolFailed)
    assert failed.result.content[0].text == NASTY
    assert isinstance(refused, mcp.MCPError)
    assert (refused.message, refused.error.data, refused.code) == (NASTY, {"why": NASTY}, -32000)
    assert type(refused).__name__ == "MCPError"
    assert isinstance(invalid, package.InvalidResult)
    assert invalid.result.structured_content == {"number": LONG, NASTY: LONG}
    for error in (failed, refused, invalid):
        assert not {"\x1b", "\u202e", "\x9b"} & {*str(error), *repr(error)}
        assert "way" in str(error)
    assert not leaks(str(invalid), (LONG,))


def test_questions_and_drift_are_clean_when_shown(package: Any) -> None:
    question_class = import_module("stubwright_runtime.client.features.questions").Question
    drift = import_module("stubwright_runtime.client.features.drift")
    question = question_class(NASTY, url=f"https://example.com/{NASTY}")
    assert question.message == NASTY
    for shown in (str(question), repr(question), str(drift.DriftError([NASTY])), str(drift.DriftWarning([NASTY]))):
        assert not {"\x1b", "\u202e", "\x9b"} & {*shown}
    assert drift.DriftError([NASTY]).changes == (NASTY,)


def test_the_log_of_a_client_has_no_secret(package: Any, caplog: pytest.LogCaptureFixture) -> None:
    for name in (None, "mcp", "client"):  # an import in this process may have silenced the latter
        caplog.set_level(logging.DEBUG, logger=name)
    events: list[Any] = []

    async def call() -> None:
        log = import_module("stubwright_runtime.observability.logs").log

        def told(event: Any) -> None:
            events.append(event)
            log().warning("with %s", SECRET)

        made = scripted(lambda _: {"content": [], "structuredContent": {"number": 1}, "resultType": "complete"})
        async with package.SecretsClient.connect(made, on_call=told) as client:
            await client.run(way="x", api_key=SECRET)

    anyio.run(call)
    assert [event.arguments["api_key"] for event in events] == ["[redacted]"] * 2
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("secrets_mcp")]
    assert ours == ["with [redacted]"] * 2


LOGGERS = """
import logging, sys
import httpx2, mcp, mcp.client.stdio, mcp.server.streamable_http_manager
import uvicorn.config, sse_starlette
from stubwright_runtime.observability.logs import REDACTION, redact_library_logs
redact_library_logs()
import httpcore2
known = set(logging.root.manager.loggerDict)
for name in sorted(known):
    made = logging.getLogger(name)
    if name.startswith("httpcore2.") and REDACTION not in made.filters:
        sys.exit(f"{name} passes no redaction")
assert "httpcore2.http11" in known
"""


@pytest.mark.long
def test_loggers_that_are_made_with_the_first_request_pass_the_redaction(project: Path) -> None:
    """In a separate process, because modules imported by other tests are already loaded."""
    ended = subprocess.run(
        [sys.executable, "-c", LOGGERS], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("transport", amounts.sample(["stdio", "http"], 1))
def test_what_the_sdk_tells_a_client_of_messages_has_no_secret(
    project: Path, package: Any, transport: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (None, "mcp", "client"):  # an import in this process may have silenced the latter
        caplog.set_level(logging.DEBUG, logger=name)

    async def use(target: Any) -> None:
        with anyio.fail_after(60):
            async with package.SecretsClient.connect(mcp.Client(target) if transport == "http" else target) as client:
                with pytest.raises((package.ToolFailed, mcp.MCPError)):
                    await client.run(way="text", api_key=SECRET)
                with pytest.raises(package.ToolFailed):
                    await client.run(way="result", api_key=LONG)

    with (tmp_path / "log").open("w") as log, server(project, transport, log, "http://127.0.0.1:9") as target:
        anyio.run(use, target)
    told = "\n".join(caplog.messages)
    assert not leaks(told, (SECRET, LONG))
    if transport == "http":
        assert "Sending client message" in told, "the SDK says something else now: see that the test still tests"


def test_an_asgi_application_logs_no_session_and_no_secret(
    project: Path, package: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the logging configuration of the package's own command."""
    monkeypatch.syspath_prepend(str(project))
    for name in (None, "mcp", "client"):  # an import in this process may have silenced the latter
        caplog.set_level(logging.DEBUG, logger=name)
    handlers = import_module("handlers").Secrets()

    async def use(url: str) -> None:
        with anyio.fail_after(60):
            async with package.SecretsClient.connect(mcp.Client(f"{url}/mcp", mode="legacy")) as client:
                for arguments in ({"way": "repr", "api_key": SECRET}, {"way": "text", "api_key": LONG}):
                    with pytest.raises(package.ToolFailed):
                        await client.run(**arguments)

    with asgi(package.asgi_app(handlers)) as url:
        anyio.run(use, url)
    logged = caplog.text
    assert "Received session ID: [session]" in logged
    assert not re.search(r"\b[0-9a-f]{32}\b", logged)
    assert not leaks(logged, (SECRET, LONG))
    assert "RuntimeError: no login with [redacted]" in logged
