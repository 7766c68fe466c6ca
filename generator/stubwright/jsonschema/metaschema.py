"""Checks JSON Schemas against their dialects' meta-schemas, and for likely mistakes."""

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
"""The JSON Schema types (2020-12 Validation, section 6.1.1)."""

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
"""Keywords for other tools, such as OpenAPI and editors, that look like misspelt JSON Schema keywords."""

_NOTES = frozenset(
    {"$comment", "$defs", "$vocabulary", "definitions", "dependencies", "deprecated", "examples", "readOnly"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "writeOnly"}
)
"""Keywords that are harmless in other dialects: annotations, and keywords that validators still support."""

_WHOLE = "an integer of at least 0"
_SCHEMA = "a schema"
_NAMED = "a mapping of names to schemas"
_VALUES: Final = {
    "type": "a type, or a list of different types",
    "enum": "a list of values",
    "required": "a list of different property names",
    "multipleOf": "a number greater than 0",
    "maximum": "a number",
    "minimum": "a number",
    "exclusiveMaximum": "a number",
    "exclusiveMinimum": "a number",
    "pattern": "a regular expression in a string",
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
    "$ref": "a reference in a string",
    "$dynamicRef": "a reference in a string",
    "$anchor": "a name that starts with a letter or `_`",
    "$dynamicAnchor": "a name that starts with a letter or `_`",
    "$id": "a URI without a fragment",
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _WHOLE),
    **dict.fromkeys(("maxContains", "minContains"), _WHOLE),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), _NAMED),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "a list of at least one schema"),
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
"""Examples for `help:`."""


def check(role: locations.Role, place: Place, schema: Json, *, imported: bool = False) -> Iterator[Diagnostic]:
    """Yield the schema's faults, in any order. A value that is not an object has no faults.

    Args:
        place: The schema's location in the source.
        schema: The schema to check.
        imported: Whether another program wrote the schema, which can have its own keywords (2020-12 Core, 4.3.1).
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
        yield from _check_root_type(schema, place)
    inner = dict(dialects.iterate_subschemas(schema, dialect))
    keywords = dialect.keywords
    # Parts are checked one by one only if the fast validator rejects the whole schema.
    if not is_valid(schema, dialect):
        for pointer, below in inner.items():
            if isinstance(below, dict) and dialects.is_schema(schema, pointer, dialect):
                yield from _explain_schema(below, pointer, place, dialect, inner)
    for pointer, below in inner.items():
        if isinstance(below, dict) and not below.keys() <= keywords:
            yield from _check_keywords(below, Place(place.file, place.pointer + pointer), dialect, imported=imported)


def is_valid(schema: Json, dialect: Dialect) -> bool:
    """Return whether a schema is valid in a dialect."""
    return _compile_metaschema(dialect).is_valid(schema)


@cache
def _compile_metaschema(dialect: Dialect) -> Validator:
    from jsonschema_rs import validator_for

    return validator_for({"$schema": dialect.uri, "$ref": dialect.uri}, validate_formats=False)


@cache
def _make_explainer(dialect: Dialect) -> Explainer | None:
    """Return a meta-schema validator that explains faults but is slower, or None if `jsonschema` is not installed."""
    try:
        from jsonschema.validators import validator_for
    except ModuleNotFoundError:
        return None

    validator = validator_for({"$schema": dialect.uri})
    return validator(validator.META_SCHEMA)


def _means_object(kind: Json) -> bool:
    return isinstance(kind, str) and find_misspelt(kind, ["object"]) is not None


def _check_root_type(schema: dict[str, Json], place: Place) -> Iterator[Diagnostic]:
    """Check that an `inputSchema` has `type: object` at its root (MCP 2025-11-25, `Tool`)."""
    kind = schema.get("type")
    if "type" not in schema:
        meant = next((key for key in schema if _means_object(schema[key]) and find_nearest(key, ["type"])), None)
        where = " next to the `$ref`, which clients do not follow" if "$ref" in schema else ""
        add = Advice(f"add `type: object`{where}", Insert("type", "object"))
        at, advice = (place, add) if meant is None else (place / meant, suggest(meant, "type"))
        yield Diagnostic("SW201", "an `inputSchema` must have `type: object`", at.point_at_key(), advice)
    elif (kind in TYPES and kind != "object") or (
        isinstance(kind, list) and kind and all(name in TYPES for name in kind)
    ):
        shown = f"`{kind}`" if isinstance(kind, str) else "a list of types"
        fix = "arguments are always an object: write `type: object`, and make other values its properties"
        yield Diagnostic("SW201", f"an `inputSchema` must have `type: object`, not {shown}", place / "type", fix)


def _explain_schema(
    schema: dict[str, Json], above: Pointer, place: Place, dialect: Dialect, inner: dict[Pointer, Json]
) -> Iterator[Diagnostic]:
    """Yield the diagnostics for the schema at `above` without its subschemas, so that none is checked twice."""
    alone = _blank_subschemas(schema, dialect)
    if is_valid(alone, dialect):
        return
    explainer = _make_explainer(dialect)
    errors = [] if explainer is None else [*explainer.iter_errors(alone)]
    for error in errors:
        yield from _explain_error(error, above, place, dialect, inner)
    if not errors:  # such as an anchor with a trailing line break, which Python's `$` ignores
        for keyword in (each for each in alone if not is_valid({each: alone[each]}, dialect)):
            at = Place(place.file, (*place.pointer, *above, keyword))
            yield from _check_value(keyword, alone[keyword], at, (*above, keyword), dialect)


def _blank_subschemas(schema: dict[str, Json], dialect: Dialect) -> dict[str, Json]:
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


def _explain_error(
    error: ValidationError, above: Pointer, place: Place, dialect: Dialect, inner: dict[Pointer, Json]
) -> Iterator[Diagnostic]:
    path = tuple(error.absolute_path)
    value: Json = error.instance
    pointer = (*above, *path)
    at = Place(place.file, place.pointer + pointer)
    if error.validator == "dependencies":  # draft-04: an exclusive bound requires its bound
        rules: Any = error.validator_value
        for keyword, bounds in rules.items():
            if isinstance(value, dict) and keyword in value:
                yield from _check_exclusive_bound(bounds[0], value, at)
        return
    if pointer in inner and not isinstance(value, dict):
        expected = "a mapping" if dialect is DRAFT_4 else "a mapping, `true` or `false`"
        yield Diagnostic(
            "SW204",
            f"a schema must be {expected}, not {describe_found(value)}",
            at,
            _advise_on_schema(pointer, value, dialect),
        )
        return
    keyword = str(path[0])
    nested = _find_nested_errors(error)
    if keyword == "type":
        yield from _check_types(value, at)
    elif nested:
        for below in nested:
            yield from _explain_error(below, above, place, dialect, inner)
    else:
        yield from _check_value(keyword, value, at, pointer, dialect)


def _find_nested_errors(error: ValidationError) -> list[ValidationError]:
    """Return the nested errors of the alternative that has the instance's type."""
    if error.validator != "anyOf":
        return []
    depth = len(error.absolute_path)
    alternatives = (list(below) for _, below in groupby(error.context or (), key=lambda inner: inner.schema_path[0]))
    return next((below for below in alternatives if all(len(each.absolute_path) > depth for each in below)), [])


def _check_types(value: Json, at: Place) -> Iterator[Diagnostic]:
    if isinstance(value, list) and value:
        for index, name in enumerate(value):
            if name in value[:index]:
                yield Diagnostic("SW204", f"`type` lists {describe_found(name)} twice", at / index, "remove one")
            elif name not in TYPES:
                yield _report_type(name, at / index)
    else:
        yield _report_type(value, at)


def _report_type(value: Json, at: Place) -> Diagnostic:
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


def _check_value(keyword: str, value: Json, at: Place, pointer: Pointer, dialect: Dialect) -> Iterator[Diagnostic]:
    expected = _VALUES.get(keyword, "of another type")
    if keyword in ("exclusiveMaximum", "exclusiveMinimum") and dialect is DRAFT_4:
        expected = "`true` or `false`"
    if isinstance(value, list) and keyword in ("required", "enum"):
        twice = next((index for index, item in enumerate(value) if item in value[:index]), None)
        if twice is not None:
            yield Diagnostic(
                "SW204", f"`{keyword}` lists {describe_found(value[twice])} twice", at / twice, "remove one"
            )
            return
    found = f"not {describe_found(value)}" if pointer[-1] == keyword else f"but contains {describe_found(value)}"
    yield Diagnostic(
        "SW204", f"`{keyword}` must be {expected}, {found}", at, _advise(keyword, value, pointer[-1], dialect)
    )


def _check_exclusive_bound(bound: str, schema: dict[str, Json], at: Place) -> Iterator[Diagnostic]:
    """Report an exclusive draft-04 bound without the bound itself. Other checks report invalid values."""
    keyword = f"exclusive{bound.capitalize()}"
    if isinstance(schema[keyword], bool):
        message = f"`{bound}` is missing next to its exclusive bound"
        yield Diagnostic("SW204", message, (at / keyword).point_at_key(), f"add `{bound}: …`, or remove `{keyword}`")


def _advise(keyword: str, value: Json, step: str | int, dialect: Dialect) -> str:
    """Return advice on the invalid value. `step` is the keyword itself, or a name or index in the keyword's value."""
    if keyword == "required" and isinstance(value, bool):
        return "list the names of required properties next to `properties`, such as `required: [name]`"
    if keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        bound = keyword.removeprefix("exclusive").lower()
        if isinstance(value, bool):
            return f"since draft-06, it is the bound itself: write `{keyword}: …` in place of `{bound}`"
        if dialect is DRAFT_4:
            number = format_scalar(value) if isinstance(value, (int, float)) else "…"
            return f"in draft-04 it is `true` next to `{bound}`: write `{bound}: {number}` and `{keyword}: true`"
    if keyword == "items" and isinstance(value, list) and dialect is dialects.DRAFT_2020_12:
        return "since 2020-12, `prefixItems` contains the schemas by position"
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
        return 'quote the reference, since `#` after a space starts a comment: `$ref: "#/schemas/Name"`'
    return f"such as `{keyword}: {_EXAMPLES[keyword]}`" if keyword in _EXAMPLES else f"remove `{keyword}`"


def _advise_on_schema(pointer: Pointer, value: Json, dialect: Dialect) -> str:
    if pointer[-1:] == ("items",) and isinstance(value, list):
        return "since 2020-12, `prefixItems` contains the schemas by position"
    if isinstance(value, str) and (value in TYPES or value.casefold() in _OTHER_TYPES):
        return f"write `{{type: {_OTHER_TYPES.get(value.casefold(), value)}}}`"
    if isinstance(value, bool):
        return f"write `{'{}' if value else '{not: {}}'}`: {dialect.name} has no boolean schemas"
    if is_quoted(value, ("boolean",)):
        return REMOVE_QUOTES
    return "write a schema such as `{type: string}`, or `{}` for any value"


def _check_keywords(schema: dict[str, Json], at: Place, dialect: Dialect, *, imported: bool) -> Iterator[Diagnostic]:
    """Report keys that look like keywords but have no effect."""
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
                yield _report_ineffective(key, at / key, dialect)
            continue
        near = find_misspelt(key, sorted(dialect.keywords))
        help_: str | None = None if near is None else suggest(key, near)
        if schema[key] is None and " " in key:  # YAML parses `{description: First, and then more}` as two keys
            help_ = "a comma in braces ends a string: quote the string"
        if help_ is not None:
            code = "SW303" if imported else "SW205"
            help_ = str(help_) if imported else help_  # not corrected automatically, since it may be intentional
            yield Diagnostic(
                code, f"`{shorten(key, 80)}` is not a JSON Schema keyword", (at / key).point_at_key(), help_
            )


def _report_ineffective(keyword: str, at: Place, dialect: Dialect) -> Diagnostic:
    newest = next(each for each in DIALECTS if keyword in each.keywords)
    fix = f"it is a keyword of {newest.name}: declare `$schema: {newest.uri}`, or write it as {dialect.name} does"
    return Diagnostic("SW302", f"`{keyword}` has no effect in {dialect.name}", at.point_at_key(), fix)
