"""Parses JSON-RPC 2.0 messages, and encodes JSON with valid Unicode."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ProtocolError
from ...values.json import is_list, is_mapping, refuse_constant
from ...values.modules import find_loaded
from ...values.nesting import DEEPEST, DepthError, is_too_deep
from ...values.sanitizing import UNSAFE
from ...values.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import TypeIs

    from ...mcp.revisions import Revision
    from ...values.json import Json

_BATCH: Final = 1000
"""The maximum number of messages in a batch."""

_PARTS: Final = 100_000
"""The maximum number of tokens to scan for an ID in invalid JSON."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error response to a message that cannot be handled.

    Attributes:
        id: The message's ID; `None` if it cannot be read.
        error: The error to send.
    """

    id: str | int | None
    error: ProtocolError


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message from a client, or the reason that it is invalid.

    Attributes:
        message: The message for the server to handle: a request, a notification or a response.
        answer: The error response to send immediately, if any.
        problem: What is wrong, for the log; `None` if the message is valid.
        is_part: True if the message is from a batch.
    """

    message: Mapping[str, Any] | None = None
    answer: Refusal | None = None
    problem: str | None = None
    is_part: bool = False


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=refuse_constant)


def parse(data: bytes) -> dict[str, Any] | None:
    """Parse a JSON object on the fast path; return `None` for any input that `read` must repair or reject."""
    # An escaped surrogate, which `read` repairs.
    if b"\\ud" in data or b"\\uD" in data:
        return None
    try:
        value: object = _DECODER.decode(data.decode())
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict or (data.count(b"[") + data.count(b"{") > DEEPEST and is_too_deep(value)):
        return None
    return value


def read(line: bytes) -> Iterator[ParsedMessage]:
    """Yield the messages in a line: several for a batch (MCP 2025-03-26, basic, "Batching"), none for a blank line.

    Invalid UTF-8 and lone surrogates become U+FFFD. A byte order mark is ignored (RFC 8259, 8.1).
    """
    line = line.removeprefix(BOM_UTF8)
    if (message := parse(line)) is not None:
        yield validate(message)
        return
    text = _repair_surrogates(line.decode("utf-8", "replace"))
    if not text.strip():
        return
    from pydantic_core import from_json  # `json` reports the position

    try:
        value: Json = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        yield _malformed(_outline(text), PARSE_ERROR, f"is not valid JSON: {error}")
        return
    if not isinstance(value, list):
        yield validate(value)
    elif 0 < len(value) <= _BATCH:
        yield from (replace(validate(part), is_part=True) for part in value)
    else:
        yield _malformed({}, INVALID_REQUEST, f"is a batch of {len(value)} messages; a batch may have 1 to {_BATCH}")


def is_batch(data: bytes) -> bool:
    """Return whether a line or body contains a batch, that is, starts with an array."""
    return data.removeprefix(BOM_UTF8).lstrip()[:1] == b"["


def refuse_long(start: bytes, most: int) -> ParsedMessage:
    """Return the error for a line of more than `most` bytes; `start` is the line's beginning."""
    outline = _outline(start.removeprefix(BOM_UTF8).decode("utf-8", "replace"))
    return _malformed(outline, INVALID_REQUEST, f"is longer than {most} bytes")


def validate(value: Json) -> ParsedMessage:
    """Validate a JSON value as a message (JSON-RPC 2.0, 4 and 5)."""
    if not isinstance(value, dict):
        return _malformed({}, INVALID_REQUEST, "is not an object")
    if "method" in value and "id" in value and not _is_id(value["id"]):
        return _malformed(value, INVALID_REQUEST, "has an ID that is neither a string nor an integer")
    if value.get("jsonrpc") != "2.0":
        return _malformed(value, INVALID_REQUEST, 'lacks "jsonrpc": "2.0"')
    if "method" not in value:
        return ParsedMessage(value) if _is_answer(value) else _malformed(value, INVALID_REQUEST, "has no method")
    if type(value["method"]) is not str:
        return _malformed(value, INVALID_REQUEST, "has a method that is not a string")
    if type(value.get("params")) not in (dict, NoneType):
        return _malformed(value, INVALID_PARAMS, "has params that are not an object")
    return ParsedMessage(value)


def get_meta(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `_meta` of a request; an empty object if it is not an object."""
    meta = (message.get("params") or {}).get("_meta")
    return meta if isinstance(meta, dict) else {}


def _malformed(value: Mapping[str, Any], code: int, problem: str) -> ParsedMessage:
    """Return the outcome of a malformed message: an error for the client.

    If the message is a response, the error is for the pending request to the client instead. A notification never gets
    a response (JSON-RPC 2.0, 4.1), unless it is invalid JSON and could be any message.
    """
    identity = value.get("id")
    message = f"The message {problem}"
    if "method" not in value and not value.keys().isdisjoint(("result", "error")):
        error = {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}
        return ParsedMessage(message=error if _is_id(identity) else None, problem=problem)
    if code == INVALID_PARAMS and "id" not in value:
        return ParsedMessage(problem=problem)
    refusal = Refusal(identity if _is_id(identity) else None, ProtocolError(code, message))
    return ParsedMessage(answer=refusal, problem=problem)


def _is_answer(value: Mapping[str, Any]) -> bool:
    """Return whether an object without a method is a response (JSON-RPC 2.0, 5)."""
    if "result" in value:
        return type(value["result"]) is dict and _is_id(value.get("id"))
    error = value.get("error")
    return (
        type(error) is dict
        and type(error.get("code")) is int
        and type(error.get("message")) is str
        and (_is_id(value.get("id")) or ("id" in value and value["id"] is None))
    )


def _is_id(value: object) -> TypeIs[str | int]:
    # Not `isinstance`: `true` would count as an integer.
    return type(value) is str or type(value) is int


# Possessive quantifiers keep the time linear on invalid JSON.
_PART: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}:,]|[^\s"\[\]{}:,]++', re.DOTALL)
_INTEGER: Final = re.compile(r"-?\d{1,18}")


def _outline(text: str) -> dict[str, Any]:
    """Return the string and integer members of the outermost object, even if the JSON is invalid."""
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
    if _INTEGER.fullmatch(part):
        return int(part)
    try:
        return str(json.loads(part)) if part.startswith('"') else None
    except ValueError:
        return None


_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
# Also matches pairs and other escapes, so that an escaped backslash before `ud800` does not match as a surrogate.
_ESCAPE: Final = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def _repair_surrogates(text: str) -> str:
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)


def encode_error(request_id: str | int | None, error: ProtocolError, revision: Revision | None = None) -> bytes:
    """Return an error response as JSON.

    Args:
        request_id: The request ID; `None` if unknown. The response then has no `id` (MCP 2025-11-25, schema,
            `JSONRPCErrorResponse`), or `null` in older revisions (JSON-RPC 2.0, 5).
        error: The error to send.
        revision: The client's revision; `None` if unknown, which counts as the newest.
    """
    error_object = {
        "code": error.code,
        "message": error.message,
        **({} if error.data is None else {"data": error.data}),
    }
    is_unnamed = request_id is None and (revision is None or revision.has("unnamed_errors"))
    return to_json({"jsonrpc": "2.0", **({} if is_unnamed else {"id": request_id}), "error": error_object})


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


_FASTER: Final[list[Callable[[Any], bytes]]] = []
"""Pydantic's serializer, once it is imported."""


def to_json(value: Any) -> bytes:
    """Return a value as JSON, using pydantic's faster serializer if it is imported."""
    if not _FASTER and (pydantic := find_loaded("pydantic_core")) is not None:
        _FASTER.append(pydantic.to_json)
    return _FASTER[0](value) if _FASTER else _encode(value).encode()


_encode_strictly: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def repair_unicode(value: Any) -> tuple[Any, int | None]:
    """Return a JSON value with valid Unicode, and its size as JSON in bytes.

    Surrogates are joined or replaced by U+FFFD. A value that is not JSON is returned unchanged, without a size, and
    fails validation later.
    """
    try:
        return value, len(_encode_strictly(value).encode())
    except UnicodeEncodeError:
        return repair_unicode(_join_halves(value))
    except (RecursionError, TypeError, ValueError):
        return value, None


def encode_json(value: Any) -> tuple[Any, str]:
    """Return a JSON value with valid Unicode, and its JSON text.

    The text escapes the characters that `clean` would remove as `\\uXXXX`.

    Raises:
        TypeError: The value is not JSON.
        ValueError: The value contains a number that is not JSON, such as infinity.
        DepthError: The value is nested too deeply.
    """
    try:
        text = _encode_strictly(value)
    except RecursionError:
        raise DepthError from None
    if text.count("{") + text.count("[") > DEEPEST and is_too_deep(value):
        raise DepthError
    try:
        text.encode()
    except UnicodeEncodeError:
        return encode_json(_join_halves(value))
    return value, UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _join_halves(value: object) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if is_mapping(value):
        return {_join_halves(key): _join_halves(item) for key, item in value.items()}
    if is_list(value):
        return [_join_halves(item) for item in value]
    return value
