"""Checks JSON Schemas against the meta-schemas of their dialects, and for likely mistakes.

It neither resolves references nor validates instances.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from stubwright.diagnostics import Diagnostic, Place, Pointer
from stubwright.diagnostics.suggestions import (
    ADD_QUOTES,
    REMOVE_QUOTES,
    Advice,
    Insert,
    describe_found,
    find_misspelt,
    find_nearest,
    format_scalar,
    is_quoted,
    quote,
    shorten,
    suggest,
)
from stubwright.jsonschema import dialects, locations
from stubwright.jsonschema.dialects import DIALECTS, DRAFT_4, KEYWORDS, Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator as Explainer
    from jsonschema_rs import Validator

    from stubwright.ir import Json

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types of JSON Schema (2020-12 Validation, section 6.1.1)."""

_OTHER_TYPES: Final = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
}

_FOREIGN = frozenset(
    {"discriminator", "enumDescriptions", "enumNames", "errorMessage", "example", "externalDocs", "nullable", "xml"}
    | {"markdownDescription"}
)
"""Keywords of other tools, such as OpenAPI and editors, that resemble misspelt keywords."""

_NOTES = frozenset(
    {"$comment", "$defs", "$vocabulary", "definitions", "dependencies", "deprecated", "examples", "readOnly"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "writeOnly"}
)
"""Keywords that are harmless in a dialect without them: annotations, and keywords that validators still support."""

_WHOLE = "a whole number, 0 or more"
_SCHEMA = "a schema"
_NAMED = "a mapping of names to schemas"
_VALUES: Final = {
    "type": "a type, or a list of different types",
    "enum": "a list of values",
    "required": "a list of different property names",
    "multipleOf": "a number above 0",
    "maximum": "a number",
    "minimum": "a number",
    "exclusiveMaximum": "a number",
    "exclusiveMinimum": "a number",
    "pattern": "a string that holds a regular expression",
    "uniqueItems": "`true` or `false`",
    "format": "a string",
    "title": "a string",
    "description": "a string",
    "examples": "a list",
    "deprecated": "`true` or `false`",
    "readOnly": "`true` or `false`",
    "writeOnly": "`true` or `false`",
    "dependentRequired": "a mapping of property names to lists of property names",
    "dependencies": "a mapping of property names to schemas or lists of property names",
    "$ref": "a string that holds a reference",
    "$dynamicRef": "a string that holds a reference",
    "$anchor": "a name that starts with a letter or `_`",
    "$dynamicAnchor": "a name that starts with a letter or `_`",
    "$id": "a URI without a fragment",
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _WHOLE),
    **dict.fromkeys(("maxContains", "minContains"), _WHOLE),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), _NAMED),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "a list of schemas with at least one in it"),
    **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames", "items", "additionalItems"), _SCHEMA),
    **dict.fromkeys(("additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contentSchema"), _SCHEMA),
}

_LISTS = frozenset({"required", "enum", "examples"})
_TEXTS = frozenset({"pattern", "format", "title", "description", "$comment"})
_EXAMPLES: Final = {
    "type": "string",
    "enum": "[a, b]",
    "required": "[name]",
    "multipleOf": "0.01",
    "pattern": "^[a-z]+$",
    "format": "date-time",
    "title": "A name",
    "description": "Its purpose.",
    "examples": "[a, b]",
    "dependentRequired": "{card: [address]}",
    "dependencies": "{card: [address]}",
    "$ref": '"#/$defs/Name"',
    "$dynamicRef": '"#name"',
    "$anchor": "name",
    "$dynamicAnchor": "name",
    "$id": "https://example.com/name",
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"), "10"),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"), "1"),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), "true"),
    **dict.fromkeys(("properties", "$defs", "definitions", "dependentSchemas"), "{name: {type: string}}"),
    "patternProperties": "{^x-: {type: string}}",
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "[{type: string}]"),
}
"""Example values for `help:` texts."""


def check(role: locations.Role, place: Place, schema: Json, *, imported: bool = False) -> Iterator[Diagnostic]:
    """Yield the faults of a schema, in no particular order; none if the value is not an object.

    Args:
        role: Its purpose.
        place: Its place.
        schema: The schema.
        imported: Whether another program wrote it. It may have its own keywords, even if they resemble keywords of JSON
            Schema (2020-12 Core, section 4.3.1: unknown keywords are annotations).
    """
    if not isinstance(schema, dict):
        return
    dialect = dialects.find_dialect(schema)
    if dialect is None:
        known = quote([each.uri for each in DIALECTS])
        message = "`$schema` must be a string" if not isinstance(schema["$schema"], str) else (
            f"`{shorten(schema['$schema'], 80)}` is not a supported dialect"
        )  # fmt: skip
        yield Diagnostic("SW202", message, place / "$schema", f"write {known}")
        return
    if role == "inputSchema":
        yield from _for_object(schema, place)
    inner = dict(dialects.iterate_subschemas(schema, dialect))
    keywords = dialect.keywords
    # The fast validator checks whole schemas; the parts are only checked one by one if it fails.
    if not is_valid(schema, dialect):
        for pointer, below in inner.items():
            if isinstance(below, dict) and dialects.is_schema(schema, pointer, dialect):
                yield from _violations(below, pointer, place, dialect, inner)
    for pointer, below in inner.items():
        if isinstance(below, dict) and not below.keys() <= keywords:
            yield from _keywords(below, Place(place.file, place.pointer + pointer), dialect, imported=imported)


def is_valid(schema: Json, dialect: Dialect) -> bool:
    """Return whether the meta-schema of a dialect accepts a schema."""
    return _meta(dialect).is_valid(schema)


@cache
def _meta(dialect: Dialect) -> Validator:
    from jsonschema_rs import validator_for

    return validator_for({"$schema": dialect.uri, "$ref": dialect.uri}, validate_formats=False)


@cache
def _explainer(dialect: Dialect) -> Explainer | None:
    """Return a slower validator of a meta-schema that explains faults; `None` in a light installation."""
    try:
        from jsonschema.validators import validator_for
    except ModuleNotFoundError:
        return None

    validator = validator_for({"$schema": dialect.uri})
    return validator(validator.META_SCHEMA)


def _means_object(kind: Json) -> bool:
    return isinstance(kind, str) and find_misspelt(kind, ["object"]) is not None


def _for_object(schema: dict[str, Json], place: Place) -> Iterator[Diagnostic]:
    """Check that the root of an `inputSchema` has `type: object` (MCP 2025-11-25, `Tool`)."""
    kind = schema.get("type")
    if "type" not in schema:
        meant = next((key for key in schema if _means_object(schema[key]) and find_nearest(key, ["type"])), None)
        where = " next to the `$ref`, which clients do not follow" if "$ref" in schema else ""
        add = Advice(f"add `type: object`{where}", Insert("type", "object"))
        at, advice = (place, add) if meant is None else (place / meant, suggest(meant, "type"))
        yield Diagnostic("SW201", "an `inputSchema` must say `type: object`", at.point_at_key(), advice)
    elif (kind in TYPES and kind != "object") or (
        isinstance(kind, list) and kind and all(name in TYPES for name in kind)
    ):
        shown = f"`{kind}`" if isinstance(kind, str) else "a list of types"
        fix = "arguments are always an object: write `type: object`, and make other values its properties"
        yield Diagnostic("SW201", f"an `inputSchema` must say `type: object`, not {shown}", place / "type", fix)


def _violations(
    schema: dict[str, Json], above: Pointer, place: Place, dialect: Dialect, inner: dict[Pointer, Json]
) -> Iterator[Diagnostic]:
    """Yield the diagnostics for a schema at `above`, without nested ones, so that nesting has no extra cost."""
    alone = _without_inner(schema, dialect)
    if is_valid(alone, dialect):
        return
    explainer = _explainer(dialect)
    errors = [] if explainer is None else [*explainer.iter_errors(alone)]
    for error in errors:
        yield from _explained(error, above, place, dialect, inner)
    if not errors:  # such as an anchor with a trailing line break, which `$` ignores in Python's patterns
        for keyword in (each for each in alone if not is_valid({each: alone[each]}, dialect)):
            at = Place(place.file, (*place.pointer, *above, keyword))
            yield from _value(keyword, alone[keyword], at, (*above, keyword), dialect)


def _without_inner(schema: dict[str, Json], dialect: Dialect) -> dict[str, Json]:
    """Return a schema with `{}` in place of each of its subschemas that is a mapping."""
    alone = dict(schema)
    for keyword in dialect.holders & schema.keys():
        value = schema[keyword]
        if isinstance(value, list):
            alone[keyword] = [_blank(each) for each in value]
        elif isinstance(value, dict) and keyword in dialect.named:
            alone[keyword] = {name: _blank(each) for name, each in value.items()}
        else:
            alone[keyword] = _blank(value)
    return alone


def _blank(value: Json) -> Json:
    return {} if isinstance(value, dict) else value


def _explained(
    error: ValidationError, above: Pointer, place: Place, dialect: Dialect, inner: dict[Pointer, Json]
) -> Iterator[Diagnostic]:
    """Yield the diagnostics for one error of a meta-schema's validator in the schema at `above`."""
    path = tuple(error.absolute_path)
    value: Json = error.instance
    pointer = (*above, *path)
    at = Place(place.file, place.pointer + pointer)
    if error.validator == "dependencies":  # draft-04: an exclusive bound requires its bound
        rules: Any = error.validator_value
        for keyword, bounds in rules.items():
            if isinstance(value, dict) and keyword in value:
                yield from _without_bound(bounds[0], value, at)
        return
    if pointer in inner and not isinstance(value, dict):
        what = "a mapping" if dialect is DRAFT_4 else "a mapping, `true` or `false`"
        yield Diagnostic(
            "SW204", f"a schema must be {what}, not {describe_found(value)}", at, _schema_help(pointer, value, dialect)
        )
        return
    keyword = str(path[0])
    deeper = _deeper(error)
    if keyword == "type":
        yield from _types(value, at)
    elif deeper:
        for below in deeper:
            yield from _explained(below, above, place, dialect, inner)
    else:
        yield from _value(keyword, value, at, pointer, dialect)


def _deeper(error: ValidationError) -> list[ValidationError]:
    """Return the faults in the alternative whose type matches, without its nested faults."""
    if error.validator != "anyOf":
        return []
    depth = len(error.absolute_path)
    alternatives = (list(below) for _, below in groupby(error.context or (), key=lambda inner: inner.schema_path[0]))
    return next((below for below in alternatives if all(len(each.absolute_path) > depth for each in below)), [])


def _types(value: Json, at: Place) -> Iterator[Diagnostic]:
    """Yield the faults in the value of `type`."""
    if isinstance(value, list) and value:
        for index, name in enumerate(value):
            if name in value[:index]:
                yield Diagnostic("SW204", f"`type` lists {describe_found(name)} twice", at / index, "remove one")
            elif name not in TYPES:
                yield _no_type(name, at / index)
    else:
        yield _no_type(value, at)


def _no_type(value: Json, at: Place) -> Diagnostic:
    if value is None:
        return Diagnostic(
            "SW203", "`null` is not a JSON Schema type without quotes", at, 'write `"null"` for the type of null'
        )
    if not isinstance(value, str):
        return Diagnostic(
            "SW204", f"`type` must be {_VALUES['type']}, not {describe_found(value)}", at, f"types are {quote(TYPES)}"
        )
    near = _OTHER_TYPES.get(value.casefold()) or find_nearest(value, TYPES)
    fix = suggest(value, near) if near else f"types are {quote(TYPES)}"
    if value.casefold() == "any":
        fix = "remove `type` to allow any value"
    elif value in ("date", "date-time", "time", "uuid", "email", "uri"):
        fix = f"write `type: string` and `format: {value}`"
    return Diagnostic("SW203", f"`{shorten(value)}` is not a JSON Schema type", at, fix)


def _value(keyword: str, value: Json, at: Place, pointer: Pointer, dialect: Dialect) -> Iterator[Diagnostic]:
    """Yield the fault in the value of a keyword other than `type`."""
    expected = _VALUES.get(keyword, "of another kind")
    if keyword in ("exclusiveMaximum", "exclusiveMinimum") and dialect is DRAFT_4:
        expected = "`true` or `false`"
    if isinstance(value, list) and keyword in ("required", "enum"):
        twice = next((index for index, item in enumerate(value) if item in value[:index]), None)
        if twice is not None:
            yield Diagnostic(
                "SW204", f"`{keyword}` lists {describe_found(value[twice])} twice", at / twice, "remove one"
            )
            return
    what = f"not {describe_found(value)}" if pointer[-1] == keyword else f"but holds {describe_found(value)}"
    yield Diagnostic(
        "SW204", f"`{keyword}` must be {expected}, {what}", at, _help(keyword, value, pointer[-1], dialect)
    )


def _without_bound(bound: str, schema: dict[str, Json], at: Place) -> Iterator[Diagnostic]:
    """Report an `exclusive` draft-04 bound without its bound; a value that is not a boolean is reported elsewhere."""
    keyword = f"exclusive{bound.capitalize()}"
    if isinstance(schema[keyword], bool):
        message = f"`{bound}` is missing next to its exclusive bound"
        yield Diagnostic("SW204", message, (at / keyword).point_at_key(), f"add `{bound}: …`, or remove `{keyword}`")


def _help(keyword: str, value: Json, step: str | int, dialect: Dialect) -> str:
    """Suggest how to write `value` at `step`: at the keyword itself, or at a name or index in its value."""
    if keyword == "required" and isinstance(value, bool):
        return "list the names of required properties next to `properties`, such as `required: [name]`"
    if keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        bound = keyword.removeprefix("exclusive").lower()
        if isinstance(value, bool):
            return f"since draft-06 it is the bound itself: write `{keyword}: …` in place of `{bound}`"
        if dialect is DRAFT_4:
            number = format_scalar(value) if isinstance(value, (int, float)) else "…"
            return f"in draft-04 it is `true` next to `{bound}`: write `{bound}: {number}` and `{keyword}: true`"
    if keyword == "items" and isinstance(value, list) and dialect is dialects.DRAFT_2020_12:
        return "a list of schemas by position is `prefixItems` since 2020-12"
    if value == [] and keyword in ("required", "enum"):
        return f"{dialect.name} requires at least one entry"
    if value == []:
        return f"remove `{keyword}`, or add an entry"
    if is_quoted(value, ("boolean",) if "true" in _VALUES.get(keyword, "") else ("number",)):
        return REMOVE_QUOTES
    if not isinstance(value, (dict, list)) and value is not None:
        if keyword in _LISTS and step == keyword:
            return f"put it in brackets: `[{format_scalar(value)}]`"
        if not isinstance(value, str) and (keyword in _TEXTS or isinstance(step, int)):
            return ADD_QUOTES
    if keyword == "$ref" and value is None:
        return 'quote the reference, since `#` after a blank begins a comment: `$ref: "#/schemas/Name"`'
    return f"such as `{keyword}: {_EXAMPLES[keyword]}`" if keyword in _EXAMPLES else f"remove `{keyword}`"


def _schema_help(pointer: Pointer, value: Json, dialect: Dialect) -> str:
    if pointer[-1:] == ("items",) and isinstance(value, list):
        return "a list of schemas by position is `prefixItems` since 2020-12"
    if isinstance(value, str) and (value in TYPES or value.casefold() in _OTHER_TYPES):
        return f"write `{{type: {_OTHER_TYPES.get(value.casefold(), value)}}}`"
    if isinstance(value, bool):
        return f"write `{'{}' if value else '{not: {}}'}`: {dialect.name} has no boolean schemas"
    if is_quoted(value, ("boolean",)):
        return REMOVE_QUOTES
    return "write a schema such as `{type: string}`, or `{}` for any value"


def _keywords(schema: dict[str, Json], at: Place, dialect: Dialect, *, imported: bool) -> Iterator[Diagnostic]:
    """Report unknown keys that look like keywords with an effect."""
    if schema.get("nullable") is True:
        fix = 'write the type as a list with "null", such as `type: [string, "null"]`'
        if isinstance(kind := schema.get("type"), str):
            fix = f'write `type: [{kind}, "null"]`'
        elif "$ref" in schema:
            fix = 'write `anyOf: [{$ref: …}, {type: "null"}]`'
        yield Diagnostic("SW302", f"`nullable` has no effect in {dialect.name}", (at / "nullable").point_at_key(), fix)
    for key in schema:
        if key in dialect.keywords or key in _FOREIGN or key.startswith("x-"):
            continue
        if key in KEYWORDS:
            if key not in _NOTES and not (key == "id" and not isinstance(schema[key], str)):
                yield _without_effect(key, at / key, dialect)
            continue
        near = find_misspelt(key, sorted(dialect.keywords))
        help_: str | None = None if near is None else suggest(key, near)
        if schema[key] is None and " " in key:  # YAML parses `{description: First, and then more}` like this
            help_ = "a comma in braces ends a string: quote the string before it"
        if help_ is not None:
            code = "SW303" if imported else "SW205"
            help_ = str(help_) if imported else help_  # an imported schema may mean what it says
            yield Diagnostic(
                code, f"`{shorten(key, 80)}` is not a keyword of JSON Schema", (at / key).point_at_key(), help_
            )


def _without_effect(keyword: str, at: Place, dialect: Dialect) -> Diagnostic:
    newest = next(each for each in DIALECTS if keyword in each.keywords)
    fix = f"it is a keyword of {newest.name}: declare `$schema: {newest.uri}`, or write it as {dialect.name} does"
    return Diagnostic("SW302", f"`{keyword}` has no effect in {dialect.name}", at.point_at_key(), fix)
