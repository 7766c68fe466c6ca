"""Bound arguments, which the server sets from the caller's access token, the server's environment, or a constant.

A call is rejected if it sends a bound argument or the value is missing, so that no caller can act as another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ..schema.validation import Validator, compile_validator
from ..server.core.outcomes import Outcome, refuse
from ..values.json import Json

if TYPE_CHECKING:
    from ..package import Tool
    from ..server.core.principal import Principal
    from ..server.core.request import Handle, Request

_ABSENT: Final = object()

_APART: Final = ("$schema", "$id", "id", "$defs", "definitions", "properties")
"""The schema keywords needed to validate a single argument."""


def set_arguments(tool: Tool, call_next: Handle) -> Handle:
    """Wrap a tool's handler to set its bound arguments."""
    bound = tool.bound
    if not bound:
        return call_next

    async def call(request: Request) -> Outcome:
        if sent := [name for name in bound if name in request.arguments]:
            lines = "".join(f"\n- {name}: is set by the server; omit it" for name in sent)
            return refuse(f"Invalid arguments for {tool.name}:{lines}", "invalid", "bound_argument")
        values = {name: _value(binding, request.principal) for name, binding in bound.items()}
        for name, binding in bound.items():
            if values[name] is _ABSENT:
                return refuse(f"{tool.name} needs {_source(binding, request.principal)}.", "denied", "claim")
            if _make_validator(tool, name).find_errors({name: values[name]}):
                text = f"{tool.name} cannot use {_source(binding, request.principal)}: it does not match the schema."
                return refuse(text, "denied", "claim")
        request.arguments = {**request.arguments, **values}
        return await call_next(request)

    return call


def _value(binding: Mapping[str, Any], principal: Principal) -> Any:
    if "value" in binding:
        return read_value(binding["value"], binding["schema"])
    if "claim" in binding and principal.kind != "local":
        return principal.claims.get(binding["claim"], _ABSENT)
    variable = binding["local"]["env"] if "local" in binding else binding.get("env")
    text = None if variable is None else os.environ.get(variable)
    return read_value(binding.get("default", _ABSENT) if text is None else text, binding["schema"])


def read_value(value: Any, schema: Json) -> Any:
    """Return the value for a bound argument. A string is parsed as JSON, unless the argument's type allows strings.

    Args:
        value: The value from the token, the environment or the manifest.
        schema: The argument's schema.
    """
    kinds = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str) or kinds is None or "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


@cache
def _make_validator(tool: Tool, name: str) -> Validator:
    schema = {key: value for key, value in tool.accepts.items() if key in _APART}
    return compile_validator(tool, {**schema, "type": "object", "required": [name]})


def _source(binding: Mapping[str, Any], principal: Principal) -> str:
    if "value" in binding:
        return "the value that the manifest binds to it"
    if "env" in binding:
        return f"the environment variable {binding['env']} of the server"
    if principal.kind == "token":
        return f"the claim {binding['claim']!r} of your access token"
    if principal.kind == "anonymous":
        return f"an access token with the claim {binding['claim']!r}"
    if "local" not in binding:
        return "HTTP and an access token"
    return f"the environment variable {binding['local']['env']} of the server"
