"""Valid and invalid HTTP requests get the same responses on every way to the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from types import ModuleType
from typing import Any

import httpx2
import pytest

import amounts
import prompt_ends
from conversations import READY, REVISIONS, Handlers, handshake, request, usual
from packages import generate, imported, manifest, tool
from serving import WAYS, asgi

ends_are_prompt = prompt_ends.ends_are_prompt

LATEST = "2026-07-28"
OLD = ("2025-06-18", "2025-11-25")
REVISION = "io.modelcontextprotocol/protocolVersion"
CALL = {"name": "say", "arguments": {"text": "hello"}}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("requests")
    tools = [tool("say", {"text": {"type": "string"}})]
    toolsets = {"some": {"tools": ["say"]}}
    with imported(folder, generate(folder, manifest(tools, name="requests", toolsets=toolsets))) as module:
        yield module


@pytest.fixture(scope="module")
def urls(package: ModuleType) -> Iterator[Sequence[str]]:
    """A server on each way over HTTP."""
    with ExitStack() as stack:
        yield [f"{stack.enter_context(way(package.asgi_app(Handlers())))}/mcp" for way in WAYS]


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=60) as client:
        yield client


def open_session(http: httpx2.Client, url: str, revision: str) -> str:
    message = handshake(revision)
    session: str = http.post(url, json=message, headers=dict(usual(message, revision, None))).headers["mcp-session-id"]
    headers = dict(usual(READY, revision, session))
    assert http.post(url, json=READY, headers=headers).status_code == 202
    return session


def change(headers: Sequence[tuple[str, str]], **changed: str | None) -> dict[str, str]:
    """Headers with others in place of some, or without them."""
    names = {name.replace("_", "-"): value for name, value in changed.items()}
    return {name: value for name, value in {**dict(headers), **names}.items() if value is not None}


def error_of(response: httpx2.Response) -> tuple[int, Any, int]:
    said: Mapping[str, Any] = response.json()
    return response.status_code, said["id"], said["error"]["code"]


@pytest.mark.parametrize("named", [*REVISIONS, "1999-01-01", "", None])
def test_a_header_that_names_another_revision_is_a_mismatch(
    named: str | None, urls: Sequence[str], http: httpx2.Client
) -> None:
    message = request("seven", "tools/call", CALL, stateless=True)
    headers = change(usual(message, LATEST, None), mcp_protocol_version=named)
    for url in urls:
        response = http.post(url, json=message, headers=headers)
        assert error_of(response) == (400, "seven", -32020), url
        assert "MCP-Protocol-Version" in response.json()["error"]["message"]
        assert repr(LATEST) in response.json()["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("named", ["1999-01-01", ""])
def test_an_unknown_revision_is_refused_whatever_the_method(
    method: str, named: str, urls: Sequence[str], http: httpx2.Client
) -> None:
    for url in urls:
        session = open_session(http, url, OLD[1])
        headers = change(usual(READY, OLD[1], session), mcp_protocol_version=named)
        assert error_of(http.request(method, url, headers=headers)) == (400, None, -32022), url
        assert http.delete(url, headers=dict(usual(READY, OLD[1], session))).status_code == 200, "it is still there"
        latest = {**headers, "mcp-protocol-version": LATEST}
        assert http.request(method, url, headers=latest).status_code == 405


@pytest.mark.parametrize("revision", [*OLD, LATEST])
def test_what_a_client_accepts_may_be_said_in_several_lines(
    revision: str, urls: Sequence[str], http: httpx2.Client
) -> None:
    message = request(1, "tools/call", CALL, stateless=revision == LATEST)
    for url in urls:
        session = None if revision == LATEST else open_session(http, url, revision)
        plain = [each for each in usual(message, revision, session) if each[0] != "accept"]
        both = [("accept", "application/json"), ("accept", "text/event-stream")]
        assert http.post(url, json=message, headers=[*plain, *both]).status_code == 200, url
        assert http.post(url, json=message, headers=[*plain, both[0], both[0]]).status_code == 406, url


@pytest.mark.parametrize("revision", OLD)
def test_a_mismatch_is_one_in_a_session_too(revision: str, urls: Sequence[str], http: httpx2.Client) -> None:
    for url in urls:
        session = open_session(http, url, revision)
        message = request(7, "tools/call", CALL, stateless=True)
        headers = dict(usual(message, revision, session))
        assert error_of(http.post(url, json=message, headers=headers)) == (400, 7, -32020)
        message["params"]["_meta"] = {REVISION: revision}
        assert http.post(url, json=message, headers=headers).status_code == 200
        del message["params"]["_meta"]
        assert http.post(url, json=message, headers=headers).status_code == 200


JSON = ("Application/JSON", "APPLICATION/JSON;charset=UTF-8", 'application/json ; charset="utf-8"; x=y')


@pytest.mark.parametrize("revision", amounts.sample([*OLD, LATEST], 1))
def test_json_is_json_however_its_type_is_written(revision: str, urls: Sequence[str], http: httpx2.Client) -> None:
    is_stateless = revision == LATEST
    plain = request(1, "tools/call", CALL, stateless=is_stateless)
    odd = request(2, "nothing/known", {}, stateless=is_stateless)
    for url in urls:
        session = None if is_stateless else open_session(http, url, revision)
        for media in JSON:
            for message, status in ((plain, 200), (odd, 404 if is_stateless else 200)):
                headers = change(usual(message, revision, session), content_type=media)
                assert http.post(url, json=message, headers=headers).status_code == status, (url, media)


@pytest.mark.parametrize("media", amounts.sample(["text/json", "text/plain", "x-application/json", None], 2))
def test_what_is_not_json_is_refused(media: str | None, urls: Sequence[str], http: httpx2.Client) -> None:
    for revision in (*OLD, LATEST):
        message = request(1, "tools/call", CALL, stateless=revision == LATEST)
        body = json.dumps(message).encode()
        for url in urls:
            session = None if revision == LATEST else open_session(http, url, revision)
            headers = change(usual(message, revision, session), content_type=media)
            assert http.post(url, content=body, headers=headers).status_code in (400, 415), (url, revision)


@pytest.mark.parametrize("revision", OLD)
def test_a_refusal_names_no_session(revision: str, urls: Sequence[str], http: httpx2.Client) -> None:
    message = request(1, "tools/call", CALL, stateless=False)
    for url in urls:
        session = open_session(http, url, revision)
        headers = usual(message, revision, session)
        refused = [
            http.post(url, json=message, headers=change(headers, accept="text/html")),
            http.post(url, json=message, headers=change(headers, content_type="application/xml")),
            http.post(url, json=message, headers=change(headers, mcp_session_id="nobody")),
            http.post(url, json=message, headers=change(headers, mcp_session_id=None)),
            http.post(url, content=b"{", headers=dict(headers)),
            http.get(url, headers=change(headers, accept="text/html")),
            http.put(url, json=message, headers=dict(headers)),
        ]
        assert [response.status_code for response in refused] == [406, 400, 404, 400, 400, 406, 405]
        assert [response.headers.get("mcp-session-id") for response in refused] == [None] * len(refused)
        answered = http.post(url, json=request(2, "nothing/known", {}, stateless=False), headers=dict(headers))
        assert answered.headers["mcp-session-id"] == session


@pytest.mark.parametrize(("path", "revision"), amounts.sample(product(["/", "/some", "/some/"], [*OLD, LATEST]), 5))
def test_a_slash_at_the_end_changes_nothing(revision: str, path: str, urls: Sequence[str], http: httpx2.Client) -> None:
    is_stateless = revision == LATEST
    message = request(1, "tools/call", CALL, stateless=is_stateless)
    for url in urls:
        session = None if is_stateless else open_session(http, url + path, revision)
        headers = usual(message, revision, session)
        assert http.post(url + path, json=message, headers=dict(headers)).status_code == 200
        assert http.post(url, json=message, headers=dict(headers)).status_code == 200, "it is the same endpoint"
        if session is not None:
            with http.stream("GET", url + path, headers=dict(headers)) as stream:
                assert stream.status_code == 200
            assert http.delete(url + path, headers=dict(headers)).status_code == 200
        assert http.post(f"{url}{path}nothing/", json=message, headers=dict(headers)).status_code == 404


@pytest.mark.parametrize("path", ["/", "/tools", "/tools/"])
def test_wherever_the_endpoint_is_it_has_both_spellings(path: str, package: ModuleType, http: httpx2.Client) -> None:
    message = request(1, "tools/call", CALL, stateless=True)
    for way in WAYS:
        with way(package.asgi_app(Handlers(), path=path)) as url:
            for spelling in {path, path.rstrip("/") or "/", f"{path.rstrip('/')}/", f"{path.rstrip('/')}/some/"}:
                response = http.post(url + spelling, json=message, headers=dict(usual(message, LATEST, None)))
                assert response.status_code == 200, spelling


def last_of(response: httpx2.Response) -> Any:
    """The last message of an answer."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    return json.loads([line for line in response.text.splitlines() if line.startswith("data: {")][-1][6:])


@pytest.mark.parametrize("revision", OLD)
def test_a_session_shakes_hands_once(revision: str, urls: Sequence[str], http: httpx2.Client) -> None:
    call = request(1, "tools/call", CALL, stateless=False)
    for url in urls:
        session = open_session(http, url, revision)
        for other in OLD:
            again = handshake(other)
            response = http.post(url, json=again, headers=dict(usual(again, revision, session)))
            said = last_of(response)
            assert (said["id"], said["error"]["code"]) == ("hello", -32600), url
            assert "already initialized" in said["error"]["message"]
        assert http.post(url, json=call, headers=dict(usual(call, revision, session))).status_code == 200
        assert open_session(http, url, revision) != session


PAGE = "https://app.example.com"


@pytest.mark.parametrize(("path", "revision"), amounts.sample(product(["", "/", "/some"], [*OLD, LATEST]), 5))
def test_pages_of_an_allowed_origin_may_call(
    revision: str, path: str, package: ModuleType, http: httpx2.Client
) -> None:
    is_stateless = revision == LATEST
    message = handshake(revision) if not is_stateless else request(1, "tools/call", CALL, stateless=True)
    for way in WAYS:
        with way(package.asgi_app(Handlers(), allowed_origins=[PAGE])) as url:
            asked = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-param-x"}
            preflight = http.options(f"{url}/mcp{path}", headers={"origin": PAGE, **asked})
            assert preflight.status_code == 200
            assert preflight.headers["access-control-allow-origin"] == PAGE
            assert preflight.headers["access-control-allow-headers"] == "mcp-param-x"
            headers = {**dict(usual(message, revision, None)), "origin": PAGE}
            response = http.post(f"{url}/mcp{path}", json=message, headers=headers)
            assert response.status_code == 200
            assert response.headers["access-control-allow-origin"] == PAGE
            assert "Mcp-Session-Id" in response.headers["access-control-expose-headers"]
            foreign = http.post(f"{url}/mcp{path}", json=message, headers={**headers, "origin": "https://b.example"})
            assert foreign.status_code == 403
            assert "access-control-allow-origin" not in foreign.headers


class NobodyVerifier:
    async def verify_token(self, token: str) -> None:
        return None


def test_a_page_learns_that_it_needs_a_token(package: ModuleType, http: httpx2.Client) -> None:
    app = package.asgi_app(Handlers(), allowed_origins=[PAGE.upper()], token_verifier=NobodyVerifier())
    with asgi(app) as url:
        preflight = {"origin": PAGE, "access-control-request-method": "POST"}
        assert http.options(f"{url}/mcp", headers=preflight).status_code == 200
        response = http.post(f"{url}/mcp", json={}, headers={"origin": PAGE})
        assert response.status_code == 401
        assert response.headers["access-control-allow-origin"] == PAGE
        assert "WWW-Authenticate" in response.headers["access-control-expose-headers"]


def test_no_other_page_may_call_by_default(urls: Sequence[str], http: httpx2.Client) -> None:
    for url in urls:
        response = http.options(url, headers={"origin": PAGE, "access-control-request-method": "POST"})
        assert response.status_code >= 400
        assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        (
            {"allowed_hosts": "api.example.com"},
            TypeError,
            r"allowed_hosts must be a list, such as \['api.example.com'\]",
        ),
        ({"allowed_origins": PAGE}, TypeError, "allowed_origins must be a list, such as"),
        (
            {"allowed_hosts": ["https://api.example.com"]},
            ValueError,
            "'https://api.example.com' is not a host, such as",
        ),
        ({"allowed_hosts": ["api.example.com/mcp"]}, ValueError, "is not a host"),
        ({"path": "mcp"}, ValueError, "path must start with /: 'mcp'"),
    ],
)
def test_places_that_no_request_has_are_refused_at_the_start(
    options: dict[str, object], kind: type[Exception], why: str, package: ModuleType
) -> None:
    with pytest.raises(kind, match=why):
        package.asgi_app(Handlers(), **options)


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "app.example.com",
        "https://app.example.com/",
        "null",
        "https://*.example",
        "https://a.example:443",
        "HTTP://a.example:80",
        "https://bücher.example",
    ],
)
def test_what_is_no_origin_is_refused_at_the_start(origin: str, package: ModuleType) -> None:
    with pytest.raises(ValueError, match="is not an origin"):
        package.asgi_app(Handlers(), allowed_origins=[origin])


@pytest.mark.parametrize("origin", ["http://localhost:37553", "https://KIOSK.example", "http://a.example:443"])
def test_an_origin_of_a_browser_is_accepted(origin: str, package: ModuleType) -> None:
    package.asgi_app(Handlers(), allowed_origins=[origin])
