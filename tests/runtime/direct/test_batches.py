"""Batches over HTTP get the same responses as over stdio, in their only revision (MCP 2025-03-26, "Batching")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import httpx2
import pytest

import prompt_ends
from conversations import MORE, READY, REVISIONS, Handlers, handshake, request, usual
from packages import generate, imported, manifest, tool
from serving import WAYS

ends_are_prompt = prompt_ends.ends_are_prompt

ALONE = "2025-03-26"
TOOLS = [
    tool("say", {"text": {"type": "string"}}),
    tool("talk", {"level": {"type": "string"}}),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("batches")
    with imported(folder, generate(folder, manifest(TOOLS, name="batches", **MORE))) as module:
        yield module


@pytest.fixture(scope="module", params=range(len(WAYS)))
def url(request: pytest.FixtureRequest, package: ModuleType) -> Iterator[str]:
    yield from _serve(package, request.param)


@pytest.fixture(params=range(len(WAYS)))
def stateless_url(request: pytest.FixtureRequest, package: ModuleType) -> Iterator[str]:
    yield from _serve(package, request.param, stateless=True)


def _serve(package: ModuleType, number: int, **options: Any) -> Iterator[str]:
    with WAYS[number](package.asgi_app(Handlers(), **options)) as url:
        yield f"{url}/mcp"


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=60) as client:
        yield client


def shake(http: httpx2.Client, url: str, revision: str) -> dict[str, str]:
    """The headers of a session."""
    first = handshake(revision)
    session = http.post(url, json=first, headers=dict(usual(first, revision, None))).headers["mcp-session-id"]
    headers = {key: value for key, value in usual(first, revision, session) if key != "mcp-protocol-version"}
    assert http.post(url, json=READY, headers=headers).status_code == 202
    return headers


def call(number: Any, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return request(number, "tools/call", {"name": name, "arguments": arguments, **more}, stateless=False)


def ping(number: Any) -> dict[str, Any]:
    return request(number, "ping", None, stateless=False)


def messages(lines: Sequence[str]) -> list[Any]:
    """The messages of a stream of events."""
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def test_each_request_of_a_batch_is_answered(http: httpx2.Client, url: str) -> None:
    batch = [
        ping(1),
        READY,
        call("two", "say", {"text": "snow \N{SNOWMAN}"}),
        call(3, "say", {"text": 5}),
        5,
        {"jsonrpc": "2.0", "id": 6},
        request(7, "nothing/known", {}, stateless=False),
        {"jsonrpc": "2.0", "method": "notifications/initialized", "params": []},
    ]
    response = http.post(url, json=batch, headers=shake(http, url, ALONE))
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
    answers = {str(answer["id"]): answer for answer in messages(response.text.splitlines())}
    assert {*answers} == {"1", "two", "3", "None", "6", "7"}
    assert answers["1"]["result"] == {}
    assert answers["two"]["result"]["content"][0]["text"] == "snow \N{SNOWMAN}"
    assert answers["3"]["result"]["isError"] is True
    assert [answers[key]["error"]["code"] for key in ("None", "6", "7")] == [-32600, -32600, -32601]
    assert "\nid:" not in response.text


def test_a_batch_that_wants_no_answer_is_accepted(http: httpx2.Client, url: str) -> None:
    response = http.post(url, json=[READY, {"jsonrpc": "2.0", "id": 99, "result": {}}], headers=shake(http, url, ALONE))
    assert (response.status_code, response.content) == (202, b"")


def test_notifications_arrive_between_the_answers(http: httpx2.Client, url: str) -> None:
    headers = shake(http, url, ALONE)
    batch = [call(1, "talk", {"level": "error"}, _meta={"progressToken": "t"}), ping(2)]
    with http.stream("POST", url, json=batch, headers=headers) as response:
        received = messages([*response.iter_lines()])
    assert sorted(message.get("method", str(message.get("id"))) for message in received) == [
        *("1", "2", "notifications/message", "notifications/progress")
    ]


def test_a_large_batch_is_answered(http: httpx2.Client, url: str) -> None:
    batch = [*map(ping, range(999)), call("large", "say", {"text": "x" * 200_000})]
    response = http.post(url, json=batch, headers=shake(http, url, ALONE))
    assert len(messages(response.text.splitlines())) == 1000


def test_calls_of_a_batch_can_be_cancelled_by_it(http: httpx2.Client, url: str) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    response = http.post(url, json=[ping(2), cancel], headers=shake(http, url, ALONE))
    assert [answer["id"] for answer in messages(response.text.splitlines())] == [2]


@pytest.mark.parametrize("batch", [[], [5], [*range(1001)]], ids=["empty", "of no message", "too large"])
def test_a_batch_without_messages_is_an_error(batch: list[Any], http: httpx2.Client, url: str) -> None:
    response = http.post(url, json=batch, headers=shake(http, url, ALONE))
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("revision", [*(one for one in REVISIONS if one != ALONE), "2026-07-28"])
def test_other_revisions_refuse_batches(revision: str, http: httpx2.Client, url: str) -> None:
    headers = dict(usual(ping(1), revision, None)) if revision == "2026-07-28" else shake(http, url, revision)
    response = http.post(url, json=[ping(1)], headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)
    assert "send each message in its own request" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"mcp-protocol-version": ALONE}, 200),
        ({"mcp-protocol-version": "2025-06-18"}, 400),
        ({"accept": "text/html"}, 406),
        ({"origin": "http://evil.example"}, 403),
        ({"mcp-session-id": "nowhere"}, 404),
    ],
    ids=str,
)
def test_what_is_wrong_with_the_request_is_said_once(
    change: dict[str, str], status: int, http: httpx2.Client, url: str
) -> None:
    response = http.post(url, json=[ping(1), ping(2)], headers={**shake(http, url, ALONE), **change})
    assert response.status_code == status, response.text


def test_a_session_that_has_ended_refuses_batches(http: httpx2.Client, url: str) -> None:
    headers = shake(http, url, ALONE)
    assert http.post(url, json=[ping(1)], headers=headers).status_code == 200
    assert http.delete(url, headers=headers).status_code == 200
    assert http.post(url, json=[ping(1)], headers=headers).status_code == 404


def test_a_batch_needs_a_session_where_there_are_some(http: httpx2.Client, url: str) -> None:
    response = http.post(url, json=[ping(1)], headers={"accept": "application/json, text/event-stream"})
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)


def test_batches_need_no_session_where_there_are_none(http: httpx2.Client, stateless_url: str) -> None:
    headers = {"accept": "application/json, text/event-stream"}
    response = http.post(stateless_url, json=[ping(1), ping(2)], headers=headers)
    assert sorted(answer["id"] for answer in messages(response.text.splitlines())) == [1, 2]
    response = http.post(stateless_url, json=[ping(1)], headers={**headers, "mcp-protocol-version": "2025-06-18"})
    assert response.status_code == 400
