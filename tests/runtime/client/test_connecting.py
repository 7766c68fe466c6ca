"""Connection failures: an exception class for each reason, while connecting and later."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import logging
import os
import pickle
import select
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import anyio
import httpx2
import mcp
import mcp_types
import pytest
from anyio.abc import SocketAttribute, SocketStream
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS, get_default_environment

import amounts
import prompt_ends
from answers import say, say_result, serve
from hostile import HANDSHAKE, Said, listen
from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.client.core.connect_errors import (
    ConnectError,
    Forbidden,
    NotFound,
    NotMCP,
    ServerExited,
    ServerNotFound,
    SessionLost,
    Unauthorized,
    Unreachable,
)
from stubwright_runtime.client.core.environment import describe_withheld, find_withheld, select_inherited
from stubwright_runtime.client.rpc.client import RpcClient
from stubwright_runtime.client.rpc.connection import RpcConnection
from stubwright_runtime.client.rpc.mcp_error import MCPError
from stubwright_runtime.client.transports import http
from stubwright_runtime.client.transports.bounds import Bound, Bounds
from stubwright_runtime.client.transports.http import HttpTransport
from stubwright_runtime.client.transports.process import Command, ServerProcess
from stubwright_runtime.client.transports.replies import HttpClient, HttpRequest, Reply
from stubwright_runtime.package import Package, Tool
from tls import make_certificate

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


MANIFEST: Final = {
    "stubwright": 1,
    "server": {"name": "echo", "version": "4.5.6"},
    "tools": [{"name": "ping", "inputSchema": {"type": "object"}}],
}


class _Package(Package):
    @property
    def manifest(self) -> dict[str, Any]:
        return MANIFEST


class EchoClient(Binding):
    _package = _Package("echo_mcp", tools=[Tool("ping")])

    async def ping(self) -> list[mcp_types.ContentBlock]:
        return await self._call_content("ping", {})


REFUSALS: Final[dict[str, tuple[type[ConnectError], int, dict[str, str], bytes, str]]] = {
    "no token": (
        Unauthorized,
        401,
        {"WWW_Authenticate": 'Bearer resource_metadata="https://x.example/meta"'},
        b"",
        (
            "returns HTTP 401 Unauthorized: the request had no token; "
            'it requests `Bearer resource_metadata="https://x.example/meta"`'
        ),
    ),
    "a token that is over": (
        Unauthorized,
        401,
        {"WWW_Authenticate": 'Bearer error="invalid_token", error_description="The token is over"'},
        b'{"error": "invalid_token"}',
        "returns HTTP 401 Unauthorized: the request had no token; invalid_token; The token is over",
    ),
    "a scope": (
        Forbidden,
        403,
        {"WWW_Authenticate": 'Bearer error="insufficient_scope", scope="inv:write inv:read"'},
        b"",
        "returns HTTP 403 Forbidden: insufficient_scope; it requires the scopes `inv:write inv:read`",
    ),
    "an error of MCP with 403": (
        Forbidden,
        403,
        {"Content_Type": "application/json"},
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"not from here","data":7}}',
        "returns HTTP 403 Forbidden: not from here",
    ),
    "a page": (
        NotMCP,
        200,
        {"Content_Type": "text/html; charset=utf-8"},
        b"<html>",
        ("is not an MCP endpoint: it returns HTTP 200 OK (text/html); check the path, which is `/mcp` on most servers"),
    ),
    "another API": (
        NotMCP,
        200,
        {"Content_Type": "application/json"},
        b'{"hello": "world"}',
        (
            "is not an MCP endpoint: it returns HTTP 200 OK (application/json); "
            "check the path, which is `/mcp` on most servers"
        ),
    ),
    "a server of a folder": (
        NotMCP,
        501,
        {"Content_Type": "text/html"},
        b"<html>",
        (
            "is not an MCP endpoint: it returns HTTP 501 Not Implemented (text/html); "
            "check the path, which is `/mcp` on most servers"
        ),
    ),
    "a server of HTTP+SSE": (
        NotMCP,
        405,
        {"Allow": "GET"},
        b"",
        (
            "is not an MCP endpoint: it returns HTTP 405 Method Not Allowed; check the path, which is `/mcp` on "
            "most servers; HTTP+SSE, the MCP 2024-11-05 transport, is not supported"
        ),
    ),
    "a page that is not there": (
        NotFound,
        404,
        {"Content_Type": "text/html"},
        b"<html>",
        ("does not exist: it returns HTTP 404 Not Found (text/html); check the path, which is `/mcp` on most servers"),
    ),
    "a gateway": (
        Unreachable,
        502,
        {"Content_Type": "text/html"},
        b"<html>",
        "returns HTTP 502 Bad Gateway (text/html)",
    ),
    "a host that is not allowed": (
        ConnectError,
        421,
        {"Content_Type": "text/plain; charset=utf-8"},
        b"Invalid Host header",
        (
            "returns HTTP 421 Misdirected Request: it does not serve the host `mcp.example.com`; "
            "add it to the server's allowed hosts, in a generated server with `--allow-host`"
        ),
    ),
    "too many": (Unreachable, 429, {}, b"", "returns HTTP 429 Too Many Requests"),
    "a foreign origin": (
        Forbidden,
        403,
        {"Content_Type": "text/plain; charset=utf-8"},
        b"Invalid Origin header\n",
        "returns HTTP 403 Forbidden: Invalid Origin header",
    ),
    "a token that a gateway refuses": (
        Unauthorized,
        401,
        {"Content_Type": "Text/Plain"},
        b"the key is over",
        "returns HTTP 401 Unauthorized: the request had no token; the key is over",
    ),
    "a text with control characters": (
        Unreachable,
        503,
        {"Content_Type": "text/plain"},
        b"\x1b[31mno upstream\r\n\r\ntry later \xff",
        "returns HTTP 503 Service Unavailable (text/plain): \ufffd[31mno upstream try later \ufffd",
    ),
    "a long text": (
        NotFound,
        404,
        {"Content_Type": "text/plain"},
        b"x" * 5000,
        (
            f"does not exist: it returns HTTP 404 Not Found (text/plain): {'x' * 199}…; "
            "check the path, which is `/mcp` on most servers"
        ),
    ),
    "a text that repeats the status": (
        Unreachable,
        502,
        {"Content_Type": "text/plain"},
        b"Bad gateway.",
        "returns HTTP 502 Bad Gateway (text/plain)",
    ),
    "the error of a web framework": (
        Forbidden,
        403,
        {"Content_Type": "application/json"},
        b'{"title": "No", "detail": "Not on the list"}',
        "returns HTTP 403 Forbidden: Not on the list",
    ),
    "the error of an OAuth server": (
        Unauthorized,
        401,
        {"Content_Type": "application/json"},
        b'{"error": "invalid_token", "error_description": "the token is over"}',
        "returns HTTP 401 Unauthorized: the request had no token; the token is over",
    ),
    "a problem": (
        NotMCP,
        409,
        {"Content_Type": "application/problem+json"},
        b'{"type": "about:blank", "title": "No", "status": 409, "detail": "in\\nuse"}',
        (
            "is not an MCP endpoint: it returns HTTP 409 Conflict (application/problem+json): in use; "
            "check the path, which is `/mcp` on most servers"
        ),
    ),
    "an error that is a list": (
        Unreachable,
        503,
        {"Content_Type": "application/json; charset=utf-8"},
        b'[{"loc": ["header"]}]',
        'returns HTTP 503 Service Unavailable (application/json): [{"loc": ["header"]}]',
    ),
    "an error in JSON that repeats the status": (
        Unreachable,
        502,
        {"Content_Type": "application/json"},
        b'{"message": "Bad Gateway"}',
        "returns HTTP 502 Bad Gateway (application/json)",
    ),
    "an error in JSON that is cut": (
        Unreachable,
        500,
        {"Content_Type": "application/json"},
        b'{"detail": ',
        'returns HTTP 500 Internal Server Error (application/json): {"detail":',
    ),
    "a text that looks like an answer": (
        Unreachable,
        500,
        {"Content_Type": "text/plain"},
        b'{"error": {"message": "no"}}',
        'returns HTTP 500 Internal Server Error (text/plain): {"error": {"message": "no"}}',
    ),
}


@pytest.mark.parametrize("name", amounts.sample(list(REFUSALS), 9))
async def test_what_refuses_a_connection_says_why(name: str) -> None:
    kind, status, headers, body, why = REFUSALS[name]
    with (
        serve(lambda handler, _: say(handler, status, body, **headers)) as url,
        pytest.raises(MCPError) as raised,
    ):
        async with EchoClient.connect(url + "?key=s3cret", headers={"Host": "mcp.example.com"}):
            pass
    error = raised.value
    assert type(error) is kind
    assert (error.target, error.why, error.status) == (url, why, status)
    assert str(error) == error.message == f"`{url}` {why}"
    assert getattr(error, "challenge", None) == (headers.get("WWW_Authenticate") if status in (401, 403) else None)
    assert (error.code, error.data) == ((-32001, 7) if "MCP with" in name else (error.code, None))


async def test_cookies_are_returned_to_their_server() -> None:
    """Load balancers keep a client at one process by a cookie."""
    sent: list[str | None] = []

    def answer(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
        sent.append(handler.headers["Cookie"])
        handler.send_response_only = partial(_send_with_cookie, handler, len(sent))  # type: ignore[method-assign]
        say_result(handler, message)

    with serve(answer) as url:
        client = RpcClient(HttpTransport(url, {}, Bounds()), Bounds(), revision="2025-11-25")
        async with client:
            await client.call_tool("a")
            await client.call_tool("a")
    assert sent == [None, "node=1", "node=2", "node=3"]


def _send_with_cookie(handler: BaseHTTPRequestHandler, number: int, code: int, message: str | None = None) -> None:
    type(handler).send_response_only(handler, code, message)
    handler.send_header("Set-Cookie", f"node={number}")


ECHOES: Final[dict[str, tuple[int, dict[str, str], bytes, str]]] = {
    "a text": (
        403,
        {"Content_Type": "text/plain"},
        (
            b"Authorization: Bearer tok-1234567890abcdefgh, Bearer tok-12345678..., "
            b"Cookie: id=abcdefgh, X-Key: key-1, key=s3cret, x: acme"
        ),
        (
            "returns HTTP 403 Forbidden: Authorization: Bearer [redacted], Bearer [redacted]..., "
            "Cookie: id=[redacted], X-Key: [redacted], key=[redacted], x: acme"
        ),
    ),
    "JSON": (
        500,
        {"Content_Type": "application/json"},
        b'{"headers": {"authorization": "Bearer tok-1234567890abcdefgh"}}',
        (
            "returns HTTP 500 Internal Server Error (application/json): "
            '{"headers": {"authorization": "Bearer [redacted]"}}'
        ),
    ),
    "a challenge in UTF-8": (
        401,
        # `http.server` encodes headers in ISO-8859-1.
        {"WWW_Authenticate": 'Bearer error="invalid_token", error_description="für"'.encode().decode("latin-1")},
        b"",
        "returns HTTP 401 Unauthorized: invalid_token; für",
    ),
    "a challenge": (
        401,
        {"WWW_Authenticate": 'Bearer error="invalid_token", error_description="tok-1234567890abcdefgh is over"'},
        b"",
        "returns HTTP 401 Unauthorized: invalid_token; [redacted] is over",
    ),
    "an error of MCP": (
        403,
        {"Content_Type": "application/json"},
        b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "tok-1234567890abcdefgh is over"}}',
        "returns HTTP 403 Forbidden: [redacted] is over",
    ),
    "words that are in the URL by chance": (
        404,
        {"Content_Type": "text/plain"},
        b"no such path for s3cret",
        (
            "does not exist: it returns HTTP 404 Not Found (text/plain): no such [redacted] for [redacted]; "
            "check the path, which is `/mcp` on most servers"
        ),
    ),
}


@pytest.mark.parametrize("name", list(ECHOES))
async def test_a_refusal_repeats_no_secret_of_the_request(name: str) -> None:
    status, headers, body, why = ECHOES[name]
    own = {
        "Authorization": "Bearer tok-1234567890abcdefgh",
        "Cookie": "id=abcdefgh",
        "X-Key": "key-1",
        "X-Tenant": "acme",
    }
    with (
        serve(lambda handler, _: say(handler, status, body, **headers)) as url,
        pytest.raises(mcp.MCPError) as raised,
    ):
        async with EchoClient.connect(url + "?key=s3cret&by=path", headers=own):
            pass
    assert isinstance(raised.value, ConnectError)
    assert raised.value.why == why


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Unauthorized), (403, Forbidden), (503, Unreachable), (404, NotFound), (413, ConnectError)],
)
async def test_what_refuses_one_call_fails_that_call_alone(status: int, kind: type[ConnectError]) -> None:
    refused: list[str] = []

    def answer(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call" and not refused:
            refused.append(handler.headers["Authorization"])
            say(handler, status)
        else:
            say_result(handler, message)

    with serve(answer) as url:
        async with EchoClient.connect(url, headers={"Authorization": "Bearer t0ken"}) as client:
            with pytest.raises(kind) as raised:
                await client.ping()
            assert "no token" not in str(raised.value)
            assert "t0ken" not in str(raised.value)
            assert type(raised.value) is kind
            assert raised.value.status == status
            assert await client.ping() == []
    assert refused == ["Bearer t0ken"]


@pytest.mark.parametrize(
    ("status", "media", "shown"),
    [
        (
            200,
            "text/html; charset=utf-8",
            "HTTP 200 OK (text/html) instead of an MCP message; a proxy may have sent it",
        ),
        (200, "text/plain", "HTTP 200 OK (text/plain) instead of an MCP message"),
        (200, None, "HTTP 200 OK instead of an MCP message"),
        (202, None, "HTTP 202 Accepted instead of an MCP message"),
        (204, None, "HTTP 204 No Content instead of an MCP message"),
    ],
)
async def test_what_is_no_message_fails_that_call_alone(status: int, media: str | None, shown: str) -> None:
    answered: list[bool] = []

    def answer(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call" and not answered:
            answered.append(True)
            say(
                handler,
                status,
                b"" if status == 204 else b"<html>",
                **({} if media is None else {"Content_Type": media}),
            )
        else:
            say_result(handler, message)

    with serve(answer) as url:
        secret = url.replace("http://", "http://user:s3cret@") + "?key=s3cret"
        async with EchoClient.connect(secret) as client:
            with pytest.raises(MCPError) as raised:
                await client.ping()
            assert str(raised.value) == f"`{url}` returns {shown}"
            assert type(raised.value) is NotMCP
            assert raised.value.status == status
            assert await client.ping() == []


@pytest.mark.parametrize("ending", ["late", "cut", "endless"])
async def test_a_text_that_does_not_end_hides_no_status(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_SECONDS_FOR_TEXT", 0.2)
    is_terminal = threading.Event()

    def write() -> Iterator[bytes]:
        yield b"not from here"
        while ending == "endless":
            yield b"." * 65536
        if ending == "late":
            is_terminal.wait(20)

    said = Said(write, 403, {"Content-Type": "text/plain"}, is_cut=ending == "cut")
    with listen(HANDSHAKE, lambda method, _: said if method == "tools/call" else None) as (url, _):
        async with EchoClient.connect(url, timeout=10) as client:
            with pytest.raises(Forbidden, match=r"returns HTTP 403 Forbidden: not from here"):
                await client.ping()
            is_terminal.set()


@pytest.mark.parametrize(
    ("headers", "why"), [({}, ""), ({"Content-Length": "99"}, ": peer closed connection without sending complete")]
)
async def test_a_stream_that_breaks_off_fails_that_call_alone(headers: dict[str, str], why: str) -> None:
    broken: list[bool] = []

    def answer(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
        if message.get("method") != "tools/call" or broken:
            say_result(handler, message)
            return
        broken.append(True)
        handler.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", "Connection": "close", **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(b": soon\n\n")
        handler.close_connection = True

    with serve(answer) as url:
        async with EchoClient.connect(url) as client:
            with pytest.raises(Unreachable, match=f"interrupted its response{why}"):
                await client.ping()
            assert await client.ping() == []


async def test_a_session_that_is_over_is_no_missing_page() -> None:
    def answer(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call":
            say(handler, 404)
        elif message.get("method") == "initialize":
            handler.close_connection = True
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            say(handler, 200, body, Content_Type="application/json", Mcp_Session_Id="abc")
        else:
            say_result(handler, message)

    with serve(answer) as url:
        async with EchoClient.connect(url) as client:
            with pytest.raises(SessionLost, match="no longer recognizes the client's session"):
                await client.ping()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/mcp", "cannot be reached: connection refused"),
        ("http://nowhere.invalid/mcp", "cannot be reached: unknown host"),
    ],
)
async def test_a_host_that_cannot_be_reached(url: str, why: str) -> None:
    with pytest.raises(Unreachable) as raised:
        async with EchoClient.connect(url):
            pass
    assert str(raised.value) == f"`{url}` {why}"
    assert raised.value.code == mcp_types.CONNECTION_CLOSED


# --- Commands ---------------------------------------------------------------------------------------------------


def command(code: str) -> list[str]:
    """A command that runs Python."""
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("code", "why", "status"),
    [
        ("import sys; print('no key is set', file=sys.stderr); sys.exit(3)", "exited with status 3", 3),
        ("import sys; sys.stdin.readline(); sys.exit('no key is set')", "exited with status 1", 1),
        (
            (
                "import os, signal, sys; print('no key is set', file=sys.stderr, flush=True); "
                "os.kill(os.getpid(), signal.SIGKILL)"
            ),
            "was terminated by SIGKILL",
            -9,
        ),
        (
            "import os, sys, time; print('no key is set', file=sys.stderr, flush=True); os.close(1); time.sleep(60)",
            "closed its standard output",
            None,
        ),
        (
            "import os, sys, time; print('no key is set', file=sys.stderr, flush=True); os.close(0); time.sleep(60)",
            "closed its standard input",
            None,
        ),
        (
            (
                "import sys; print('no key is set', file=sys.stderr, flush=True); sys.stdin.readline(); "
                "sys.stdout.buffer.write('{}'.encode('utf-16')); sys.stdout.flush(); sys.stdin.read()"
            ),
            "wrote UTF-16 instead of UTF-8",
            None,
        ),
    ],
)
@pytest.mark.usefixtures("nothing_to_pass")
async def test_a_command_that_ends_says_how(
    code: str, why: str, status: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)  # the last one must be killed
    with pytest.raises(ServerExited) as raised:
        async with EchoClient.connect(command(code)):
            pass
    assert (raised.value.why, raised.value.status) == (why, status)
    if status is not None:
        assert raised.value.stderr == ("no key is set",)
        assert str(raised.value) == f"`{Path(sys.executable).name}` {why}\n  | no key is set"
    assert capsys.readouterr().err == "no key is set\n"  # it is also reported immediately


async def test_a_command_that_ends_says_which_variables_it_lacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_MODE", "hidden")
    monkeypatch.setenv("OTHER_API_KEY", "hidden")
    connecting = EchoClient.connect(command("import os; os.environ['WEATHER_MODE']"), env={"OTHER_MODE": "fast"})
    with pytest.raises(ServerExited) as raised:
        async with connecting:
            pass
    assert raised.value.withheld == ("WEATHER_MODE",)
    assert str(raised.value).splitlines()[-1] == (
        "  the command did not inherit WEATHER_MODE, which is set here; pass it with the parameter `env`"
    )
    assert "hidden" not in str(raised.value)


async def test_a_package_that_is_not_found_may_have_lacked_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "generated:src")
    monkeypatch.setenv("OTHER_API_KEY", "hidden")
    with pytest.raises(ServerExited, match="No module named weather_that_is_not_there") as raised:
        async with EchoClient.connect([sys.executable, "-m", "weather_that_is_not_there"]):
            pass
    assert raised.value.withheld == ("PYTHONPATH",)


async def test_a_server_that_ends_in_a_call_says_only_what_it_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "hidden")
    async with EchoClient.connect(command(SERVER)) as client:
        with pytest.raises(ServerExited) as raised:
            await client.ping()
    assert raised.value.withheld == ()
    async with EchoClient.connect(command(SERVER.replace('"line"', '"OTHER_API_KEY"'))) as client:
        with pytest.raises(ServerExited) as raised:
            await client.ping()
    assert raised.value.withheld == ("OTHER_API_KEY",)


@pytest.mark.usefixtures("nothing_to_pass")
async def test_a_process_that_a_signal_ended_lacked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "hidden")
    with pytest.raises(ServerExited) as raised:
        async with EchoClient.connect(command("import os; os.kill(os.getpid(), 9)")):
            pass
    assert raised.value.withheld == ()


ENVIRONMENT: Final = {
    "PATH",
    "EDITOR",
    "LANG",
    "name",
    "shop_name",
    "A_KEY",
    "B_TOKEN",
    "b_url",
    "X_HOME",
    "PWD",
    "A B_KEY",
}


def test_a_command_gets_what_the_sdk_passes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*DEFAULT_INHERITED_ENV_VARS, "API_KEY"):
        monkeypatch.setenv(name, f"of {name}")
    monkeypatch.setenv("SHELL", "() { echo; }")
    assert (
        select_inherited({name: os.environ[name] for name in DEFAULT_INHERITED_ENV_VARS}) == get_default_environment()
    )
    assert "API_KEY" not in select_inherited(os.environ)


@pytest.mark.parametrize(
    ("lines", "at_start", "withheld"),
    [
        ((), True, ("A_KEY", "B_TOKEN", "X_HOME", "b_url")),
        ((), False, ()),
        (("KeyError: 'B_TOKEN'", "the name is not set"), True, ("B_TOKEN",)),
        (("set EDITOR or shop_name=…",), False, ("EDITOR", "shop_name")),
        (("XB_TOKEN, B_TOKEN_FILE, PATH",), False, ()),
        (("A B_KEY is not set",), False, ()),
        (("ModuleNotFoundError: No module named 'shop'",), True, ("A_KEY", "B_TOKEN", "X_HOME", "b_url")),
    ],
)
def test_variables_that_a_command_may_have_needed(
    lines: tuple[str, ...], at_start: bool, withheld: tuple[str, ...]
) -> None:
    assert find_withheld(ENVIRONMENT, {"PATH"}, lines, at_start=at_start) == withheld


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["A_KEY"], "did not inherit A_KEY, which is set here; pass it with --env A_KEY"),
        (["A", "B"], "did not inherit A, B, which are set here; pass the ones it needs with --env NAME"),
        (list("ABCDEFG"), "did not inherit A, B, C, D, E and 2 more, which are set here; pass"),
    ],
)
def test_variables_are_told_in_a_line(names: list[str], told: str) -> None:
    assert f"the command {told}" in describe_withheld(names, "--env NAME")


SERVER: Final = """
import json, sys
print("\\x1b[1mWelcome", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        print(message["params"]["clientInfo"], file=sys.stderr, flush=True)
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    elif message.get("method") == "tools/call":
        for number in range(40):
            print("line", number, file=sys.stderr)
        sys.exit(5)
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_a_byte_order_mark_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    mark = "sys.stdout.buffer.write(b'\\xef\\xbb\\xbf')"
    code = "\n".join(mark if "Welcome" in line else line for line in SERVER.splitlines())
    async with EchoClient.connect(command(code)):
        pass
    assert "no message of JSON-RPC" not in caplog.text


async def test_a_server_that_ends_in_a_call_says_how_and_what_it_wrote(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    async with EchoClient.connect(command(SERVER)) as client:
        for _ in range(2):
            with pytest.raises(ServerExited) as raised:
                await client.ping()
            assert raised.value.status == 5
            assert raised.value.stderr[:1] == ("{'name': 'echo_mcp', 'version': '4.5.6'}",)
            assert raised.value.stderr[5] == "…"
            assert raised.value.stderr[-10:] == tuple(f"line {number}" for number in range(30, 40))
    assert capsys.readouterr().err.count("line ") == 40
    lines = [record for record in caplog.records if "not a JSON-RPC message" in record.getMessage()]
    assert [record.getMessage() for record in lines] == [
        "ignoring a line from the server that is not a JSON-RPC message: \ufffd[1mWelcome"
    ]
    assert all(record.exc_info is None for record in caplog.records)
    assert {record.name for record in caplog.records if record.levelno >= logging.WARNING} == {"echo_mcp"}


@pytest.mark.usefixtures("nothing_to_pass")
async def test_a_process_that_another_outlives_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    leave_one = "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'])"
    async with EchoClient.connect(command(SERVER.replace("sys.exit(5)", f"{leave_one}; sys.exit(5)"))) as client:
        with anyio.fail_after(10):
            with pytest.raises(ServerExited) as raised:
                await client.ping()
    assert (raised.value.status, raised.value.stderr[-1]) == (5, "line 39")
    assert capsys.readouterr().err.count("line ") == 40


SILENT: Final = SERVER.replace("sys.exit(5)", "continue")


async def test_a_call_that_the_end_of_the_block_cuts_off_says_so() -> None:
    async with EchoClient.connect(command(SILENT)) as client:
        call = asyncio.create_task(client.ping())
        await anyio.sleep(0.05)
    with pytest.raises(mcp.MCPError, match="the client was closed before the response arrived") as raised:
        await call
    assert raised.value.code == mcp_types.CONNECTION_CLOSED


@pytest.mark.usefixtures("nothing_to_pass")
async def test_a_command_that_does_not_answer_in_time_is_named() -> None:
    code = "import sys; print('waiting for the database', file=sys.stderr, flush=True); sys.stdin.read()"
    with anyio.fail_after(8), pytest.raises(Unreachable) as raised:
        async with EchoClient.connect(command(code), timeout=0.5):
            pass
    assert raised.value.code == mcp_types.REQUEST_TIMEOUT
    assert str(raised.value) == (
        f"`{Path(sys.executable).name}` did not respond within 0.5 seconds\n  | waiting for the database"
    )


async def test_a_server_that_does_not_answer_in_time_is_named() -> None:
    async def wait(stream: SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, wait)
        port = listener.extra(SocketAttribute.local_port)
        with anyio.fail_after(8), pytest.raises(Unreachable) as raised:
            async with EchoClient.connect(f"http://ann:s3cret@127.0.0.1:{port}/mcp?key=s3cret", timeout=0.5):
                pass
        tasks.cancel_scope.cancel()
    assert str(raised.value) == f"`http://127.0.0.1:{port}/mcp` did not respond within 0.5 seconds"


@pytest.mark.parametrize(
    ("program", "folder", "why"),
    [
        ("/nowhere/at-all", None, "`at-all` cannot be started: program not found; is it installed?"),
        (__file__, None, "`test_connecting.py` cannot be started: Permission denied"),
        (
            sys.executable,
            "/nowhere",
            f"`{Path(sys.executable).name}` cannot be started: its working directory does not exist",
        ),
    ],
)
async def test_a_command_that_cannot_be_started_is_named(program: str, folder: str | None, why: str) -> None:
    with pytest.raises(ServerNotFound) as raised:
        async with EchoClient.connect([program], cwd=folder):
            pass
    assert str(raised.value) == why


def test_an_error_can_be_copied_and_sent_to_another_process() -> None:
    error = ServerExited("python", "exited with status 1", status=1, stderr=["a", "b"], withheld=["A_KEY"])
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is ServerExited
        assert (str(other), other.why, other.status, other.stderr) == (str(error), error.why, 1, ("a", "b"))
        assert other.withheld == ("A_KEY",)


@pytest.mark.parametrize("status", [404, 204, None])
async def test_the_end_of_a_session_of_a_server_that_is_gone_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    methods: list[str] = []

    async def send(_: HttpClient, request: HttpRequest) -> Reply:
        methods.append(request.method)
        if status is None:
            raise httpx2.ConnectError("refused")
        return Reply.wrap(httpx2.Response(status))

    monkeypatch.setattr(HttpClient, "send", send)
    transport = HttpTransport("http://127.0.0.1/mcp", {}, Bounds())
    connection = RpcConnection(transport, Bounds(), _answer_nothing, _hear_nothing)
    await connection.open()
    transport._sessions.record_start("initialize", "s")
    await connection.close()
    assert methods == ["DELETE"]


async def _answer_nothing(_key: object, method: str, _params: object) -> dict[str, Any]:
    raise AssertionError(method)


async def _hear_nothing(_method: str, _params: object) -> None:
    """Ignore notifications."""


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        (
            "socks5://ann:s3cret@localhost:9",
            "socks5://localhost:9 in the environment requires `pip install 'httpx2[socks]'`",
        ),
        ("foo://localhost", "foo://localhost in the environment is not one of http, https, socks5, socks5h"),
        ("http://ann:s3cret@[::1", "in the environment variable all_proxy is not a URL"),
        ("http://ann:s3cret@localhost:port", "in the environment variable all_proxy is not a URL"),
    ],
)
async def test_a_proxy_that_cannot_be_used_is_named(proxy: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    monkeypatch.setattr("stubwright_runtime.network.errors.find_spec", lambda _: None)  # no socksio
    with pytest.raises(Unreachable) as raised:
        async with EchoClient.connect("http://localhost/mcp"):
            pass
    assert str(raised.value) == f"`http://localhost/mcp` cannot be reached: the proxy {why}"


async def test_certificates_of_the_environment_that_cannot_be_used_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate")
    for file, why in (
        (tmp_path / "missing.pem", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (empty, "it contains no PEM certificate"),
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with pytest.raises(Unreachable) as raised:
            async with EchoClient.connect("https://localhost/mcp"):
                pass
        assert raised.value.why == f"cannot be reached: cannot use SSL_CERT_FILE='{file}': {why}"


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("localhost", ""),
        ("127.0.0.1", "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        (None, "self-signed certificate; set SSL_CERT_FILE to a file with its authority"),
    ],
)
async def test_a_certificate_that_does_not_fit_says_what_to_do(
    host: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, certificate = make_certificate(tmp_path)
    if host is not None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with (
        serve(lambda handler, _: say(handler, 404, b""), tls) as url,
        pytest.raises(mcp.MCPError) as raised,
    ):
        async with EchoClient.connect(url.replace("127.0.0.1", host or "localhost")):
            pass
    assert isinstance(raised.value, ConnectError)
    assert (raised.value.why == f"cannot be reached: its certificate is not valid: {why}") == bool(why)
    assert isinstance(raised.value, Unreachable) == bool(why)


async def test_a_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://ann:s3cret@127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(Unreachable) as raised:
        async with EchoClient.connect("http://example.invalid/mcp"):
            pass
    assert raised.value.why == ("cannot be reached: through the proxy http://127.0.0.1:9: connection refused")


async def test_closing_obeys_a_timeout_that_is_shorter_than_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stubwright_runtime.client.transports.process._GRACE", 20.0)
    stubborn = Command("sh", ["-c", "trap '' TERM; while :; do sleep 60; done"])
    bounds = Bounds(None)
    client = RpcClient(ServerProcess(stubborn, bounds, None), bounds, read_timeout_seconds=0.4)
    await client.server.open()
    start = time.monotonic()
    await client.__aexit__(None, None, None)
    assert time.monotonic() - start < 10


class Received:
    """A connection that stores the lines of a process."""

    has_room = True
    has_answered = False

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.ended = asyncio.Event()

    def find_longest(self) -> Bound:
        return Bound(None)

    def receive(self, line: bytes) -> None:
        self.lines.append(line)

    def end(self, _make_error: object) -> None:
        self.ended.set()


async def open_process(code: str) -> tuple[ServerProcess, Received]:
    program, *arguments = command(code)
    process, received = ServerProcess(Command(program, arguments), Bounds(None), None), Received()
    connection: Any = received
    await process.open(connection)
    return process, received


async def test_output_before_the_first_request_is_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connect_read_pipe = loop.connect_read_pipe

    async def connect_late(protocol: Any, pipe: Any) -> Any:
        select.select([pipe], [], [])
        return await connect_read_pipe(protocol, pipe)

    monkeypatch.setattr(loop, "connect_read_pipe", connect_late)
    count = 50_000  # larger than a pipe, so that the rest is read later
    process, received = await open_process(f"for number in range({count}): print(number)")
    await asyncio.wait_for(received.ended.wait(), 10)
    await process.close(2)
    assert received.lines == [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("is_closing", [False, True])
async def test_output_is_read_directly_after_the_output_that_the_loop_has_scheduled(is_closing: bool) -> None:
    output = Mock(is_closing=lambda: is_closing)
    process = ServerProcess(Command("x"), Bounds(None), None)
    process._errors.start()
    process.connection_made(Mock(get_pipe_transport=lambda _: output))
    output.set_protocol.assert_not_called()
    await asyncio.sleep(0)
    assert output.set_protocol.call_count == (not is_closing)


async def test_the_last_output_of_a_process_is_read_although_its_input_is_closed() -> None:
    process, received = await open_process("import sys; sys.stdin.read()")
    process.pipe_connection_lost(0, None)
    process.pipe_data_received(1, b"1\n2")
    process.pipe_connection_lost(1, None)
    await process.close(2)
    assert received.lines == [b"1", b"2"]


async def test_the_output_of_an_ended_process_is_read_after_a_pause() -> None:
    process, received = await open_process("input(); print(1)")
    process._output.pause_reading()
    process._is_paused = True
    await process.send({})
    await process._exited.wait()
    process._heard = 0.0  # the pause was long
    process._check_silence()
    process._check_exit()
    process.resume()
    process._check_silence()
    await asyncio.wait_for(received.ended.wait(), 10)
    await process.close(2)
    assert received.lines == [b"1"]


async def test_a_closed_process_is_released() -> None:
    process, received = await open_process("input()")
    await process.close(2)
    await asyncio.sleep(0)
    released = weakref.ref(process)
    del process, received
    gc.collect()
    assert released() is None


async def test_a_start_that_is_cancelled_ends_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connect_read_pipe = loop.connect_read_pipe

    async def connect_cancelled(protocol: Any, pipe: Any) -> Any:
        select.select([pipe], [], [])
        for _ in range(2):
            connecting.cancel()
            await asyncio.sleep(0)
        return await connect_read_pipe(protocol, pipe)

    monkeypatch.setattr(loop, "connect_read_pipe", connect_cancelled)
    process = ServerProcess(Command("sh", ["-c", "sleep 60 & echo; wait"]), Bounds(None), None)
    connecting = asyncio.ensure_future(RpcClient(process, Bounds(None), read_timeout_seconds=0.4).__aenter__())
    _, pending = await asyncio.wait((connecting,), timeout=10)
    assert not pending
    assert connecting.cancelled()
    pid = process._transport.get_pid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_start_that_fails_after_it_is_cancelled_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()

    async def fail_late(*_: object, **__: object) -> None:
        attempts[0].cancel()
        await asyncio.sleep(0)
        raise FileNotFoundError

    monkeypatch.setattr(loop, "subprocess_exec", fail_late)
    process = ServerProcess(Command("missing"), Bounds(None), None)
    attempts = [asyncio.ensure_future(RpcClient(process, Bounds(None)).__aenter__())]
    await asyncio.wait(attempts)
    assert attempts.pop().cancelled()
    gc.collect()  # asyncio logs unread exceptions
    assert not caplog.records
