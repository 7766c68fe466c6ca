"""Requests with one or several odd headers, and an application's response to each, called as ASGI."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from conversations import READY, handshake, request

Headers = Sequence[tuple[bytes, bytes]]
Changes = Mapping[str, Sequence[str]]
"""The values of unusual headers; an empty list omits the header."""

KNOWN = "SESSION"
"""Placeholder for the id of an existing session."""

USUAL: Changes = {
    "host": ["localhost:8000"],
    "accept": ["application/json, text/event-stream"],
    "content-type": ["application/json"],
}
ODD: Mapping[str, Sequence[Sequence[str]]] = {
    "host": [
        [],
        [""],
        ["localhost"],
        ["LOCALHOST"],
        ["localhost:evil"],
        ["localhostile"],
        ["evil.example"],
        ["evil.example", "localhost"],
        ["localhost", "evil.example"],
        ["localhost", "localhost"],
        ["h" * 300],
    ],
    "origin": [
        [""],
        ["null"],
        ["http://localhost"],
        ["https://localhost:3000"],
        ["HTTP://localhost"],
        ["http://evil.example"],
        ["http://evil.example", "http://localhost"],
        ["http://localhost", "http://evil.example"],
        ["http://localhost", "http://localhost"],
        ["", "http://localhost"],
    ],
    "accept": [
        [],
        [""],
        ["*/*"],
        ["application/*"],
        ["text/*"],
        ["application/*, text/*"],
        ["application/json"],
        ["text/event-stream"],
        ["text/html"],
        ["Application/JSON, TEXT/event-stream"],
        ["application/json;q=0.5 , text/event-stream;q=1"],
        ["application/json;q=0, text/event-stream;q=0"],
        ["application/json, */*;q=0.1"],
        ["\xa0application/json\xa0, text/event-stream"],
        ["application/json", "text/event-stream"],
        ["application/json, text/event-stream", "text/html"],
        ["text/html", "application/json, text/event-stream"],
        ["x" * 300 + ", */*"],
    ],
    "content-type": [
        [],
        [""],
        ["Application/JSON"],
        ["application/json; charset=utf-8"],
        ["APPLICATION/JSON ;x"],
        ["application/json-seq"],
        [" application/json-seq"],
        ["application/jsonp; charset=utf-8"],
        ["application/json, text/plain"],
        ["application/json-seq, application/json"],
        ["APPLICATION/JSON, text/plain"],
        ["text/plain, application/json"],
        ["text/plain"],
        ["text/plain", "application/json"],
        ["application/json", "text/plain"],
        ["application/json", "application/json"],
        ["application/json;" + "x" * 300],
    ],
    "content-length": [
        ["1048577"],
        ["4194304"],
        ["4194305"],
        ["+4194305"],
        ["4_194_305"],
        ["4194305", "1"],
        ["1", "4194305"],
        ["many"],
        [""],
        ["9" * 5000],
    ],
    "last-event-id": [[""], ["nowhere"]],
    "mcp-other": [["x"]],
    "mcp-param-place": [["here"], ["here", "there"]],
}
WRONG: Mapping[str, Sequence[str]] = {
    "content-length": ["4194305"],
    "content-type": ["text/plain"],
    "host": ["evil.example"],
    "origin": ["http://evil.example"],
    "accept": ["text/html"],
}
"""An invalid value of each header that can be rejected. Tests combine them all; a response reports only one."""

METHODS = ("POST", "GET", "DELETE", "PUT")
RARE = ("HEAD", "OPTIONS", "PATCH", "post")
REVISIONS: Sequence[Sequence[str]] = ([], ["2025-06-18"], ["2026-07-28"])
RARE_REVISIONS: Sequence[Sequence[str]] = (
    [""],
    ["1999-01-01"],
    ["2025-06-18", "2026-07-28"],
    ["2026-07-28", "2025-06-18"],
    ["2026-07-28", "2026-07-28"],
)
SESSIONS: Sequence[Sequence[str]] = ([], [KNOWN], ["nowhere"])
RARE_SESSIONS: Sequence[Sequence[str]] = ([""], ["nowhere", KNOWN], [KNOWN, "nowhere"], ["x" * 300])


@dataclass(frozen=True)
class Setting:
    """The common properties of several changes.

    Attributes:
        stateless: Whether the server has no sessions.
        method: The HTTP method.
        revision: The revisions in the request.
        session: The sessions in the request.
    """

    stateless: bool
    method: str
    revision: Sequence[str]
    session: Sequence[str]

    def __str__(self) -> str:
        server = "without sessions" if self.stateless else "with sessions"
        return (
            f"{server}: {self.method}, revision {format_values(self.revision)}, session {format_values(self.session)}"
        )


def format_values(values: Sequence[str]) -> str:
    """Format the values of a header for a file."""
    short = (f"{value[0]}*{len(value)}{value[-5:]}" if len(value) > 100 else value for value in values)
    return " + ".join(map(ascii, short)) or "-"


def settings() -> Iterator[Setting]:
    """Return all settings."""
    for stateless in (False, True):
        usual = list(product(METHODS, REVISIONS, SESSIONS))
        rare = [
            *product(RARE, REVISIONS, SESSIONS),
            *product(METHODS, RARE_REVISIONS, SESSIONS),
            *product(METHODS, REVISIONS, RARE_SESSIONS),
        ]
        for method, revision, session in (*usual, *rare):
            yield Setting(stateless, method, revision, session)


def changes(setting: Setting) -> Iterator[tuple[str, Changes]]:
    """Yield the named changes to a request. Rare settings have only single changes."""
    yield "as usual", {}
    if setting.method in RARE or setting.revision in RARE_REVISIONS or setting.session in RARE_SESSIONS:
        return
    for name, odd in ODD.items():
        for values in odd:
            yield f"{name} {format_values(values)}", {name: values}
    for count in range(2, len(WRONG) + 1):
        for names in combinations(WRONG, count):
            yield f"wrong {', '.join(names)}", {name: WRONG[name] for name in names}


def message_of(setting: Setting) -> dict[str, Any]:
    """Return a valid message for these headers. It opens a session if there is none."""
    named = next(iter(setting.revision), "2025-06-18")
    if is_stateless(setting.revision):
        message = request(1, "tools/list", {}, stateless=True)
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = named
        return message
    if not setting.session and not setting.stateless:
        return handshake(named)
    return request(1, "tools/list", {}, stateless=False)


def is_stateless(revision: Sequence[str]) -> bool:
    return bool(revision) and not ("2024" <= revision[0][:4] <= "2025")


def headers_of(setting: Setting, change: Changes, session: str) -> list[tuple[bytes, bytes]]:
    """Return a request's headers, with an existing session's ID."""
    named: dict[str, Sequence[str]] = {
        **USUAL,
        "mcp-protocol-version": setting.revision,
        "mcp-session-id": [value.replace(KNOWN, session) for value in setting.session],
        "mcp-method": ["tools/list"] if is_stateless(setting.revision) else [],
        **change,
    }
    return encoded(named)


def encoded(named: Changes) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, values in named.items() for value in values]


@dataclass(frozen=True)
class Answer:
    """An application's response.

    Attributes:
        status: The status.
        headers: The headers.
        body: The body, or its part that arrived with the head of a stream.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self) -> str:
        """Format the response for a file: its status and, for a rejection, the rest."""
        is_json = self.headers.get("content-type") == "application/json"
        error = json.loads(self.body).get("error") if is_json and self.body else None
        if self.status < 400 and error is None:
            return "taken"
        allow = f" allow {self.headers['allow']}" if "allow" in self.headers else ""
        return (
            f"{self.status}{allow} {self.body.decode()!r}"
            if error is None
            else f"{self.status}{allow} {error_text(error)}"
        )


def error_text(error: Mapping[str, Any]) -> str:
    data = f" {json.dumps(error['data'])}" if "data" in error else ""
    return f"error {error['code']} {error['message']}{data}"


async def ask(app: Any, method: str, headers: Headers, body: bytes) -> Answer:
    """Send a request, and disconnect when a stream starts."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    left = asyncio.Event()
    sent: list[Any] = []

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.start" and message["status"] < 400 and method == "GET":
            left.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "server": ("localhost", 8000),
        "client": ("127.0.0.1", 1),
        "state": {},
    }
    async with asyncio.timeout(20):
        await app(scope, receive, send)
    if not sent:
        return Answer(500, {}, b"")  # as servers do if the application does not respond
    head = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], head, b"".join(message.get("body", b"") for message in sent[1:]))


async def open_session(app: Any) -> str:
    """Initialize, and return the session ID."""
    headers = encoded({**USUAL, "mcp-protocol-version": ["2025-06-18"]})
    answer = await ask(app, "POST", headers, json.dumps(handshake("2025-06-18")).encode())
    session = answer.headers["mcp-session-id"]
    ready = await ask(app, "POST", [*headers, (b"mcp-session-id", session.encode())], json.dumps(READY).encode())
    assert ready.status == 202
    return session


def format_outcomes(outcomes: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """Format the outcomes of all settings for a file, which groups settings with equal outcomes."""
    blocks: dict[str, list[str]] = {}
    for setting, found in outcomes:
        groups: dict[str, list[str]] = {}
        for name, outcome in found.items():
            groups.setdefault(outcome, []).append(name)
        block = "".join(f"  {outcome}\n    " + "\n    ".join(names) + "\n" for outcome, names in groups.items())
        blocks.setdefault(block, []).append(setting)
    return "".join("\n".join(names) + f"\n{block}" for block, names in blocks.items())


def read(text: str) -> dict[str, dict[str, str]]:
    """Return the outcomes in a file."""
    found: dict[str, dict[str, str]] = {}
    names: list[str] = []
    outcome, is_heading = "", False
    for line in text.splitlines():
        if not line.startswith(" "):
            names = [*names, line] if is_heading else [line]
        elif not line.startswith("    "):
            outcome = line[2:]
        else:
            for name in names:
                found.setdefault(name, {})[line[4:]] = outcome
        is_heading = not line.startswith(" ")
    return found


TASKS: Mapping[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def odd_bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return messages with mirrored headers; some have an invalid envelope."""
    for method, params in (
        ("tools/list", {}),
        ("tools/call", {"name": "add"}),
        ("tools/call", {}),
        ("tools/call", {"name": 5}),
        ("prompts/get", {"name": "hello"}),
        ("resources/read", {"uri": "docs://a"}),
        ("resources/read", {"uri": "docs://each/\N{SNOWMAN}"}),
        ("tasks/get", {"taskId": "add"}),
        ("tasks/update", {"taskId": "add", "inputResponses": {}}),
        ("tasks/cancel", {"taskId": "add"}),
        ("tasks/get", {}),
        ("tasks/get", {"taskId": 5}),
        ("tasks/list", {"taskId": "add"}),
        ("nothing/known", {}),
    ):
        message = request(1, method, params, stateless=True)
        message["params"]["_meta"][_CAPABILITIES] = TASKS
        yield f"{method} {json.dumps(params)}", message
    call = {"name": "add"}
    for revision in ("2025-06-18", "1999-01-01", 5, None):
        message = request(1, "tools/call", call, stateless=True)
        message["params"]["_meta"][_VERSION] = revision
        yield f"tools/call of {revision}", message
    message = request(1, "tasks/get", {"taskId": "add"}, stateless=True)
    message["params"]["_meta"] |= {_VERSION: "1999-01-01", _CAPABILITIES: TASKS}
    yield "tasks/get of 1999-01-01", message
    for key in (_VERSION, _CAPABILITIES):
        message = request(1, "tools/call", call, stateless=True)
        del message["params"]["_meta"][key]
        yield f"tools/call without {key}", message
    yield "tools/call without _meta", request(1, "tools/call", call, stateless=False)
    yield "tools/call without params", request(1, "tools/call", None, stateless=False)
    yield "tools/call with _meta of null", request(1, "tools/call", {**call, "_meta": None}, stateless=False)
    yield "a notification", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    yield "an answer", {"jsonrpc": "2.0", "id": 1, "result": {}}
    yield "an error", {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "no"}}


def routings(body: Mapping[str, Any]) -> Iterator[tuple[str, Changes]]:
    """Return headers that match a message, and headers that contradict it."""
    method = body.get("method", "tools/call")
    params = body.get("params") or {}
    name = str(params.get("uri") or params.get("taskId") or params.get("name") or "add")
    code = "=?base64?" + b64encode(name.encode()).decode() + "?="
    right = name if name.isascii() else code
    usual: Changes = {"mcp-protocol-version": ["2026-07-28"], "mcp-method": [method], "mcp-name": [right]}
    versions: Sequence[Sequence[str]] = (
        [],
        ["2026-07-28"] * 2,
        ["2026-07-28", "1999-01-01"],
        ["1999-01-01"],
        ["2025-06-18"],
    )
    methods: Sequence[Sequence[str]] = ([], ["tools/other"], [method, method], [method.upper()], [""])
    names: Sequence[Sequence[str]] = (
        [],
        ["other"],
        [right, right],
        [right, "other"],
        [right.upper()],
        [""],
        [code],
        [code.replace("?=", "=?=")],
        ["=?base64?YWRl?="],
        ["=?base64?YWRkZB==?="],
        ["=?base64?/w==?="],
        ["=?base64??="],
        ["=?base64?="],
        ["=?BASE64?YWRk?="],
        ["=?base64?\xe9?="],
        ["5"],
    )
    yield "as usual", {**USUAL, **usual}
    for name, odd in zip(usual, (versions, methods, names), strict=True):
        for values in odd:
            yield f"{name} {format_values(values)}", {**USUAL, **usual, name: values}
    for version, other, named in product(
        [usual["mcp-protocol-version"], *versions], [[method], *methods[:3]], [[right], *names[:3]]
    ):
        change = {"mcp-protocol-version": version, "mcp-method": other, "mcp-name": named}
        yield " | ".join(map(format_values, change.values())), {**USUAL, **change}


MIRRORING = {
    "place": {"type": "string", "x-mcp-header": "Place"},
    "count": {"type": "integer", "x-mcp-header": "Count"},
    "sure": {"type": "boolean", "x-mcp-header": "Sure"},
    "more": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
}
ARGUMENTS: Sequence[Mapping[str, Any] | None] = (
    None,
    {},
    {"place": "here"},
    {"place": "\N{SNOWMAN}"},
    {"place": None},
    {"place": ["here"]},
    {"count": 42},
    {"count": 42.0},
    {"count": "42"},
    {"sure": True},
    {"more": {"deep": "here"}},
    {"more": "here"},
    {"place": "here", "count": 42, "sure": False, "more": {"deep": "x"}},
)


def parameter_headers() -> Iterator[tuple[str, Changes]]:
    """Return headers that mirror arguments, correctly and incorrectly."""
    yield "-", {}
    for name, values in (
        (
            "place",
            ["here", "Here", "", "=?base64?aGVyZQ==?=", "=?base64?4piD?=", "=?base64?aGVyZR==?=", "=?base64?\xe9?="],
        ),
        ("count", ["42", "42.0", "42.5", "042", "+42", "4e1", "-0", "9" * 5000, ""]),
        ("sure", ["true", "True", "false"]),
        ("deep", ["here", "x"]),
        ("unknown", ["here"]),
    ):
        for value in values:
            yield f"{name} {format_values([value])}", {f"mcp-param-{name}": [value]}
        yield f"{name} twice", {f"mcp-param-{name}": [values[0], values[0]]}
    whole = {
        "mcp-param-place": ["here"],
        "mcp-param-count": ["42"],
        "mcp-param-sure": ["false"],
        "mcp-param-deep": ["x"],
    }
    yield "all", whole
    yield "all but one", {name: values for name, values in whole.items() if "sure" not in name}
