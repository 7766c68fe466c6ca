"""Which messages the direct path takes: those of a method in the tables below, with nothing odd about them.

Takes messages as JSON has them; says yes or no. Whatever is malformed, unknown or unusual goes to the SDK, which then
answers in its own words, so that nothing is judged twice. What is plain here is valid there; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...mcp.revisions import Revision
from ...mcp.vocabulary import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from ..core.context import LOG_LEVELS

_Check: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Whether parameters are plain; they are looked at without their `_meta`."""

_MESSAGE: Final = frozenset({"jsonrpc", "id", "method", "params"})
_RESERVED: Final = "io.modelcontextprotocol/"
_ENVELOPE: Final = frozenset(
    {PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY}
)
_GREETING: Final = 16 * 1024
"""Bytes of a handshake: what it says is kept as long as its connection."""

_LARGEST_ID: Final = 1 << 53


def _has_only(value: Mapping[str, Any], *keys: str) -> bool:
    return value.keys() <= {"_meta", *keys}


def _is_empty(params: Mapping[str, Any]) -> bool:
    return _has_only(params)


def _is_page(params: Mapping[str, Any]) -> bool:
    return _has_only(params, "cursor") and type(params.get("cursor", "")) is str


def _is_call(params: Mapping[str, Any]) -> bool:
    return (
        _has_only(params, "name", "arguments")
        and type(params.get("name")) is str
        and type(params.get("arguments", {})) is dict
    )


def _is_reading(params: Mapping[str, Any]) -> bool:
    return _has_only(params, "uri") and type(params.get("uri")) is str


def _is_prompt(params: Mapping[str, Any]) -> bool:
    return (
        _has_only(params, "name", "arguments")
        and type(params.get("name")) is str
        and _is_texts(params.get("arguments", {}))
    )


def _is_completion(params: Mapping[str, Any]) -> bool:
    match params.get("ref"):
        case {"type": "ref/prompt", "name": str(), **rest} | {"type": "ref/resource", "uri": str(), **rest}:
            is_known = not rest
        case _:
            is_known = False
    argument, context = params.get("argument"), params.get("context", {})
    return (
        is_known
        and _has_only(params, "ref", "argument", "context")
        and argument is not None
        and _is_texts(argument)
        and argument.keys() == {"name", "value"}
        and type(context) is dict
        and context.keys() <= {"arguments"}
        and _is_texts(context.get("arguments", {}))
    )


def _is_level(params: Mapping[str, Any]) -> bool:
    return _has_only(params, "level") and params.get("level") in LOG_LEVELS


def _is_texts(value: Any) -> bool:
    return type(value) is dict and all(type(text) is str for text in value.values())


_BOTH: Final[Mapping[str, _Check]] = {
    "tools/list": _is_page,
    "tools/call": _is_call,
    "resources/list": _is_page,
    "resources/templates/list": _is_page,
    "resources/read": _is_reading,
    "prompts/list": _is_page,
    "prompts/get": _is_prompt,
    "completion/complete": _is_completion,
}

HANDSHAKE: Final[Mapping[str, _Check]] = {**_BOTH, "ping": _is_empty, "logging/setLevel": _is_level}
"""What is taken after a handshake, up to 2025-11-25. `initialize` stands for itself."""

STATELESS: Final[Mapping[str, _Check]] = {**_BOTH, "server/discover": _is_empty}
"""What is taken from 2026-07-28 on."""


def is_request(message: Mapping[str, Any]) -> bool:
    """Whether a message is a request that is well-formed as JSON-RPC 2.0, but for its method and parameters."""
    name = message.get("id")
    return (
        message.keys() <= _MESSAGE
        and message.get("jsonrpc") == "2.0"
        and (type(name) is str or (type(name) is int and abs(name) < _LARGEST_ID))
        and type(message.get("method")) is str
        and type(message.get("params", {})) is dict
    )


def is_notification(message: Mapping[str, Any]) -> bool:
    """Whether a message is a notification that is well-formed as JSON-RPC 2.0, but for its method and parameters."""
    return (
        message.keys() <= _MESSAGE
        and "id" not in message
        and message.get("jsonrpc") == "2.0"
        and type(message.get("method")) is str
        and type(message.get("params", {})) is dict
    )


def is_initialize(message: Mapping[str, Any], size: int) -> bool:
    """Whether a request of so many bytes is a handshake with nothing odd about it (MCP 2025-11-25, basic/lifecycle)."""
    params = message.get("params", {})
    return (
        message["method"] == "initialize"
        and size <= _GREETING
        and params.keys() - {"_meta"} == {"protocolVersion", "capabilities", "clientInfo"}
        and _is_meta(params.get("_meta", {}), stateless=False)
        and type(params["protocolVersion"]) is str
        and are_capabilities(params["capabilities"])
        and _is_client(params["clientInfo"])
    )


def is_plain(message: Mapping[str, Any], *, stateless: bool) -> bool:
    """Whether a request is plain, in the era of its connection; over HTTP, its headers have to be looked at, too."""
    params = message.get("params", {})
    check = (STATELESS if stateless else HANDSHAKE).get(message["method"])
    return check is not None and check(params) and _is_meta(params.get("_meta", {}), stateless=stateless)


def opens_stateless(message: Mapping[str, Any]) -> bool:
    """Whether a request says its revision, as from 2026-07-28 each does."""
    meta = message.get("params", {}).get("_meta")
    return type(meta) is dict and PROTOCOL_VERSION_META_KEY in meta


def _is_meta(meta: Any, *, stateless: bool) -> bool:
    if type(meta) is not dict or type(meta.get("progressToken", "")) not in (str, int):
        return False
    reserved = {key for key in meta if key.startswith(_RESERVED)}
    if not stateless:
        return not reserved
    revision = meta.get(PROTOCOL_VERSION_META_KEY)
    return (
        reserved <= _ENVELOPE
        and type(revision) is str
        and Revision.of(revision).date == revision
        and Revision.of(revision).has("stateless")
        and are_capabilities(meta.get(CLIENT_CAPABILITIES_META_KEY))
        and (CLIENT_INFO_META_KEY not in meta or _is_client(meta[CLIENT_INFO_META_KEY]))
        and meta.get(LOG_LEVEL_META_KEY, "info") in LOG_LEVELS
    )


def _is_client(info: Any) -> bool:
    if type(info) is not dict:
        return False
    texts = {key: value for key, value in info.items() if key != "icons"}
    return (
        {"name", "version"} <= texts.keys() <= _CLIENT
        and _is_texts(texts)
        and type(icons := info.get("icons", [])) is list
        and all(map(_is_icon, icons))
    )


def _is_icon(icon: Any) -> bool:
    if type(icon) is not dict or type(icon.get("sizes", [])) is not list:
        return False
    texts = {key: value for key, value in icon.items() if key != "sizes"}
    sizes = icon.get("sizes", [])
    return (
        "src" in texts
        and texts.keys() <= {"src", "mimeType"}
        and _is_texts(texts)
        and _is_texts(dict(enumerate(sizes)))
    )


def are_capabilities(value: Any) -> bool:
    """Whether a client says in the usual way what it can do."""
    if type(value) is not dict:
        return False
    for name, declared in value.items():
        if name == "tasks" and _is_tree(declared):
            continue
        parts = _CAPABILITIES.get(name)
        if parts is None or type(declared) is not dict or not (parts is _ANY or declared.keys() <= parts):
            return False
        if not all(type(part) is (bool if key == "listChanged" else dict) for key, part in declared.items()):
            return False
    return True


def _is_tree(value: Any) -> bool:
    """Whether a value holds nothing but objects."""
    return type(value) is dict and all(map(_is_tree, value.values()))


_CLIENT: Final = frozenset({"name", "version", "title", "description", "websiteUrl"})
_ANY: Final[frozenset[str]] = frozenset()
_CAPABILITIES: Final[Mapping[str, frozenset[str]]] = {
    "roots": frozenset({"listChanged"}),
    "sampling": frozenset({"context", "tools"}),
    "elicitation": frozenset({"form", "url"}),
    "experimental": _ANY,
    "extensions": _ANY,
}
"""What a client may declare, with its parts; of those that are anybody's, all are objects."""
