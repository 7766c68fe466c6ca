"""Validates manifests against `manifest.schema.json` and suggests a fix for each error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from stubwright import package_data
from stubwright.compile.syntax import shorthand
from stubwright.diagnostics import Diagnostic, Place, Pointer
from stubwright.diagnostics.suggestions import (
    ADD_QUOTES,
    KINDS,
    REMOVE_QUOTES,
    describe_found,
    find_misspelt,
    find_nearest,
    format_scalar,
    is_quoted,
    quote,
    suggest,
)
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.values.locations import locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema_rs import Draft202012Validator, ValidationError

    from stubwright.ir import Json

Role: TypeAlias = Literal["entry", "fragment", "tools-list"]
"""A document's role: the manifest, an included or referenced file, or a saved `tools/list` result."""

FRAGMENT_KEYS = frozenset(
    {"stubwright", "include", "shorthand", "schemas", "apis", "defaults", "overlay", "handles", "lint"}
    | {section.name for section in vocabulary.SECTIONS}
)
"""Keys allowed in included files. All others apply to the whole server."""

_VERSION = 1
_RESULT_KEYS = ("nextCursor", "_meta", "resultType", "ttlMs", "cacheScope")
_USE_SHORTHAND = "add `shorthand: true` to the file, as `input` and `output` require"
_YES_AND_NO = {"yes", "no", "on", "off", "y", "n"}


@cache
def load_manifest_schema() -> Mapping[str, Json]:
    """Return the JSON Schema for manifests whose shorthand is expanded."""
    schema: Mapping[str, Json] = json.loads(package_data.MANIFEST_SCHEMA.read_bytes())
    schema["$defs"]["schema"]["type"].remove("string")
    tool = schema["$defs"]["tool"]
    del tool["anyOf"]
    tool["required"].append("inputSchema")
    for short in shorthand.LONG:
        del tool["properties"][short]
    return schema


@cache
def list_manifest_keys() -> frozenset[str]:
    """Return the top-level keys of manifests."""
    return frozenset(load_manifest_schema()["properties"])


def check(value: Json, file: str, role: Role) -> Iterator[Diagnostic]:
    """Yield a document's structural errors, in any order."""
    grammar = _make_grammar(role)
    at = Place(file)
    if role == "entry" and isinstance(value, dict) and list_manifest_keys() & value.keys() == {"tools"}:
        yield Diagnostic(
            "SW100",
            "this is a list of tools, not a manifest",
            at,
            f"add `stubwright: 1` and `server`, or list the file in a manifest: `include: [{file.rpartition('/')[2]}]`",
        )
        return
    for error in grammar.validator.iter_errors(value):
        yield from _explain(error, value, at, grammar)
    for pointer, schema in _find_undefined(value, grammar.schema, grammar):
        yield _report_undefined(Place(file, pointer), schema, grammar)


def check_version(value: Mapping[str, Json], file: str) -> Diagnostic | None:
    """Return a diagnostic if this release does not support the document's format version."""
    if "stubwright" not in value:
        return _report_missing("stubwright", value, Place(file), "")
    version = value["stubwright"]
    if version == _VERSION and version is not True:
        return None
    return _report_version(version, Place(file, ("stubwright",)))


def check_api(settings: Json, place: Place) -> Iterator[Diagnostic]:
    """Yield the structural errors in an API after overlays. `place` is the API's entry in the manifest."""
    grammar = _make_part_grammar("api")
    for error in grammar.validator.iter_errors(settings):
        yield from _explain(error, settings, place, grammar)


@dataclass(frozen=True, slots=True)
class _Grammar:
    schema: Mapping[str, Json]
    validator: Draft202012Validator
    role: Role


@cache
def _make_part_grammar(name: str) -> _Grammar:
    from jsonschema_rs import Draft202012Validator

    definitions = load_manifest_schema()["$defs"]
    schema = {**definitions[name], "$defs": definitions}
    return _Grammar(schema, Draft202012Validator(schema), "entry")


@cache
def _make_grammar(role: Role) -> _Grammar:
    from jsonschema_rs import Draft202012Validator

    schema = dict(load_manifest_schema())
    known = schema["properties"]
    if role == "fragment":
        kept = {key: known[key] for key in known if key in FRAGMENT_KEYS}
        schema |= {"title": "an included file", "properties": kept, "required": []}
    elif role == "tools-list":
        result: dict[str, Json] = {key: {} for key in _RESULT_KEYS}
        schema = {
            "$schema": schema["$schema"],
            "title": "a `tools/list` result",
            "properties": {"tools": known["tools"], **result},
            "$defs": schema["$defs"],
        }
    return _Grammar(schema, Draft202012Validator(schema), role)


def _explain(error: ValidationError, value: Json, root: Place, grammar: _Grammar) -> Iterator[Diagnostic]:
    steps, here = locate(error, value)
    at = Place(root.file, (*root.pointer, *steps))
    schema, title = _find_rule(error.schema_path, grammar.schema)
    detail: Mapping[str, Any] = error.kind.as_dict()
    match error.kind.name:
        case "required":
            yield _report_missing(detail["property"], here, at, _name_mapping(schema, title, at))
        case "additionalProperties":
            for key in detail["unexpected"]:
                yield _report_unknown(key, at / key, schema, title, grammar)
        case "type":
            yield _report_type(here, at, schema, grammar)
        case "enum":
            options = [option for option in schema["enum"] if option is not None]
            yield _report_value(here, at, options, schema.get("default"))
        case "const":
            if at.pointer == ("stubwright",):
                yield _report_version(here, at)
            else:
                yield _report_value(here, at, [schema["const"]])
        case "propertyNames":
            inner, _ = _find_rule(detail["error"].schema_path, grammar.schema)
            name = detail["error"].instance
            message = f"expected {inner['title']} as the key, found `{name}`"
            yield Diagnostic("SW105", message, (at / name).point_at_key(), _make_help(inner))
        case "uniqueItems":
            index = next(index for index, item in enumerate(here) if item in here[:index])
            yield Diagnostic("SW105", f"{describe_found(here[index])} is listed twice", at / index, "remove one")
        case "minLength" | "minItems":
            yield Diagnostic("SW105", "this must not be empty", at, _make_example_help(schema))
        case "minimum" | "maximum":
            yield _report_mismatch("SW105", _describe_bounds(schema), here, at, _make_example_help(schema))
        case "pattern":
            yield _report_mismatch("SW105", schema["title"], here, at, _make_help(schema))
        case name:
            raise AssertionError(f"the manifest schema uses `{name}`, which has no message")


def _find_rule(path: list[str | int], schema: Mapping[str, Json]) -> tuple[Mapping[str, Json], str]:
    """Return the schema that contains the keyword at `path`, and the nearest enclosing title."""
    here: Json = schema
    title = schema["title"]
    for step in path[:-1]:
        here = here[step]
        if isinstance(here, dict) and isinstance(here.get("title"), str):
            title = here["title"]
    return here, title


def _report_missing(key: str, value: Mapping[str, Json], at: Place, title: str) -> Diagnostic:
    if key == "stubwright":
        return Diagnostic("SW100", "a manifest needs `stubwright: 1`", at, "add `stubwright: 1` as its first line")
    stray = next((name for name in value if find_misspelt(name, [key])), None)
    fix = f"rename `{stray}`" if stray else f"add `{key}`"
    if any(long == key and short in value for short, long in shorthand.LONG.items()):
        fix += f", or {_USE_SHORTHAND}"
    return Diagnostic("SW101", f"{title} needs `{key}`", at, fix)


def _report_version(value: Json, at: Place) -> Diagnostic:
    if value == "1":
        return Diagnostic("SW100", "the format version is a number, not a string", at, "write `stubwright: 1`")
    shown_value = "this" if isinstance(value, (dict, list)) else f"`{format_scalar(value)}`"
    fix = "write `stubwright: 1`, or use a newer release of stubwright"
    return Diagnostic("SW100", f"{shown_value} is not a format version that this release supports", at, fix)


def _report_unknown(key: str, at: Place, schema: Mapping[str, Json], title: str, grammar: _Grammar) -> Diagnostic:
    if grammar.role == "fragment" and len(at.pointer) == 1 and key in list_manifest_keys():
        return Diagnostic(
            "SW106",
            f"`{key}` applies to the whole server, and is not allowed in included files",
            at.point_at_key(),
            "move it to the manifest that includes this file",
        )
    known = list(schema["properties"])
    title = _name_mapping(schema, title, Place(at.file, at.pointer[:-1]))
    near = find_nearest(key, known)
    fix = suggest(key, near) if near else f"allowed keys: {', '.join(f'`{name}`' for name in known)}, and any `x-…`"
    return Diagnostic("SW103", f"unknown key `{key}` in {title}", at.point_at_key(), fix)


def _name_mapping(schema: Mapping[str, Json], title: str, at: Place) -> str:
    """Return a mapping's name for messages: the key if other types are valid too, otherwise the schema's title."""
    key = at.pointer[-1] if at.pointer else None
    return f"`{key}`" if isinstance(schema.get("type"), list) and isinstance(key, str) else title


def _report_type(value: Json, at: Place, schema: Mapping[str, Json], grammar: _Grammar) -> Diagnostic:
    types = [schema["type"]] if isinstance(schema["type"], str) else [kind for kind in schema["type"] if kind != "null"]
    kinds = " or ".join(KINDS[kind] for kind in types)
    title = schema.get("title", kinds)
    return _report_mismatch("SW102", title, value, at, _advise_on_type(value, at, types, schema, grammar))


def _advise_on_type(value: Json, at: Place, types: list[str], schema: Mapping[str, Json], grammar: _Grammar) -> str:
    if value is None and at.pointer:
        return "remove the key, or add a value"
    if "boolean" in types and isinstance(value, str) and value.casefold() in _YES_AND_NO:
        return f"write `true` or `false`: in YAML 1.2, `{value}` is a string"
    if is_quoted(value, types):
        return REMOVE_QUOTES
    if "pattern" in schema:
        return _make_help(schema)
    if types == ["string"] and not isinstance(value, (dict, list)):
        return ADD_QUOTES
    if types == ["array"]:
        in_brackets = f"put it in brackets: `[{format_scalar(value)}]`"
        return _advise_on_list(schema, grammar) if isinstance(value, dict) else in_brackets
    if types == ["object"] and isinstance(value, list):
        return "write a mapping: `key: …`, without `-` or brackets"
    return f"write {' or '.join(KINDS[kind] for kind in types)}{_format_example(schema)}"


def _advise_on_list(schema: Mapping[str, Json], grammar: _Grammar) -> str:
    items = _resolve(schema["items"], grammar)
    first = next(iter(items.get("required", ())), None)
    return (
        f"write a list: `- {first}: …`, with a space after `-`" if first else "write a list, with `- ` before each item"
    )


def _report_value(value: Json, at: Place, options: list[Json], default: Json = None) -> Diagnostic:
    near = (
        find_nearest(value, [option for option in options if isinstance(option, str)])
        if isinstance(value, str)
        else None
    )
    if near:
        fix: str = suggest(value, near)
    elif default is not None and not isinstance(default, list):
        fix = f"remove it for the default, `{default}`"
    else:
        fix = "write one of these" if len(options) > 1 else f"write {quote(options)}"
    return _report_mismatch("SW104", quote(options), value, at, fix)


def _report_mismatch(code: str, expected: str, value: Json, at: Place, fix: str | None) -> Diagnostic:
    return Diagnostic(code, f"expected {expected}, found {describe_found(value)}", at, fix)


def _describe_bounds(schema: Mapping[str, Json]) -> str:
    if "maximum" in schema:
        return f"a number from {schema['minimum']} to {schema['maximum']}"
    return f"a whole number, {schema['minimum']} or more"


def _make_help(schema: Mapping[str, Json]) -> str:
    description: str = schema["description"]
    return description[0].lower() + description[1:].rstrip(".")


def _make_example_help(schema: Mapping[str, Json]) -> str | None:
    return _format_example(schema).removeprefix(", ") or None


def _format_example(schema: Mapping[str, Json]) -> str:
    """Return a schema's first example as the end of a sentence, or an empty string if the example is a mapping."""
    first = next(iter(schema.get("examples") or [schema.get("default")]))
    example = json.dumps(first) if isinstance(first, list) else first
    return f", such as `{example}`" if example and not isinstance(example, (bool, dict)) else ""


def _resolve(schema: Mapping[str, Json], grammar: _Grammar) -> Mapping[str, Json]:
    while "$ref" in schema:
        schema = grammar.schema["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def _find_undefined(
    value: Json, schema: Mapping[str, Json], grammar: _Grammar
) -> Iterator[tuple[Pointer, Mapping[str, Json]]]:
    """Yield keys that MCP does not define, in objects that allow any key, with each object's schema."""
    schema = _resolve(schema, grammar)
    if isinstance(value, list):
        items = schema.get("items")
        inside = [(index, item, items) for index, item in enumerate(value)] if isinstance(items, dict) else []
    elif isinstance(value, dict):
        known: Mapping[str, Json] = schema.get("properties", {})
        rest = schema.get("additionalProperties")
        inside = [(key, child, known.get(key, rest)) for key, child in value.items()]
        if known and rest is None:
            yield from (((key,), schema) for key in value if key not in known and not key.startswith("x-"))
    else:
        return
    for key, child, below in inside:
        if isinstance(below, dict) and isinstance(child, (dict, list)):
            for pointer, undefined in _find_undefined(child, below, grammar):
                yield (key, *pointer), undefined


def _report_undefined(at: Place, schema: Mapping[str, Json], grammar: _Grammar) -> Diagnostic:
    key = str(at.pointer[-1])
    near = find_nearest(key, list(schema["properties"]))
    settings = _resolve(schema["properties"].get("stubwright", {}), grammar).get("properties", {})
    if key in settings and grammar.role != "tools-list":
        fix = f"write it under `stubwright`, where it has an effect: `stubwright: {{{key}: …}}`"
    elif (long := shorthand.LONG.get(key)) in schema["properties"]:
        fix = f"write `{long}`, or {_USE_SHORTHAND}"
    else:
        fix = suggest(key, near) if near else _describe_fate(key, Place(at.file, at.pointer[:-1]))
    return Diagnostic("SW300", f"MCP does not define `{key}` in {schema['title']}", at.point_at_key(), fix)


def _describe_fate(key: str, at: Place) -> str:
    if at.pointer[:1] == ("server",):
        return f"it is not sent: remove it, or rename it to `x-{key}` if it is your own note"
    return "it is sent to clients unchanged"
