"""Arguments that the server sets: from the caller's access token, from its own environment, or always the same.

A caller that sends such an argument is refused, and so is a call without the value: no caller can be taken for another,
or for all.
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
"""The keywords of a schema that are needed to validate one argument without the others."""


def set_arguments(tool: Tool, call_next: Handle) -> Handle:
    """Add the arguments that the server sets to the calls of a tool."""
    bound: Mapping[str, Any] = tool.extension.get("bind") or {}
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
            if _judge(tool, name).find_errors({name: values[name]}):
                text = f"{tool.name} cannot take {_source(binding, request.principal)}: it is of another form."
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
    """Read a bound value by its argument's type: a string as JSON if the argument is not a string, any other unchanged.

    Args:
        value: The value.
        schema: The schema of the argument.
    """
    kinds = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str) or kinds is None or "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


@cache
def _judge(tool: Tool, name: str) -> Validator:
    """Return the validator of an argument's value; other arguments may be absent."""
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
