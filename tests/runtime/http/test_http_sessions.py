"""Ended HTTP sessions, and sessions that another client names."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import httpx2
import pytest

import amounts
import prompt_ends
from conversations import Handlers, handshake, request, usual
from packages import generate, imported, manifest, tool
from serving import WAYS
from stubwright_runtime.server.transports.http.sessions import Session
from stubwright_runtime.server.transports.lifecycle import Client

ends_are_prompt = prompt_ends.ends_are_prompt

REVISION = "2025-11-25"
EVERY_WAY = pytest.mark.parametrize("way", [*WAYS[:2], amounts.mark_long(WAYS[2])], ids=["asgi", "httptools", "h11"])


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("sessions")
    with imported(folder, generate(folder, manifest([tool("add")], name="sessions"))) as module:
        yield module


def shake(http: httpx2.Client, url: str, experimental: Any = None) -> str:
    message = handshake(REVISION)
    message["params"]["capabilities"] = {"experimental": experimental or {}}
    body = json.dumps(message, separators=(",", ":")).encode()
    response = http.post(url, content=body, headers=dict(usual(message, REVISION, None)))
    assert response.headers["content-type"] == "application/json", "it was answered directly"
    session: str = response.headers["mcp-session-id"]
    return session


@EVERY_WAY
def test_nothing_is_kept_of_a_session_that_has_ended(way: Any, package: ModuleType) -> None:
    large: dict[str, Any] = {f"{number:04}": {} for number in range(1450)}
    others = _find_kept()  # of other modules' servers, which can outlive their tests
    with way(package.asgi_app(Handlers())) as url, httpx2.Client() as http:
        for _ in range(3):
            session = shake(http, f"{url}/mcp", large)
            assert http.delete(f"{url}/mcp", headers={"mcp-session-id": session}).status_code == 200
        left = shake(http, f"{url}/mcp", large)
        kept = [each for each in _find_kept() if not any(each is other for other in others)]
        trees = [each for each in gc.get_objects() if type(each) is dict and each.keys() == large.keys()]
        assert [each.id for each in kept if isinstance(each, Session)] == [left]
        assert len(kept) == 2
        assert trees == [large], "that of this test"


def _find_kept() -> list[Session | Client]:
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, Session | Client)]


def test_what_a_client_said_in_its_handshake_is_known_when_it_is_asked_for() -> None:
    message = handshake(REVISION)
    client = Client.from_handshake(message["params"], ANY_CHANGES)
    assert client.capabilities == message["params"]["capabilities"]
    assert client.name == ("test", "1")


class _Changes:
    count = 0


ANY_CHANGES: Any = _Changes()


@pytest.fixture(scope="module", params=WAYS, ids=["asgi", "httptools", "h11"])
def url(request: pytest.FixtureRequest, package: ModuleType) -> Iterator[str]:
    """A server on each way over HTTP."""
    with request.param(package.asgi_app(Handlers())) as root:
        yield f"{root}/mcp"


@pytest.mark.parametrize(("header", "status"), [("origin", 403), ("host", 421)])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_foreign_page_or_host_is_refused_and_ends_nobodys_session(
    method: str, header: str, status: int, url: str
) -> None:
    ping = request(1, "ping", None, stateless=False)
    with httpx2.Client() as http:
        session = shake(http, url)
        headers = dict(usual(ping, REVISION, session))
        body: dict[str, Any] = {"json": ping} if method == "POST" else {}
        foreign = {**headers, header: "http://evil.example" if header == "origin" else "evil.example"}
        assert http.request(method, url, headers=foreign, **body).status_code == status
        assert http.post(url, json=ping, headers=headers).status_code == 200
        assert http.delete(url, headers=headers).status_code == 200
        assert http.post(url, json=ping, headers=headers).status_code == 404
