"""Proofs that a schema accepts every instance that another one accepts: JSON Schema subsumption, proved or not.

Every proof is sound; the lack of a proof means nothing. Most proofs come from `jsonschema-rs`, whose validator also
judges calls. This package adds the comparison across dialects, and proofs by cases if the library is undecided.
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
"""The same limit as in generated servers, so that both validate alike."""

_FAILURES: Final = (
    CanonicalizationError,
    IncompatibleOperands,
    UnsupportedResult,
    jsonschema_rs.ReferencingError,
    jsonschema_rs.ValidationError,
    ValueError,
)


@dataclass(frozen=True)
class Judge(parts.Judge):
    """A schema that can be compared with others."""

    @cached_property
    def canonical(self) -> CanonicalSchema | None:
        """The schema as the library compares it; None if it cannot, or if that may take too long."""
        return None if self.is_costly else _canonicalize(self.schema, asserts=self.formats == "assert")

    @cached_property
    def is_costly(self) -> bool:
        """True if the library may take too long."""
        return effort.is_costly(self)

    @cached_property
    def asserted(self) -> Judge:
        """The same with only `assert` or `annotate`: formats that have types accept what they usually do."""
        settings = get_settings(self.formats)
        if not settings["exact"]:
            return self
        return Judge(exactness.widen(self.schema, self.dialect, asserts_all=settings["formats"]), "assert")


def covers(wide: Judge, narrow: Judge) -> bool:
    """Return whether it is proved that `wide` accepts every instance that `narrow` accepts."""
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


def make_comparable(*judges: Judge) -> tuple[Judge, ...]:
    """Return the schemas in one dialect and with one meaning of `format` if possible; otherwise unchanged."""
    comparable_judges = judges
    if len({judge.formats for judge in comparable_judges}) > 1:
        comparable_judges = tuple(
            (judge if judge.formats == "assert" else Judge(upgrade.drop_formats(judge.schema, judge.dialect), "assert"))
            for judge in comparable_judges
        )
    if len({judge.dialect.name for judge in comparable_judges}) > 1:
        plain = [
            (judge.schema if judge.formats == "assert" else upgrade.drop_formats(judge.schema, judge.dialect))
            for judge in comparable_judges
        ]
        newest = [
            upgrade.upgrade(schema, judge.dialect) for schema, judge in zip(plain, comparable_judges, strict=True)
        ]
        if None not in newest:
            comparable_judges = tuple(
                Judge(schema, judge.formats) for schema, judge in zip(newest, comparable_judges, strict=True)
            )
    return comparable_judges


def _merge_exclusive(judge: Judge) -> Judge:
    merged = unions.merge_exclusive(judge.schema, judge.dialect)
    return judge if merged is judge.schema else Judge(merged, judge.formats)


def find_rejected(wide: Judge, narrow: Judge) -> Json | None:
    """Return a schema of what `narrow` accepts and `wide` does not, as a hint where to look; None if there is none."""
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


def _is_proved_by_cases(wide: Judge, narrow: Judge) -> bool:
    """Return whether `wide` covers `narrow` because each case in which it does not contradicts itself."""
    dialect = wide.dialect
    if dialect is not narrow.dialect or wide.formats != narrow.formats:
        return False
    fitted, violated = (strip_annotations(judge.schema, dialect) for judge in (narrow, wide))
    return refutation.is_refuted(fitted, violated, dialect, wide.formats)
