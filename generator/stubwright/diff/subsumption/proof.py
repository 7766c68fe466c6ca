"""Proves JSON Schema subsumption: a schema accepts every instance of another schema.

Every proof is sound, but not every true statement can be proved. Most proofs come from `jsonschema-rs`, whose validator
also validates calls. This package adds comparisons across dialects, and proofs by cases if the library is undecided.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import jsonschema_rs
from jsonschema_rs import CanonicalSchema, FancyRegexOptions, canonicalize
from jsonschema_rs.canonical import CanonicalizationError, Containment, IncompatibleOperands, UnsupportedResult

from stubwright.diff.subsumption import effort, exactness, refutation, unions, upgrade
from stubwright.diff.subsumption.annotations import strip_annotations
from stubwright.jsonschema.formats import get_settings
from stubwright.jsonschema.instances import parts
from stubwright_runtime.schema.numbers import make_exact_schema

if TYPE_CHECKING:
    from stubwright.ir import Json

_BACKTRACKS: Final = 100_000
"""The limit that generated servers use, so that both give the same results."""

_FAILURES: Final = (
    CanonicalizationError,
    IncompatibleOperands,
    UnsupportedResult,
    jsonschema_rs.ReferencingError,
    jsonschema_rs.ValidationError,
    ValueError,
)


@dataclass(frozen=True)
class SchemaValidator(parts.SchemaValidator):
    """A schema with its dialect and `format` semantics, for proofs."""

    @cached_property
    def canonical(self) -> CanonicalSchema | None:
        """The library's canonical form of the schema. None if the schema is unsupported or too costly."""
        return None if self.is_costly else _canonicalize(self.schema, asserts=self.formats == "assert")

    @cached_property
    def is_costly(self) -> bool:
        """True if canonicalizing the schema might take longer than a second."""
        return effort.is_costly(self)

    @cached_property
    def asserted(self) -> SchemaValidator:
        """The schema with ordinary formats instead of exact ones."""
        settings = get_settings(self.formats)
        if not settings["exact"]:
            return self
        return SchemaValidator(exactness.widen(self.schema, self.dialect, asserts_all=settings["formats"]), "assert")


def covers(wide: SchemaValidator, narrow: SchemaValidator) -> bool:
    """Return whether `wide` provably accepts every instance of `narrow`."""
    if exactness.prevents_proof(wide, narrow):
        return False
    wide, narrow = map(_merge_exclusive, make_comparable(wide.asserted, narrow.asserted))
    if wide.is_costly or narrow.is_costly:
        return _is_proved_by_cases(wide, narrow)
    if wide.canonical is None or narrow.canonical is None:
        return False
    answer = _covers(wide.canonical, narrow.canonical)
    if answer is Containment.UNKNOWN:
        return _is_proved_by_cases(wide, narrow)
    return answer is Containment.YES


def make_comparable(*validators: SchemaValidator) -> tuple[SchemaValidator, ...]:
    """Convert two schemas to one dialect and one meaning of `format`, if possible."""
    comparable = validators
    if len({validator.formats for validator in comparable}) > 1:
        comparable = tuple(
            (
                validator
                if validator.formats == "assert"
                else SchemaValidator(upgrade.drop_formats(validator.schema, validator.dialect), "assert")
            )
            for validator in comparable
        )
    if len({validator.dialect.name for validator in comparable}) > 1:
        plain = [
            (
                validator.schema
                if validator.formats == "assert"
                else upgrade.drop_formats(validator.schema, validator.dialect)
            )
            for validator in comparable
        ]
        newest = [
            upgrade.upgrade(schema, validator.dialect) for schema, validator in zip(plain, comparable, strict=True)
        ]
        if None not in newest:
            comparable = tuple(
                SchemaValidator(schema, validator.formats) for schema, validator in zip(newest, comparable, strict=True)
            )
    return comparable


def _merge_exclusive(validator: SchemaValidator) -> SchemaValidator:
    merged = unions.merge_exclusive(validator.schema, validator.dialect)
    return validator if merged is validator.schema else SchemaValidator(merged, validator.formats)


def find_rejected(wide: SchemaValidator, narrow: SchemaValidator) -> Json | None:
    """Return a schema that describes instances which `narrow` accepts and `wide` rejects, as a search hint, or None."""
    wide, narrow = map(_merge_exclusive, make_comparable(wide.asserted, narrow.asserted))
    if wide.canonical is None or narrow.canonical is None:
        return None
    try:
        return narrow.canonical.subtract(wide.canonical).to_json_schema()
    except _FAILURES:
        return None


def _canonicalize(schema: Json, *, asserts: bool) -> CanonicalSchema | None:
    try:
        return canonicalize(
            make_exact_schema(schema),
            validate_formats=asserts,
            pattern_options=FancyRegexOptions(backtrack_limit=_BACKTRACKS),
            offline=True,
        )
    except _FAILURES:
        return None


def _covers(wide: CanonicalSchema, narrow: CanonicalSchema) -> Containment:
    try:
        return wide.covers(narrow)
    except _FAILURES:
        return Containment.UNKNOWN


def _is_proved_by_cases(wide: SchemaValidator, narrow: SchemaValidator) -> bool:
    """Return whether `wide` provably covers `narrow`: every case that contradicts this is impossible."""
    dialect = wide.dialect
    if dialect is not narrow.dialect or wide.formats != narrow.formats:
        return False
    fitted, violated = (strip_annotations(validator.schema, dialect) for validator in (narrow, wide))
    return refutation.is_refuted(fitted, violated, dialect, wide.formats)
