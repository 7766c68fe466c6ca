"""Finds state handle IDs in arguments and results, by an annotation in the schema (JSON Schema 2020-12 Core, 7.7)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..values.json import is_list, is_mapping
from ..values.nesting import is_too_deep
from ..values.text import split_pointer
from . import validation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..package import Tool
    from .numbers import CompiledSchema

Side: TypeAlias = Literal["input", "output"]

_MARK: Final = "x-handle"


@dataclass(frozen=True, slots=True)
class _MarkedSchema:
    validator: validation.Validator
    evaluator: CompiledSchema


def find_ids(tool: Tool, side: Side, value: object) -> dict[str, str]:
    """Return JSON Pointers (RFC 6901) to the IDs in a valid value, with their handle kinds."""
    marked = _mark_schema(tool, side)
    if marked is None:
        return {}
    kinds: dict[str, str] = {}
    for each in marked.evaluator.evaluate(value).annotations():
        notes = each["annotations"]
        if (
            is_mapping(notes)
            and isinstance(kind := notes.get(_MARK), str)
            and isinstance(_get_annotated(value, each), str)
        ):
            kinds[each["instanceLocation"]] = kind
    return kinds


def find_hidden_ids(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return JSON Pointers to the IDs in arguments, or to all arguments if they are invalid."""
    marked = _mark_schema(tool, "input")
    if marked is None:
        return []
    if is_too_deep(arguments) or marked.validator.find_errors(arguments):
        return [""]
    return [*find_ids(tool, "input", arguments)]


def get_at(value: object, pointer: str) -> Any:
    """Return the value at a JSON Pointer, which must exist."""
    here: Any = value
    for step in split_pointer(pointer):
        here = here[int(step)] if is_list(here) else here[step]
    return here


def _get_annotated(value: object, annotation: Mapping[str, Any]) -> Any:
    return get_at(value, annotation["instanceLocation"])


@cache
def _mark_schema(tool: Tool, side: Side) -> _MarkedSchema | None:
    """Return a tool's schema with annotated IDs, or `None` if the schema has no IDs. Bound arguments are optional."""
    marks: Mapping[str, Mapping[str, str]] = tool.extension.get("handles") or {}
    pointers = marks.get(side)
    if not pointers:
        return None
    schema = copy.deepcopy(tool.accepts if side == "input" else tool.definition["outputSchema"])
    if side == "input" and schema.get("required") != (required := tool.definition["inputSchema"].get("required")):
        schema |= {"required": required} if required else {}
        if not required:
            del schema["required"]
    for pointer, kind in pointers.items():
        get_at(schema, pointer)[_MARK] = kind
    evaluator = validation.compile_schema(schema, formats=tool.asserts_formats, exact=tool.has_exact_formats)
    return _MarkedSchema(validation.compile_validator(tool, schema), evaluator)
