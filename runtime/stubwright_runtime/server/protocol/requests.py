"""Validates well-formed requests: their era, method and parameters, with one table per era (MCP 2025-11-25,
basic/lifecycle; MCP 2026-07-28, basic, "Per-request fields").

Unknown members are allowed, and `null` means that a member is absent, because clients send both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from ...mcp.errors import INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, ProtocolError
from ...mcp.vocabulary import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    LOG_LEVELS,
    PROTOCOL_VERSION_META_KEY,
)
from .messages import get_meta
from .refusals import STATELESS, refuse_parameters, refuse_unknown_method

_MAX_HANDSHAKE: Final = 64 * 1024
"""The maximum size of handshake parameters as JSON, in characters. The connection keeps them in memory."""

_SHORT_HANDSHAKE: Final = 16 * 1024
_MAX_HANDSHAKE_PARTS: Final = 250
"""The maximum number of objects and arrays in a long handshake; each uses about a hundred bytes of memory."""

_ALREADY_INITIALIZED: Final = "The connection is already initialized; send initialize once, as its first request"
_OTHER_ERA: Final = (
    "This connection started with `initialize`; it does not accept requests with revision 2026-07-28 in `_meta`"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A check of a JSON value's structure.

    Attributes:
        fits: Returns whether a value has the expected structure.
        explain: Returns an error message for a value and its path; called only if the value does not fit.
    """

    fits: Callable[[Any], bool]
    explain: Callable[[Any, str], str]


def _kind(expected: str, fits: Callable[[Any], bool]) -> Shape:
    return Shape(fits, lambda value, path: f"`{path}` must be {expected}, not {_describe(value)}")


def _describe(value: Any) -> str:
    """Return a value's type, or the value itself if it is short, for messages."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        is_short = 0 < len(value) <= _LONGEST_QUOTED and value.isprintable() and "`" not in value
        is_json = value[:1] in ("{", "[")  # in backticks, it would look like an object
        return f"`{value}`" if is_short and not is_json else "a string"
    return "an object" if isinstance(value, dict) else "an array" if isinstance(value, list) else "a number"


_LONGEST_QUOTED: Final = 40
"""The maximum length of a string that an error message quotes, in characters."""

_TEXT: Final = _kind("a string", lambda value: type(value) is str)
_FLAG: Final = _kind("true or false", lambda value: type(value) is bool)
_OBJECT: Final = _kind("an object", lambda value: type(value) is dict)
_TOKEN: Final = _kind("a string or an integer", lambda value: type(value) is str or type(value) is int)
_INTEGER: Final = _kind("an integer", lambda value: type(value) is int)
_LIST: Final = _kind("an array", lambda value: type(value) is list)


def _make_enum(*values: str) -> Shape:
    allowed = frozenset(values)
    expected = f"one of {', '.join(f'`{value}`' for value in values)}"
    return _kind(expected, lambda value: type(value) is str and value in allowed)


def _list_of(shape: Shape) -> Shape:
    fits = shape.fits

    def explain(value: Any, path: str) -> str:
        if type(value) is not list:
            return _LIST.explain(value, path)
        index = next(index for index, item in enumerate(value) if not fits(item))
        return shape.explain(value[index], f"{path}[{index}]")

    return Shape(lambda value: type(value) is list and all(map(fits, value)), explain)


def _map_of(shape: Shape) -> Shape:
    fits = shape.fits

    def explain(value: Any, path: str) -> str:
        if type(value) is not dict:
            return _OBJECT.explain(value, path)
        name = next(name for name, item in value.items() if not fits(item))
        return shape.explain(value[name], f"{path}.{name}")

    return Shape(lambda value: type(value) is dict and all(map(fits, value.values())), explain)


def _object(required: Mapping[str, Shape] | None = None, /, **optional: Shape) -> Shape:
    return _members(required or {}, optional)


def _members(required: Mapping[str, Shape], optional: Mapping[str, Shape]) -> Shape:
    needed = {name: shape.fits for name, shape in required.items()}
    allowed = {name: shape.fits for name, shape in optional.items()}

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name, member_fits in needed.items():
            if name not in value or not member_fits(value[name]):
                return False
        for name, member_fits in allowed.items():
            member = value.get(name)
            if member is not None and not member_fits(member):
                return False
        return True

    def explain(value: Any, path: str) -> str:
        if type(value) is not dict:
            return _OBJECT.explain(value, path)
        for name, shape in (*required.items(), *optional.items()):
            inner = f"{path}.{name}" if path else name
            if name not in value and name in required:
                return f"`{inner}` is missing"
            if (name in required or value.get(name) is not None) and not shape.fits(value[name]):
                return shape.explain(value[name], inner)
        raise AssertionError("the value is valid")

    return Shape(fits, explain)


_OBJECTS: Final = _map_of(_OBJECT)
_TEXTS: Final = _map_of(_TEXT)
_LEVEL: Final = _make_enum(*LOG_LEVELS)
_ICON: Final = _object({"src": _TEXT}, mimeType=_TEXT, sizes=_list_of(_TEXT), theme=_make_enum("dark", "light"))
_CLIENT: Final = _object(
    {"name": _TEXT, "version": _TEXT},
    title=_TEXT,
    description=_TEXT,
    websiteUrl=_TEXT,
    icons=_list_of(_ICON),
)
_QUESTIONS: Final[Mapping[str, Shape]] = {
    "elicitation": _object(form=_OBJECT, url=_OBJECT),
    "sampling": _object(context=_OBJECT, tools=_OBJECT),
    "experimental": _OBJECTS,
    "extensions": _OBJECTS,
}
_CAPABILITIES: Final = _object(
    **_QUESTIONS,
    roots=_object(listChanged=_FLAG),
    tasks=_object(
        list=_OBJECT,
        cancel=_OBJECT,
        requests=_object(sampling=_object(createMessage=_OBJECT), elicitation=_object(create=_OBJECT)),
    ),
)
"""The shape of client capabilities (MCP 2025-11-25 and earlier)."""

_DECLARED: Final = _object(**_QUESTIONS, roots=_OBJECT)
"""The shape of client capabilities (MCP 2026-07-28 and later, schema, `ClientCapabilities`)."""

_REFERENCES: Final[Mapping[str, Shape]] = {
    "ref/prompt": _object({"name": _TEXT}, title=_TEXT),
    "ref/resource": _object({"uri": _TEXT}),
}


def _is_reference(value: Any) -> bool:
    shape = _REFERENCES.get(kind) if type(value) is dict and type(kind := value.get("type")) is str else None
    return shape is not None and shape.fits(value)


_REFERENCE: Final = _kind(
    "an object with the type `ref/prompt` and a `name`, or with the type `ref/resource` and a `uri`", _is_reference
)
_HANDSHAKE_META: Final = _object(progressToken=_TOKEN)
_ENVELOPE: Final = _members(
    {PROTOCOL_VERSION_META_KEY: _TEXT, CLIENT_CAPABILITIES_META_KEY: _DECLARED},
    {CLIENT_INFO_META_KEY: _CLIENT, LOG_LEVEL_META_KEY: _LEVEL, "progressToken": _TOKEN},
)


def _is_scalar(value: Any) -> bool:
    return type(value) in (str, int, float, bool, NoneType) or (type(value) is list and all(map(_TEXT.fits, value)))


_SCALAR: Final = _kind("a string, a number, true, false, null, or an array of strings", _is_scalar)
_ANSWERS: Final = (
    _object({"action": _make_enum("accept", "cancel", "decline")}, content=_map_of(_SCALAR)),
    _object({"roots": _list_of(_object({"uri": _TEXT}, name=_TEXT))}),
    _object(
        {
            "model": _TEXT,
            "role": _make_enum("assistant", "user"),
            "content": _kind("an object or an array", lambda value: type(value) in (dict, list)),
        }
    ),
)


def _is_answer(value: Any) -> bool:
    """Return whether a value is an elicitation, roots or sampling result. Its content is validated later."""
    return any(shape.fits(value) for shape in _ANSWERS)


_ANSWER: Final = _kind("an elicitation, roots or sampling result", _is_answer)
_ROUND: Final[Mapping[str, Shape]] = {"inputResponses": _map_of(_ANSWER), "requestState": _TEXT}
"""The additional parameters in later rounds of a request (MCP 2026-07-28, basic/patterns, "Multi Round-Trip
Requests").
"""


class _Parameters:
    """A method's required and optional parameters, without `_meta`."""

    def __init__(self, required: Mapping[str, Shape] | None = None, /, **optional: Shape) -> None:
        self.required = required or {}
        self.optional = optional


_PAGE: Final = _Parameters(cursor=_TEXT)
_BOTH: Final[Mapping[str, _Parameters]] = {
    "tools/list": _PAGE,
    "tools/call": _Parameters({"name": _TEXT}, arguments=_OBJECT),
    "resources/list": _PAGE,
    "resources/templates/list": _PAGE,
    "resources/read": _Parameters({"uri": _TEXT}),
    "resources/directory/read": _Parameters({"uri": _TEXT}, cursor=_TEXT),
    "skills/list": _PAGE,
    "skills/get": _Parameters({"uri": _TEXT}),
    "prompts/list": _PAGE,
    "prompts/get": _Parameters({"name": _TEXT}, arguments=_TEXTS),
    "completion/complete": _Parameters(
        {"ref": _REFERENCE, "argument": _object({"name": _TEXT, "value": _TEXT})},
        context=_object(arguments=_TEXTS),
    ),
}
HANDSHAKE_METHODS: Final[Mapping[str, Shape]] = {
    method: _members(parameters.required, {**parameters.optional, "_meta": _HANDSHAKE_META})
    for method, parameters in {
        **_BOTH,
        "tools/call": _Parameters({"name": _TEXT}, arguments=_OBJECT, task=_object(ttl=_INTEGER)),
        "initialize": _Parameters({"protocolVersion": _TEXT, "capabilities": _CAPABILITIES, "clientInfo": _CLIENT}),
        "ping": _Parameters(),
        "logging/setLevel": _Parameters({"level": _LEVEL}),
        "resources/subscribe": _Parameters({"uri": _TEXT}),
        "resources/unsubscribe": _Parameters({"uri": _TEXT}),
    }.items()
}
"""The parameters of each method (MCP 2025-11-25 and earlier)."""

STATELESS_METHODS: Final[Mapping[str, Shape]] = {
    method: _members({**parameters.required, "_meta": _ENVELOPE}, parameters.optional)
    for method, parameters in {
        **_BOTH,
        "tools/call": _Parameters({"name": _TEXT}, arguments=_OBJECT, **_ROUND),
        "resources/read": _Parameters({"uri": _TEXT}, **_ROUND),
        "prompts/get": _Parameters({"name": _TEXT}, arguments=_TEXTS, **_ROUND),
        "server/discover": _Parameters(),
        "subscriptions/listen": _Parameters(
            {
                "notifications": _object(
                    toolsListChanged=_FLAG,
                    promptsListChanged=_FLAG,
                    resourcesListChanged=_FLAG,
                    resourceSubscriptions=_list_of(_TEXT),
                )
            }
        ),
    }.items()
}
"""The parameters of each method (MCP 2026-07-28 and later)."""


_HANDSHAKE_TASKS: Final[Mapping[str, Shape]] = dict.fromkeys(
    ("tasks/cancel", "tasks/get", "tasks/list", "tasks/result"), _members({}, {"_meta": _HANDSHAKE_META})
)
"""The `_meta` of task methods (MCP 2025-11-25 and earlier); `tasks/methods.py` validates the other parameters."""

_STATELESS_TASKS: Final[Mapping[str, Shape]] = dict.fromkeys(
    ("tasks/cancel", "tasks/get", "tasks/update"), _members({"_meta": _ENVELOPE}, {})
)
"""The `_meta` of task methods (MCP 2026-07-28 and later)."""


def find_shape(method: str, *, stateless: bool, has_tasks: bool = False) -> Shape | None:
    """Return the shape of a method's parameters; `None` if the method does not exist in the era.

    Args:
        method: The MCP method.
        stateless: True in MCP 2026-07-28 and later.
        has_tasks: True to include task methods.
    """
    if has_tasks and method.startswith("tasks/"):
        return (_STATELESS_TASKS if stateless else _HANDSHAKE_TASKS).get(method)
    return (STATELESS_METHODS if stateless else HANDSHAKE_METHODS).get(method)


def is_stateless_request(message: Mapping[str, Any]) -> bool:
    """Return whether a request declares its revision in `_meta` (MCP 2026-07-28). `initialize` never does."""
    return message["method"] != "initialize" and PROTOCOL_VERSION_META_KEY in get_meta(message)


def find_stateless_error(message: Mapping[str, Any], *, has_tasks: bool = False) -> ProtocolError | None:
    """Return the error for an invalid request in MCP 2026-07-28 and later; `None` if it is valid.

    Args:
        message: The request.
        has_tasks: True if the server has tasks.
    """
    params = message.get("params") or {}
    shape = find_shape(message["method"], stateless=True, has_tasks=has_tasks)
    if shape is not None and shape.fits(params):
        return find_unknown_revision(params["_meta"][PROTOCOL_VERSION_META_KEY])
    if (error := _find_envelope_error(params.get("_meta"))) is not None:
        return error
    return refuse_unknown_method(message["method"]) if shape is None else refuse_parameters(shape.explain(params, ""))


def find_handshake_error(
    message: Mapping[str, Any], *, is_initialized: bool, has_tasks: bool = False
) -> ProtocolError | None:
    """Return the error for an invalid request in MCP 2025-11-25 and earlier; `None` if it is valid.

    Args:
        message: The request.
        is_initialized: True after the handshake.
        has_tasks: True if the server has tasks.
    """
    if message["method"] == "initialize":
        if (error := find_size_error(message.get("params"))) is not None:
            return error
        return ProtocolError(INVALID_REQUEST, _ALREADY_INITIALIZED) if is_initialized else _find_error(message)
    if is_stateless_request(message):
        return ProtocolError(INVALID_REQUEST, _OTHER_ERA)
    return _find_error(message, has_tasks=has_tasks)


def find_unknown_revision(revision: str) -> ProtocolError | None:
    """Return the error for a revision that clients cannot use without a handshake; `None` if they can."""
    if revision in STATELESS:
        return None
    data = {"supported": [*STATELESS], "requested": revision}
    return ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def _find_error(message: Mapping[str, Any], *, has_tasks: bool = False) -> ProtocolError | None:
    shape = find_shape(message["method"], stateless=False, has_tasks=has_tasks)
    if shape is None:
        return refuse_unknown_method(message["method"])
    params = message.get("params") or {}
    return None if shape.fits(params) else refuse_parameters(shape.explain(params, ""))


def find_size_error(params: object) -> ProtocolError | None:
    """Return the error for handshake parameters that are too large; `None` if their size is allowed."""
    text = json.dumps(params, ensure_ascii=False, separators=(",", ":"))
    parts = text.count("{") + text.count("[")
    if len(text) <= _SHORT_HANDSHAKE or (len(text) <= _MAX_HANDSHAKE and parts <= _MAX_HANDSHAKE_PARTS):
        return None
    most = f"{_MAX_HANDSHAKE:,} bytes of JSON with {_MAX_HANDSHAKE_PARTS:,} objects and arrays"
    return ProtocolError(INVALID_PARAMS, f"The parameters of initialize are too large. Send at most {most}.")


def _find_envelope_error(meta: object) -> ProtocolError | None:
    """Return the error for a missing key or an unknown revision in a request's `_meta`, or `None`."""
    keys = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
    if not isinstance(meta, dict):
        text = f"params._meta must be an object carrying the required {keys[0]!r} and {keys[1]!r} envelope keys"
        return ProtocolError(INVALID_PARAMS, text)
    if missing := [key for key in keys if key not in meta]:
        text = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        return ProtocolError(INVALID_PARAMS, text)
    revision = meta[PROTOCOL_VERSION_META_KEY]
    if type(revision) is not str:
        return ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    return find_unknown_revision(revision)
