"""Proofs that a schema accepts every instance that another one accepts: JSON Schema subsumption, proved or not.

Takes two schemas; tells whether that is proved. Every proof is sound; the lack of a proof means nothing. The proofs are
those of `jsonschema-rs`, whose validator also judges calls. Our own are the comparison across dialects and the
induction over recursive references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import jsonschema_rs
from jsonschema_rs import CanonicalSchema, FancyRegexOptions, canonicalize
from jsonschema_rs.canonical import CanonicalizationError, Containment, IncompatibleOperands, UnsupportedResult

from stubwright.diff.subsumption import congruence, exactness, unions, upgrade
from stubwright.jsonschema import dialects
from stubwright.jsonschema.formats import get_settings
from stubwright.jsonschema.instances import parts
from stubwright.jsonschema.pointers import resolve_local
from stubwright_runtime.schema.numbers import make_exact_schema

if TYPE_CHECKING:
    from stubwright.ir import Json

_BACKTRACKS: Final = 100_000
"""The same limit as in generated servers, so that both validate alike."""

_NOT_MONOTONE: Final = frozenset({"not", "if", "oneOf", "contains"})
"""Below these, accepting more in one place may accept less above."""

_IN_PLACE: Final = frozenset({"allOf", "anyOf", "then", "else", "dependentSchemas", "dependencies"})
"""Keywords whose subschemas apply to the same instance; those of other keywords apply to a part of it."""

_WIDEST: Final = 60
"""The most definitions for which an induction is tried."""

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
        """The schema as the library compares it; None if it cannot."""
        return _canonicalize(self.schema, asserts=self.formats == "assert")

    @cached_property
    def asserted(self) -> Judge:
        """The same with nothing but `assert` or `annotate`: formats that have types accept what they usually do."""
        settings = get_settings(self.formats)
        if not settings["exact"]:
            return self
        return Judge(exactness.widen(self.schema, self.dialect, asserts_all=settings["formats"]), "assert")


def covers(wide: Judge, narrow: Judge) -> bool:
    """Tell whether it is proved that `wide` accepts every instance that `narrow` accepts."""
    if exactness.prevents_proof(wide, narrow):
        return False
    wide, narrow = map(_merge_exclusive, make_comparable(wide.asserted, narrow.asserted))
    if wide.canonical is None or narrow.canonical is None:
        return False
    answer = _covers(wide.canonical, narrow.canonical)
    if answer is Containment.UNKNOWN:
        return _is_proved_by_parts(wide, narrow) or _is_proved_by_induction(wide, narrow)
    return answer is Containment.YES


def make_comparable(*judges: Judge) -> tuple[Judge, ...]:
    """Return the schemas in one dialect and with one meaning of `format` if possible; otherwise as they are."""
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


def _is_proved_by_parts(wide: Judge, narrow: Judge) -> bool:
    """Tell whether `wide` covers `narrow` because each part of it covers its counterpart."""
    dialect = wide.dialect
    if dialect is not narrow.dialect:
        return False
    wide_schema, narrow_schema = (congruence.strip_annotations(judge.schema, dialect) for judge in (wide, narrow))
    if congruence.are_same(wide_schema, narrow_schema):
        return True
    asserts = wide.formats == "assert"

    def is_covered(wider: Json, narrower: Json) -> bool:
        sides = [_canonicalize(_add_dialect(side, dialect), asserts=asserts) for side in (wider, narrower)]
        return None not in sides and _covers(*sides) is Containment.YES  # type: ignore[arg-type]

    return congruence.PartwiseProof(dialect, is_covered).is_proved(wide_schema, narrow_schema)


def _add_dialect(schema: Json, dialect: dialects.Dialect) -> Json:
    return {**schema, "$schema": dialect.uri} if isinstance(schema, dict) else schema


def _is_proved_by_induction(wide: Judge, narrow: Judge) -> bool:
    """Tell whether `wide` covers `narrow` because each of its definitions covers the other's definition of that name.

    By induction over the depth of instances: in the definitions of `wide`, references to a part of the instance may
    lead to the definitions of `narrow`, where the definition is covered in turn. That holds only where accepting more
    below accepts more above. A definition that turns out not to be covered is taken out, until all that are left are.
    """
    if wide.dialect is not narrow.dialect:
        return False
    old, new = _Definitions(narrow.schema), _Definitions(wide.schema)
    if not old.plain or not new.plain or not old.bodies or len(old.bodies) > _WIDEST:
        return False
    assumed = old.bodies.keys() & new.bodies.keys()
    asserts = wide.formats == "assert"
    while assumed:
        table = {f"o{name}": _redirect(body, old, frozenset()) for name, body in old.bodies.items()}
        table |= {f"n{name}": _redirect(body, new, frozenset(assumed)) for name, body in new.bodies.items()}
        defs = {_make_key(name): body for name, body in table.items()}

        def prove(name: str, defs: Mapping[str, Json] = defs, table: Mapping[str, Json] = table) -> bool:
            sides = [
                _canonicalize(_make_document(table[f"{side}{name}"], defs, wide.dialect), asserts=asserts)
                for side in "no"
            ]
            return None not in sides and _covers(*sides) is Containment.YES  # type: ignore[arg-type]

        failed = {name for name in assumed if not prove(name)}
        # The root is what is to be proved; without it, the other definitions prove nothing.
        if "#" in failed:
            return False
        if not failed:
            return True
        assumed -= failed
    return False


def _make_document(body: Json, defs: Mapping[str, Json], dialect: dialects.Dialect) -> Json:
    if not isinstance(body, dict):
        return body
    return {"$schema": dialect.uri, **body, dialect.defs: dict(defs)}


def _make_key(name: str) -> str:
    """Return a definition's name that needs no escape in a pointer."""
    return name.encode("utf-8", "surrogatepass").hex()


class _Definitions:
    """The targets of the references in one schema: the body of each, by its reference; the root is `#`.

    `plain` is true if all references are such pointers, and all have a target.
    """

    def __init__(self, schema: Json) -> None:
        self.dialect = dialects.find_dialect(schema) or dialects.DRAFT_2020_12
        self.bodies: dict[str, Json] = {"#": schema}
        self.plain = True
        waiting = [schema]
        for body in waiting:  # grows while it is read
            for _, inner in dialects.iterate_subschemas(body, self.dialect):
                if isinstance(inner, dict):
                    waiting += self._follow(inner, is_root=inner is schema)

    def _follow(self, inner: Mapping[str, Json], *, is_root: bool) -> Iterator[Json]:
        identified = ("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef")
        if any(isinstance(inner.get(key), str | bool) for key in identified) and not is_root:
            self.plain = False
        if is_root and any(key in inner for key in identified[2:]):
            self.plain = False
        reference = inner.get("$ref")
        if not isinstance(reference, str) or reference in self.bodies:
            return
        try:
            body = resolve_local(self.bodies["#"], reference)
        except LookupError:
            self.plain = False
            return
        self.bodies[reference] = body
        yield body


def _redirect(body: Json, definitions: _Definitions, assumed: frozenset[str]) -> Json:
    """Return a body whose references lead into the common table; those that may, to the other side's definition.

    With nothing assumed, all lead to the side `o`; otherwise to `n`, except for assumed ones that apply to a part of
    the instance.
    """
    side = "n" if assumed else "o"

    def walk(schema: Json, *, is_part: bool, is_monotone: bool) -> Json:
        if not isinstance(schema, dict):
            return schema
        redirected: dict[str, Json] = {}
        for keyword, value in schema.items():
            if keyword in ("$defs", "definitions", "$schema", "$id", "id"):
                continue
            if keyword == "$ref":
                swapped = is_part and is_monotone and value in assumed
                redirected[keyword] = f"#/{definitions.dialect.defs}/{_make_key(('o' if swapped else side) + value)}"
                continue
            part = is_part or keyword not in _NOT_MONOTONE | _IN_PLACE
            # `contains` is about items, which are parts of the instance, although it is not monotone.
            part = part if keyword != "contains" else True
            monotone = is_monotone and keyword not in _NOT_MONOTONE
            redirected[keyword] = _change_inside(
                keyword,
                value,
                lambda inner, is_inner_part=part, is_inner_monotone=monotone: walk(
                    inner, is_part=is_inner_part, is_monotone=is_inner_monotone
                ),
            )
        return redirected

    def _change_inside(keyword: str, value: Json, change: Any) -> Json:
        if isinstance(value, dict) and keyword in definitions.dialect.named:
            return {
                name: inner if keyword == "dependencies" and isinstance(inner, list) else change(inner)
                for name, inner in value.items()
            }
        if isinstance(value, list) and keyword in definitions.dialect.listed:
            return [change(inner) for inner in value]
        return change(value) if keyword in definitions.dialect.single else value

    return walk(body, is_part=False, is_monotone=True)
