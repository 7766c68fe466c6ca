"""Headers that mirror call arguments (MCP 2026-07-28, server/tools, "x-mcp-header").

Servers compare them with the body, because proxies may rely on them.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..values.json import is_list, is_mapping, is_object
from .errors import HEADER_MISMATCH, ProtocolError
from .vocabulary import HEADER, MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX: Final = "Mcp-Param-"
"""The header prefix."""

_SAFE: Final = re.compile(r"[\x20-\x7e]*")
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A header name (RFC 9110, 5.6.2)."""

_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")

_MIRRORED: Final = ("string", "integer", "boolean")
"""The types that can be mirrored. A `number` has several representations."""

_ONE: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties"})
"""Keywords whose value is a schema, a list of schemas, or schemas by name (JSON Schema 2020-12, Core, 10)."""


class MirroredArgument(NamedTuple):
    """A mirrored argument.

    Attributes:
        path: The property names from the root to the argument.
        name: The header name without the prefix.
        type: The JSON type.
    """

    path: tuple[str, ...]
    name: str
    type: str


def encode_value(value: str) -> str:
    """Return a header value, encoding unsafe text (basic/transports, "Value Encoding")."""
    if _SAFE.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def make_headers(mirrored: Sequence[MirroredArgument], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that mirror a call's arguments."""
    texts = {entry.name: _text(_find_argument(arguments, entry.path)) for entry in mirrored}
    return {f"{PREFIX}{name}": encode_value(text) for name, text in texts.items() if text is not None}


def find_invalid_keyword(schema: object) -> str | None:
    """Return the first property with an invalid `x-mcp-header`, or `None` if all are valid."""
    names: set[str] = set()
    for path, place in _places(schema):
        if HEADER not in place:
            continue
        entry = _read_keyword(path, place)
        if entry is None or entry.name.lower() in names:
            return ".".join(path) if path else "a schema that is not a property"
        names.add(entry.name.lower())
    return None


def decode_value(value: str | None) -> str | None:
    """Decode a header value. Return `None` if it is missing or its encoding is invalid.

    Unsafe text is sent as `=?base64?…?=` (MCP 2026-07-28, basic/transports, "Value Encoding").
    """
    match = None if value is None else _ENCODED.fullmatch(value)
    if match is None:
        return value
    try:
        data = base64.b64decode(match[1], validate=True)
        text = data.decode()
    except ValueError:
        return None
    # Only the canonical encoding of the bytes is valid.
    return text if base64.b64encode(data).decode() == match[1] else None


def list_mirrored(schema: object) -> tuple[MirroredArgument, ...]:
    """Return the mirrored arguments, or none if a keyword is invalid, because clients then drop the tool.

    Args:
        schema: The schema for a tool's arguments.
    """
    mirrored: dict[str, MirroredArgument] = {}
    for path, place in _places(schema):
        if HEADER not in place:
            continue
        entry = _read_keyword(path, place)
        if entry is None or entry.name.lower() in mirrored:
            return ()
        mirrored[entry.name.lower()] = entry
    return tuple(mirrored.values())


def find_parameter_error(
    schema: object, arguments: Mapping[str, Any], headers: Sequence[tuple[bytes, bytes]]
) -> ProtocolError | None:
    """Return the error for a call's first invalid header, or `None`. Unknown headers are ignored.

    Args:
        schema: The schema for the tool's arguments.
        arguments: The arguments.
        headers: The headers, by lower-case name.
    """
    sent: dict[str, list[str]] = {}
    for name, value in headers:
        sent.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    for entry in list_mirrored(schema):
        header = f"{PREFIX}{entry.name}"
        values = sent.get(header.lower(), [])
        if (problem := _find_problem(entry, _find_argument(arguments, entry.path), values)) is not None:
            return ProtocolError(HEADER_MISMATCH, f"{header} header {problem}")
    return None


def _places(schema: object) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Yield each nested schema and its property path, which is `None` if a keyword other than `properties` encloses it.

    Later keywords come first.
    """
    waiting: list[tuple[tuple[str, ...] | None, object]] = [((), schema)]
    while waiting:
        path, place = waiting.pop()
        if not is_object(place):
            continue
        yield path, place
        for key, value in place.items():
            if key == "properties" and is_object(value):
                waiting += [(None if path is None else (*path, name), below) for name, below in value.items()]
            elif key in _ONE:
                waiting.append((None, value))
            elif key in _LISTED and is_list(value):
                waiting += [(None, below) for below in value]
            elif key in _NAMED and is_object(value):
                waiting += [(None, below) for below in value.values()]


def _read_keyword(path: tuple[str, ...] | None, place: Mapping[str, Any]) -> MirroredArgument | None:
    """Return the mirrored argument that a schema declares, or `None` if clients cannot mirror it."""
    name, kind = place[HEADER], place.get("type")
    is_name = isinstance(name, str) and _TOKEN.fullmatch(name) is not None
    return (
        MirroredArgument(path, name, kind) if path and is_name and isinstance(kind, str) and kind in _MIRRORED else None
    )


def _find_argument(arguments: object, path: Sequence[str]) -> object:
    for name in path:
        if not is_mapping(arguments):
            return None
        arguments = arguments.get(name)
    return arguments


def _find_problem(entry: MirroredArgument, value: object, sent: Sequence[str]) -> str | None:
    """Describe the problem with an argument's header. Return `None` if the header matches the argument."""
    body = f"the request body's {'.'.join(entry.path)!r} argument"
    if len(sent) > 1:
        return "appears more than once"
    text = _text(value)
    if entry.type == "integer" and type(value) is int and abs(value) > MAX_SAFE_INTEGER:
        return f"cannot mirror {body}: it must be between -{MAX_SAFE_INTEGER} and {MAX_SAFE_INTEGER}"
    if not sent:
        return None if text is None else f"is missing but {body} is present"
    if value is None:
        return f"is present but {body} is absent"
    if text is None:  # cannot be mirrored
        return f"does not match {body}"
    decoded = decode_value(sent[0])
    if decoded is None:
        return "carries a malformed base64 sentinel value"
    return None if _is_same(entry, value, text, decoded) else f"does not match {body}"


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, str | int | float) else None
    except ValueError:  # too many digits for Python
        return None


def _is_same(entry: MirroredArgument, value: object, text: str, decoded: str) -> bool:
    """Return whether a header equals an argument. Integers are compared as numbers: 42.0 equals 42."""
    is_whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    if entry.type != "integer" or not is_whole or _DECIMAL.fullmatch(decoded) is None:
        return decoded == text
    whole, _, fraction = decoded.partition(".")
    try:
        return not fraction.strip("0") and int(whole) == value
    except ValueError:  # too many digits for Python
        return False
