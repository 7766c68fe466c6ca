"""Messages with one odd value, by rule: each part of each request is omitted, changed and extended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from conversations import MORE, READY, handshake, request
from packages import tool

TOOLS = [tool("say", {"text": {"type": "string"}})]
SERVED = {
    **MORE,
    "prompts": [
        {
            "name": "hello",
            "arguments": [{"name": "who"}],
            "stubwright": {"messages": [{"text": "Hello {{who}}"}], "complete": {"who": ["you"]}},
        }
    ],
}
"""The server's features for these messages."""

REQUESTS: Sequence[tuple[str, Mapping[str, Any] | None]] = (
    ("ping", None),
    ("server/discover", None),
    ("tools/list", None),
    ("tools/list", {"cursor": "MQ"}),
    ("tools/call", {"name": "say", "arguments": {"text": "snow"}, "_meta": {"progressToken": "t"}}),
    ("tools/call", {"name": "say"}),
    (
        "tools/call",
        {
            "name": "say",
            "inputResponses": {
                "form": {"action": "accept", "content": {"name": "Ada", "rooms": ["hall"]}},
                "roots": {"roots": [{"uri": "file:///home/ada", "name": "home"}]},
                "text": {"role": "assistant", "content": {"type": "text", "text": "Once"}, "model": "m"},
            },
        },
    ),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "docs://a"}),
    ("resources/subscribe", {"uri": "docs://a"}),
    ("resources/unsubscribe", {"uri": "docs://a"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "hello", "arguments": {"who": "you"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "hello", "title": "Hello"},
            "argument": {"name": "who", "value": "y"},
            "context": {"arguments": {"a": "b"}},
        },
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "docs://each/{name}"}, "argument": {"name": "name", "value": "y"}},
    ),
    ("logging/setLevel", {"level": "debug"}),
    ("tasks/get", {"taskId": "1"}),
    ("nothing/known", {}),
)
OPENING: Mapping[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {
        "roots": {"listChanged": True},
        "sampling": {"tools": {}, "context": {}},
        "elicitation": {"form": {}, "url": {}},
        "experimental": {"a": {"b": 1}},
        "extensions": {"a": {}},
        "tasks": {
            "list": {},
            "cancel": {},
            "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
        },
    },
    "clientInfo": {
        "name": "test",
        "version": "1",
        "title": "T",
        "description": "D",
        "websiteUrl": "https://example.com",
        "icons": [{"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}],
    },
}
ODD: Sequence[Any] = (None, True, 0, 1.5, 1 << 70, "", "x", [], [1], {}, {"a": None})
_WHOLE = ("server/discover", "tools/list")
"""The methods whose envelopes are tested at each place; all requests from 2026-07-28 on share the envelope."""

ADDED = ("extra", "_meta", "task", "cursor", "name", "uri", "method", "result", "id")


@dataclass(frozen=True)
class Case:
    """A message.

    Attributes:
        name: Its oddity, such as `params.name: null`.
        message: The message.
    """

    name: str
    message: Any


def odd_requests(*, stateless: bool) -> Iterator[tuple[str, list[Case]]]:
    """Return each request in an era with its odd variants. The first is the valid request."""
    requests = [request(1, method, params, stateless=stateless) for method, params in REQUESTS]
    for message in requests:
        params = {key: value for key, value in message.get("params", {}).items() if key != "_meta"}
        cases = _relatives(message)
        if stateless and message["method"] not in _WHOLE:
            cases = (case for case in cases if "params._meta." not in case.name)
        yield f"{message['method']} {_text(params)}", [*cases]


def odd_openings() -> Iterator[Case]:
    """Return the handshake with its odd variants."""
    yield from _relatives({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING})


def _relatives(message: Mapping[str, Any]) -> Iterator[Case]:
    yield Case("as it is", message)
    for path in _places(message):
        named = ".".join(map(str, path))
        for value in ODD:
            yield Case(f"{named} = {_text(value)}", _changed(message, path, value))
        yield Case(f"without {named}", _changed(message, path, _GONE))
    for path in ((), *_places(message)):
        container = _at(message, path)
        if isinstance(container, dict):
            for key in ADDED:
                if key not in container:
                    for value in (None, 0, "x", {}):
                        name = ".".join(map(str, (*path, key)))
                        yield Case(f"{name} = {_text(value)}", _changed(message, (*path, key), value))


_GONE = object()


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield (*path, key)
        yield from _places(below, (*path, key))


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def _changed(message: Any, path: Sequence[Any], value: Any) -> Any:
    changed = deepcopy(message)
    container = _at(changed, path[:-1])
    if value is _GONE:
        del container[path[-1]]
    else:
        container[path[-1]] = value
    return changed


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def outcome(answers: Sequence[Any]) -> str:
    """Format the responses to a message as one line."""
    return "; ".join(map(_one, answers)) or "nothing"


def _one(answer: Any) -> str:
    if "method" in answer:
        return f"asks {answer['method']}" if "id" in answer else f"says {answer['method']}"
    name = "" if answer.get("id") == 1 else f" (id {_text(answer.get('id'))})"
    if "error" not in answer:
        return f"result{name}"
    error = answer["error"]
    data = f" {_text(error['data'])}" if "data" in error else ""
    return f"error {error['code']} {error['message']}{data}{name}"


def group_cases(outcomes: Mapping[str, str]) -> str:
    """Group a request's cases by outcome, as in a file."""
    names: dict[str, list[str]] = {}
    for name, said in outcomes.items():
        names.setdefault(said, []).append(name)
    return "".join(f"  {said}\n" + "".join(f"    {name}\n" for name in known) for said, known in names.items())


def out_of_turn() -> Iterator[tuple[str, list[Any], Any]]:
    """Return requests at an unusual time, or in another era."""
    for method, params in REQUESTS:
        plain, enveloped = (request(1, method, params, stateless=stateless) for stateless in (False, True))
        yield f"{method} before the handshake", [], plain
        yield f"{method} with an envelope after a handshake", [handshake("2025-11-25"), READY], enveloped
        yield (
            f"{method} without an envelope where the first had one",
            [request(0, "tools/list", {}, stateless=True)],
            plain,
        )
    again = {**handshake("2025-06-18"), "id": 1}
    yield "a second handshake", [handshake("2025-11-25"), READY], again
    yield "a handshake after a request that says its revision", [request(0, "tools/list", {}, stateless=True)], again
    large = {**again, "params": {**again["params"], "capabilities": {"experimental": {"a": {"b": "x" * 70_000}}}}}
    yield "a handshake of 70 kB", [], large
    many = {f"a{n}": {"b": "x" * 60} for n in range(250)}
    yield (
        "a handshake of 250 objects and 20 kB",
        [],
        {
            **again,
            "params": {**again["params"], "capabilities": {"experimental": many}},
        },
    )
    few: Mapping[str, Any] = {f"a{n}": {} for n in range(250)}
    yield (
        "a handshake of 250 objects and 3 kB",
        [],
        {
            **again,
            "params": {**again["params"], "capabilities": {"experimental": few}},
        },
    )
