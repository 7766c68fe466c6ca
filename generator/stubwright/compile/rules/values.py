"""Rules about values that a manifest's own schemas judge: patterns, defaults and examples.

They use the validator of the generated server, and its messages. A schema that it rejects is a separate error.
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
from stubwright.jsonschema.expressions import LONGEST, find_patterns, is_expression, is_taken, is_too_large
from stubwright.jsonschema.pointers import format_pointer
from stubwright.jsonschema.references import BrokenReference, Outline, SharedSchema, name_id_keyword

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Formats, Json
    from stubwright_runtime.schema.validation import Validator

_ROOT = "stubwright:schema"
_DEMANDING = frozenset(
    {"required", "minProperties", "enum", "const", "not", "if", "allOf", "anyOf", "oneOf"}
    | {"$ref", "$dynamicRef", "$recursiveRef"}
)
"""Keywords that can reject an empty object."""

_OF_THE_WHOLE = frozenset({"required", "minProperties", "dependentRequired", "dependentSchemas", "dependencies"})
"""Keywords of an input that require other arguments than the checked one."""

_SIDES = (("input", "inputSchema", "arguments"), ("output", "outputSchema", "result"))


def check_formats(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the manifest asserts `format`, or sets `formats: annotate`, if an argument has one; warn once."""
    entry = resolved.entry
    is_served = "server" in (entry.get("emit") or ("server",))
    if not is_served or "formats" in entry or formats.get_meaning(entry) != "annotate":
        return
    for tool in resolved.tools:
        if "http" in tool.extension:
            continue
        outline = resolved.outlines[tool.place / "inputSchema"]
        for pointer, schema in outline.find_having("format"):
            if (name := schema["format"]) in formats.FORMATS:
                yield Diagnostic(
                    "SW355",
                    f"`{tool.name}` declares `format: {name}`, and accepts any string",
                    Place(outline.place.file, (*outline.place.pointer, *pointer, "format")),
                    "write `formats: assert` at the root of the manifest to reject invalid strings, or "
                    "`formats: annotate` to accept them",
                )
                return


def check_patterns(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the server can compile every `pattern`, and every key of `patternProperties`."""
    for outline in resolved.list_outlines():
        for place, text in find_patterns(outline):
            if is_too_large(text):
                yield Diagnostic(
                    "SW227",
                    f"the regular expression `{text}` is too large for the validator",
                    place,
                    "use fewer repetitions, with `maxLength` for the length; or use `enum` for many words",
                )
            elif not is_expression(text):
                yield Diagnostic(
                    "SW227",
                    f"`{text}` is not a regular expression of JSON Schema",
                    place,
                    "use the syntax of ECMA-262, which has `^` and `$`, but not `\\A` or `\\Z`",
                )


def check_compilable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the validator accepts every schema; it may reject a lone surrogate, which no other rule finds.

    A schema is rejected if a part of it is, so each shared schema is checked only once.
    """
    refused = {
        outline.place for outline in resolved.list_outlines() if _has_long(outline) or not is_taken(_alone(outline))
    }
    if not refused:
        return
    unsound = _unsound(resolved)
    for outline in resolved.list_outlines():
        reached = {each.place for each in resolved.find_closure(outline)}
        if unsound.isdisjoint(reached) and not refused.isdisjoint(reached):
            problem = _compiled(resolved.bundle_schema(outline).wire)
            if isinstance(problem, str):
                yield Diagnostic(
                    "SW228",
                    f"the validator rejects this schema: {problem}",
                    outline.place,
                    "rewrite the schema: with this one, the server could not check calls",
                )


def check_defaults(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a schema accepts its own `default` (JSON Schema 2020-12 Validation, 9.2: RECOMMENDED)."""
    for place, name, value, judge in _judged(resolved, "default"):
        for problem, at in judge.find_problems(value, place, "value"):
            yield Diagnostic(
                "SW320",
                f"the default{name} is not valid under its own schema: {problem}",
                at,
                'remove it, or add "null" to the types' if value is None else "change the default or its schema",
            )


def check_schema_examples(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a schema accepts its own `examples` (JSON Schema 2020-12 Validation, 9.5)."""
    for place, name, values, judge in _judged(resolved, "examples"):
        for index, value in enumerate(values if isinstance(values, list) else ()):
            for problem, at in judge.find_problems(value, place / index, "value"):
                yield Diagnostic(
                    "SW321",
                    f"the example{name} is not valid under its own schema: {problem}",
                    at,
                    "change the example or its schema",
                )


def check_examples(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the arguments of an example are valid for the tool, and the result is a possible one."""
    unsound = _unsound(resolved)
    for tool in resolved.tools:
        entries = tool.extension.get("examples") or ()
        schemas = dict(resolved.list_schemas(tool)) if entries else {}
        for side, field, root in _SIDES:
            place = tool.place_of("examples")
            given = [(place / index / side, entry[side]) for index, entry in enumerate(entries) if side in entry]
            outline = schemas.get(field)
            if not given:
                continue
            bundled_schema = None if outline is None else resolved.bundle_schema(outline).wire
            schema = shape.shape(field, bundled_schema, tool.extension.get("http") or {})
            if field == "inputSchema" and (bound := _bound(tool, schema)):
                schema = binds.without(schema, bound)
                for at, value in given:
                    for name in bound.keys() & value:
                        message = f"the example sends `{name}`, which the server sets (`bind`)"
                        yield Diagnostic("SW240", message, (at / name).point_at_key(), f"remove `{name}`")
                given = [(at, {name: each for name, each in value.items() if name not in bound}) for at, value in given]
            if schema is None:
                for at, _ in given:
                    yield Diagnostic(
                        "SW241",
                        f"the example has an {side}, but `{tool.name}` has no `{field}`",
                        at.point_at_key(),
                        f"add an `{field}` to the tool, or remove the {side}",
                    )
            elif outline is None or _sound(resolved, outline, unsound):
                judge = _Judge.compile(resolved, schema)
                for at, value in given:
                    for problem, narrow in judge.find_problems(value, at, root) if judge else ():
                        yield Diagnostic(
                            "SW240",
                            f"the example's {side} is not valid under the `{field}` of `{tool.name}`: {problem}",
                            narrow,
                            "change the example or the schema",
                        )


def check_bound_values(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a constant in `bind` is valid for its argument."""
    from stubwright_runtime.policy.claims import read_value

    unsound = _unsound(resolved)
    for tool in resolved.tools:
        own: Mapping[str, Json] = tool.extension.get("bind") or {}
        constants = {name: binding["value"] for name, binding in own.items() if "value" in binding}
        outline = resolved.outlines[tool.place / "inputSchema"]
        if not constants or not _sound(resolved, outline, unsound):
            continue
        schema = resolved.bundle_schema(outline).wire
        judge = _Judge.compile(resolved, {key: value for key, value in schema.items() if key not in _OF_THE_WHOLE})
        properties = schema.get("properties") or {}
        for name, value in constants.items():
            if judge and name in properties:
                at = tool.place_of("bind", name, "value")
                for problem, narrow in judge.find_problems(
                    {name: read_value(value, properties[name])}, at, "arguments"
                ):
                    yield Diagnostic(
                        "SW269",
                        f"`{name}` of `{tool.name}` cannot have this value: {problem}",
                        at if narrow.pointer[-1:] == (name,) else narrow,
                        "change the value or the schema",
                    )


def check_fillable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a tool accepts some arguments."""
    from stubwright.jsonschema import instances

    # For a schema that applies itself to its own instance, the search would fail after seconds.
    unsound = _unsound(resolved) | {outline.place for outline, _ in find_loops(resolved)}
    for tool in resolved.tools:
        outline = resolved.outlines[tool.place / "inputSchema"]
        if _DEMANDING.isdisjoint(outline.schema) or not _sound(resolved, outline, unsound):
            continue
        schema = resolved.bundle_schema(outline).wire
        settings = formats.get_settings(formats.get_meaning(resolved.entry))
        try:
            # Arguments that no client would send do not count.
            instances.make(schema, tool.name, **settings, likely=True, bare=True)
        except instances.TooLargeError:
            continue
        except instances.UnsatisfiableError:
            judge = _Judge.compile(resolved, schema)
            examples = [example.get("input", {}) for example in tool.extension.get("examples") or ()]
            if judge and all(judge.validator.find_errors(example) for example in examples):
                yield Diagnostic(
                    "SW324",
                    f"no arguments were found that `{tool.name}` accepts",
                    outline.place.point_at_key(),
                    "look for parts that contradict each other, such as several of `allOf` with "
                    "`additionalProperties: false`; or add an example that fits",
                )
        except ValueError:
            continue  # reported by `check_compilable`


def _bound(tool: Declaration, schema: Json) -> Mapping[str, Json]:
    """Return the bindings of a tool for its existing arguments."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    bound: Mapping[str, Json] = tool.extension.get("bind") or {}
    return {name: binding for name, binding in bound.items() if isinstance(properties, dict) and name in properties}


def check_exact_examples(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that an example whose output must be exact has an output."""
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
class _Judge:
    """A validator of values for one schema."""

    validator: Validator

    @classmethod
    def compile(cls, resolved: ResolvedBundle, schema: Mapping[str, Json]) -> _Judge | None:
        """Return the judge for a schema; None if `check_compilable` reports it."""
        validator = _compiled(schema, formats.get_meaning(resolved.entry))
        return None if isinstance(validator, str) else cls(validator)

    def find_problems(self, value: Json, place: Place, root: str) -> Iterator[tuple[str, Place]]:
        """Yield the faults of `value` at `place` as one text, and the narrowest place that holds them all."""
        lines = self.validator.find_errors(value, root)
        if not lines:
            return
        common = takewhile(
            lambda steps: len(set(steps)) == 1, zip(*self.validator.find_error_paths(value), strict=False)
        )
        yield (
            "; ".join(line.removeprefix("value: ") for line in lines),
            _below(place, tuple(step for step, *_ in common)),
        )


def _judged(resolved: ResolvedBundle, keyword: str) -> Iterator[tuple[Place, str, Json, _Judge]]:
    """Yield each value of `keyword` in a schema: its place, its owner, the value, and the judge of that schema."""
    unsound = _unsound(resolved)
    for outline in resolved.list_outlines():
        carriers = outline.find_having(keyword)
        if not carriers or keyword not in outline.dialect.plain:
            continue
        referring = {
            reference.pointer[:length]
            for reference in outline.references
            for length in range(len(reference.pointer) + 1)
        }
        within = any(pointer in referring for pointer, _ in carriers)
        root = resolved.bundle_schema(outline).wire if within and _sound(resolved, outline, unsound) else None
        for pointer, schema in carriers:
            if pointer not in referring:
                judge = _Judge.compile(resolved, {**schema, "$schema": outline.dialect.uri})
            else:
                judge = None if root is None else _Judge.compile(resolved, _part(outline, root, pointer))
            if judge is not None:
                name = f" of `{pointer[-1]}`" if pointer[-2:-1] == ("properties",) else ""
                yield _below(outline.place, (*pointer, keyword)), name, schema[keyword], judge


def _part(outline: Outline, root: Mapping[str, Json], pointer: Pointer) -> Mapping[str, Json]:
    """Return a schema for the part of `root` at `pointer`, including all of `root` for its references."""
    # In another schema's definitions, `#/…` would be relative to that schema; an identifier keeps the old root.
    keyword = name_id_keyword(outline.dialect)
    identifier = root[keyword].rstrip("#") if outline.identified else _ROOT
    return {
        "$schema": outline.dialect.uri,
        outline.dialect.defs: {"root": {**root, keyword: identifier}},
        "$ref": identifier + format_pointer(pointer),
    }


def _compiled(schema: Mapping[str, Json], meaning: Formats = "annotate") -> Validator | str:
    """Return the validator of a schema, or the reason for its failure."""
    from stubwright_runtime.schema.validation import Validator

    try:
        return Validator(schema, **formats.get_settings(meaning))
    except ValueError as error:
        return str(error).partition("\n")[0].rstrip(".")


def _has_long(outline: Outline) -> bool:
    return any(len(text) > LONGEST for _, text in find_patterns(outline))


def _alone(outline: Outline) -> Json:
    """Return a schema with its references to shared schemas replaced by references to itself."""
    places = [(*ref.pointer, ref.keyword) for ref in outline.references if isinstance(ref.target, SharedSchema)]
    return edit(outline.schema, dict.fromkeys(places, "#"))


def _unsound(resolved: ResolvedBundle) -> frozenset[Place]:
    """Return the schemas that the validator would reject for a reason that other rules report."""
    return frozenset(
        outline.place
        for outline in resolved.list_outlines()
        if any(
            isinstance(reference.target, BrokenReference) or is_enclosed(resolved, outline, reference)
            for reference in outline.references
        )
        or not all(is_expression(text) for _, text in find_patterns(outline))
    )


def _sound(resolved: ResolvedBundle, outline: Outline, unsound: frozenset[Place]) -> bool:
    """Return whether neither a schema nor its references are `unsound`."""
    return not unsound or unsound.isdisjoint(each.place for each in resolved.find_closure(outline))


def _below(place: Place, pointer: Pointer) -> Place:
    return Place(place.file, (*place.pointer, *pointer))
