"""Authentication over HTTP: exact statuses and headers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from packages import generate, imported, manifest, tool
from stubwright_runtime.server.core.access_tokens import AccessToken
from stubwright_runtime.server.core.principal import (
    ANONYMOUS,
    Principal,
    VerificationUnavailableError,
    find_current,
    make_from_token,
    make_local,
)
from stubwright_runtime.server.transports.http.authentication import Authentication, find_caller
from stubwright_runtime.server.transports.http.uploads import Uploads

pytestmark = pytest.mark.anyio

METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
INVALID = 'Bearer error="invalid_token", error_description="The access token is not valid here"'
POINTER = f'resource_metadata="{METADATA}"'


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Verifier:
    """Takes `good`, which has scopes; is not available for `later` and `soon`."""

    scopes: Sequence[str] = ("read",)
    expires: int | None = None
    resource: str | None = None
    seen: list[str] = field(default_factory=list)

    async def verify_token(self, token: str) -> AccessToken | None:
        self.seen.append(token)
        if token == "later":
            raise VerificationUnavailableError("the keys cannot be had")
        if token == "soon":
            raise VerificationUnavailableError("the key is unknown", 7)
        if token != "good":
            return None
        return AccessToken(
            token=token,
            client_id="c",
            scopes=[*self.scopes],
            expires_at=self.expires,
            resource=self.resource,
            subject="alice",
            claims={"iss": "https://auth.example.com"},
        )


@dataclass
class Wanting:
    """Scopes by the names of tools."""

    needed: Mapping[str, Sequence[str]]
    required: Sequence[str] = ()
    challenges: bool = True
    every: Sequence[str] = ()

    def widen(self, principal: Principal) -> Principal:
        return principal

    def allows(self, principal: Principal, section: str, key: str) -> bool:
        return principal.scopes.issuperset(self.needed.get(key, ()))

    shows = allows

    def reaches(self, principal: Principal, uri: str) -> bool:
        return True

    def find_lacking(self, principal: Principal) -> Sequence[str]:
        return [scope for needed in self.needed.values() for scope in needed if scope not in principal.scopes]

    def select_relevant(self, principal: Principal, section: str) -> frozenset[str]:
        return principal.scopes

    def find_lacking_of_message(self, principal: Principal, message: Any) -> Sequence[str]:
        name = (message.get("params") or {}).get("name") if isinstance(message, dict) else None
        needed = self.needed.get(str(name), ())
        return () if principal.scopes.issuperset(needed) else [*self.required, *needed]


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Says whom it answers, and how much came."""
    body = await Request(scope, receive).body()
    caller = find_caller(scope.get("user"))
    await JSONResponse({"for": None if caller is None else caller.access_token.subject, "size": len(body)})(
        scope, receive, send
    )


async def _asked(guard: Authentication, method: str = "POST", path: str = "/mcp", **more: Any) -> httpx2.Response:
    transport = httpx2.ASGITransport(guard)
    async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
        return await client.request(method, path, **more)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("headers", "path", "status", "challenge"),
    [
        ([], "/mcp", 401, f'Bearer scope="a b", {POINTER}'),
        ([], "/mcp?access_token=good", 401, f'Bearer scope="a b", {POINTER}'),
        ([("Authorization", "Basic Z29vZA==")], "/mcp", 401, f'Bearer scope="a b", {POINTER}'),
        ([("Authorization", "good")], "/mcp", 401, f'Bearer scope="a b", {POINTER}'),
        (
            [("Authorization", "Bearer bad")],
            "/mcp",
            401,
            f'{INVALID}, scope="a b", {POINTER}',
        ),
        (
            [("Authorization", "Bearer ")],
            "/mcp",
            401,
            f'{INVALID}, scope="a b", {POINTER}',
        ),
        (
            [("Authorization", "Bearer good"), ("Authorization", "Bearer good")],
            "/mcp",
            400,
            (
                'Bearer error="invalid_request", error_description="The request has more than one Authorization'
                f' header", {POINTER}'
            ),
        ),
        (
            [("Authorization", "Bearer good")],
            "/mcp",
            403,
            (
                'Bearer error="insufficient_scope", error_description="This request needs the scopes a b", '
                f'scope="a b", {POINTER}'
            ),
        ),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
async def test_who_does_not_get_in_is_told_what_is_needed(
    headers: list[tuple[str, str]], path: str, status: int, challenge: str, method: str
) -> None:
    guard = Authentication(_app, Verifier(["a"]), required=["a", "b"], metadata_url=METADATA)
    answer = await _asked(guard, method, path, headers=headers, **({"content": b"{}"} if method == "POST" else {}))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (status, challenge)
    assert "for" not in answer.json()


async def test_without_a_manifest_s_auth_the_answer_names_no_metadata() -> None:
    answer = await _asked(Authentication(_app, Verifier()))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_good_token_gets_in(scheme: str) -> None:
    answer = await _asked(
        Authentication(_app, Verifier()), headers={"Authorization": f"{scheme} good"}, content=b"12345"
    )
    assert answer.json() == {"for": "alice", "size": 5}


@pytest.mark.parametrize(("token", "seconds"), [("later", "10"), ("soon", "7")])
async def test_no_token_can_be_verified_now(token: str, seconds: str) -> None:
    answer = await _asked(Authentication(_app, Verifier()), headers=_bearer(token))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, seconds)
    assert "www-authenticate" not in answer.headers


@pytest.mark.parametrize(
    ("verifier", "status"),
    [
        (Verifier(expires=int(time.time()) - 5), 401),
        (Verifier(expires=int(time.time()) + 86_400), 200),
        (Verifier(resource="https://other.example.com"), 401),
        (Verifier(resource="https://mcp.example.com/mcp/"), 200),
        (Verifier(resource="HTTPS://MCP.example.com:443/mcp"), 200),
        (Verifier(resource="https://mcp.example.com/MCP"), 401),
        (Verifier(resource="api://mcp"), 200),
    ],
)
async def test_what_a_verifier_says_of_a_token_is_heeded(verifier: Verifier, status: int) -> None:
    guard = Authentication(_app, verifier, audiences=["https://mcp.example.com/mcp", "api://mcp"])
    assert (await _asked(guard, headers=_bearer("good"))).status_code == status


def _call(name: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}


@pytest.mark.parametrize(
    ("has", "content", "needs"),
    [
        (["r"], json.dumps(_call("open")), None),
        (["r", "w"], json.dumps(_call("write")), None),
        (["r"], json.dumps(_call("write")), "r w"),
        (["r"], json.dumps([_call("open"), _call("write"), _call("admin")]), "r w x"),
        ([], json.dumps(_call("open")), "r"),
        ([], json.dumps(_call("write")), "r w"),
        (["w"], json.dumps(_call("write")), "r"),
        (["r"], "no JSON", None),
        (["r"], "[" * 100_000, None),
        (["r"], json.dumps(_call("write")).encode("utf-16"), "r w"),
    ],
)
async def test_a_call_is_looked_into_and_passed_on_whole(
    has: list[str], content: str | bytes, needs: str | None
) -> None:
    """The endpoint refuses what is no JSON."""
    scopes = Wanting({"write": ["w"], "admin": ["x"]}, required=["r"])
    guard = Authentication(_app, Verifier(has), required=["r"], metadata_url=METADATA, scopes=scopes)
    answer = await _asked(guard, headers=_bearer("good"), content=content)
    if needs is None:
        assert answer.json() == {"for": "alice", "size": len(content)}
    else:
        assert answer.status_code == 403
        assert answer.headers["www-authenticate"] == (
            f'Bearer error="insufficient_scope", error_description="This request needs the scopes {needs}", '
            f'scope="{needs}", {POINTER}'
        )


async def test_a_body_in_pieces_is_passed_on_and_leaving_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    guard = Authentication(_app, Verifier(["r"]), scopes=Wanting({"write": ["w"]}))
    whole = json.dumps(_call("open")).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), 7):
            yield whole[at : at + 7]

    answer = await _asked(guard, headers=_bearer("good"), content=pieces())
    assert answer.json() == {"for": "alice", "size": len(whole)}

    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def unreached(*_: Any) -> None:
        raise AssertionError

    async def receive() -> Any:
        return messages.pop(0)

    guard = Authentication(unreached, Verifier(["r"]), scopes=Wanting({"write": ["w"]}))
    await guard({**POST, "headers": [(b"authorization", b"Bearer good")]}, receive, unreached)
    assert messages == []
    assert "clients disconnected while sending a body: 1" in caplog.text


POST: dict[str, Any] = {"type": "http", "method": "POST", "path": "/", "headers": []}


async def test_a_body_that_is_too_large_is_refused() -> None:
    guard = Authentication(_app, Verifier(["r"]), scopes=Wanting({"write": ["w"]}))
    answer = await _asked(guard, headers=_bearer("good"), content=b"x" * 5_000_000)
    assert answer.status_code == 413


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    """Scopes depend on the body: a caller with a token must not hold the server by sending only its start."""
    guard = Authentication(_app, Verifier(["r"]), scopes=Wanting({"write": ["w"]}))
    guard._uploads = Uploads(seconds=0.05)
    coming: list[dict[str, Any]] = [{"type": "http.request", "body": b"{", "more_body": True}]
    sent: list[Any] = []

    async def receive() -> Any:
        return coming.pop() if coming else await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(60):
        await guard({**POST, "headers": [(b"authorization", b"Bearer good")]}, receive, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_principals_are_told_apart() -> None:
    """No two have one key, whatever the names hold."""
    said = ["alice", 'alice"', '","x', "local", "", "a/b", "[]", "null", "\n", "x" * 300]
    issuers = [None, "https://a.example.com", "https://b.example.com", 'https://a.example.com", "x']
    tokens = [
        Principal("token", issuer, subject, client)
        for issuer in issuers
        for subject in [*said, None]
        for client in (said if subject is None else ["c"])
    ]
    everybody = [*tokens, make_local(["a"]), ANONYMOUS]
    assert len({each.key for each in everybody}) == len(everybody)
    one, other = (Principal("token", "i", "alice", client) for client in ("a", "b"))
    assert one.key == other.key, "the same person, by two programs"


def test_a_principal_shows_no_claims() -> None:
    token = AccessToken(
        token="secret", client_id="c", scopes=["a"], subject="s", claims={"iss": "i", "email": "person@example.com"}
    )
    found = make_from_token(token)
    assert (found.kind, found.issuer, found.subject, found.client) == ("token", "i", "s", "c")
    assert found.scopes == frozenset({"a"})
    assert "person@example.com" not in repr(found)
    assert "secret" not in repr(found)
    assert [str(each) for each in (found, make_local([]), ANONYMOUS)] == ["s of i", "local", "anonymous"]
    assert find_current() is ANONYMOUS


@asynccontextmanager
async def _application(
    folder: Path, auth: Mapping[str, Any] | None, **options: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    more = {} if auth is None else {"auth": auth}
    value = manifest([tool("hello", stubwright={"policy": {"scopes": ["x"]}})], name="doors", **more)
    with imported(folder, generate(folder, value)) as package:
        from importlib import import_module

        server = import_module(f"{package.__name__}.server")

        class Handlers:
            async def hello(self, args: Any, ctx: Any) -> str:
                return str(ctx.principal)

        app = server.asgi_app(Handlers(), allowed_hosts=["here"], **options)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client,
        ):
            yield client


AUTH = {"issuer": "https://auth.example.com", "audience": "https://mcp.example.com/mcp", "requiredScopes": ["r"]}


@pytest.mark.parametrize(
    ("auth", "path", "resource"),
    [
        (AUTH, "/.well-known/oauth-protected-resource/mcp", "https://mcp.example.com/mcp"),
        (
            {**AUTH, "audience": "api://mcp", "resource": "https://mcp.example.com"},
            "/.well-known/oauth-protected-resource",
            "https://mcp.example.com",
        ),
    ],
)
async def test_clients_are_told_whom_to_ask(auth: Mapping[str, Any], path: str, resource: str, tmp_path: Path) -> None:
    """RFC 9728, section 2: without a token, and with the values of the challenge."""
    async with _application(tmp_path, auth) as client:
        answer = await client.get(path)
        assert answer.json() == {
            "resource": resource,
            "authorization_servers": ["https://auth.example.com"],
            "scopes_supported": ["r", "x"],
            "bearer_methods_supported": ["header"],
            "resource_name": "doors",
        }
        refused = await client.post("/mcp", content=b"{}")
        host, _, rest = resource.removeprefix("https://").partition("/")
        named = f"https://{host}/.well-known/oauth-protected-resource" + (f"/{rest}" if rest else "")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == f'Bearer scope="r", resource_metadata="{named}"'


async def test_an_embedder_s_verifier_needs_no_auth_in_the_manifest(tmp_path: Path) -> None:
    verifier = Verifier(["x"])
    async with _application(tmp_path, None, token_verifier=verifier) as client:
        assert (await client.post("/mcp", content=b"{}")).headers["www-authenticate"] == "Bearer"
        assert (await client.get("/.well-known/oauth-protected-resource/mcp")).status_code == 404
        said = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "hello", "arguments": {}, "_meta": ENVELOPE},
        }
        headers = {**MODERN, **_bearer("good"), "Mcp-Method": "tools/call", "Mcp-Name": "hello"}
        answer = await client.post("/mcp", json=said, headers=headers)
        assert "alice of https://auth.example.com" in answer.text
        verifier.scopes = []
        assert "Unknown tool" in (await client.post("/mcp", json=said, headers=headers)).text


async def test_without_auth_and_verifier_nobody_has_a_scope(tmp_path: Path) -> None:
    async with _application(tmp_path, None) as client:
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello", "_meta": ENVELOPE}}
        headers = {**MODERN, **_bearer("good"), "Mcp-Method": "tools/call", "Mcp-Name": "hello"}
        assert "Unknown tool" in (await client.post("/mcp", json=said, headers=headers)).text


MODERN = {"MCP-Protocol-Version": "2026-07-28", "Accept": "application/json, text/event-stream"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
