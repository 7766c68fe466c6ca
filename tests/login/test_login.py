"""Logins of commands at a server whose authorization server misbehaves in many ways."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import signal
import stat
import subprocess
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

import forked
from processes import start_process
from serving import asgi
from stubwright import cli
from stubwright.login import browser, requests, storage, tokens
from stubwright.login.discovery import Challenge, parse_challenge
from stubwright.login.errors import LoginError

Fields = dict[str, Any]

TOOLS = [{"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}} for name in "ab"]
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@dataclass
class World:
    """A server behind OAuth and its authorization server: their false claims, and the requests that they received."""

    url: str = ""
    resource: Fields = field(default_factory=dict)
    issuer: Fields = field(default_factory=dict)
    registered: Fields = field(default_factory=dict)
    redirect: Fields = field(default_factory=dict)
    token: Fields = field(default_factory=dict)
    challenge: str = ""
    is_open: bool = False
    is_endless: bool = False
    needs: Mapping[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    refreshes: dict[str, str] = field(default_factory=dict)
    codes: dict[str, Fields] = field(default_factory=dict)
    heard: list[tuple[str, Fields]] = field(default_factory=list)

    @property
    def server(self) -> str:
        return f"{self.url}/mcp"

    def list_heard(self, path: str) -> list[Fields]:
        return [fields for where, fields in self.heard if where == path]

    def list_secrets(self) -> set[str]:
        """All tokens, codes and verifiers that there ever were."""
        verifiers = {fields.get("code_verifier") for fields in self.list_heard("/token")}
        return {*self.tokens, *self.refreshes, *self.codes, *filter(None, verifiers)}

    def make_app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/mcp", self.answer, methods=["POST"]),
                Route("/.well-known/oauth-protected-resource/mcp", self.describe_resource),
                Route("/.well-known/oauth-authorization-server", self.describe_issuer),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.give_token, methods=["POST"]),
            ]
        )

    async def answer(self, request: Request) -> Response:
        message = await request.json()
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        pointer = f'resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
        if not self.is_open and (scheme != "Bearer" or token not in self.tokens):
            challenge = self.challenge or f'Bearer {pointer}, scope="mcp"'
            return StreamingResponse(self.refuse(), 401, {"www-authenticate": challenge})
        method, params = message["method"], message.get("params", {})
        need = self.needs.get(params.get("name", method))
        if need is not None and need not in self.tokens.get(token, "").split():
            challenge = f'Bearer error="insufficient_scope", scope="{need}", {pointer}'
            return PlainTextResponse("", 403, {"www-authenticate": challenge})
        results: Fields = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": TOOLS},
            "tools/call": {"content": [{"type": "text", "text": self.tokens.get(token, "nobody")}]},
        }
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": {**results[method], **COMPLETE}})

    async def refuse(self) -> AsyncIterator[bytes]:
        yield b"no"
        while self.is_endless:
            yield b"no" * 1000
            await asyncio.sleep(0)

    async def describe_resource(self, _: Request) -> Response:
        about = {"resource": self.server, "authorization_servers": [self.url], "scopes_supported": ["mcp", "more"]}
        return JSONResponse({**about, **self.resource}, 404 if self.resource.get("gone") else 200)

    async def describe_issuer(self, _: Request) -> Response:
        about = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize?theme=dark",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return JSONResponse({name: value for name, value in {**about, **self.issuer}.items() if value is not None})

    async def register(self, request: Request) -> Response:
        said = await request.json()
        self.heard.append(("/register", said))
        return JSONResponse({**said, "client_id": "registered", **self.registered}, 201)

    async def authorize(self, request: Request) -> Response:
        fields = dict(request.query_params)
        self.heard.append(("/authorize", fields))
        code = secrets.token_hex(16)
        self.codes[code] = fields
        back = {"code": code, "state": fields["state"], "iss": self.url, **self.redirect}
        given = {name: value for name, value in back.items() if value is not None}
        return RedirectResponse(f"{fields['redirect_uri']}?{urlencode(given)}", 302)

    async def give_token(self, request: Request) -> Response:
        fields: Fields = dict(parse_qsl((await request.body()).decode()))
        self.heard.append(("/token", {**fields, "auth": request.headers.get("authorization", "")}))
        scope = fields.get("scope", "")
        if fields["grant_type"] == "authorization_code":
            asked = self.codes[fields["code"]]
            digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
            assert asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            assert asked["redirect_uri"] == fields["redirect_uri"]
            scope = asked.get("scope", "")
        elif fields["grant_type"] == "refresh_token":
            if fields["refresh_token"] not in self.refreshes:
                return JSONResponse({"error": "invalid_grant"}, 400)
            scope = self.refreshes.pop(fields["refresh_token"])
        token, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.tokens[token], self.refreshes[refresh] = scope, scope
        given = {"access_token": token, "token_type": "Bearer", "refresh_token": refresh, "expires_in": 600}
        return JSONResponse({**given, **self.token}, 200 if "error" not in self.token else 400)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("STUBWRIGHT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", browse)
    world = World()
    with asgi(world.make_app()) as world.url:
        yield world


def browse(url: str) -> bool:
    """Follow where the authorization server leads, as a browser whose person agrees to all."""
    with httpx2.Client(follow_redirects=True) as client:
        client.get(url)
    return True


@dataclass
class Done:
    status: int
    out: str
    err: str


@pytest.fixture
def run(world: World, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run a command here, and check that it prints no secret."""

    def run_command(*words: str) -> Done:
        status = cli.run(words)
        out, err = capsys.readouterr()
        for secret in world.list_secrets():
            assert secret not in out + err
        return Done(status, out, err)

    return run_command


def read_kept(world: World) -> Fields:
    value: Fields = json.loads(storage.locate(world.server).read_text())
    return value


def test_a_person_logs_in_once(world: World, run: Callable[..., Done]) -> None:
    done = run("call", world.server, "a", "--login")
    assert (done.status, done.out) == (0, "mcp\n")
    assert done.err == f"note: log in to `{world.server}` in the browser window that opened\n"
    [asked] = world.list_heard("/authorize")
    assert asked["theme"] == "dark"
    assert (asked["code_challenge_method"], asked["resource"], asked["scope"]) == ("S256", world.server, "mcp")
    assert urlsplit(asked["redirect_uri"]).hostname == "127.0.0.1"
    [registered] = world.list_heard("/register")
    assert registered["redirect_uris"] == [asked["redirect_uri"]]
    assert (registered["application_type"], registered["token_endpoint_auth_method"]) == ("native", "none")
    assert registered["scope"] == "mcp more"
    [got] = world.list_heard("/token")
    assert (got["resource"], got["client_id"], got["auth"]) == (world.server, "registered", "")
    path = storage.locate(world.server)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for words in (["call", world.server, "a"], ["list", world.server], ["call", world.server, "b", "--login"]):
        assert run(*words).status == 0
    assert len(world.list_heard("/authorize")) == 1


def test_a_logout_deletes_the_tokens_of_its_url(world: World, run: Callable[..., Done]) -> None:
    assert run("list", world.server, "--login").status == 0
    kept = storage.locate(world.server)
    assert run("list", f"{world.url}/other", "--logout").status == 3
    assert kept.exists()
    for outcome in ("was deleted", "did not exist"):
        done = run("list", world.server, "--logout")
        assert done.status == 3
        assert done.err.startswith(f"note: the saved login for `{world.server}` {outcome}\n")
        assert not kept.exists()


def test_every_command_takes_the_login(world: World, run: Callable[..., Done]) -> None:
    refused = run("list", world.server)
    assert refused.status == 3
    assert refused.err.endswith("; add credentials with --login, --token or --header\n")
    locked = run("lock", world.server, "--login", "-o", "desk.yaml")
    assert (locked.status, locked.out) == (0, "desk.yaml: locked\n"), locked.err
    for words in (
        ["verify", "desk.yaml"],
        ["verify", "desk.yaml", world.server],
        ["import", "mcp", world.server],
        ["inspect", world.server, "a"],
        ["diff", "desk.yaml", world.server],
    ):
        done = run(*words)
        assert done.status == 0, (words, done)
    for target in (world.server, "desk.yaml"):
        assert "1 valid" in run("test", target, "--cases", "1", "--tool", "a").out
    storage.locate(world.server).unlink()
    assert run("verify", "desk.yaml").status == 3
    assert run("verify", "desk.yaml", "--login").status == 0
    assert len(world.list_heard("/authorize")) == 2


def test_a_proxy_that_records_sends_the_token_and_masks_it(
    world: World, run: Callable[..., Done], tmp_path: Path
) -> None:
    assert run("list", world.server, "--login").status == 0
    [old] = world.tokens
    del world.tokens[old]  # it has ended, and is refreshed in the first request
    recording = tmp_path / "desk.jsonl"
    command = [*forked.interpreter(), "-m", "stubwright", "record", world.server, "-o", str(recording)]
    with start_process([*command, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        proxy = process.stderr.readline().split()[-1]
        assert httpx2.post(proxy, json="x" * (1 << 21)).status_code == 502  # it is not held, so not repeated
        assert process.stderr.readline() == (
            "stubwright: the endpoint requires a different access token; repeat the request\n"
        )
        for _ in range(2):
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}
            answer = httpx2.post(proxy, json=message, headers={"authorization": "Bearer my-own-old-one"}).json()
            [new] = world.tokens
            world.tokens[new] = new  # which the server repeats in its next answer
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert answer["result"]["content"][0]["text"] == new
    assert '"text":"[redacted]"' in recording.read_text()
    assert not [secret for secret in (new, old, "my-own-old-one") if secret in recording.read_text()]


def test_nothing_is_recorded_without_a_login(world: World, run: Callable[..., Done], tmp_path: Path) -> None:
    world.issuer = {"code_challenge_methods_supported": None}
    done = run("record", world.server, "--http", "127.0.0.1:0", "--login", "-o", str(tmp_path / "desk.jsonl"))
    assert done.status == 3
    assert done.err.startswith("stubwright: ")
    assert done.err.endswith("does not list S256 among its PKCE methods\n")
    assert not (tmp_path / "desk.jsonl").exists()


def test_a_contract_of_a_server_with_a_token_takes_the_login(world: World, run: Callable[..., Done]) -> None:
    world.tokens["a-token-of-another-way"] = "mcp"
    assert run("lock", world.server, "--token", "a-token-of-another-way", "-o", "desk.yaml").status == 0
    assert "requires the header `Authorization`" in run("verify", "desk.yaml").err
    assert run("verify", "desk.yaml", "--login").status == 0
    assert run("verify", "desk.yaml").status == 0


def test_servers_of_a_configuration_take_the_login(world: World, run: Callable[..., Done]) -> None:
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"desk": {"type": "http", "url": world.server}}}))
    assert run("lock", "--config", ".mcp.json", "--login").status == 0
    assert run("verify", "--config", ".mcp.json").status == 0
    assert "1 valid" in run("test", "--config", ".mcp.json", "--cases", "1", "--tool", "a").out


def test_an_ended_token_is_refreshed(world: World, run: Callable[..., Done]) -> None:
    world.token = {"expires_in": 0}
    assert run("call", world.server, "a", "--login").status == 0
    first = read_kept(world)
    world.token = {}
    assert run("call", world.server, "a").status == 0
    assert [got["grant_type"] for got in world.list_heard("/token")][-1] == "refresh_token"
    assert world.list_heard("/token")[-1]["resource"] == world.server
    second = read_kept(world)
    assert {first["access"], first["refresh"]}.isdisjoint({second["access"], second["refresh"]})
    del world.tokens[second["access"]]  # the server rejects it before its end
    assert run("call", world.server, "a").status == 0
    assert len(world.list_heard("/authorize")) == 1


def test_a_refusal_without_end_is_not_read(world: World, run: Callable[..., Done]) -> None:
    world.is_endless = True
    assert run("call", world.server, "a", "--login", "--timeout", "20").out == "mcp\n"
    world.tokens.clear()
    assert run("call", world.server, "a", "--timeout", "20").out == "mcp\n"


def test_two_servers_log_in_one_after_the_other(world: World, run: Callable[..., Done]) -> None:
    other = World()
    with asgi(other.make_app()) as other.url:
        for number, place in enumerate((world, other)):
            assert run("lock", place.server, "--login", "-o", f"contracts/{number}.yaml").status == 0
            storage.locate(place.server).unlink()
        done = run("verify", "--login")
    assert (done.status, len(world.list_heard("/authorize")), len(other.list_heard("/authorize"))) == (0, 2, 2), done


def test_a_refused_refresh_needs_a_login(world: World, run: Callable[..., Done]) -> None:
    run("call", world.server, "a", "--login")
    world.tokens.clear()
    world.refreshes.clear()
    done = run("call", world.server, "a")
    assert done.status == 3
    assert done.err.endswith("; add credentials with --login, --token or --header\n")
    assert run("call", world.server, "a", "--login").out == "mcp\n"
    assert len(world.list_heard("/register")) == 1, "the program is known"


def test_more_scopes_are_requested_when_a_call_needs_them(world: World, run: Callable[..., Done]) -> None:
    world.needs = {"b": "more"}
    assert run("call", world.server, "a", "--login").out == "mcp\n"
    assert run("call", world.server, "b").status == 3
    assert run("call", world.server, "b", "--login").out == "mcp more\n"
    assert [asked["scope"] for asked in world.list_heard("/authorize")] == ["mcp", "mcp more"]
    assert run("call", world.server, "b").out == "mcp more\n"


def test_a_program_registers_again_for_a_scope_that_was_not_known(world: World, run: Callable[..., Done]) -> None:
    world.needs = {"b": "secret"}
    assert run("call", world.server, "a", "--login").status == 0
    assert run("call", world.server, "b", "--login").out == "mcp secret\n"
    assert [said["scope"] for said in world.list_heard("/register")] == ["mcp more", "mcp secret more"]


def test_a_refresh_token_that_another_process_used_is_no_end(
    world: World, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("call", world.server, "a", "--login")
    path, kept = storage.locate(world.server), read_kept(world)
    world.tokens.clear()
    world.refreshes.clear()
    world.tokens["of-the-other-process"] = "mcp"

    async def lose(client: httpx2.AsyncClient, grant: tokens.Grant) -> tokens.Grant:
        path.write_text(json.dumps({**kept, "access": "of-the-other-process"}))
        return await refresh(client, grant)

    refresh = tokens.refresh
    monkeypatch.setattr(tokens, "refresh", lose)
    assert run("call", world.server, "a").out == "mcp\n"


def test_the_same_scopes_are_not_requested_twice(world: World, run: Callable[..., Done]) -> None:
    world.needs = {"b": "mcp "}  # no token has it
    done = run("call", world.server, "b", "--login")
    assert (done.status, len(world.list_heard("/authorize"))) == (3, 1)
    assert "403" in done.err


def test_a_server_that_rejects_its_own_token_gets_no_second_login(world: World, run: Callable[..., Done]) -> None:
    world.token = {"access_token": "unknown-to-the-server", "refresh_token": None}
    done = run("call", world.server, "a", "--login")
    assert (done.status, len(world.list_heard("/authorize"))) == (3, 1)
    assert "unknown-to-the-server" not in done.err


def test_a_server_that_answers_anybody_is_logged_in_to(world: World, run: Callable[..., Done]) -> None:
    world.is_open = True
    assert run("call", world.server, "a").out == "nobody\n"
    assert run("call", world.server, "a", "--login").out == "mcp more\n"
    world.resource = {"gone": True}
    storage.locate(world.server).unlink()
    assert run("call", world.server, "a", "--login").out == "nobody\n", "it has no authorization server"


def test_a_server_without_metadata_is_its_own_authorization_server(world: World, run: Callable[..., Done]) -> None:
    world.resource, world.challenge = {"gone": True}, "Bearer"
    world.needs = {}
    assert run("call", world.server, "a", "--login").status == 0
    assert "scope" not in world.list_heard("/authorize")[0]


def test_without_a_browser_the_url_is_printed(
    world: World, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(url: str) -> bool:
        browse(url)
        return False

    monkeypatch.setattr(webbrowser, "open", fail)
    done = run("call", world.server, "a", "--login")
    [note, url] = done.err.splitlines()
    assert note == f"note: no browser could be opened; open this URL to log in to `{world.server}`:"
    assert url.startswith(f"{world.url}/authorize?")
    assert done.out == "mcp\n"


def test_a_registered_program_logs_in(world: World, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    world.issuer = {"registration_endpoint": None}
    done = run("call", world.server, "a", "--login")
    assert (done.status, "pass --client-id" in done.err) == (3, True)
    assert run("call", world.server, "a", "--login", "--client-id", "mine").status == 0
    assert world.list_heard("/token")[-1]["client_id"] == "mine"
    storage.locate(world.server).unlink()
    monkeypatch.setenv("STUBWRIGHT_CLIENT_SECRET", "a:secret")
    assert run("call", world.server, "a", "--login", "--client-id", "mine").status == 0
    credentials = base64.b64encode(b"mine:a%3Asecret").decode()
    assert world.list_heard("/token")[-1]["auth"] == f"Basic {credentials}"
    world.issuer["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    storage.locate(world.server).unlink()
    assert run("call", world.server, "a", "--login", "--client-id", "mine").status == 0
    assert world.list_heard("/token")[-1]["client_secret"] == "a:secret"


def test_an_offline_token_is_requested_where_there_is_one(world: World, run: Callable[..., Done]) -> None:
    world.issuer = {"scopes_supported": ["mcp", "offline_access"]}
    assert run("call", world.server, "a", "--login").status == 0
    [asked] = world.list_heard("/authorize")
    assert (asked["scope"], asked["prompt"]) == ("mcp offline_access", "consent")


def test_a_program_gets_a_token_by_its_credentials(
    world: World, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("call", world.server, "a", "--client-credentials")
    assert (done.status, "STUBWRIGHT_CLIENT_ID and STUBWRIGHT_CLIENT_SECRET" in done.err) == (2, True)
    monkeypatch.setenv("STUBWRIGHT_CLIENT_ID", "machine")
    monkeypatch.setenv("STUBWRIGHT_CLIENT_SECRET", "the-secret-of-the-machine")
    world.needs = {"b": "more"}
    done = run("call", world.server, "b", "--client-credentials")
    assert (done.status, done.out) == (0, "mcp more\n"), done.err
    assert [got["scope"] for got in world.list_heard("/token")] == ["mcp", "mcp more"]
    assert {(got["grant_type"], got["resource"]) for got in world.list_heard("/token")} == {
        ("client_credentials", world.server)
    }
    assert run("lock", world.server, "--client-credentials", "-o", "-").status == 0
    assert not storage.locate(world.server).parent.exists()
    world.token = {"error": "invalid_client", "error_description": "the-secret-of-the-machine is wrong"}
    done = run("list", world.server, "--client-credentials")
    assert done.status == 3
    assert done.err == (
        f"stubwright: `{world.server}` was not called because authorization failed: `{world.url}/token` issued no "
        "token: HTTP 400 with the error invalid_client\n"
    )
    world.issuer = {"token_endpoint": "http://127.0.0.1:9/token"}
    done = run("list", world.server, "--client-credentials")
    assert done.err == (
        f"stubwright: `{world.server}` was not called because authorization failed: `http://127.0.0.1:9/token` cannot "
        "be reached: connection refused\n"
    )


BAD: Mapping[str, tuple[Callable[[World], Fields], str]] = {
    "another resource": (lambda w: {"resource": {"resource": "https://example.com/mcp"}}, "a different resource"),
    "a resource below": (lambda w: {"resource": {"resource": f"{w.server}/x"}}, "a different resource"),
    "no issuer": (lambda w: {"resource": {"authorization_servers": []}}, "lists no authorization server"),
    "issuer over http": (
        lambda w: {"resource": {"authorization_servers": ["http://auth.example.com"]}},
        "the authorization server is not an https URL",
    ),
    "metadata over http": (
        lambda w: {"challenge": 'Bearer resource_metadata="http://example.com/x"'},
        "the URL of the server's metadata is not an https URL",
    ),
    "another issuer": (
        lambda w: {"issuer": {"issuer": "https://auth.example.com"}},
        "a different authorization server",
    ),
    "no PKCE": (lambda w: {"issuer": {"code_challenge_methods_supported": None}}, "does not list S256"),
    "plain PKCE": (lambda w: {"issuer": {"code_challenge_methods_supported": ["plain"]}}, "does not list S256"),
    "no authorization endpoint": (lambda w: {"issuer": {"authorization_endpoint": None}}, "no authorization endpoint"),
    "authorization over http": (
        lambda w: {"issuer": {"authorization_endpoint": "http://auth.example.com/a"}},
        "the authorization endpoint of the authorization server is not an https URL",
    ),
    "token over http": (
        lambda w: {"issuer": {"token_endpoint": "http://auth.example.com/token"}},
        "the token endpoint of the authorization server is not an https URL",
    ),
    "no token endpoint": (
        lambda w: {"issuer": {"token_endpoint": None}},
        "the token endpoint of the authorization server is missing",
    ),
    "iss of another": (
        lambda w: {"redirect": {"iss": "https://auth.example.com"}},
        "was redirected by a server other than",
    ),
    "no iss": (lambda w: {"redirect": {"iss": None}}, "was redirected by a server other than"),
    "denied": (lambda w: {"redirect": {"code": None, "error": "access_denied"}}, "with the error access_denied"),
    "an odd error": (lambda w: {"redirect": {"code": None, "error": "\x1b[1mx"}}, "denied the login\n"),
    "no code": (lambda w: {"redirect": {"code": None}}, "without a code"),
    "registration refused": (lambda w: {"registered": {"client_id": None}}, "did not register this program"),
    "no bearer token": (lambda w: {"token": {"token_type": "DPoP"}}, "a token that is not a Bearer token"),
    "an unsendable token": (lambda w: {"token": {"access_token": "a\r\nb"}}, "issued no token"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_login_ends_with_one_sentence(case: str, world: World, run: Callable[..., Done]) -> None:
    change, told = BAD[case]
    for name, value in change(world).items():
        setattr(world, name, value)
    done = run("call", world.server, "a", "--login")
    lines = [line for line in done.err.splitlines(keepends=True) if not line.startswith("note: ")]
    assert (done.status, len(lines)) == (3, 1), done.err
    assert told in lines[0]
    assert lines[0].startswith(f"stubwright: `{world.server}` was not called because authorization failed: ")
    assert not storage.locate(world.server).exists()


def test_a_foreign_redirect_does_not_end_the_login(
    world: World, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[int] = []

    def interfere(url: str) -> bool:
        uri = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
        others = (f"{uri}?code=stolen&state=guessed", uri, uri.replace("callback", "x"), f"{uri}?state=%ff")
        statuses.extend(httpx2.get(other).status_code for other in others)
        statuses.append(httpx2.post(uri).status_code)
        return browse(url)

    monkeypatch.setattr(webbrowser, "open", interfere)
    assert run("call", world.server, "a", "--login").out == "mcp\n"
    assert statuses == [400] * 5


def test_a_login_ends_when_nobody_comes(
    world: World, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "_SECONDS", 0.05)
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    done = run("call", world.server, "a", "--login")
    assert (done.status, "the login was not completed within 0.05 s" in done.err) == (3, True)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:8080/token", "is on this machine"),
        ("https://localhost/token", "is on this machine"),
        ("http://auth.example.com/token", "is not an https URL"),
        ("https://me:pw@auth.example.com/token", "is not an https URL"),
        ("https://auth.example.com/token#x", "is not an https URL"),
        (["https://auth.example.com/token"], "the token endpoint is missing"),
    ],
)
def test_a_server_elsewhere_names_endpoints_with_https(url: object, told: str) -> None:
    with pytest.raises(LoginError, match=told):
        requests.check_url(url, "token endpoint", "https://example.com/mcp")
    good = "https://auth.example.com/token"
    assert requests.check_url(good, "token endpoint", "https://example.com/mcp") == good


def test_no_redirect_of_an_endpoint_is_followed(world: World, run: Callable[..., Done]) -> None:
    with _redirecting(world) as url:
        world.issuer = {"token_endpoint": f"{url}/moved"}
        done = run("call", world.server, "a", "--login")
    assert (done.status, "token: HTTP 307" in done.err) == (3, True)
    assert not world.list_heard("/token")


@contextmanager
def _redirecting(world: World) -> Iterator[str]:
    async def move(_: Request) -> Response:
        return RedirectResponse(f"{world.url}/token", 307)

    with asgi(Starlette(routes=[Route("/moved", move, methods=["POST"])])) as url:
        yield url


def test_a_file_that_others_can_read_is_not_used(world: World, run: Callable[..., Done]) -> None:
    run("call", world.server, "a", "--login")
    path = storage.locate(world.server)
    path.chmod(0o644)
    done = run("call", world.server, "a")
    assert (done.status, "other users can read or replace" in done.err) == (3, True)
    path.chmod(0o600)
    path.write_text("[]")
    done = run("list", world.server)
    assert (done.status, "does not contain a login; delete it" in done.err) == (3, True)


def test_a_contract_holds_no_token(world: World, run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    run("call", world.server, "a", "--login")
    monkeypatch.setitem(TOOLS[0], "description", f"Says {read_kept(world)['access']}.")
    done = run("lock", world.server, "-o", "desk.yaml")
    assert (done.status, "contain the value of the login" in done.err) == (1, True)
    assert not Path("desk.yaml").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["call", "https://example.com/mcp", "a", "--login", "--token", "x"], "omit --token and Authorization"),
        (["call", "http://example.com/mcp", "a", "--login"], "require an https URL"),
        (["call", "https://me:pw@example.com/mcp", "a", "--login"], "without a user or password"),
        (["call", "https://example.com/mcp", "a", "--client-id", "x"], "--client-id is for --login"),
        (["call", "https://example.com/mcp", "a", "--client-credentials", "--client-id", "x"], "STUBWRIGHT_CLIENT_ID"),
        (["call", "a", "--login", "--", "server"], "a command has no access token"),
        (["list", "desk.yaml", "--logout"], "--logout is for a URL"),
        (["list", "desk.yaml", "--client-credentials"], "--client-credentials is for a URL"),
        (["lock", "desk.yaml", "--login"], "require a URL"),
        (
            ["lock", "https://a.example/", "https://b.example/", "--client-credentials"],
            "several servers would get the same",
        ),
        (["lock", "--config", "x.json", "--client-credentials"], "cannot be combined with --config"),
        (["test", "--config", "x.json", "--client-id", "x"], "cannot be combined with --config"),
        (["verify", "x.yaml", "--against", "tools.json", "--login"], "they cannot be combined with --against"),
    ],
)
def test_an_option_that_does_not_fit_is_told(words: list[str], told: str, run: Callable[..., Done]) -> None:
    done = run(*words)
    assert (done.status, told in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("values", "challenge"),
    [
        ([], Challenge()),
        (["Bearer"], Challenge()),
        (
            ['Basic realm="a, scope=b", Bearer scope="c d", error=invalid_token'],
            Challenge("", ("c", "d"), "invalid_token"),
        ),
        (["Negotiate abc==", 'bearer Resource_Metadata="https://a/b\\"c"'], Challenge('https://a/b"c')),
        (['Bearer scope="a", DPoP scope="b"'], Challenge("", ("a",))),
        (['Bearer scope=""'], Challenge("", ())),
    ],
)
def test_challenges_are_parsed(values: list[str], challenge: Challenge) -> None:
    assert parse_challenge(values) == challenge
