"""Rules about values in a manifest: patterns, defaults, examples and constants.

They use the generated server's validator and its messages. Only `check_compilable` reports schemas that the validator
rejects.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from stubwright.compile import binds, shape
from stubwright.compile.rules.references import find_loops, is_enclosed
from stubwright.diagnostics import Diagnostic, Place, Pointer
from stubwright.jsonschema import formats
from stubwright.jsonschema.bundling import edit
from stubwright.jsonschema.expressions import LONGEST, find_patterns, is_accepted, is_expression, is_too_large
from stubwright.jsonschema.pointers import format_pointer
from stubwright.jsonschema.references import BrokenReference, Outline, SharedSchema, name_id_keyword

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Formats, Json
    from stubwright_runtime.schema.validation import Validator

_ROOT = "stubwright:schema"
_REQUIRING = frozenset(
    {"required", "minProperties", "enum", "const", "not", "if", "allOf", "anyOf", "oneOf"}
    | {"$ref", "$dynamicRef", "$recursiveRef"}
)
"""Keywords that can reject an empty object."""

_WHOLE_INPUT = frozenset({"required", "minProperties", "dependentRequired", "dependentSchemas", "dependencies"})
"""Keywords that can make arguments depend on each other."""

_SIDES = (("input", "inputSchema", "arguments"), ("output", "outputSchema", "result"))


def check_formats(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Warn once if arguments have a `format` and the manifest has no `formats`."""
    entry = resolved.entry
    if not resolved.serves or "formats" in entry or formats.get_meaning(entry) != "annotate":
        return
    for tool in resolved.tools:
        if "http" in tool.extension:
            continue
        outline = resolved.outlines[tool.place / "inputSchema"]
        for pointer, schema in outline.find_having("format"):
            if (name := schema["format"]) in formats.FORMATS:
                yield Diagnostic(
                    "SW355",
                    f"`{tool.name}` declares `format: {name}`, but accepts any string",
                    outline.locate(pointer) / "format",
                    "write `formats: assert` at the root of the manifest to reject invalid strings, or "
                    "`formats: annotate` to accept them",
                )
                return


def check_patterns(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the validator compiles each `pattern` and each key of `patternProperties`."""
    for outline in resolved.list_outlines():
        for place, text in find_patterns(outline):
            if is_too_large(text):
                yield Diagnostic(
                    "SW227",
                    f"the regular expression `{text}` is too large for the validator",
                    place,
                    "use fewer repetitions, `maxLength` for the length, or `enum` for a list of words",
                )
            elif not is_expression(text):
                yield Diagnostic(
                    "SW227",
                    f"`{text}` is not a valid JSON Schema regular expression",
                    place,
                    "use ECMA-262 syntax, which has `^` and `$`, but not `\\A` or `\\Z`",
                )


def check_compilable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the validator accepts each schema. This finds faults that no other rule does, such as lone surrogates.

    Each shared schema is checked only once, since a schema that references it would fail the same way.
    """
    rejected = {
        outline.place
        for outline in resolved.list_outlines()
        if _has_long_pattern(outline) or not is_accepted(_isolate(outline))
    }
    if not rejected:
        return
    invalid = _find_invalid(resolved)
    for outline in resolved.list_outlines():
        reached = {each.place for each in resolved.find_closure(outline)}
        if invalid.isdisjoint(reached) and not rejected.isdisjoint(reached):
            problem = _compile(resolved.bundle_schema(outline).wire)
            if isinstance(problem, str):
                yield Diagnostic(
                    "SW228",
                    f"the validator rejects this schema: {problem}",
                    outline.place,
                    "rewrite the schema: the server needs it to validate calls",
                )


def check_defaults(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that schemas accept their own `default` (RECOMMENDED by JSON Schema 2020-12 Validation, 9.2)."""
    for place, name, value, checker in _list_values(resolved, "default"):
        for problem, at in checker.find_problems(value, place, "value"):
            yield Diagnostic(
                "SW320",
                f"the default{name} is not valid under its own schema: {problem}",
                at,
                'remove it, or add "null" to the types' if value is None else "change the default or its schema",
            )


def check_schema_examples(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that schemas accept their own `examples` (JSON Schema 2020-12 Validation, 9.5)."""
    for place, name, values, checker in _list_values(resolved, "examples"):
        for index, value in enumerate(values if isinstance(values, list) else ()):
            for problem, at in checker.find_problems(value, place / index, "value"):
                yield Diagnostic(
                    "SW321",
                    f"the example{name} is not valid under its own schema: {problem}",
                    at,
                    "change the example or its schema",
                )


def check_examples(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each example's input and output are valid for its tool."""
    invalid = _find_invalid(resolved)
    for tool in resolved.tools:
        entries = tool.extension.get("examples") or ()
        schemas = dict(resolved.list_schemas(tool)) if entries else {}
        for side, field, root in _SIDES:
            place = tool.place_of("examples")
            values = [(place / index / side, entry[side]) for index, entry in enumerate(entries) if side in entry]
            outline = schemas.get(field)
            if not values:
                continue
            bundled_schema = None if outline is None else resolved.bundle_schema(outline).wire
            schema = shape.shape(field, bundled_schema, tool.extension.get("http") or {})
            if field == "inputSchema" and (bound := _get_bound(tool, schema)):
                schema = binds.hide(schema, bound)
                for at, value in values:
                    for name in bound.keys() & value:
                        message = f"the example sends `{name}`, which the server sets (`bind`)"
                        yield Diagnostic("SW240", message, (at / name).point_at_key(), f"remove `{name}`")
                values = [
                    (at, {name: each for name, each in value.items() if name not in bound}) for at, value in values
                ]
            if schema is None:
                for at, _ in values:
                    yield Diagnostic(
                        "SW241",
                        f"the example has an {side}, but `{tool.name}` has no `{field}`",
                        at.point_at_key(),
                        f"add an `{field}` to the tool, or remove the {side}",
                    )
            elif outline is None or _is_valid(resolved, outline, invalid):
                checker = _Checker.compile(resolved, schema)
                for at, value in values:
                    for problem, narrow in checker.find_problems(value, at, root) if checker else ():
                        yield Diagnostic(
                            "SW240",
                            f"the example's {side} is not valid under the `{field}` of `{tool.name}`: {problem}",
                            narrow,
                            "change the example or the schema",
                        )


def check_bound_values(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that constants in `bind` are valid for their arguments."""
    from stubwright_runtime.policy.claims import read_value

    invalid = _find_invalid(resolved)
    for tool in resolved.tools:
        own: Mapping[str, Json] = tool.extension.get("bind") or {}
        constants = {name: binding["value"] for name, binding in own.items() if "value" in binding}
        outline = resolved.outlines[tool.place / "inputSchema"]
        if not constants or not _is_valid(resolved, outline, invalid):
            continue
        schema = resolved.bundle_schema(outline).wire
        checker = _Checker.compile(resolved, {key: value for key, value in schema.items() if key not in _WHOLE_INPUT})
        properties = schema.get("properties") or {}
        for name, value in constants.items():
            if checker and name in properties:
                at = tool.place_of("bind", name, "value")
                for problem, narrow in checker.find_problems(
                    {name: read_value(value, properties[name])}, at, "arguments"
                ):
                    yield Diagnostic(
                        "SW269",
                        f"`{name}` of `{tool.name}` cannot have this value: {problem}",
                        at if narrow.pointer[-1:] == (name,) else narrow,
                        "change the value or the schema",
                    )


def check_satisfiable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each tool accepts some arguments."""
    from stubwright.jsonschema import instances

    # infinite recursion would only fail after seconds of searching
    invalid = _find_invalid(resolved) | {outline.place for outline, _ in find_loops(resolved)}
    for tool in resolved.tools:
        outline = resolved.outlines[tool.place / "inputSchema"]
        if _REQUIRING.isdisjoint(outline.schema) or not _is_valid(resolved, outline, invalid):
            continue
        schema = resolved.bundle_schema(outline).wire
        settings = formats.get_settings(formats.get_meaning(resolved.entry))
        try:
            # only arguments that a client would send count
            instances.make(schema, tool.name, **settings, likely=True, bare=True)
        except instances.TooLargeError:
            continue
        except instances.UnsatisfiableError:
            checker = _Checker.compile(resolved, schema)
            examples = [example.get("input", {}) for example in tool.extension.get("examples") or ()]
            if checker and all(checker.validator.find_errors(example) for example in examples):
                yield Diagnostic(
                    "SW324",
                    f"found no arguments that `{tool.name}` accepts",
                    outline.place.point_at_key(),
                    "look for contradictory parts, such as several schemas in `allOf` with "
                    "`additionalProperties: false`; or add a valid example",
                )
        except ValueError:
            continue  # reported by `check_compilable`


def _get_bound(tool: Declaration, schema: Json) -> Mapping[str, Json]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    bound: Mapping[str, Json] = tool.extension.get("bind") or {}
    return {name: binding for name, binding in bound.items() if isinstance(properties, dict) and name in properties}


def check_exact_examples(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `exact` examples have an output."""
    for tool in resolved.tools:
        for index, entry in enumerate(tool.extension.get("examples") or ()):
            if entry.get("exact") is True and "output" not in entry:
                yield Diagnostic(
                    "SW242",
                    "the example is `exact`, but has no output to compare with",
                    (tool.place_of("examples") / index / "exact").point_at_key(),
                    "add `output`, or remove `exact`",
                )


@dataclass(frozen=True, slots=True)
class _Checker:
    validator: Validator

    @classmethod
    def compile(cls, resolved: ResolvedBundle, schema: Mapping[str, Json]) -> _Checker | None:
        validator = _compile(schema, formats.get_meaning(resolved.entry))
        # `check_compilable` reports invalid schemas.
        return None if isinstance(validator, str) else cls(validator)

    def find_problems(self, value: Json, place: Place, root: str) -> Iterator[tuple[str, Place]]:
        """Describe all faults in `value` in one message, at the narrowest location that contains every fault."""
        lines = self.validator.find_errors(value, root)
        if not lines:
            return
        common = takewhile(
            lambda steps: len(set(steps)) == 1, zip(*self.validator.find_error_paths(value), strict=False)
        )
        yield (
            "; ".join(line.removeprefix("value: ") for line in lines),
            _descend(place, tuple(step for step, *_ in common)),
        )


def _list_values(resolved: ResolvedBundle, keyword: str) -> Iterator[tuple[Place, str, Json, _Checker]]:
    """Yield each value of `keyword`: the location, the schema's name in messages, the value, and a checker for the
    schema.
    """
    invalid = _find_invalid(resolved)
    for outline in resolved.list_outlines():
        carriers = outline.find_having(keyword)
        if not carriers or keyword not in outline.dialect.plain:
            continue
        referring = {
            reference.pointer[:length]
            for reference in outline.references
            for length in range(len(reference.pointer) + 1)
        }
        needs_root = any(pointer in referring for pointer, _ in carriers)
        root = resolved.bundle_schema(outline).wire if needs_root and _is_valid(resolved, outline, invalid) else None
        for pointer, schema in carriers:
            if pointer not in referring:
                checker = _Checker.compile(resolved, {**schema, "$schema": outline.dialect.uri})
            else:
                checker = None if root is None else _Checker.compile(resolved, _select_part(outline, root, pointer))
            if checker is not None:
                name = f" of `{pointer[-1]}`" if pointer[-2:-1] == ("properties",) else ""
                yield outline.locate((*pointer, keyword)), name, schema[keyword], checker


def _select_part(outline: Outline, root: Mapping[str, Json], pointer: Pointer) -> Mapping[str, Json]:
    """Return a schema for the part of `root` at `pointer`.

    The schema includes `root`, because references can point anywhere.
    """
    # `root` moves to the definitions; its `$id` keeps `#/…` relative to it
    keyword = name_id_keyword(outline.dialect)
    identifier = root[keyword].rstrip("#") if outline.identified else _ROOT
    return {
        "$schema": outline.dialect.uri,
        outline.dialect.defs: {"root": {**root, keyword: identifier}},
        "$ref": identifier + format_pointer(pointer),
    }


def _compile(schema: Mapping[str, Json], meaning: Formats = "annotate") -> Validator | str:
    from stubwright_runtime.schema.validation import Validator

    try:
        return Validator(schema, **formats.get_settings(meaning))
    except ValueError as error:
        return str(error).partition("\n")[0].rstrip(".")


def _has_long_pattern(outline: Outline) -> bool:
    return any(len(text) > LONGEST for _, text in find_patterns(outline))


def _isolate(outline: Outline) -> Json:
    """Replace references to shared schemas with references to the schema itself.

    Only the faults of the schema itself count.
    """
    places = [(*ref.pointer, ref.keyword) for ref in outline.references if isinstance(ref.target, SharedSchema)]
    return edit(outline.schema, dict.fromkeys(places, "#"))


def _find_invalid(resolved: ResolvedBundle) -> frozenset[Place]:
    """Return the locations of schemas that other rules report and that the validator would also reject."""
    return frozenset(
        outline.place
        for outline in resolved.list_outlines()
        if any(
            isinstance(reference.target, BrokenReference) or is_enclosed(resolved, outline, reference)
            for reference in outline.references
        )
        or not all(is_expression(text) for _, text in find_patterns(outline))
    )


def _is_valid(resolved: ResolvedBundle, outline: Outline, invalid: frozenset[Place]) -> bool:
    return not invalid or invalid.isdisjoint(each.place for each in resolved.find_closure(outline))


def _descend(place: Place, pointer: Pointer) -> Place:
    return Place(place.file, (*place.pointer, *pointer))
