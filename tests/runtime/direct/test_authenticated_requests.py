"""Requests with tokens get the same responses, whether they are read ahead of uvicorn or not."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import httpx2
import pytest
from mcp.server.auth.provider import AccessToken

import prompt_ends
from conversations import request
from packages import generate, imported, manifest, tool
from serving import listening
from stubwright_runtime.server.transports.http.listener import direct

ends_are_prompt = prompt_ends.ends_are_prompt

AUTH = {"issuer": "https://auth.example.com", "audience": "https://mcp.example.com/mcp", "onMissing": "challenge"}
TOOLS = [
    tool("name", {}),
    tool("write", {}, stubwright={"policy": {"scopes": ["w"]}}),
    tool("count", {}),
]


class Handlers:
    async def name(self, args: Any, ctx: Any) -> str:
        return str(ctx.principal)

    async def write(self, args: Any, ctx: Any) -> str:
        return "written"

    async def count(self, args: Any, ctx: Any) -> str:
        await ctx.progress(1, 2)
        return str(ctx.principal)


@dataclass
class Verifier:
    """Accepts subjects' names as tokens, except revoked tokens."""

    revoked: set[str] = field(default_factory=lambda: {"mallory"})

    async def verify_token(self, token: str) -> AccessToken | None:
        if token in self.revoked:
            return None
        scopes = ["w"] if token == "ada" else []
        return AccessToken(token="", client_id="c", scopes=scopes, subject=token, claims={"iss": AUTH["issuer"]})


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("guarded")
    with imported(folder, generate(folder, manifest(TOOLS, name="guarded", auth=AUTH))) as module:
        yield module


@pytest.fixture
def verifier() -> Verifier:
    return Verifier()


@pytest.fixture
def urls(package: ModuleType, verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """With the direct path of the listener, and without it."""
    # On a busy machine, the time would expire, and uvicorn would read the rest of the connection.
    monkeypatch.setattr(direct, "_LATE", 60)
    monkeypatch.setattr("stubwright_runtime.server.transports.http.post_handler._STREAM_DELAY", 60)
    with ExitStack() as stack:
        found = []
        for is_direct in (True, False):
            app = package.asgi_app(Handlers(), token_verifier=verifier)
            if not is_direct:
                app.direct_endpoint = None
            found.append(stack.enter_context(listening(app, "httptools")))
        yield found[0], found[1]


@pytest.fixture
def read_ahead(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The credentials of requests that were read ahead of uvicorn."""
    seen: list[bytes] = []
    authenticate = direct._authenticate

    async def note(authentication: Any, credentials: bytes, *rest: Any) -> Any:
        seen.append(credentials)
        return await authenticate(authentication, credentials, *rest)

    monkeypatch.setattr(direct, "_authenticate", note)
    return seen


def call(client: httpx2.Client, url: str, name: str, *credentials: str, **meta: Any) -> httpx2.Response:
    # pytest adds handlers to loggers when a test begins, and uvicorn reads all requests if its log has one.
    logging.getLogger("uvicorn.access").handlers.clear()
    message = request(1, "tools/call", {"name": name, "arguments": {}}, stateless=True)
    message["params"]["_meta"] |= meta
    headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", name),
        *(("Authorization", each) for each in credentials),
    ]
    return client.post(f"{url.removesuffix('/mcp')}/mcp", content=json.dumps(message), headers=headers, timeout=60)


def seen_of(response: httpx2.Response) -> Any:
    return response.status_code, {**response.headers, "date": ""}, response.json()


@pytest.mark.parametrize(
    ("name", "credentials", "status", "is_ahead"),
    [
        ("name", ["Bearer ada"], 200, True),
        ("name", ["bearer   bob"], 200, True),
        ("write", ["Bearer ada"], 200, True),
        ("write", ["Bearer bob"], 403, True),
        ("name", ["Bearer mallory"], 401, True),
        ("name", ["Basic YWRh"], 401, True),
        ("name", [], 401, False),
        ("name", ["Bearer ada", "Bearer ada"], 400, False),
    ],
)
def test_answers_are_equal(
    urls: tuple[str, str], read_ahead: list[bytes], name: str, credentials: list[str], status: int, is_ahead: bool
) -> None:
    with httpx2.Client() as client:
        ahead, other = (seen_of(call(client, url, name, *credentials)) for url in urls)
    assert ahead == other
    assert ahead[0] == status
    assert len(read_ahead) == is_ahead


def test_each_call_of_a_connection_is_authenticated(
    urls: tuple[str, str], verifier: Verifier, read_ahead: list[bytes]
) -> None:
    with httpx2.Client() as client:
        statuses = [call(client, urls[0], "name", "Bearer eve").status_code]
        verifier.revoked.add("eve")
        statuses.append(call(client, urls[0], "name", "Bearer eve").status_code)
        answer = call(client, urls[0], "name", "Bearer ada")
    assert statuses == [200, 401]
    assert answer.json()["result"]["content"][0]["text"] == "ada of https://auth.example.com"
    assert read_ahead == [b"Bearer eve", b"Bearer eve", b"Bearer ada"]


def test_a_request_that_becomes_a_stream_is_admitted_once(
    urls: tuple[str, str], verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted: list[str] = []
    verify = verifier.verify_token

    async def note(token: str) -> AccessToken | None:
        admitted.append(token)
        return await verify(token)

    monkeypatch.setattr(verifier, "verify_token", note)
    with httpx2.Client() as client:
        answer = call(client, urls[0], "count", "Bearer bob", progressToken=1)
    assert answer.headers["content-type"] == "text/event-stream"
    assert "notifications/progress" in answer.text
    assert "bob of https://auth.example.com" in answer.text
    assert admitted == ["bob"]


def test_heads_are_cached_without_credentials(package: ModuleType) -> None:
    endpoint = package.asgi_app(Handlers(), token_verifier=Verifier()).direct_endpoint
    head = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2"
    plain = b"\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream"
    for name in (b"ada", b"bob"):
        known, credentials = endpoint.read(head + b"\r\nAuthorization:\tBearer %b " % name + plain)
        assert known is not None
        assert (known.length, credentials) == (2, b"Bearer " + name)
    assert endpoint.parse_cached.cache_info().currsize == 1
    odd = (b"", b"\r\nauthorization: \xe9", b"\r\nauthorization: a\r\nAUTHORIZATION: b", b"\r\nauthorization : a")
    assert [endpoint.read(head + plain + more)[0] for more in odd] == [None] * 4
