"""Tokens that the server requests: source, caching, and secrecy."""

from __future__ import annotations

import asyncio
import base64
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import mcp
import pytest
from starlette.responses import RedirectResponse

import amounts
import forked
import prompt_ends
from fake_api import Answer, Asked, FakeApi, api
from packages import generate, imported, manifest, tool
from serving import asgi

ends_are_prompt = prompt_ends.ends_are_prompt

SECRETS = {"O_ID": "client&1", "O_SECRET": "s3cret/x", "O_REFRESH": "refresh-0"}
CLIENT = {"type": "oauth2", "flow": "clientCredentials", "clientIdEnv": "O_ID", "clientSecretEnv": "O_SECRET"}
USER = {"type": "oauth2", "flow": "authorizationCode", "clientIdEnv": "O_ID", "refreshTokenEnv": "O_REFRESH"}


@dataclass
class Issuer:
    """A fake token endpoint and API: tokens are `token-N`; `good` decides which tokens the API accepts."""

    expires: Any = 3600
    good: Callable[[str], bool] = lambda _: True
    says: Callable[[int], Answer] | None = None
    pause: float = 0.0
    got: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/token":
            with self.lock:
                self.got += 1
                number = self.got
            time.sleep(self.pause)
            if self.says is not None:
                return self.says(number)
            return {"access_token": f"token-{number}", "expires_in": self.expires, "refresh_token": f"refresh-{number}"}
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        return (
            {"token": token[::-1]}
            if token and self.good(token)
            else (401, {"error": "no", "echo": dict(asked.headers)})
        )


@dataclass
class There:
    """A package whose one tool calls a fake API with tokens."""

    module: Any
    api: FakeApi

    @property
    def grants(self) -> list[dict[str, list[str]]]:
        """The forms that came to the token endpoint."""
        return [parse_qs(asked.body.decode()) for asked in self.api.asked if asked.path == "/token"]

    @property
    def sent(self) -> list[str | None]:
        """The credentials that came to the API."""
        return [asked.headers.get("authorization") for asked in self.api.asked if asked.path != "/token"]

    def calls(self, *at_once: int, between: Callable[[], None] = lambda: None) -> list[Any]:
        """Return the results of concurrent calls, followed by sequential calls, on one server."""

        async def go() -> list[Any]:
            found: list[Any] = []
            async with self.module.SampleClient.connect(self.module.build_server(None)) as client:
                for count in at_once:
                    found += await asyncio.gather(*(client.raw.call_tool("get", {}) for _ in range(count)))
                    between()
            return found

        return asyncio.run(go())


@contextmanager
def there(
    folder: Path,
    issuer: Issuer,
    scheme: dict[str, Any],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    security: Sequence[Sequence[str]] = (("o",),),
) -> Iterator[There]:
    for name in (*SECRETS, "O_TOKEN", "K"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with api(issuer.answer) as fake:
        package = package_of(folder, fake.url, scheme, security)
        with imported(folder, package) as module:
            yield There(module, fake)


def package_of(folder: Path, url: str, scheme: dict[str, Any], security: Any = (("o",),)) -> str:
    auth = {"o": {"tokenUrl": f"{url}/token", "env": "O_TOKEN", **scheme}, "k": {"type": "bearer", "env": "K"}}
    said = {"baseUrl": f"{url}/v1", "baseUrlEnv": "O_URL", "auth": auth, "security": [list(way) for way in security]}
    get = tool("get", {}, outputSchema={"type": "object"}, stubwright={"http": {"api": "fake", "url": "/x"}})
    return generate(folder, manifest([get], apis={"fake": said}))


def tokens(results: list[Any]) -> list[str]:
    """Return the API's tokens, which it sends back reversed, because the server would redact them."""
    return [result.structured_content["token"][::-1] for result in results]


@pytest.mark.parametrize("where", amounts.sample(["basic", "body"], 1))
def test_a_token_is_got_once_for_many_calls(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(pause=0.2)
    scheme = {**CLIENT, "scopes": ["a", "b:c"], "clientAuth": where}
    with there(tmp_path, issuer, scheme, SECRETS, monkeypatch) as found:
        assert tokens(found.calls(20, 5)) == ["token-1"] * 25
        (form,) = found.grants
        asked = next(one for one in found.api.asked if one.path == "/token")
    assert (form["grant_type"], form["scope"]) == (["client_credentials"], ["a b:c"])
    if where == "basic":
        assert base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")) == b"client%261:s3cret%2Fx"
        assert "client_secret" not in form
    else:
        assert "authorization" not in asked.headers
        assert (form["client_id"], form["client_secret"]) == (["client&1"], ["s3cret/x"])


@pytest.mark.parametrize(
    ("expires", "got"),
    amounts.sample([(3600, 1), (0, 3), ("0", 3), (None, 1), ("soon", 1), (True, 1), (-5, 1), (10**400, 1)], 3),
)
def test_a_token_is_got_anew_before_it_ends(
    expires: Any, got: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with there(tmp_path, Issuer(expires=expires), CLIENT, SECRETS, monkeypatch) as found:
        assert len(tokens(found.calls(1, 1, 1))) == 3
        assert len(found.grants) == got


def test_a_token_ends_a_little_before_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with there(tmp_path, Issuer(expires=1), CLIENT, SECRETS, monkeypatch) as found:
        assert tokens(found.calls(1, 1, between=lambda: time.sleep(0.92))) == ["token-1", "token-2"]


def test_after_a_401_a_token_is_got_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(good=lambda token: token != "token-1", pause=0.1)
    with there(tmp_path, issuer, CLIENT, SECRETS, monkeypatch) as found:
        assert tokens(found.calls(10, 1)) == ["token-2"] * 11
        assert len(found.grants) == 2


def test_an_api_that_goes_on_refusing_is_told_without_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    issuer = Issuer(good=lambda _: False)
    with there(tmp_path, issuer, CLIENT, SECRETS, monkeypatch) as found:
        (result,) = found.calls(1)
        assert len(found.grants) == 2
    assert result.is_error
    said = result.content[0].text + caplog.text
    assert "401 Unauthorized" in said
    assert not [secret for secret in ("token-1", "token-2", "s3cret", "client%26") if secret in said]


def test_a_refresh_token_gives_tokens_and_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(expires=0, good=lambda token: token != "token-4")
    with there(tmp_path, issuer, USER, SECRETS, monkeypatch) as found:
        results = found.calls(1, 1)
        assert tokens(results) == ["token-1", "token-2"]
        assert [form["refresh_token"] for form in found.grants] == [["refresh-0"], ["refresh-1"]]
        assert {form["grant_type"][0] for form in found.grants} == {"refresh_token"}
        assert {form["client_id"][0] for form in found.grants} == {"client&1"}


def test_without_a_grant_the_token_of_the_environment_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"O_TOKEN": "mine", "O_ID": "only the id"}
    with there(tmp_path, Issuer(), CLIENT, environment, monkeypatch) as found:
        assert tokens(found.calls(1)) == ["mine"]
        assert found.grants == []


def test_without_either_the_caller_is_told_what_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with there(tmp_path, Issuer(), CLIENT, {}, monkeypatch) as found:
        (result,) = found.calls(1)
        assert found.sent == [None]
    assert "lacks O_ID and O_SECRET" in result.content[0].text


def test_the_next_way_is_tried_where_tokens_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(good=lambda token: token == "other")
    environment = {**SECRETS, "K": "other"}
    with there(tmp_path, issuer, CLIENT, environment, monkeypatch, (("o",), ("k",))) as found:
        assert tokens(found.calls(1)) == ["other"]
        assert found.sent == ["Bearer token-1", "Bearer token-2", "Bearer other"]


@pytest.mark.parametrize(
    ("says", "why"),
    amounts.sample(
        [
            ((401, {"error": "invalid_client", "error_description": "s3cret/x"}), "it returned 401 invalid_client."),
            ((400, {"error": "s3cret/x"}), "it returned 400."),
            ((500, "s3cret/x"), "it returned 500."),
            ((200, []), "it returned 200."),
            ((200, {"access_token": ""}), "it returned 200."),
            ((200, {"access_token": "a\nb"}), "it returned 200."),
            ((200, {"access_token": "s3cret/x", "token_type": "mac"}), "its token is not a Bearer token."),
            ((200, {"access_token": "x" * 300_000}), "it returned 200."),
            (RedirectResponse("https://elsewhere.example/token"), "it returned 307."),
        ],
        3,
    ),
)
def test_a_token_endpoint_that_gives_none(
    says: Answer, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    issuer = Issuer(says=lambda _: says, pause=0.2)
    with there(tmp_path, issuer, CLIENT, SECRETS, monkeypatch) as found:
        results = found.calls(5, 1)
        assert len(found.grants) == 2  # one for all that waited, and another try
        assert found.sent == []
    assert {result.content[0].text for result in results} == {f"The server cannot get a token from 127.0.0.1: {why}"}
    assert not [secret for secret in ("s3cret", "x" * 50) if secret in caplog.text]


def test_a_token_endpoint_that_is_slow_or_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(pause=0.6)
    with there(tmp_path, issuer, CLIENT, SECRETS, monkeypatch) as found:
        found.calls(0)  # loads the runtime
        module = sys.modules["stubwright_runtime.http.tokens"]
        monkeypatch.setattr(module, "_TIMEOUT", 0.2)
        (result,) = found.calls(1)
        assert "it did not respond within 0.2 seconds" in result.content[0].text
    monkeypatch.undo()
    (tmp_path / "away").mkdir()
    away = {**CLIENT, "tokenUrl": "http://127.0.0.1:1/token"}
    with there(tmp_path / "away", Issuer(), away, SECRETS, monkeypatch) as found:
        (result,) = found.calls(1)
        assert "it cannot be reached: connection refused" in result.content[0].text


@pytest.mark.parametrize(
    ("revision", "transport"), amounts.sample(product(["2025-06-18", "2026-07-28"], ["stdio", "http"]), 3)
)
def test_tokens_serve_every_revision_and_transport(
    revision: str, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = "legacy" if revision < "2026" else "auto"
    with there(tmp_path, Issuer(), CLIENT, SECRETS, monkeypatch) as found:

        async def asked(target: Any) -> list[Any]:
            async with mcp.Client(target, mode=mode) as client:
                return [await client.call_tool("get", {}) for _ in range(2)]

        if transport == "stdio":
            environment = {"PYTHONPATH": str(tmp_path), **SECRETS}
            interpreter, *arguments = forked.interpreter()
            arguments += ["-m", found.module.__name__]
            command = mcp.StdioServerParameters(command=interpreter, args=arguments, env=environment)
            results = asyncio.run(asked(mcp.stdio_client(command)))
        else:
            with asgi(found.module.asgi_app(None)) as url:
                results = asyncio.run(asked(f"{url}/mcp"))
        assert tokens(results) == ["token-1", "token-1"]
        assert len(found.grants) == 1
