"""The functions that check headers agree with the endpoint's responses.

`tests/messages/heads.txt`, `routing.txt` and `parameter_headers.txt` were recorded from the official SDK, which once
checked all odd headers; `pytest --update` rewrites them. Differences since then: a foreign host or origin is rejected
first; 405 lists the methods; a server without sessions has no GET; a header with invalid base64 contradicts the body;
several lines of `Accept` are one list; a GET or a DELETE of an unknown revision is answered with 400; and an empty
origin is foreign.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value, mcp_param_headers, validate_mcp_param_headers, x_mcp_header_map
from starlette.datastructures import Headers

import amounts
import head_cases as cases
from conversations import MORE, Handlers, request
from head_cases import ARGUMENTS, KNOWN, MIRRORING, Answer, Setting, ask, encoded, format_outcomes, read
from packages import generate, imported, manifest, tool
from stubwright_runtime.mcp.errors import ProtocolError
from stubwright_runtime.mcp.parameter_headers import (
    decode_value,
    find_invalid_keyword,
    find_parameter_error,
    list_mirrored,
)
from stubwright_runtime.mcp.vocabulary import MAX_SAFE_INTEGER
from stubwright_runtime.server.calls.old_names import find_mirrored_schema
from stubwright_runtime.server.protocol.requests import find_stateless_error
from stubwright_runtime.server.transports.http.headers import (
    LARGEST,
    Allowlist,
    Head,
    Heads,
    find_header_error,
    validate_headers,
)
from stubwright_runtime.server.transports.http.rejections import NO_SESSION, TOO_LARGE, Rejection

FOLDER = Path(__file__).parents[2] / "messages"
LOCAL = ("127.0.0.1", "localhost", "[::1]")
HOSTS = Allowlist([form for host in LOCAL for form in (host, f"{host}:*")], all_=False)
ORIGINS = Allowlist(
    [f"{scheme}://{host}{port}" for host in LOCAL for port in ("", ":*") for scheme in ("http", "https")], all_=False
)
HEADS = Heads(HOSTS, ORIGINS)
TOOLS = [
    tool("add", {"a": {"type": "integer"}}, execution={"taskSupport": "optional"}),
    tool("mirror", MIRRORING, stubwright={"aliases": [{"name": "reflect", "arguments": {"where": "place"}}]}),
]
Outcomes = dict[str, dict[str, str]]


class Answers(Handlers):
    async def mirror(self, args: Any, ctx: Any) -> str:
        return "mirrored"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("judged")
    with imported(folder, generate(folder, manifest(TOOLS, name="judged", **MORE))) as module:
        yield module


@asynccontextmanager
async def serving(package: ModuleType, *, stateless: bool = False) -> AsyncIterator[Any]:
    app = package.asgi_app(Answers(), stateless=stateless, max_sessions=100_000)
    async with app.router.lifespan_context(app):
        yield app


def compare(name: str, found: Outcomes, *, update: bool) -> None:
    path = FOLDER / f"{name}.txt"
    if update:
        path.write_text(format_outcomes(found.items()), "utf-8")
    assert read(path.read_text("utf-8")) == found


def recorded(name: str) -> Outcomes:
    return read((FOLDER / f"{name}.txt").read_text("utf-8"))


def test_the_endpoint_answers_odd_heads_as_recorded(package: ModuleType, update: bool) -> None:
    async def found() -> Outcomes:
        outcomes: Outcomes = {}
        for stateless in (False, True):
            async with serving(package, stateless=stateless) as app:
                for setting in cases.settings():
                    if setting.stateless != stateless:
                        continue
                    body = json.dumps(cases.message_of(setting)).encode()
                    session = ""
                    for name, change in cases.changes(setting):
                        is_used_up = setting.method in ("GET", "DELETE")  # it has a stream, or has ended
                        if KNOWN in setting.session and not stateless and (is_used_up or not session):
                            session = await cases.open_session(app)
                        headers = cases.headers_of(setting, change, session or KNOWN)
                        answer = await ask(app, setting.method, headers, body)
                        outcomes.setdefault(str(setting), {})[name] = answer.text()
        return outcomes

    compare("heads", asyncio.run(found()), update=update)


def judged(setting: Setting, change: cases.Changes) -> str:
    """What a head comes to with the endpoint's sessions and the message."""
    headers = cases.headers_of(setting, change, KNOWN)
    head = validate_headers(setting.method, headers, HEADS, stateless=setting.stateless)
    if isinstance(head, Rejection):
        return refused(head if head.session in (None, KNOWN) else NO_SESSION)
    if not setting.stateless and not head.is_stateless and head.session not in (None, KNOWN):
        return refused(NO_SESSION)
    message = cases.message_of(setting)
    fault = find_header_error(head, message, headers, has_tasks=True) if setting.method == "POST" else None
    return said(fault or (find_stateless_error(message) if head.is_stateless else None))


def refused(answer: Rejection) -> str:
    response = answer.answer()
    headers = {name.decode(): value.decode() for name, value in response.headers}
    assert headers["content-length"] == str(len(response.body))
    return Answer(response.status, headers, response.body).text()


def said(fault: ProtocolError | None) -> str:
    if fault is None:
        return "taken"
    data = {} if fault.data is None else {"data": fault.data}
    error = cases.error_text({"code": fault.code, "message": fault.message, **data})
    return f"{404 if fault.code == -32601 else 400} {error}"


def test_judge_head_says_what_the_endpoint_answers() -> None:
    today = recorded("heads")
    for setting in cases.settings():
        for name, change in cases.changes(setting):
            assert judged(setting, change) == today[str(setting)][name], (setting, name)


def test_no_host_and_no_origin_is_foreign_where_all_are_allowed() -> None:
    everything = Allowlist([], all_=True)
    headers = encoded({**cases.USUAL, "host": [], "origin": ["http://evil.example"]})
    head = validate_headers("POST", headers, Heads(everything, everything), stateless=False)
    assert head == Head(None, None, None, None)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("encoding", ["gzip", "br, gzip", "GZIP"])
def test_a_compressed_body_is_refused(revision: str, encoding: str) -> None:
    headers = encoded({**cases.USUAL, "mcp-protocol-version": [revision], "content-encoding": [encoding]})
    refused = validate_headers("POST", headers, HEADS, stateless=False)
    assert isinstance(refused, Rejection)
    answer = refused.answer()
    assert answer.status == 415
    assert (b"accept-encoding", b"identity") in answer.headers
    assert b"Content-Encoding" in answer.body


def test_an_encoding_that_changes_nothing_is_accepted() -> None:
    headers = encoded({**cases.USUAL, "content-encoding": ["Identity"]})
    assert isinstance(validate_headers("POST", headers, HEADS, stateless=False), Head)


def test_a_body_as_large_as_can_be_is_taken() -> None:
    accept = (b"accept", b"application/json, text/event-stream")
    usual = [(b"host", b"localhost"), (b"content-type", b"application/json"), accept]
    judged = [
        validate_headers("POST", [*usual, (b"content-length", b"%d" % size)], HEADS, stateless=True)
        for size in (LARGEST, LARGEST + 1)
    ]
    assert isinstance(judged[0], Head)
    assert judged[1] == TOO_LARGE


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_406_names_the_types_that_are_needed(revision: str) -> None:
    headers = encoded({**cases.USUAL, "mcp-protocol-version": [revision], "accept": ["application/json"]})
    refused = validate_headers("POST", headers, HEADS, stateless=False)
    assert isinstance(refused, Rejection)
    answer = refused.answer()
    assert answer.status == 406
    assert b"application/json and text/event-stream" in answer.body


def test_a_head_says_what_remains_to_be_known() -> None:
    named = {
        **cases.USUAL,
        "mcp-session-id": ["s", "t"],
        "mcp-protocol-version": ["2025-11-25"],
        "mcp-method": ["m"],
        "mcp-name": ["n", "n"],
        "mcp-param-x": ["1"],
        "last-event-id": ["e"],
    }
    head = validate_headers("GET", encoded(named), HEADS, stateless=False)
    assert head == Head("s", "2025-11-25", "m", "n", last_event="e", has_parameters=True, duplicate="mcp-name")
    posted = validate_headers("POST", encoded(named), HEADS, stateless=False)
    assert posted == Head("s", "2025-11-25", "m", "n", has_parameters=True, duplicate="mcp-name")


def outcome(answer: Answer) -> str:
    """What is recorded of an answer: a task that is not there is none of the headers' business."""
    text = re.sub(r"reference [0-9a-f]+", "reference R", answer.text())
    return "taken" if "Task not found" in text or "task requests per second" in text else text


async def asked(app: Any, headers: cases.Headers, body: Mapping[str, Any]) -> str:
    try:
        return outcome(await ask(app, "POST", headers, json.dumps(body).encode()))
    except ValueError as error:
        return f"raises {error}"


def test_the_endpoint_answers_odd_routing_headers_as_recorded(package: ModuleType, update: bool) -> None:
    async def found() -> Outcomes:
        async with serving(package) as app:
            return {
                name: {label: await asked(app, encoded(change), body) for label, change in cases.routings(body)}
                for name, body in cases.odd_bodies()
            }

    compare("routing", asyncio.run(found()), update=update)


def test_find_header_fault_says_what_the_endpoint_answers() -> None:
    today = recorded("routing")
    for name, body in cases.odd_bodies():
        for label, change in cases.routings(body):
            headers = encoded(change)
            head = validate_headers("POST", headers, HEADS, stateless=False)
            assert isinstance(head, Head)
            fault = find_header_error(head, body, headers, has_tasks=True)
            if fault is None and head.is_stateless and {"id", "method"} <= body.keys():
                fault = None if body["method"].startswith("tasks/") else find_stateless_error(body)
            if fault is None:
                assert "-32020" not in today[name][label], (name, label)
            if fault is not None or today[name][label] == "taken":
                assert said(fault) == today[name][label], (name, label)


def test_a_server_without_tasks_compares_no_names_of_tasks() -> None:
    """It answers that it does not know the method."""
    body = request(1, "tasks/get", {"taskId": "a"}, stateless=True)
    head = Head(None, "2026-07-28", "tasks/get", "b", is_stateless=True)
    headers = encoded({"mcp-protocol-version": ["2026-07-28"]})
    assert find_header_error(head, body, headers, has_tasks=False) is None
    assert find_header_error(head, body, headers, has_tasks=True) is not None


CALLS = [(name, arguments) for name in ("mirror", "reflect") for arguments in ARGUMENTS]


def called(name: str, arguments: Mapping[str, Any] | None) -> tuple[dict[str, Any], cases.Changes]:
    """A call, and its headers."""
    if arguments is not None and name == "reflect":
        arguments = {"where" if key == "place" else key: value for key, value in arguments.items()}
    params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
    named = {"mcp-protocol-version": ["2026-07-28"], "mcp-method": ["tools/call"], "mcp-name": [name]}
    return request(1, "tools/call", params, stateless=True), {**cases.USUAL, **named}


def test_the_endpoint_answers_mirrored_arguments_as_recorded(package: ModuleType, update: bool) -> None:
    async def found() -> Outcomes:
        outcomes: Outcomes = {}
        async with serving(package) as app:
            for name, arguments in CALLS:
                body, usual = called(name, arguments)
                for label, change in cases.parameter_headers():
                    answer = await asked(app, encoded({**usual, **change}), body)
                    outcomes.setdefault(f"{name} {json.dumps(arguments)}", {})[label] = answer
        return outcomes

    compare("parameter_headers", asyncio.run(found()), update=update)


def test_find_parameter_fault_says_what_the_endpoint_answers(package: ModuleType) -> None:
    today = recorded("parameter_headers")
    whole = package.TOOLS["mirror"].package
    schema = whole.tools["mirror"].definition["inputSchema"]
    for name, arguments in CALLS:
        body, usual = called(name, arguments)
        for label, change in cases.parameter_headers():
            headers = encoded({**usual, **change})
            head = validate_headers("POST", headers, HEADS, stateless=False)
            assert isinstance(head, Head)
            compared = find_mirrored_schema(schema, whole.aliases.get(name), has_headers=head.has_parameters)
            sent = body["params"].get("arguments") or {}
            fault = None if compared is None else find_parameter_error(compared, sent, headers)
            assert said(fault) == today[f"{name} {json.dumps(arguments)}"][label], (name, label)


NAMES = st.sampled_from(["a", "b", "c", "A", "type", "properties", "items"])
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(5000).map(lambda digits: 10**digits),
    st.sampled_from([2**60 + 1, 0.5, 2.0, float("inf"), float("nan"), 1e300]),
    st.text("ab \N{SNOWMAN}\n", max_size=3),
    st.lists(st.integers(), max_size=1),
)
TOKENS = st.one_of(
    NAMES, st.sampled_from(["X-Y", "a b", "", "\N{SNOWMAN}", "a\n"]), st.sampled_from([None, 1, True, ["a"]])
)
TYPES = st.sampled_from(["string", "integer", "boolean", "string", "integer", "number", "object", None, ["string"]])


def schemas(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas, with the keyword in right places and wrong ones."""
    single = st.sampled_from(["items", "not", "if", "contentSchema", "$ref", "default", "additionalProperties", "enum"])
    several = st.sampled_from(["allOf", "prefixItems", "anyOf", "examples"])
    by_name = st.sampled_from(["properties", "properties", "properties", "$defs", "patternProperties", "const"])
    parts = st.one_of(
        st.fixed_dictionaries({}, optional={"type": TYPES, "x-mcp-header": TOKENS}),
        st.dictionaries(by_name, st.dictionaries(NAMES, below, max_size=3), max_size=2),
        st.dictionaries(single, below, max_size=1),
        st.dictionaries(several, st.lists(below, max_size=2), max_size=1),
    )
    return st.lists(parts, max_size=3).map(lambda all_: {key: value for part in all_ for key, value in part.items()})


def annotated() -> st.SearchStrategy[Any]:
    """Schemas that clients can do as they say, mostly."""
    token = st.sampled_from(["a", "B", "C-d", "e.f", "g", "H", "i", "J"])
    leaf = st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean"]), "x-mcp-header": token})
    tree = st.one_of(leaf, st.dictionaries(NAMES, leaf, max_size=2).map(lambda all_: {"properties": all_}))
    return st.dictionaries(NAMES, tree, min_size=1, max_size=3).map(lambda all_: {"properties": all_})


SCHEMAS = st.one_of(annotated(), st.recursive(st.one_of(st.just({}), VALUES), schemas, max_leaves=12))
ARGUMENT_SETS = st.dictionaries(
    NAMES, st.recursive(VALUES, lambda below: st.dictionaries(NAMES, below, max_size=3)), max_size=4
)
SENT = st.one_of(
    st.sampled_from(
        ["", "a", "b", "true", "false", "True", "1", "-3", "2.0", "2.50", "0.5", "inf", "nan", "9" * 5000, "1e0"]
    ),
    st.sampled_from(
        ["=?base64??=", "=?base64?YQ==?=", "=?base64?YR==?=", "=?base64?4piD?=", "=?base64?/w==?=", "=?base64?Y?="]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=4),
)
HEADERS = st.lists(
    st.tuples(st.one_of(NAMES, st.sampled_from(["X-Y", "other"])).map(lambda name: f"mcp-param-{name.lower()}"), SENT),
    max_size=5,
)


@st.composite
def mirrored_calls(draw: st.DrawFn) -> tuple[Any, dict[str, Any], list[tuple[str, str]]]:
    """A schema, arguments that it has, and the headers that a client sends, some of which are changed."""
    schema = draw(annotated())
    places = x_mcp_header_map(schema)
    arguments: dict[str, Any] = {}
    for path in places:
        value = draw(VALUES)
        below = arguments
        for name in path[:-1]:
            below = below.setdefault(name, {})
        if isinstance(below, dict):
            below[path[-1]] = value
    headers: list[tuple[str, str]] = []
    for name, value in mcp_param_headers(places, arguments).items():
        how = draw(st.sampled_from(["keep", "keep", "keep", "drop", "change", "double"]))
        if how != "drop":
            headers.append((name.lower(), draw(SENT) if how == "change" else value))
        if how == "double":
            headers.append((name.lower(), value))
    return schema, arguments, headers


def test_a_tool_whose_headers_differ_by_case_alone_has_none() -> None:
    """The names of headers do not (MCP 2026-07-28, server/tools, "x-mcp-header"), so clients drop the tool."""
    schema = {"properties": {key: {"type": "string", "x-mcp-header": key} for key in ("Where", "where")}}
    assert list_mirrored(schema) == ()
    assert find_invalid_keyword(schema) == "Where"
    assert find_parameter_error(schema, {"Where": "x"}, []) is None


@given(st.one_of(mirrored_calls(), st.tuples(SCHEMAS, ARGUMENT_SETS, HEADERS)))
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_find_parameter_fault_agrees_with_the_sdk(call: tuple[Any, dict[str, Any], list[tuple[str, str]]]) -> None:
    schema, arguments, headers = call
    raw = [(name.encode(), value.encode()) for name, value in headers]
    rejection = validate_mcp_param_headers(deepcopy(schema), arguments, Headers(raw=raw))
    fault = find_parameter_error(schema, arguments, raw)
    if fault is not None and "cannot mirror" in fault.message:  # SEP-2243, which the SDK does not implement
        numbers = [*map(abs, _list_integers(arguments))]
        assert max(numbers) > MAX_SAFE_INTEGER
        return
    assert (fault and (fault.code, fault.message)) == (rejection and (rejection.code, rejection.message))


def _list_integers(value: Any) -> Iterator[int]:
    if type(value) is int:
        yield value
    for below in value.values() if isinstance(value, dict) else ():
        yield from _list_integers(below)


KEYWORDS = (
    *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems", "$defs", "definitions"),
    *("dependentSchemas", "patternProperties", "properties", "default", "const", "enum", "examples", "$ref", "other"),
)


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("shape", [lambda below: below, lambda below: [below], lambda below: {"c": below}])
@pytest.mark.parametrize("is_deep", [False, True])
def test_a_keyword_is_looked_for_where_the_sdk_does(keyword: str, shape: Callable[[Any], Any], is_deep: bool) -> None:
    """A keyword that clients cannot do as it says takes the whole tool from them: then no header is missing."""
    below = {"type": "string", "x-mcp-header": "B"}
    schema = {
        "properties": {"a": {"type": "string", "x-mcp-header": "A"}},
        keyword: shape({"properties": {"b": below}} if is_deep else below),
    }
    if keyword == "properties":
        schema = {"properties": {"a": {"type": "string", "x-mcp-header": "A", "properties": shape(below)}}}
    rejection = validate_mcp_param_headers(schema, {"a": "x"}, Headers(raw=[]))
    fault = find_parameter_error(schema, {"a": "x"}, [])
    assert (fault and fault.message) == (rejection and rejection.message)


@given(st.one_of(SENT, st.text(st.characters(max_codepoint=127), max_size=8).map(lambda text: f"=?base64?{text}?=")))
def test_a_value_is_decoded_as_by_the_sdk(value: str) -> None:
    assert decode_value(value) == decode_header_value(value)
