"""Where the ids of state handles stand in the arguments and the result of a tool.

Takes a tool and a value; gives the places of ids in it. The manifest says which schemas mark them, and the validator
which of these a value fits: a mark is an annotation (JSON Schema 2020-12 Core, 7.7).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..values.json import is_list, is_mapping
from ..values.nesting import is_too_deep
from ..values.text import steps
from . import validation

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jsonschema_rs

    from ..package import Tool

Side: TypeAlias = Literal["input", "output"]

_MARK: Final = "x-handle"


@dataclass(frozen=True, slots=True)
class _Marked:
    validator: validation.Validator
    evaluator: jsonschema_rs.Validator


def places(tool: Tool, side: Side, value: object) -> dict[str, str]:
    """The JSON Pointers (RFC 6901) to the ids in a valid value, each with the kind of its handle, in order."""
    marked = _marked(tool, side)
    if marked is None:
        return {}
    found: dict[str, str] = {}
    for each in marked.evaluator.evaluate(value).annotations():
        notes = each["annotations"]
        if is_mapping(notes) and isinstance(kind := notes.get(_MARK), str) and isinstance(_at(value, each), str):
            found[each["instanceLocation"]] = kind
    return found


def hidden(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """The JSON Pointers to the ids in arguments; to all of these where they are not valid, since nobody knows then."""
    marked = _marked(tool, "input")
    if marked is None:
        return []
    if is_too_deep(arguments) or marked.validator.violations(arguments):
        return [""]
    return [*places(tool, "input", arguments)]


def at(value: object, pointer: str) -> Any:
    """What stands in a JSON value at a pointer that leads somewhere."""
    here: Any = value
    for step in steps(pointer):
        here = here[int(step)] if is_list(here) else here[step]
    return here


def _at(value: object, annotation: Mapping[str, Any]) -> Any:
    return at(value, annotation["instanceLocation"])


@cache
def _marked(tool: Tool, side: Side) -> _Marked | None:
    """What tells where the ids stand; `None` where there are none. What the server sets itself need not be there."""
    said: Mapping[str, Mapping[str, str]] = tool.extension.get("handles") or {}
    pointers = said.get(side)
    if not pointers:
        return None
    schema = copy.deepcopy(tool.accepts if side == "input" else tool.definition["outputSchema"])
    if side == "input" and schema.get("required") != (required := tool.definition["inputSchema"].get("required")):
        schema |= {"required": required} if required else {}
        if not required:
            del schema["required"]
    for pointer, kind in pointers.items():
        at(schema, pointer)[_MARK] = kind
    evaluator = validation.compiled(schema, formats=tool.asserts_formats)
    return _Marked(validation.validator(tool, schema), evaluator)
