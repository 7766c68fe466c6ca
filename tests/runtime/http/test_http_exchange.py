"""Token exchange for API calls (RFC 8693): each caller's token yields a token only for that caller."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
from jwt import PyJWK
from mcp.server.auth.provider import AccessToken

import amounts
import prompt_ends
from fake_api import Answer, Asked, FakeApi, api
from packages import generate, imported, manifest, tool
from server_fixture import ENVELOPE
from serving import asgi
from signing import Key, claims
from stubwright_runtime.http import subjects
from stubwright_runtime.policy.keys import Keys

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

OLD, NEW = "2025-11-25", "2026-07-28"
EXCHANGE = {
    "type": "oauth2",
    "flow": "tokenExchange",
    "clientIdEnv": "X_ID",
    "clientSecretEnv": "X_SECRET",
    "env": "X_OWN",
    "audience": "orders",
    "resource": "https://orders.example.com",
    "scopes": ["read", "write"],
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Verifier:
    """Takes any JSON of a subject, its issuer and a number as a token."""

    def __init__(self, seconds: float | None = 600) -> None:
        self.seconds = seconds

    async def verify_token(self, token: str) -> AccessToken | None:
        subject, issuer, _ = json.loads(token)
        expires = None if self.seconds is None else int(time.time() + self.seconds)
        claims = {"iss": issuer}
        return AccessToken(token=token, client_id="c", scopes=[], subject=subject, claims=claims, expires_at=expires)


def token(subject: str, number: int = 0, issuer: str = "https://a.example") -> str:
    return json.dumps([subject, issuer, number])


@dataclass
class Exchange:
    """A token endpoint and an API: an exchanged token identifies the caller and the exchange."""

    expires: Any = 3600
    says: Callable[[dict[str, str]], Answer] | None = None
    good: Callable[[str], bool] = lambda _: True
    owners: dict[str, str] = field(default_factory=dict)
    forms: list[dict[str, str]] = field(default_factory=list)
    pause: Callable[[], float] = lambda: 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/token":
            form = {name: value for name, (value,) in parse_qs(asked.body.decode()).items()}
            time.sleep(self.pause())
            with self.lock:
                self.forms.append(form)
                if self.says is not None:
                    return self.says(form)
                given = f"given-{len(self.forms)}"
                self.owners[given] = form["subject_token"]
            kind = "urn:ietf:params:oauth:token-type:access_token"
            return {
                "access_token": given,
                "expires_in": self.expires,
                "issued_token_type": kind,
                "token_type": "Bearer",
            }
        given = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if given not in self.owners or not self.good(given):
            return 401, {"error": "no", "echo": dict(asked.headers)}
        return {"owner": self.owners[given]}


@dataclass
class There:
    module: Any
    api: FakeApi
    url: str = ""

    async def ask(self, client: httpx2.AsyncClient, bearer: str | None, revision: str = NEW) -> Any:
        """The text of a result, or of a refusal."""
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": revision}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "whose"} if revision == NEW else {}
        headers |= {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        meta = {"_meta": ENVELOPE} if revision == NEW else {}
        params = {"name": "whose", "arguments": {}, **meta}
        if revision == OLD:
            hello = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            begun = await client.post(self.url, json=_message("initialize", hello), headers=headers)
            headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
            await client.post(self.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
        answer = await client.post(self.url, json=_message("tools/call", params), headers=headers)
        assert answer.status_code == 200, answer.text
        lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
        result = json.loads(lines[-1] if lines else answer.text)["result"]
        return result["content"][0]["text"]


def _message(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@contextmanager
def there(
    folder: Path,
    exchange: Exchange,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float | None = 600,
    auth: dict[str, Any] | None = None,
    **more: Any,
) -> Iterator[There]:
    """Serve the tool; with the manifest's `auth`, its own verifier takes the tokens."""
    monkeypatch.setenv("X_ID", "me")
    monkeypatch.setenv("X_SECRET", "s3cret")
    with api(exchange.answer) as fake:
        theirs = {**EXCHANGE, "tokenUrl": f"{fake.url}/token"}
        schemes = {"theirs": theirs, "spare": {"type": "bearer", "env": "X_SPARE"}}
        apis = {"orders": {"baseUrl": fake.url, "auth": schemes, "security": [["theirs"], ["spare"]]}}
        whose = tool("whose", stubwright={"http": {"api": "orders", "url": "/whose"}}, **more)
        declared: dict[str, Any] = {} if auth is None else {"auth": auth}
        package = generate(folder, manifest([whose], apis=apis, **declared))
        with imported(folder, package) as module:
            verifier = None if auth is not None else Verifier(seconds)
            app = import_module(f"{package}.server").asgi_app(object(), token_verifier=verifier)
            with asgi(app) as url:
                yield There(module, fake, f"{url}/mcp")


@asynccontextmanager
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=60) as made:
        yield made


async def test_what_is_asked_for_is_what_the_manifest_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Exchange()
    with there(tmp_path, exchange, monkeypatch) as server:
        async with client() as http:
            for revision in (OLD, NEW, NEW):
                assert json.loads(await server.ask(http, token("ann"), revision)) == {"owner": token("ann")}
        (form,) = exchange.forms  # once for all calls of a caller
        assert form == {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": token("ann"),
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "audience": "orders",
            "resource": "https://orders.example.com",
            "scope": "read write",
        }
        (asked,) = [asked for asked in server.api.asked if asked.path == "/token"]
        assert asked.headers["authorization"].startswith("Basic ")
        sent = [asked.headers["authorization"] for asked in server.api.asked if asked.path != "/token"]
        assert not any("ann" in text for text in sent), "the caller's own token goes to the token endpoint alone"


@pytest.mark.parametrize("revision", amounts.sample([OLD, NEW], 1))
async def test_tokens_of_the_manifests_own_issuer_are_exchanged(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Key("one")

    async def find(_self: object, _kid: str | None, _algorithm: str) -> PyJWK:
        return PyJWK(key.jwk(), key.algorithm)

    monkeypatch.setattr(Keys, "find", find)
    exchange = Exchange()
    auth = {"issuer": "https://auth.example.com", "audience": "https://orders.example.com/mcp"}
    with there(tmp_path, exchange, monkeypatch, auth=auth) as server:
        signed = key.sign(claims(auth["issuer"], auth["audience"]))
        async with client() as http:
            for _ in range(2):
                assert json.loads(await server.ask(http, signed, revision)) == {"owner": signed}
    assert [form["subject_token"] for form in exchange.forms] == [signed]


@pytest.mark.long
@pytest.mark.parametrize("seed", amounts.sample(range(3), 1))
async def test_no_caller_is_ever_served_with_the_token_of_another(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Concurrent calls of many callers in both revisions, with expiring, rejected and slowly fetched tokens."""
    chance = random.Random(seed)
    uses: Counter[str] = Counter()

    def is_good(given: str) -> bool:  # a token is valid for some calls, so it is fetched again in between
        uses[given] += 1
        return uses[given] < 6

    exchange = Exchange(expires=3600, good=is_good, pause=lambda: chance.choice([0.0, 0.0, 0.02]))
    names = ("ann", "bob", "cy")
    callers = [
        token(who, number, issuer) for who in names for number in range(3) for issuer in ("https://a", "https://b")
    ]
    with there(tmp_path, exchange, monkeypatch) as server:
        async with client() as http:

            async def one() -> None:
                bearer, revision = chance.choice(callers), chance.choice([OLD, NEW])
                text = await server.ask(http, bearer, revision)
                if "401" not in text:  # the API refused both the token and the next one
                    assert json.loads(text) == {"owner": bearer}

            for _ in range(6):
                await asyncio.gather(*(one() for _ in range(25)))
        assert len(exchange.forms) > len(callers) / 2
        assert {form["subject_token"] for form in exchange.forms} <= set(callers)


async def test_nobody_is_served_without_a_token_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("X_OWN", "of-the-local-user")
    monkeypatch.setenv("X_SPARE", "of-the-service")
    exchange = Exchange(says=lambda _: (400, {"error": "invalid_target", "error_description": "hidden words"}))
    with there(tmp_path, exchange, monkeypatch) as server:
        async with client() as http:
            refused = await server.ask(http, token("ann"))
            assert refused == "The server cannot get a token from 127.0.0.1: it returned 400 invalid_target."
            exchange.says = lambda _: {"access_token": "x", "token_type": "Bearer"}
            assert "it did not return an access token in exchange" in await server.ask(http, token("ann"))
            exchange.says = None
            monkeypatch.delenv("X_SECRET")
            assert "X_SECRET is not set in its environment" in await server.ask(http, token("ann"))
        assert [asked for asked in server.api.asked if asked.path != "/token"] == []
    assert "hidden words" not in caplog.text
    assert "ann" not in caplog.text


async def test_a_task_has_no_token_to_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_OWN", "of-the-local-user")
    exchange = Exchange()
    with there(tmp_path, exchange, monkeypatch, execution={"taskSupport": "optional"}) as server:
        headers = {"Authorization": f"Bearer {token('ann')}"}
        async with server.module.SampleClient.connect(server.url, headers=headers) as connected:
            [text] = await connected.whose()
            assert json.loads(text.text) == {"owner": token("ann")}
            with pytest.raises(server.module.ToolFailed, match="but this call has no access token"):
                await (await connected.tasks.whose())
    assert len(exchange.forms) == 1


@pytest.mark.parametrize(("own", "said"), [(None, "X_OWN"), ("given-1", "")])
async def test_on_stdio_it_is_the_local_user(
    own: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = Exchange(owners={"given-1": "me"})
    with there(tmp_path, exchange, monkeypatch) as server:
        if own is not None:
            monkeypatch.setenv("X_OWN", own)
        async with server.module.SampleClient.connect(server.module.build_server()) as connected:
            result = await connected.raw.call_tool("whose", {})
        assert exchange.forms == []
        if own is None:
            assert result.is_error
            assert said in result.content[0].text
        else:
            assert json.loads(result.content[0].text) == {"owner": "me"}


@pytest.mark.parametrize(("seconds", "expires"), amounts.sample([(600.0, 0), (1.0, 3600), (None, 0)], 2))
async def test_a_token_is_used_no_longer_than_the_one_it_was_got_for(
    seconds: float | None, expires: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = Exchange(expires=expires)
    with there(tmp_path, exchange, monkeypatch, seconds) as server:
        async with client() as http:
            await server.ask(http, token("ann"))
            if expires:
                await asyncio.sleep(1.2)
            await server.ask(http, token("ann"))
    assert len(exchange.forms) == 2


def test_what_one_caller_may_keep_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "PRINCIPALS", 5)
    kept: subjects.PrincipalCache[list[int]] = subjects.PrincipalCache(list)
    first = subjects.Subject("p", "t", None)
    state = kept.find_state("s", first)
    assert kept.find_state("s", subjects.Subject("p", "t", 9.0)) is state
    assert kept.find_state("other", first) is not state
    assert kept.find_state("s", subjects.Subject("q", "t", None)) is not state
    for number in range(100):
        kept.find_state("s", subjects.Subject("greedy", str(number), None))
    assert kept.find_state("s", first) is state, "one caller's tokens cost another nothing"
    assert len(kept._principals["greedy"]) == subjects.EACH
    for number in range(5):
        kept.find_state("s", subjects.Subject(f"many-{number}", "t", None))
    assert len(kept._principals) == 5
    assert kept.find_state("s", first) is not state
