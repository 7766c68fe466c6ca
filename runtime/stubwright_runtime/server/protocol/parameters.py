"""The parameters that each request of a client may have, in one table for each era of the protocol.

Takes parameters as parsed JSON; tells whether they are valid. Members that the table does not name are allowed, and
`null` stands for a member that is not there: clients send both, and no server gains by refusing them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

from ...mcp.vocabulary import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    LOG_LEVELS,
    PROTOCOL_VERSION_META_KEY,
)

Shape: TypeAlias = Callable[[Any], bool]
"""Tells whether a value has a shape."""


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_object(value: Any) -> bool:
    return type(value) is dict


def _is_token(value: Any) -> bool:
    return type(value) is str or type(value) is int


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _one_of(*values: str) -> Shape:
    allowed = frozenset(values)
    return lambda value: type(value) is str and value in allowed


def _list_of(shape: Shape) -> Shape:
    return lambda value: type(value) is list and all(map(shape, value))


def _map_of(shape: Shape) -> Shape:
    return lambda value: type(value) is dict and all(map(shape, value.values()))


def _object(required: Mapping[str, Shape] | None = None, /, **optional: Shape) -> Shape:
    return _members(required or {}, optional)


def _members(required: Mapping[str, Shape], optional: Mapping[str, Shape]) -> Shape:
    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name, shape in required.items():
            if name not in value or not shape(value[name]):
                return False
        for name, shape in optional.items():
            member = value.get(name)
            if member is not None and not shape(member):
                return False
        return True

    return fits


_OBJECTS: Final = _map_of(_is_object)
_TEXTS: Final = _map_of(_is_text)
_LEVEL: Final = _one_of(*LOG_LEVELS)
_ICON: Final = _object({"src": _is_text}, mimeType=_is_text, sizes=_list_of(_is_text), theme=_one_of("dark", "light"))
_CLIENT: Final = _object(
    {"name": _is_text, "version": _is_text},
    title=_is_text,
    description=_is_text,
    websiteUrl=_is_text,
    icons=_list_of(_ICON),
)
_QUESTIONS: Final[Mapping[str, Shape]] = {
    "elicitation": _object(form=_is_object, url=_is_object),
    "sampling": _object(context=_is_object, tools=_is_object),
    "experimental": _OBJECTS,
    "extensions": _OBJECTS,
}
_CAPABILITIES: Final = _object(
    **_QUESTIONS,
    roots=_object(listChanged=_is_flag),
    tasks=_object(
        list=_is_object,
        cancel=_is_object,
        requests=_object(sampling=_object(createMessage=_is_object), elicitation=_object(create=_is_object)),
    ),
)
"""The shape of a client's capabilities, up to 2025-11-25."""

_DECLARED: Final = _object(**_QUESTIONS, roots=_is_object)
"""The shape of a client's capabilities, from 2026-07-28 on (schema, `ClientCapabilities`)."""

_REFERENCES: Final[Mapping[str, Shape]] = {
    "ref/prompt": _object({"name": _is_text}, title=_is_text),
    "ref/resource": _object({"uri": _is_text}),
}


def _is_reference(value: Any) -> bool:
    shape = _REFERENCES.get(kind) if type(value) is dict and type(kind := value.get("type")) is str else None
    return shape is not None and shape(value)


_HANDSHAKE_META: Final = _object(progressToken=_is_token)
_ENVELOPE: Final = _members(
    {PROTOCOL_VERSION_META_KEY: _is_text, CLIENT_CAPABILITIES_META_KEY: _DECLARED},
    {CLIENT_INFO_META_KEY: _CLIENT, LOG_LEVEL_META_KEY: _LEVEL, "progressToken": _is_token},
)


def _is_scalar(value: Any) -> bool:
    return type(value) in (str, int, float, bool, NoneType) or (type(value) is list and all(map(_is_text, value)))


_ANSWERS: Final = (
    _object({"action": _one_of("accept", "cancel", "decline")}, content=_map_of(_is_scalar)),
    _object({"roots": _list_of(_object({"uri": _is_text}, name=_is_text))}),
    _object(
        {
            "model": _is_text,
            "role": _one_of("assistant", "user"),
            "content": lambda value: type(value) in (dict, list),
        }
    ),
)


def _is_answer(value: Any) -> bool:
    """Tell whether a value answers a question: a form, roots, or a model's message, whose content is checked later."""
    return any(shape(value) for shape in _ANSWERS)


_ROUND: Final[Mapping[str, Shape]] = {"inputResponses": _map_of(_is_answer), "requestState": _is_text}
"""The parameters of later rounds of a request (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests")."""


class _Parameters:
    """The required and the optional parameters of a method, but for `_meta`."""

    def __init__(self, required: Mapping[str, Shape] | None = None, /, **optional: Shape) -> None:
        self.required = required or {}
        self.optional = optional


_PAGE: Final = _Parameters(cursor=_is_text)
_BOTH: Final[Mapping[str, _Parameters]] = {
    "tools/list": _PAGE,
    "tools/call": _Parameters({"name": _is_text}, arguments=_is_object),
    "resources/list": _PAGE,
    "resources/templates/list": _PAGE,
    "resources/read": _Parameters({"uri": _is_text}),
    "resources/directory/read": _Parameters({"uri": _is_text}, cursor=_is_text),
    "skills/list": _PAGE,
    "skills/get": _Parameters({"uri": _is_text}),
    "prompts/list": _PAGE,
    "prompts/get": _Parameters({"name": _is_text}, arguments=_TEXTS),
    "completion/complete": _Parameters(
        {"ref": _is_reference, "argument": _object({"name": _is_text, "value": _is_text})},
        context=_object(arguments=_TEXTS),
    ),
}
HANDSHAKE: Final[Mapping[str, Shape]] = {
    method: _members(parameters.required, {**parameters.optional, "_meta": _HANDSHAKE_META})
    for method, parameters in {
        **_BOTH,
        "tools/call": _Parameters({"name": _is_text}, arguments=_is_object, task=_object(ttl=_is_integer)),
        "initialize": _Parameters({"protocolVersion": _is_text, "capabilities": _CAPABILITIES, "clientInfo": _CLIENT}),
        "ping": _Parameters(),
        "logging/setLevel": _Parameters({"level": _LEVEL}),
        "resources/subscribe": _Parameters({"uri": _is_text}),
        "resources/unsubscribe": _Parameters({"uri": _is_text}),
    }.items()
}
"""The parameters of each method, up to 2025-11-25."""

STATELESS: Final[Mapping[str, Shape]] = {
    method: _members({**parameters.required, "_meta": _ENVELOPE}, parameters.optional)
    for method, parameters in {
        **_BOTH,
        "tools/call": _Parameters({"name": _is_text}, arguments=_is_object, **_ROUND),
        "resources/read": _Parameters({"uri": _is_text}, **_ROUND),
        "prompts/get": _Parameters({"name": _is_text}, arguments=_TEXTS, **_ROUND),
        "server/discover": _Parameters(),
        "subscriptions/listen": _Parameters(
            {
                "notifications": _object(
                    toolsListChanged=_is_flag,
                    promptsListChanged=_is_flag,
                    resourcesListChanged=_is_flag,
                    resourceSubscriptions=_list_of(_is_text),
                )
            }
        ),
    }.items()
}
"""The parameters of each method, from 2026-07-28 on."""


HANDSHAKE_TASKS: Final[Mapping[str, Shape]] = dict.fromkeys(
    ("tasks/cancel", "tasks/get", "tasks/list", "tasks/result"), _members({}, {"_meta": _HANDSHAKE_META})
)
"""The `_meta` of each method of tasks, up to 2025-11-25; their step looks at the other parameters."""

STATELESS_TASKS: Final[Mapping[str, Shape]] = dict.fromkeys(
    ("tasks/cancel", "tasks/get", "tasks/update"), _members({"_meta": _ENVELOPE}, {})
)
"""The same from 2026-07-28 on."""


def find_shape(method: str, *, stateless: bool, has_tasks: bool = False) -> Shape | None:
    """Return the function that checks the parameters of a method; `None` if the era has no such method.

    Args:
        method: The method of a request of a client.
        stateless: True for the era of 2026-07-28, in which each request says its revision.
        has_tasks: True to include the methods of tasks, which a server need not have.
    """
    if has_tasks and method.startswith("tasks/"):
        return (STATELESS_TASKS if stateless else HANDSHAKE_TASKS).get(method)
    return (STATELESS if stateless else HANDSHAKE).get(method)
