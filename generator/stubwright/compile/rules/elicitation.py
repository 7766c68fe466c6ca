"""Rules about questions: the schemas that forms support (MCP 2025-11-25, Elicitation, "Requested Schema")."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Final

from stubwright import naming
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import find_nearest, format_scalar, quote, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.ir import Json

_NOTES: Final = frozenset({"type", "title", "description", "default"})
_CHOICES: Final = frozenset({"enum", "enumNames", "oneOf"})
_TYPES: Final = naming.ANNOTATION_NAMES | {"Accepted", "Cancelled", "Declined"}
_FORMATS: Final = ("email", "uri", "date", "date-time")
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "string": _NOTES | _CHOICES | {"minLength", "maxLength", "pattern", "format"},
    "integer": _NOTES | {"minimum", "maximum"},
    "number": _NOTES | {"minimum", "maximum"},
    "boolean": _NOTES,
    "array": _NOTES | {"items", "minItems", "maxItems"},
}
_ROOT: Final = frozenset({"$schema", "type", "title", "description", "properties", "required"})


def check_flat(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that forms only have flat fields: strings, numbers, booleans and choices."""
    for place, outline in resolved.extension_schemas.items():
        schema = outline.schema
        if place.pointer[-3:-2] != ("ask",):
            continue
        if not isinstance(schema, dict) or schema.get("type") != "object":
            at = place / "type" if isinstance(schema, dict) and "type" in schema else place
            yield _report("the answer to a question must be an object", at, "write `type: object`, with `properties`")
        if not isinstance(schema, dict):
            continue
        for key in schema.keys() - _ROOT:
            if not key.startswith("x-"):
                fix = f"the root of a form can only have {quote(sorted(_ROOT - {'$schema'}))}"
                yield _report(f"a question's schema cannot have `{key}`", (place / key).point_at_key(), fix)
        properties = schema.get("properties") or {}
        for index, name in enumerate(schema.get("required") or ()):
            if name not in properties:
                fix = _advise_on_name(name, list(properties))
                yield _report(f"`{name}` is required, but is not a field of the form", place / "required" / index, fix)
        for name, field in properties.items():
            yield from _check_field(field, place / "properties" / name)


def check_names(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check the Python names of question methods and answer classes."""
    for declared in resolved.declared:
        classes: dict[str, str] = {}
        for name in declared.extension.get("ask") or {}:
            place = declared.place_of("ask", name).point_at_key()
            if name.startswith("_") or keyword.iskeyword(name) or name in _TYPES:
                fix = f"use `{naming.name_question(name)}`"
                yield Diagnostic("SW213", f"`{name}` cannot be the method name of a question", place, fix)
            other = classes.setdefault(naming.answer(declared.names, name), name)
            if other != name:
                yield Diagnostic(
                    "SW211",
                    f"the questions `{other}` and `{name}` have the same name in Python",
                    place,
                    "rename one",
                )


def _check_field(field: Json, place: Place) -> Iterator[Diagnostic]:
    if isinstance(field, dict) and "type" not in field:
        yield _report("a form field needs a `type`", place, f"write one: {quote(_KEYWORDS)}")
        return
    kind = field.get("type") if isinstance(field, dict) else None
    if not isinstance(kind, str) or kind not in _KEYWORDS:
        at = place / "type" if isinstance(field, dict) and "type" in field else place
        fix = f"write one `type`: {quote(_KEYWORDS)}; ask for the parts of an object one by one"
        yield _report("a form can only have flat fields", at, fix)
        return
    for key in field.keys() - _KEYWORDS[kind]:
        if not key.startswith("x-"):
            known = sorted(_KEYWORDS[kind] - _NOTES)
            near = find_nearest(key, known)
            others = f"in addition to its title it can have {quote(known)}" if known else "remove it"
            fix = suggest(key, near) if near else others
            yield _report(f"a form field of type `{kind}` cannot have `{key}`", (place / key).point_at_key(), fix)
    if kind == "string" and field.get("format", "email") not in _FORMATS:
        fix = f"the formats of a form are {quote(_FORMATS)}"
        yield _report(f"clients do not support the format `{field['format']}`", place / "format", fix)
    if kind == "string":
        yield from _check_single_choice(field, place)
    if kind == "array":
        yield from _check_multiple_choice(field.get("items"), place / "items")


def _check_single_choice(field: Mapping[str, Json], place: Place) -> Iterator[Diagnostic]:
    if "oneOf" in field:
        yield from _check_options(field["oneOf"], place / "oneOf")
        if "enum" in field:
            yield _report(
                "the choices are listed twice", (place / "enum").point_at_key(), "keep `oneOf`, which has titles"
            )
    texts = field.get("enum")
    if isinstance(texts, list):
        yield from _check_values(texts, place / "enum")
        names = field.get("enumNames", texts)
        if not isinstance(names, list) or len(names) != len(texts):
            fix = "write one name for each choice, in the same order"
            yield _report("`enumNames` and `enum` have different lengths", (place / "enumNames").point_at_key(), fix)
    elif "enumNames" in field:
        yield _report(
            "`enumNames` has no choices to name", (place / "enumNames").point_at_key(), "list the choices in `enum`"
        )


def _check_values(texts: list[Json], place: Place) -> Iterator[Diagnostic]:
    if not texts:
        yield _report("the choice has no values", place, "list the choices")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            yield _report("a choice must be a string", place / index, f'write `"{format_scalar(text)}"`, in quotes')


def _advise_on_name(name: str, known: list[str]) -> str:
    near = find_nearest(name, known)
    return suggest(name, near) if near else "add it to `properties`, or remove it from `required`"


def _check_multiple_choice(items: Json, place: Place) -> Iterator[Diagnostic]:
    if isinstance(items, dict) and items.get("type") == "string" and isinstance(items.get("enum"), list):
        yield from _check_values(items["enum"], place / "enum")
        return
    if isinstance(items, dict) and isinstance(items.get("anyOf"), list):
        yield from _check_options(items["anyOf"], place / "anyOf")
        return
    fix = "write `items: {type: string, enum: [a, b]}`, or with titles `items: {anyOf: [{const: a, title: A}]}`"
    yield _report("a list in a form must be a multiple choice", place, fix)


def _check_options(options: Json, place: Place) -> Iterator[Diagnostic]:
    for index, option in enumerate(options if isinstance(options, list) else ()):
        is_titled = isinstance(option, dict) and isinstance(option.get("const"), str) and "title" in option
        if not is_titled:
            yield _report("each choice needs a value and a title", place / index, "write `{const: red, title: Red}`")


def _report(message: str, at: Place, fix: str) -> Diagnostic:
    return Diagnostic("SW254", message, at, fix)
