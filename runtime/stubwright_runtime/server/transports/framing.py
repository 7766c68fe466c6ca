"""From a line that came in to messages of JSON-RPC 2.0, and what becomes of a line that holds none.

Takes the bytes of one line; gives messages as the SDK has them, and for what is malformed the error that answers it, so
that nobody waits for an answer that never comes. It reads and writes nothing itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from ...values.json import Json
from .stdio.wire import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH: Final = 1000
"""Messages of the largest batch that is read."""

_PARTS: Final = 100_000
"""How many parts into a line that is no JSON its id is looked for."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """What one message of a line comes to.

    Attributes:
        message: What the server is given, if anything.
        answer: What the client is answered at once, if anything.
        problem: What is wrong with the message; `None` where nothing is.
    """

    message: JSONRPCMessage | None = None
    answer: JSONRPCError | None = None
    problem: str | None = None


def incoming(line: bytes) -> Iterator[Incoming]:
    """What a line holds: one message, those of a batch (MCP 2025-03-26, basic, "Batching"), or nothing but blanks.

    The messages of a batch are answered one by one, as if each had come alone. What is not UTF-8, or only half a
    character, becomes U+FFFD.
    """
    text = _whole(line.decode("utf-8", "replace"))
    if not text.strip():
        return
    try:
        value: Json = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        yield _malformed(_outline(text), PARSE_ERROR, f"is not valid JSON: {error}")
        return
    if not isinstance(value, list):
        yield _message(value)
    elif 0 < len(value) <= _BATCH:
        yield from map(_message, value)
    else:
        yield _malformed({}, INVALID_REQUEST, f"is a batch of {len(value)} messages; a batch may have 1 to {_BATCH}")


def too_long(start: bytes) -> Incoming:
    """What becomes of a line that is longer than `LONGEST`, of which only the start was kept."""
    outline = _outline(start.decode("utf-8", "replace"))
    return _malformed(outline, INVALID_REQUEST, f"is longer than {LONGEST} bytes")


def _message(value: Json) -> Incoming:
    if not isinstance(value, dict):
        return _malformed({}, INVALID_REQUEST, "is not an object")
    if "method" in value and "id" in value and not _is_id(value["id"]):
        return _malformed(value, INVALID_REQUEST, "has an id that is neither a string nor an integer")
    try:
        return Incoming(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValidationError:
        return _malformed(value, *_wrong(value))


def _wrong(value: Mapping[str, Any]) -> tuple[int, str]:
    """What is wrong with an object that is no message (JSON-RPC 2.0, 4 and 5), and the code for it."""
    if value.get("jsonrpc") != "2.0":
        return INVALID_REQUEST, 'lacks "jsonrpc": "2.0"'
    if "method" not in value:
        return INVALID_REQUEST, "has no method"
    if not isinstance(value["method"], str):
        return INVALID_REQUEST, "has a method that is not a string"
    return INVALID_PARAMS, "has params that are not an object"


def _malformed(value: Mapping[str, Any], code: int, problem: str) -> Incoming:
    """What answers a malformed message: to a request the client, to an answer of the client whoever waits for it.

    A notification is never answered (JSON-RPC 2.0, 4.1), but for one that is no JSON, which may be anything.
    """
    identity = value.get("id")
    error = ErrorData(code=code, message=f"The message {problem}")
    if "method" not in value and not value.keys().isdisjoint(("result", "error")):
        error_response = JSONRPCError(jsonrpc="2.0", id=identity, error=error) if _is_id(identity) else None
        return Incoming(message=error_response, problem=problem)
    if code == INVALID_PARAMS and "id" not in value:
        return Incoming(problem=problem)
    answer = JSONRPCError(jsonrpc="2.0", id=identity if _is_id(identity) else None, error=error)
    return Incoming(answer=answer, problem=problem)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


_PART: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}:,]|[^\s"\[\]{}:,]++', re.DOTALL)
_INTEGER: Final = re.compile(r"-?\d{1,18}")


def _outline(text: str) -> dict[str, Any]:
    """The keys of the outermost object with their values, of which only strings and integers are read."""
    members: dict[str, Any] = {}
    if not text.lstrip().startswith("{"):
        return members
    depth, before, key = 0, "", ""
    for match in islice(_PART.finditer(text), _PARTS):
        part = match[0]
        if depth == 1 and before in ("{", ","):
            key = part
        elif depth == 1 and before == ":":
            members[str(_read(key))] = _read(part)
        depth += 1 if part in "{[" else -1 if part in "}]" else 0
        if depth <= 0:
            break
        before = part
    return members


def _read(part: str) -> str | int | None:
    """The string or the integer that a part is, if it is one."""
    if _INTEGER.fullmatch(part):
        return int(part)
    try:
        return str(json.loads(part)) if part.startswith('"') else None
    except ValueError:
        return None


_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def _whole(text: str) -> str:
    """JSON without escapes of lone surrogates, for which the SDK would refuse the whole message."""
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
