"""Checks the rules of targets, with one function per kind of rule in the table.

Each function accepts a tool and the rule's value, and yields the locations that violate the rule, each with the fault
and the fix. The functions in `OF_LISTS` accept all tools in a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from stubwright.diagnostics.suggestions import format_scalar
from stubwright.jsonschema import dialects
from stubwright.jsonschema.pointers import resolve_local

if TYPE_CHECKING:
    from stubwright.diagnostics import Pointer
    from stubwright.targets.tool_list import ListedTool

Found: TypeAlias = "Iterator[tuple[Pointer, str, str]]"
_INPUT: Final = ("inputSchema",)
_PLAIN_ROOT: Final = "list all arguments in `properties` at the root, and describe which ones belong together"


def _name(tool: ListedTool, pattern: str) -> Found:
    if not re.search(pattern, tool.name):
        yield ("name",), f"has a name that does not match `{pattern}`", "rename it"


def _find_long_name(tool: ListedTool, value: Sequence[Any]) -> Found:
    form, longest = value
    whole = form.replace("{server}", tool.server).replace("{tool}", tool.name)
    if len(whole) > longest:
        fix = f"shorten the tool's or the server's name by {len(whole) - longest} characters"
        yield ("name",), f"becomes `{whole}` with its prefix: {len(whole)} characters, more than {longest}", fix


def _description(tool: ListedTool, value: Sequence[int | None]) -> Found:
    shortest, longest = value
    text = tool.definition.get("description")
    length = len(text) if isinstance(text, str) else 0
    if shortest is not None and length < shortest:
        yield ("description",), "has no description", "describe what it does and when to use it"
    elif longest is not None and length > longest:
        fix = f"shorten it to {longest:,} characters"
        yield ("description",), f"has a description of {length:,} characters, more than {longest:,}", fix


def _find_missing_title(tool: ListedTool, among_annotations: bool) -> Found:
    annotations = _annotations(tool)
    if not annotations.get("title") and (among_annotations or not tool.definition.get("title")):
        where = "`annotations` without a `title`" if among_annotations else "no `title`"
        yield ("annotations" if among_annotations else "title",), f"has {where}", "add a title for people"


def _any_hint(tool: ListedTool, names: Sequence[str]) -> Found:
    if not any(_has_hint(tool, name) for name in names):
        fix = "set hints in `annotations`: whether the tool only reads or is destructive"
        yield ("annotations",), f"has neither {' nor '.join(f'`{name}`' for name in names)}", fix


def _hints(tool: ListedTool, names: Sequence[str]) -> Found:
    for name in names:
        if not _has_hint(tool, name):
            yield ("annotations",), f"does not set `{name}`", "set it to true or false in `annotations`"


def _find_missing_hints(tool: ListedTool) -> Found:
    annotations = _annotations(tool)
    values = [annotations.get(name) for name in ("readOnlyHint", "destructiveHint")]
    if True not in values and isinstance(values[1], bool):
        what = "changes something, but does not set `destructiveHint: true`"
        fix = "set `destructiveHint: true` if it changes existing data"
        yield ("annotations", "destructiveHint"), what, fix


def _annotations(tool: ListedTool) -> Mapping[str, Any]:
    annotations = tool.definition.get("annotations")
    return annotations if isinstance(annotations, dict) else {}


def _has_hint(tool: ListedTool, name: str) -> bool:
    return isinstance(_annotations(tool).get(name), bool)


def _property(tool: ListedTool, pattern: str) -> Found:
    for pointer, schema in tool.schemas:
        yield from _properties(pointer, schema, pattern)


def _root_property(tool: ListedTool, pattern: str) -> Found:
    if isinstance(tool.schema, dict):
        yield from _properties((), tool.schema, pattern)


def _properties(pointer: Pointer, schema: Mapping[str, Any], pattern: str) -> Found:
    properties = schema.get("properties")
    for name in properties if isinstance(properties, dict) else ():
        if not re.search(pattern, name):
            what = f"has an argument or property `{name}`, which does not match `{pattern}`"
            yield (*_INPUT, *pointer, "properties", name), what, "rename it"


def _find_root_keywords(tool: ListedTool, keywords: Sequence[str]) -> Found:
    if isinstance(tool.schema, dict):
        for keyword in keywords:
            if keyword in tool.schema:
                yield (*_INPUT, keyword), f"has `{keyword}` at the root of its `inputSchema`", _PLAIN_ROOT


def _find_forbidden_keywords(tool: ListedTool, keywords: Sequence[str]) -> Found:
    for pointer, keyword in _list_keywords(tool, keywords):
        yield (*_INPUT, *pointer, keyword), f"uses `{keyword}`", f"avoid `{keyword}`"


def _ignores(tool: ListedTool, keywords: Sequence[str]) -> Found:
    for pointer, keyword in _list_keywords(tool, keywords):
        yield (*_INPUT, *pointer, keyword), f"uses `{keyword}`", "state its constraint in a description"


def _ignores_at_root(tool: ListedTool, keywords: Sequence[str]) -> Found:
    if isinstance(tool.schema, dict):
        for keyword in keywords:
            if keyword in tool.schema:
                yield (*_INPUT, keyword), f"has `{keyword}` at the root of its `inputSchema`", _PLAIN_ROOT


def _list_keywords(tool: ListedTool, keywords: Sequence[str]) -> Iterator[tuple[Pointer, str]]:
    wanted = frozenset(keywords)
    for pointer, schema in tool.schemas:
        if not wanted.isdisjoint(schema):
            yield from ((pointer, keyword) for keyword in schema if keyword in wanted)


def _string_enums(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        values = schema.get("enum")
        if isinstance(values, list):
            other = next((each for each in values if not isinstance(each, str)), None)
            if other is not None or None in values:
                what = f"has an `enum` value `{format_scalar(other)}` that is not a string"
                yield (*_INPUT, *pointer, "enum"), what, "list the values in the description, or use strings"


def _items(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        if _is(schema, "array") and not schema.keys() & {"items", "prefixItems", "$ref"}:
            yield (*_INPUT, *pointer), "has an array without `items`", "declare its items with `items`"


def _find_empty_objects(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        if schema.get("properties") == {}:
            what = "has an object with `properties: {}`"
            yield (*_INPUT, *pointer, "properties"), what, "omit `properties`, or give the object a property"


def _find_undeclared(tool: ListedTool) -> Found:
    if isinstance(tool.schema, dict) and tool.schema.keys().isdisjoint({"properties", "$ref"}):
        yield _INPUT, "has an `inputSchema` without `properties`", "add `properties: {}`"


def _find_empty_schemas(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list):
            continue
        for name, value in properties.items():
            held = (isinstance(value, dict) and _target(tool, value)) or value
            if name in required and isinstance(held, dict) and _may_be_empty(held):
                what = f"requires `{name}` even if it is empty or null"
                fix = "make the argument optional, and treat a missing value as empty"
                yield (*_INPUT, *pointer, "properties", name), what, fix


def _may_be_empty(schema: Mapping[str, Any]) -> bool:
    return (
        _is(schema, "null")
        or (_is(schema, "array") and not schema.get("minItems"))
        or (_is_object(schema) and not schema.get("required") and not schema.get("minProperties"))
    )


def _find_type_lists(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        if isinstance(schema.get("type"), list):
            what = "has a list of types"
            yield (*_INPUT, *pointer, "type"), what, "use `anyOf`, or set `wire: {nullable: anyOf}` if one type is null"


def _find_untyped_arguments(tool: ListedTool, keywords: Sequence[str]) -> Found:
    properties = tool.schema.get("properties") if isinstance(tool.schema, dict) else None
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        if schema is True or (keywords and isinstance(schema, dict) and schema.keys().isdisjoint(keywords)):
            yield (*_INPUT, "properties", name), f"has an argument `{name}` without a type", "declare its type"


def _flat(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        if pointer and pointer[0] == "properties" and schema.get("properties"):
            what = "has an object with properties in an argument"
            yield (*_INPUT, *pointer, "properties"), what, "describe the properties in the argument's description"


def _find_open_objects(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        if _is_object(schema) and schema.get("additionalProperties") is not False:
            what = "has an object that allows additional properties"
            yield (*_INPUT, *pointer), what, "add `additionalProperties: false`"


def _all_required(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        for name in _optional(schema):
            fix = "make the property required and nullable"
            yield (*_INPUT, *pointer, "properties", name), f"has an optional property `{name}`", fix


def _optional(schema: Mapping[str, Any]) -> list[str]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    return [name for name in properties if not isinstance(required, list) or name not in required]


_SAYING: Final = frozenset({"type", "enum", "const", "anyOf", "$ref"})


def _find_untyped(tool: ListedTool) -> Found:
    for pointer, schema in tool.schemas:
        is_place = pointer[-1:] != ("$defs",)
        if is_place and _SAYING.isdisjoint(schema):
            yield (*_INPUT, *pointer), "has a schema without a type", "declare its type"
    for pointer, schema in dialects.iterate_subschemas(tool.schema, tool.dialect):
        if schema is True:
            yield (*_INPUT, *pointer), "has a schema without a type", "declare its type"


def _find_min_items(tool: ListedTool, allowed: Sequence[int]) -> Found:
    for pointer, schema in tool.schemas:
        if schema.get("minItems", allowed[0]) not in allowed:
            what = f"has `minItems: {schema['minItems']}` instead of {' or '.join(map(str, allowed))}"
            yield (*_INPUT, *pointer, "minItems"), what, "describe the constraint instead"


def _formats(tool: ListedTool, allowed: Sequence[str]) -> Found:
    for pointer, schema in tool.schemas:
        name = schema.get("format")
        if isinstance(name, str) and name not in allowed:
            what = f"uses the `format` `{name}`, which is not one of {', '.join(allowed)}"
            yield (*_INPUT, *pointer, "format"), what, "describe the constraint instead"


def _find_recursion(tool: ListedTool) -> Found:
    where = {id(schema): pointer for pointer, schema in tool.schemas}
    done: set[int] = set()

    def walk(schema: Any, above: frozenset[int], depth: int) -> Pointer | None:
        if not isinstance(schema, dict) or id(schema) in done or depth > _DEEPEST:
            return None
        if id(schema) in above:
            return where.get(id(schema), ())
        inside = above | {id(schema)}
        own = {key: value for key, value in schema.items() if key not in _REUSABLE}
        for _, child in dialects.iterate_children(own, tool.dialect):
            if (place := walk(child, inside, depth + 1)) is not None:
                return place
        target = _target(tool, schema)
        if target is not None and (place := walk(target, inside, depth + 1)) is not None:
            return place
        done.add(id(schema))
        return None

    place = walk(tool.schema, frozenset(), 0)
    if place is not None:
        fix = "limit its depth, with a schema for each level"
        yield (*_INPUT, *place), "has a schema that contains itself", fix


_REUSABLE: Final = frozenset({"$defs", "definitions"})
_DEEPEST: Final = 200


def _target(tool: ListedTool, schema: Mapping[str, Any]) -> Any:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return None
    try:
        return resolve_local(tool.schema, reference)
    except LookupError:
        return None


def _levels(tool: ListedTool, most: int) -> Found:
    depths: dict[int, int] = {}

    def measure_depth(schema: Any, above: frozenset[int]) -> int:
        if not isinstance(schema, dict) or id(schema) in above or len(above) > _DEEPEST:
            return 0
        if id(schema) not in depths:
            inside = above | {id(schema)}
            below = [
                child for steps, child in dialects.iterate_children(schema, tool.dialect) if steps[0] not in _REUSABLE
            ]
            deepest = max((measure_depth(child, inside) for child in [*below, _target(tool, schema)]), default=0)
            depths[id(schema)] = deepest + (1 if _is_object(schema) else 0)
        return depths[id(schema)]

    depth = measure_depth(tool.schema, frozenset())
    if depth > most:
        what = f"has objects nested {depth} levels deep, more than {most}"
        yield _INPUT, what, "flatten objects, or move parts to other tools"


def _count_properties(tool: ListedTool, most: int) -> Found:
    count = sum(len(schema.get("properties") or ()) for _, schema in tool.schemas)
    if count > most:
        yield _INPUT, f"has {count:,} properties in total, more than {most:,}", "split the tool"


def _characters(tool: ListedTool, most: int) -> Found:
    count = 0
    for _, schema in tool.schemas:
        count += sum(map(len, _list_names(schema)))
        count += sum(_length(value) for value in [*_values(schema), *([schema["const"]] if "const" in schema else [])])
    if count > most:
        what = f"has names, enums and constants with {count:,} characters in total, more than {most:,}"
        yield _INPUT, what, "split the tool, or accept a string in place of a long `enum`"


def _list_names(schema: Mapping[str, Any]) -> Iterator[str]:
    for keyword in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(keyword), dict):
            yield from schema[keyword]


def _values(schema: Mapping[str, Any]) -> list[Any]:
    values = schema.get("enum")
    return values if isinstance(values, list) else []


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def _enum_values(tool: ListedTool, most: int) -> Found:
    count = sum(len(_values(schema)) for _, schema in tool.schemas)
    if count > most:
        yield _INPUT, f"has {count:,} `enum` values, more than {most:,}", "accept a string in place of a long `enum`"


def _find_large_enum(tool: ListedTool, value: Sequence[int]) -> Found:
    above, most = value
    for pointer, schema in tool.schemas:
        values = _values(schema)
        count = sum(map(_length, values))
        if len(values) > above and count > most:
            what = f"has an `enum` with {len(values):,} values and {count:,} characters, more than {most:,}"
            yield (*_INPUT, *pointer, "enum"), what, "accept a string instead"


def _draft_07(tool: ListedTool) -> Found:
    from jsonschema import Draft7Validator

    error = next(Draft7Validator(Draft7Validator.META_SCHEMA).iter_errors(tool.schema), None)
    if error is not None:
        what = f"is not a valid draft-07 schema: {error.message[:200]}"
        yield (*_INPUT, *error.absolute_path), what, "write a schema that is valid in both drafts"


def _is(schema: Mapping[str, Any], kind: str) -> bool:
    types = schema.get("type")
    return types == kind or (isinstance(types, list) and kind in types)


def _is_object(schema: Mapping[str, Any]) -> bool:
    return _is(schema, "object") or ("properties" in schema and "type" not in schema)


def _tools(tools: Sequence[ListedTool], most: int) -> Iterator[tuple[str, str]]:
    if len(tools) > most:
        yield f"the list has {len(tools):,} tools, more than {most:,}", "offer subsets with `toolsets`"


def _optional_properties(tools: Sequence[ListedTool], most: int) -> Iterator[tuple[str, str]]:
    count = sum(len(_optional(schema)) for tool in tools for _, schema in tool.schemas)
    if count > most:
        yield f"the tools have {count:,} optional properties in total, more than {most:,}", "offer fewer tools"


def _unions(tools: Sequence[ListedTool], most: int) -> Iterator[tuple[str, str]]:
    count = sum(
        "anyOf" in schema or isinstance(schema.get("type"), list) for tool in tools for _, schema in tool.schemas
    )
    if count > most:
        what = f"the tools have {count:,} unions (`anyOf`, lists of types) in total, more than {most:,}"
        yield what, "offer fewer tools"


OF_TOOLS: Final[Mapping[str, Callable[[ListedTool, Any], Found]]] = {
    "name": _name,
    "long name": _find_long_name,
    "description": _description,
    "titled": _find_missing_title,
    "any hint": _any_hint,
    "hints": _hints,
    "reads or destroys": lambda tool, _: _find_missing_hints(tool),
    "property": _property,
    "root property": _root_property,
    "plain root": _find_root_keywords,
    "without": _find_forbidden_keywords,
    "ignores": _ignores,
    "ignores at root": _ignores_at_root,
    "string enums": lambda tool, _: _string_enums(tool),
    "items": lambda tool, _: _items(tool),
    "filled": lambda tool, _: _find_empty_objects(tool),
    "declared": lambda tool, _: _find_undeclared(tool),
    "never empty": lambda tool, _: _find_empty_schemas(tool),
    "one type": lambda tool, _: _find_type_lists(tool),
    "typed arguments": _find_untyped_arguments,
    "flat": lambda tool, _: _flat(tool),
    "closed": lambda tool, _: _find_open_objects(tool),
    "all required": lambda tool, _: _all_required(tool),
    "typed": lambda tool, _: _find_untyped(tool),
    "least items": _find_min_items,
    "formats": _formats,
    "no recursion": lambda tool, _: _find_recursion(tool),
    "levels": _levels,
    "properties": _count_properties,
    "characters": _characters,
    "enum values": _enum_values,
    "large enum": _find_large_enum,
    "draft-07": lambda tool, _: _draft_07(tool),
}
"""Rule kinds for single tools."""

OF_LISTS: Final[Mapping[str, Callable[[Sequence[ListedTool], Any], Iterator[tuple[str, str]]]]] = {
    "tools": _tools,
    "optional properties": _optional_properties,
    "unions": _unions,
}
"""Rule kinds for a whole tool list."""
