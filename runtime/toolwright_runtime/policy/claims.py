"""Arguments that come from the caller's access token.

Takes calls; puts claims among their arguments. A caller that sends such an argument is refused, and so is one without
the claim: nobody can be taken for another, or for everybody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ..schema.validation import Validator, compile_validator
from ..server.core.outcomes import Outcome, refusal

if TYPE_CHECKING:
    from ..package import Tool
    from ..server.core.principal import Principal
    from ..server.core.steps import Call, Proceed

_ABSENT: Final = object()

_APART: Final = ("$schema", "$id", "id", "$defs", "definitions", "properties")
"""The keywords of a schema that say what an argument is, without saying what the others are."""


async def set_arguments(proceed: Proceed, call: Call) -> Outcome:
    """Let a call through with the arguments that the server sets."""
    bound: Mapping[str, Any] = call.tool.extension.get("bind") or {}
    if not bound:
        return await proceed(call)
    if sent := [name for name in bound if name in call.arguments]:
        lines = "".join(f"\n- {name}: is set by the server; leave it out" for name in sent)
        return refusal(f"Invalid arguments for {call.tool.name}:{lines}", "invalid", "bound_argument")
    values = {name: _value(binding, call.principal) for name, binding in bound.items()}
    for name, binding in bound.items():
        if values[name] is _ABSENT:
            return refusal(f"{call.tool.name} needs {_source(binding, call.principal)}.", "denied", "claim")
        if _judge(call.tool, name).find_errors({name: values[name]}):
            text = f"{call.tool.name} cannot take {_source(binding, call.principal)}: it is of another form."
            return refusal(text, "denied", "claim")
    return await proceed(replace(call, arguments={**call.arguments, **values}))


def _value(binding: Mapping[str, Any], principal: Principal) -> Any:
    if principal.kind != "local":
        return principal.claims.get(binding["claim"], _ABSENT)
    text = os.environ.get(binding["local"]["env"]) if "local" in binding else None
    if text is None:
        return _ABSENT
    kinds = binding["schema"].get("type") if isinstance(binding["schema"], dict) else None
    if kinds is None or "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


@cache
def _judge(tool: Tool, name: str) -> Validator:
    """What says whether a value is one of an argument's; the other arguments need not be there."""
    schema = {key: value for key, value in tool.accepts.items() if key in _APART}
    return compile_validator(tool, {**schema, "type": "object", "required": [name]})


def _source(binding: Mapping[str, Any], principal: Principal) -> str:
    if principal.kind == "token":
        return f"the claim {binding['claim']!r} of your access token"
    if principal.kind == "anonymous":
        return f"an access token with the claim {binding['claim']!r}"
    if "local" not in binding:
        return "HTTP and an access token"
    return f"the environment variable {binding['local']['env']} of the server"
