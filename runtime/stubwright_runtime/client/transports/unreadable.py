"""Describes responses that are not JSON-RPC messages, in one line instead of pydantic's twenty."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ...values.json import Json
from ...values.terminal import shorten
from ...values.text import replace_surrogates
from .batches import find_excess

if TYPE_CHECKING:
    from pydantic import ValidationError

_MOST_PROBLEMS: Final = 3
"""The maximum number of problems to list."""

_KINDS: Final = {
    "error": "JSONRPCError",
    "result": "JSONRPCResponse",
    "id": "JSONRPCRequest",
    "method": "JSONRPCNotification",
}
"""Message classes by key; the first match in this order applies. pydantic would report problems with every class."""

_NAMES: Final = {list: "a JSON list", str: "a JSON string", bool: "a JSON boolean", type(None): "JSON null"}


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class UnreadableError(Exception):
    """A response is not a JSON-RPC message. The text is a clause about the response, such as `it is empty`."""

    @property
    def sentence(self) -> str:
        """The text as a complete sentence."""
        return f"the server's response cannot be read: {self}"


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse the JSON object in a response. Raises UnreadableError for any other value."""
    from pydantic_core import from_json

    if not data.strip():
        raise UnreadableError("it is empty")
    try:
        value: Json = from_json(data)
    except ValueError as error:
        raise UnreadableError(describe_syntax(data, str(error))) from None
    if not isinstance(value, dict):
        raise UnreadableError(find_excess(data) or _name_value(value))
    return value


def describe_syntax(data: str | bytes, why: str) -> str:
    """Return a clause that describes invalid JSON.

    The clause also locates lone surrogates, which Python's JSON parser accepts but UTF-8 cannot encode (RFC 8259, 8.2).
    """
    with suppress(ValueError, RecursionError):  # `why` describes the error
        place = _find_surrogate(json.loads(data))
        if place is not None:
            return f"{shorten(place)} contains a lone surrogate, which is not a character"
    return f"it is not JSON: {shorten(why)}"


def _find_surrogate(value: Any) -> str | None:
    """Return the location of the first lone surrogate, with the name of its object, or `None` without a surrogate."""
    waiting: list[tuple[str, str, Any]] = [("", "", value)]
    while waiting:
        place, owner, item = waiting.pop()
        if isinstance(item, str) and _is_half(item):
            return f"`{place}`{owner}"
        if isinstance(item, dict):
            if any(map(_is_half, item)):
                return f"a key of `{place}`{owner}"
            name = item.get("name")
            owner = f" of `{replace_surrogates(name)}`" if isinstance(name, str) else owner
            # The stack pops from its end.
            waiting += [(f"{place}.{key}" if place else key, owner, item[key]) for key in reversed(item)]
        elif isinstance(item, list):
            waiting += [(f"{place}[{number}]", owner, each) for number, each in reversed([*enumerate(item)])]
    return None


def _is_half(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


def is_sound(message: dict[str, Any]) -> bool:
    """Return whether a quick check shows that an object is a valid message. If not, call `check_message`."""
    if message.get("jsonrpc") != "2.0":
        return False
    key = message.get("id")
    if "method" in message:
        is_addressed = "id" not in message or type(key) is int or type(key) is str
        return is_addressed and type(message["method"]) is str and isinstance(message.get("params", {}), dict)
    return (type(key) is int or type(key) is str) and "error" not in message and type(message.get("result")) is dict


def check_message(message: dict[str, Any], data: bytes) -> None:
    """Raise UnreadableError if an object, parsed from `data`, is not a JSON-RPC message."""
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    adapter: Any = jsonrpc_message_adapter
    with suppress(ValidationError):
        adapter.validate_python(message, by_name=False)
        return
    # Validate JSON text, because pydantic's messages then use "an object" instead of "a dictionary".
    try:
        adapter.validate_json(data, by_name=False)
    except ValidationError as error:
        raise UnreadableError(describe_message(message, error)) from None


def describe_message(message: dict[str, Any], error: ValidationError) -> str:
    """Return a clause that lists a message's problems."""
    if not message.keys() & {"result", "error", "method"}:
        return "it is a JSON object with neither a result nor an error"
    kind = next((kind for key, kind in _KINDS.items() if key in message), None)
    lines = [
        f"{shorten('.'.join(map(str, problem['loc'][1:])))}: {shorten(problem['msg'])}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
        if problem["loc"][:1] == (kind,)
    ]
    noun = "message" if "method" in message else "response"
    return f"it is not a valid JSON-RPC {noun}: {'; '.join(lines[:_MOST_PROBLEMS])}"


def _name_value(value: Json) -> str:
    return f"it is {_NAMES.get(type(value), 'a JSON number')}, not a JSON-RPC message"
