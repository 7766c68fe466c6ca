"""Schemas for the instance search, with compiled checks and reference targets.

The internal keywords `AT` and `EACH` add schemas for the item at an index or for each item.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from stubwright.diagnostics import Place
from stubwright.jsonschema import dialects, formats
from stubwright.jsonschema.pointers import resolve_local
from stubwright.jsonschema.references import BrokenReference, Folder, LocalTarget, Outline, get_at
from stubwright_runtime.schema.validation import compile_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.ir import Formats, Json
    from stubwright.jsonschema.references import Reference
    from stubwright_runtime.schema.numbers import CompiledSchema

AT: Final = "\0at"
EACH: Final = "\0each"

TEXT_KEYWORDS: Final = frozenset({"minLength", "maxLength", "pattern", "format"})
NUMBER_KEYWORDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_SIMPLE: Final = TEXT_KEYWORDS | NUMBER_KEYWORDS | {"type", "enum", "const"}
_MAX_CACHED: Final = 4096


@dataclass(frozen=True)
class SchemaValidator:
    """Validates values against a root schema, with the dialect and `format` semantics of the generated server."""

    schema: Json
    formats: Formats = "annotate"

    @cached_property
    def dialect(self) -> dialects.Dialect:
        """The schema's dialect. Checked schemas always have a supported dialect."""
        return dialects.find_dialect(self.schema) or dialects.DRAFT_2020_12

    def accepts(self, instance: Json) -> bool:
        """Return whether an instance is valid."""
        return bool(self._validator.is_valid(instance))

    @cached_property
    def targets(self) -> Mapping[str, Json]:
        """The target schema of each local reference."""
        return {
            reference.text: get_at(self.schema, reference.target.pointer)
            for reference in self._references
            if isinstance(reference.target, LocalTarget)
        }

    @cached_property
    def is_broken(self) -> bool:
        """True if a reference does not resolve, so no validator accepts the schema."""
        return any(isinstance(reference.target, BrokenReference) for reference in self._references)

    @cached_property
    def _references(self) -> Sequence[Reference]:
        if not isinstance(self.schema, dict):
            return ()
        return Outline(Place(""), self.schema, self.dialect, Folder("", {})).references

    @cached_property
    def _validator(self) -> CompiledSchema:
        return compile_schema(self.schema, **formats.get_settings(self.formats))

    def compile_simple(self, schema: dict[str, Json], *, is_settled: bool) -> CompiledSchema | None:
        """Compile and cache a subschema's scalar keywords. Return None if there are no scalar keywords.

        Raises:
            ValueError: A keyword is invalid.
        """
        key = (id(schema), is_settled)
        if key not in self._simple:
            if len(self._simple) >= _MAX_CACHED:
                self._simple.clear()
            simple = {word: inner for word, inner in schema.items() if word in _SIMPLE or is_settled}
            self._simple[key] = (schema, _compile(self._write(simple), self.formats) if simple else None)
        return self._simple[key][1]

    def compile(self, schema: dict[str, Json]) -> CompiledSchema:
        """Compile a schema without references.

        Raises:
            ValueError: The schema is invalid.
        """
        return _compile(self._write(schema), self.formats)

    def _write(self, schema: dict[str, Json]) -> str:
        return json.dumps({"$schema": self.dialect.uri, **schema}, default=float)  # for `Decimal`

    @cached_property
    def _simple(self) -> dict[tuple[int, bool], tuple[Json, CompiledSchema | None]]:
        """The results of `compile_simple`, keyed by `id()`. Storing each schema keeps its `id()` unique."""
        return {}


@dataclass(frozen=True, slots=True)
class Subschema:
    """A subschema, with its root. `is_settled` is true if `not` in the subschema contains only scalar keywords."""

    schema: Json
    validator: SchemaValidator
    is_settled: bool = False

    def get(self, keyword: str, default: Any = None) -> Any:
        """Return a keyword's value, or the default."""
        return self.schema.get(keyword, default) if isinstance(self.schema, dict) else default

    def with_schema(self, schema: Json) -> Subschema:
        """Return another subschema of the same root."""
        return Subschema(schema, self.validator)  # `replace` is four times slower

    def with_settled_schema(self, schema: Json) -> Subschema:
        """Return another subschema of the same root, marked as settled: its `not` contains only scalar keywords."""
        return Subschema(schema, self.validator, is_settled=True)

    def negate(self, schema: Json) -> Subschema:
        """Return a subschema that accepts the values which another schema rejects."""
        if isinstance(schema, bool):
            return self.with_schema(not schema)
        return self.with_schema(
            schema["not"] if isinstance(schema, dict) and schema.keys() == {"not"} else {"not": schema}
        )

    def follow(self, reference: Json) -> Subschema | None:
        """Return a reference's target, or None if it does not resolve."""
        if not isinstance(reference, str):
            return None
        try:
            return self.with_schema(resolve_local(self.validator.schema, reference))
        except LookupError:
            targets = self.validator.targets
        return self.with_schema(targets[reference]) if reference in targets else None

    def fits(self, value: Json) -> bool:
        """Return whether a value is valid under the scalar keywords."""
        if not isinstance(self.schema, dict):
            return self.schema is not False
        try:
            compiled = self.validator.compile_simple(self.schema, is_settled=self.is_settled)
            return compiled is None or bool(compiled.is_valid(value))
        except ValueError:
            return False


def is_valid(part: Subschema, schema: Json, value: Json) -> bool:
    """Return whether a value is valid under a schema in `part`'s dialect. The schema must not contain references."""
    if schema in (True, {}):
        return True
    if not isinstance(schema, dict):
        return False
    try:
        return bool(part.validator.compile(schema).is_valid(value))
    except ValueError:
        return False


@lru_cache(_MAX_CACHED)
def _compile(text: str, meaning: Formats) -> CompiledSchema:
    return compile_schema(json.loads(text), **formats.get_settings(meaning))
