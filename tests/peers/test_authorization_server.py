"""A server behind a real third-party authorization server: npm's certified `oidc-provider`.

Covers discovery, tokens by client credentials and by code with PKCE, key rotation, invalid tokens, and the official
client's login and step-up.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
import mcp
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

import oidc
from oidc import SECRET, Issuer, free_port, processing, standing_in
from packages import generate, imported, manifest, tool
from serving import asgi
from signing import Key, claims, raw
from stubwright import cli
from stubwright.login import storage

pytestmark = pytest.mark.anyio

Command = Callable[..., str]

SCOPES = ("mcp", "read", "write")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def port() -> int:
    """Where the protected server is."""
    return free_port()


@pytest.fixture(scope="module")
def issuer(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    folder = tmp_path_factory.mktemp("issuer")
    with (tmp_path_factory.getbasetemp().parent / "oidc.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # npx fetches once
        try:
            oidc.fetch()
        except oidc.NotRunError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))
    with oidc.issuing(f"http://127.0.0.1:{port}/mcp", SCOPES, folder / "log") as found:
        yield found


class Handlers:
    """Says who asks."""

    async def whoami(self, args: Any, ctx: Any) -> str:
        who = ctx.principal
        return json.dumps([who.kind, who.issuer, who.subject, who.client, sorted(who.scopes)])

    write = whoami


HANDLERS = """
import json

class Handlers:
    async def whoami(self, args, ctx):
        return ctx.principal.subject
    write = whoami
"""


@dataclass
class Guarded:
    """The package, and where its server is."""

    package: Any
    folder: Path
    url: str
    auth: Mapping[str, Any]

    @property
    def server(self) -> Any:
        return import_module("identity_mcp.server")

    @property
    def client(self) -> Any:
        return import_module("identity_mcp").IdentityClient

    @contextmanager
    def serving(self, port: int = 0, pause: float | None = None) -> Iterator[str]:
        """It over HTTP at a port; asks for unknown keys after the pause. Gives its URL."""
        verifier = None
        if pause is not None:
            keys = import_module("stubwright_runtime.policy.keys").Keys(self.auth["issuer"], pause=pause)
            verifier = import_module("stubwright_runtime.policy.tokens").Tokens(self.auth, keys)
        with asgi(self.server.asgi_app(Handlers(), token_verifier=verifier), port) as url:
            yield f"{url}/mcp"


@pytest.fixture(scope="module")
def guarded(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    auth = {
        "issuer": issuer.url,
        "audience": issuer.resource,
        "requiredScopes": ["mcp"],
        "scopes": {"write": ["read"]},
        "onMissing": "challenge",
    }
    tools = [
        tool("whoami", stubwright={"policy": {"scopes": ["read"]}}),
        tool("write", stubwright={"policy": {"scopes": ["write"]}}),
    ]
    folder = tmp_path_factory.mktemp("identity")
    with imported(folder, generate(folder, manifest(tools, name="identity", auth=auth))) as package:
        yield Guarded(package, folder, issuer.resource, auth)


@pytest.fixture(scope="module")
def served(guarded: Guarded, port: int) -> Iterator[Guarded]:
    with guarded.serving(port):
        yield guarded


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def _post(url: str, name: str = "whoami", *, token: str | None = None, more: Any = ()) -> httpx2.Response:
    headers = [
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", name),
        *([] if token is None else [("Authorization", f"Bearer {token}")]),
        *more,
    ]
    params = {"name": name, "arguments": {}, "_meta": ENVELOPE}
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx2.post(url, json=said, headers=headers, timeout=30)


def _said(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, (answer.status_code, answer.headers, answer.text)
    body = answer.text.partition("data: ")[2] or answer.text
    return str(json.loads(body.splitlines()[0])["result"]["content"][0]["text"])


def _metadata(url: str) -> str:
    parts = urlsplit(url)
    return f"http://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"


def _challenge(url: str, scopes: str, error: str | None = None) -> str:
    pointer = f'scope="{scopes}", resource_metadata="{_metadata(url)}"'
    if error is None:
        return f"Bearer {pointer}"
    text = (
        f"This request needs the scopes {scopes}"
        if error == "insufficient_scope"
        else "The access token is not valid here"
    )
    return f'Bearer error="{error}", error_description="{text}", {pointer}'


def test_a_token_of_the_issuer_is_taken(issuer: Issuer, served: Guarded) -> None:
    """By client credentials and a resource indicator (RFC 8707), with keys that its own metadata name."""
    token = issuer.token("mcp", "read")
    said = ["token", issuer.url, "machine", "machine", ["mcp", "read"]]
    assert json.loads(_said(_post(served.url, token=token))) == said
    said = ["token", issuer.url, "machine", "machine", ["mcp", "read", "write"]]
    assert json.loads(_said(_post(served.url, token=issuer.token("mcp", "write")))) == said, "who writes may read"


def test_a_scope_too_few_is_told_with_all_that_are_needed(issuer: Issuer, served: Guarded) -> None:
    for scopes, name, needed in (
        (["read"], "whoami", "mcp"),
        (["mcp"], "whoami", "mcp read"),
        (["mcp", "read"], "write", "mcp write"),
        (["read"], "write", "mcp write"),
    ):
        answer = _post(served.url, name, token=issuer.token(*scopes))
        challenge = _challenge(served.url, needed, "insufficient_scope")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (403, challenge)


def test_the_metadata_name_thestanding_in(issuer: Issuer, served: Guarded) -> None:
    assert httpx2.get(_metadata(served.url)).json() == {
        "resource": served.url,
        "authorization_servers": [issuer.url],
        "scopes_supported": ["mcp", "read", "write"],
        "bearer_methods_supported": ["header"],
        "resource_name": "identity",
    }


def _bad(issuer: Issuer) -> dict[str, str]:
    """Tokens that the issuer itself could have signed, or that pretend to be."""
    [key], now = issuer.keys, int(time.time())
    good = claims(issuer.url, issuer.resource, scope="mcp read")
    header = {"alg": "none", "typ": "at+jwt", "kid": key.kid}
    other = Key(key.kid)
    return {
        "another audience": issuer.token("mcp", "read", resource="http://127.0.0.1:1/other"),
        "another issuer": key.sign({**good, "iss": "http://127.0.0.1:1"}),
        "expired": key.sign({**good, "iat": now - 900, "exp": now - 300}),
        "not yet valid": key.sign({**good, "nbf": now + 300}),
        "alg none": raw(header, good),
        "HMAC with the public key": _hmac(key, good),
        "unknown key": Key("unknown").sign(good),
        "name of another key": other.sign(good),
        "ID token": key.sign({**good, "nonce": "n", "at_hash": "h"}, typ="JWT"),
        "garbage": "garbage",
    }


def _hmac(key: Key, good: Mapping[str, Any]) -> str:
    signed = raw({"alg": "HS256", "typ": "at+jwt", "kid": key.kid}, good).rpartition(".")[0]
    made = hmac.new(key.pem, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


def test_bad_tokens_are_refused_alike(issuer: Issuer, served: Guarded) -> None:
    [key] = issuer.keys
    good = key.sign(claims(issuer.url, issuer.resource, scope="mcp read"))
    assert json.loads(_said(_post(served.url, token=good)))[2] == "alice", "what the others are made from"
    for name, token in _bad(issuer).items():
        answer = _post(served.url, token=token)
        if name == "unknown key":  # its issuer may have published it a moment ago
            assert (answer.status_code, answer.json()) == (503, {"error": "temporarily_unavailable"})
            assert int(answer.headers["retry-after"]) > 0
            continue
        challenge = _challenge(served.url, "mcp", "invalid_token")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, challenge), name
        assert answer.json() == {
            "error": "invalid_token",
            "error_description": "The access token is not valid here",
        }, name
    answer = _post(f"{served.url}?access_token={good}")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, _challenge(served.url, "mcp"))
    answer = _post(served.url, token=good, more=[("Authorization", f"Bearer {good}")])
    assert answer.status_code == 400
    assert 'error="invalid_request"' in answer.headers["www-authenticate"]


def _wait_until_taken(url: str, token: str) -> None:
    end = time.monotonic() + 60
    while _post(url, token=token).status_code in (401, 503):
        assert time.monotonic() < end
        time.sleep(0.2)
    assert _post(url, token=token).status_code == 200


def test_keys_are_rotated(issuer: Issuer, guarded: Guarded) -> None:
    """Tokens of the new key are accepted after the pause; tokens of the old key are rejected."""
    before = issuer.keys
    try:
        with guarded.serving(pause=3.0) as url:
            old = issuer.token("mcp", "read")
            assert _post(url, token=old).status_code == 200
            issuer.sign_with(Key("second"))
            new = issuer.token("mcp", "read")
            assert _post(url, token=new).status_code == 503, "it was asked just now"
            assert _post(url, token=old).status_code == 200, "its key is known"
            _wait_until_taken(url, new)
            assert _post(url, token=old).status_code in (401, 503), "503 until the issuer can be asked again"
    finally:
        issuer.sign_with(*before)


@pytest.mark.long
def test_an_issuer_that_comes_later_is_found(issuer: Issuer, guarded: Guarded, tmp_path: Path) -> None:
    """In a separate process, which starts without an issuer: 503, and 200 when the issuer is available."""
    later = free_port()
    folder = tmp_path / "later"
    value = manifest(
        [tool("whoami"), tool("write")],
        name="patient",
        auth={"issuer": f"http://127.0.0.1:{later}", "audience": issuer.resource},
    )
    folder.mkdir()
    generate(folder, value)
    (folder / "patient_handlers.py").write_text(HANDLERS)
    log = tmp_path / "log"
    with processing("patient_mcp", folder, log, "patient_handlers:Handlers") as url:
        key = Key("later")
        token = key.sign(claims(f"http://127.0.0.1:{later}", issuer.resource))
        answer = _post(url, token=token)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        with standing_in(later, key):
            end = time.monotonic() + 30
            while (answer := _post(url, token=token)).status_code == 503 and time.monotonic() < end:
                time.sleep(0.5)
            assert _said(answer) == "alice"
    said = log.read_text()
    assert "cannot fetch the keys" in said
    assert token not in said


@dataclass
class Person:
    """What the SDK's OAuth client needs: a place for tokens, a browser, and where it ends up."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    asked: list[set[str]] = field(default_factory=list)
    got: AuthorizationCodeResult | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def browse(self, url: str) -> None:
        """Follow the authorization server's redirects back to the client."""
        asked = parse_qs(urlsplit(url).query)
        assert asked["code_challenge_method"] == ["S256"]
        self.asked.append({*asked["scope"][0].split()} - {"offline_access"})
        async with httpx2.AsyncClient() as browser:
            for _ in range(10):
                answer = await browser.get(url)
                assert answer.is_redirect, (url, answer.status_code, answer.text)
                url = urljoin(url, answer.headers["location"])
                if url.startswith("http://127.0.0.1:1/callback"):
                    back = {name: value for name, [value] in parse_qs(urlsplit(url).query).items()}
                    if "error" in back:
                        raise ValueError(f"the browser ended at {back['error']}")
                    self.got = AuthorizationCodeResult(code=back["code"], state=back["state"], iss=back.get("iss"))
                    return
        raise AssertionError(url)

    async def come_back(self) -> AuthorizationCodeResult:
        assert self.got is not None
        return self.got


METADATA = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1:1/callback")], client_name="a test")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_typed_client_gets_a_token_and_asks_for_more(revision: str, issuer: Issuer, served: Guarded) -> None:
    """Code with PKCE; a 403 in the middle makes it ask for the scopes that are needed, too, and call again."""
    known = OAuthClientInformationFull(
        client_id="program", redirect_uris=METADATA.redirect_uris, token_endpoint_auth_method="none", issuer=issuer.url
    )
    person = Person(client=known)
    auth = OAuthClientProvider(served.url, METADATA, person, person.browse, person.come_back)
    async with _by(served, auth, revision) as client:
        said = json.loads((await client.whoami())[0].text)
        assert said == ["token", issuer.url, "alice", "program", ["mcp", "read"]]
        assert json.loads((await client.write())[0].text)[4] == ["mcp", "read", "write"]
        assert json.loads((await client.whoami())[0].text)[4] == ["mcp", "read", "write"]
    assert person.asked == [{"mcp"}, {"mcp", "read"}, {"mcp", "read", "write"}], "once each"


async def test_a_client_that_nobody_knows_registers(issuer: Issuer, served: Guarded) -> None:
    """RFC 7591; it then gets no more than it registered for, which is an error of the call."""
    person = Person()
    auth = OAuthClientProvider(served.url, METADATA, person, person.browse, person.come_back)
    async with served.client.connect(served.url, auth=auth) as client:
        assert [one.name for one in (await client.raw.list_tools()).tools] == ["whoami", "write"]
        with pytest.raises(mcp.MCPError, match=r"because authorization failed: the browser ended at invalid_scope"):
            await client.whoami()
        assert (await client.raw.list_tools()).tools, "the connection goes on"
    assert person.client is not None
    assert person.client.client_id != "program"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_machine_gets_a_token_by_its_credentials(revision: str, issuer: Issuer, served: Guarded) -> None:
    auth = ClientCredentialsOAuthProvider(served.url, Person(), "machine", SECRET, issuer=issuer.url)
    async with _by(served, auth, revision) as client:
        assert json.loads((await client.whoami())[0].text)[4] == ["mcp", "read"]
        assert json.loads((await client.write())[0].text)[4] == ["mcp", "read", "write"]


@asynccontextmanager
async def _by(served: Guarded, auth: httpx2.Auth, revision: str) -> AsyncIterator[Any]:
    """The generated client; with a handshake by the SDK's own client below, which takes `auth` as well."""
    if revision >= "2026":
        async with served.client.connect(served.url, auth=auth) as client:
            yield client
        return
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(auth=auth, timeout=30) as network:
        target = mcp.Client(streamable_http_client(served.url, http_client=network), mode="legacy")
        async with served.client.connect(target) as client:
            yield client


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command that is to succeed; return what it prints."""
    monkeypatch.setenv("STUBWRIGHT_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", _browse)

    def run(*words: str) -> str:
        status = cli.run(words)
        out, err = capfd.readouterr()
        assert status == 0, err
        return out

    return run


def _browse(url: str) -> bool:
    """Follow redirects up to the last page, which is the command's own."""
    with httpx2.Client(follow_redirects=True) as browser:
        assert browser.get(url).text == "You can close this page and return to the terminal."
    return True


@pytest.mark.parametrize("program", [[], ["--client-id", "program"]])
def test_a_command_logs_in_and_asks_for_more(program: list[str], served: Guarded, command: Command) -> None:
    """With and without registration: the kept token serves later commands, until a tool needs another scope."""
    said = json.loads(command("call", served.url, "whoami", "--login", *program))
    assert (said[2], said[4]) == ("alice", ["mcp", "read"])
    assert "whoami" in command("list", served.url)
    assert json.loads(command("call", served.url, "write", "--login", *program))[4] == ["mcp", "read", "write"]
    assert json.loads(command("call", served.url, "whoami"))[4] == ["mcp", "read", "write"]


def test_a_command_refreshes_its_token(served: Guarded, command: Command) -> None:
    command("call", served.url, "whoami", "--login")
    path = storage.locate(served.url)
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "ends": 0}))
    assert json.loads(command("call", served.url, "whoami"))[2] == "alice"
    assert json.loads(path.read_text())["access"] != kept["access"]


def test_a_command_of_a_machine_logs_in_by_its_credentials(
    served: Guarded, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUBWRIGHT_CLIENT_ID", "machine")
    monkeypatch.setenv("STUBWRIGHT_CLIENT_SECRET", SECRET)
    assert json.loads(command("call", served.url, "write", "--client-credentials"))[3:] == [
        "machine",
        ["mcp", "read", "write"],
    ]


async def test_a_secret_that_is_wrong_is_an_error_of_the_call(issuer: Issuer, served: Guarded) -> None:
    auth = ClientCredentialsOAuthProvider(served.url, Person(), "machine", "wrong", issuer=issuer.url)
    with anyio.fail_after(20), pytest.raises(mcp.MCPError, match=r"http://.*because authorization failed: ") as caught:
        async with served.client.connect(served.url, auth=auth):
            raise AssertionError
    assert "wrong" not in str(caught.value)


def test_auth_is_for_a_url(guarded: Guarded) -> None:
    with pytest.raises(ValueError, match="headers and auth require a URL"):
        guarded.client.connect(["server"], auth=httpx2.BasicAuth("a", "b"))
