"""Soundness and precision of `diff` for schemas: random schemas and edits, with the server's validator as the oracle.

`STUBWRIGHT_WHOLE_DIFF=1` runs many more.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any, Literal

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import amounts
import schema_edits
from amounts import choose
from stubwright import ir
from stubwright.diagnostics import Place
from stubwright.diff.changes import Impact, find_worst_impact
from stubwright.diff.kinds.schemas import SchemaComparison
from stubwright.diff.subsumption.proof import SchemaValidator, covers
from stubwright.diff.subsumption.upgrade import upgrade
from stubwright.jsonschema import dialects

Json = Any

PAIRS = choose("STUBWRIGHT_WHOLE_DIFF", 300, 300, 10_000)
EXAMPLES = choose("STUBWRIGHT_WHOLE_DIFF", 15, 300, 10_000)
SEEDS = st.integers(0, 2**48)

DRAFT_4 = {"$schema": dialects.DRAFT_4.uri}
DRAFT_7 = {"$schema": dialects.DRAFT_7.uri}

run = settings(max_examples=EXAMPLES, suppress_health_check=[*HealthCheck], database=None)


def compared(
    old: Json,
    new: Json,
    direction: Literal["input", "output"] = "input",
    formats: tuple[ir.Formats, ir.Formats] = ("annotate", "annotate"),
) -> Impact | None:
    """What `diff` says about two schemas of one tool."""
    place = Place("manifest.json", ("tools", 0, "inputSchema"))
    one, two = (ir.Schema(schema, schema.get("$schema", dialects.DRAFT_2020_12.uri), place) for schema in (old, new))
    return find_worst_impact(SchemaComparison("tool `t`", direction, one, two, *formats, {}).compare())


def counterexample(old: Json, new: Json, seed: str) -> Json | None:
    """An instance of `old` that `new` rejects, alone in a list, if one is found."""
    judges = SchemaValidator(old), SchemaValidator(new)
    tried = schema_edits.aim(old, new, seed)
    return next(([one] for one in tried if judges[0].accepts(one) and not judges[1].accepts(one)), None)


def is_harmless(impact: Impact | None) -> bool:
    return impact in (None, "cosmetic", "compatible", "words")


@run
@given(SEEDS)
def test_what_diff_calls_compatible_is(seed: int) -> None:
    chance = random.Random(seed)
    old = schema_edits.schema(chance)
    new = schema_edits.edited(chance, old)
    if is_harmless(compared(old, new, "input")):
        assert counterexample(old, new, str(seed)) is None, (old, new)
    if is_harmless(compared(old, new, "output")):
        assert counterexample(new, old, str(seed)) is None, (old, new)


@pytest.mark.long
@run
@given(SEEDS)
def test_what_is_proved_across_dialects_is_so(seed: int) -> None:
    chance = random.Random(seed)
    old = schema_edits.schema(chance)
    new = schema_edits.edited(chance, old)
    pair: list[Json] = [old, new]
    pair[chance.randint(0, 1)] = {**pair[0], **chance.choice((DRAFT_7, {"$schema": dialects.DRAFT_2019_09.uri}))}
    if is_harmless(compared(pair[0], pair[1])):
        assert counterexample(pair[0], pair[1], str(seed)) is None, pair


def test_edits_that_are_compatible_by_construction_are_called_so() -> None:
    found: Counter[tuple[str, bool]] = Counter()
    names: set[str] = set()
    for seed in range(PAIRS):
        chance = random.Random(seed)
        old = schema_edits.schema(chance)
        edit = schema_edits.widen(chance, old)
        if edit is None:
            continue
        name, new = edit
        if amounts.IS_SAMPLE and name in names and seed % 3:
            continue  # each edit once, and a third of the others
        names.add(name)
        assert counterexample(old, new, str(seed)) is None, ("the edit does not widen", name, old, new)
        found[name, is_harmless(compared(old, new, "input"))] += 1
        found[name, is_harmless(compared(new, old, "output"))] += 1
    assert names == {name for name, _ in schema_edits.WIDENING}
    known = sum(count for (_, harmless), count in found.items() if harmless)
    assert known / found.total() >= 0.95, sorted(found.items())


def test_a_break_is_shown_by_an_instance() -> None:
    shown = 0
    for seed in range(PAIRS // 3):
        chance = random.Random(seed)
        old = schema_edits.schema(chance)
        new = schema_edits.edited(chance, old)
        place = Place("manifest.json", ())
        one, two = (ir.Schema(schema, dialects.DRAFT_2020_12.uri, place) for schema in (old, new))
        for change in SchemaComparison("tool `t`", "input", one, two, "annotate", "annotate", {}).compare():
            text = (change.help or "").partition("for example ")[2].partition(" was accepted")[0]
            if change.impact == "breaking" and not text.endswith("…"):
                instance = json.loads(text)
                assert SchemaValidator(old).accepts(instance)
                assert not SchemaValidator(new).accepts(instance)
                shown += 1
    assert shown > PAIRS // 20


NODE = {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}


def linked(properties: Json, **more: Json) -> Json:
    node = {"type": "object", "properties": properties, "additionalProperties": False}
    return {"type": "object", "properties": {"head": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}, **more}


TREE = {"$ref": "#"}


def tree(leaf: Json, below: Json = TREE, **more: Json) -> Json:
    """An object of a leaf and of more such objects, about which only our own proofs say something."""
    return {"type": "object", "properties": {"leaf": leaf}, "additionalProperties": below, **more}


def defined(leaf: Json, **more: Json) -> Json:
    """The same as a definition, of each of the two keywords for these."""
    words = ("$defs", "definitions")
    nodes = {word: {"$ref": f"#/{word}/node"} for word in words}
    return {
        "type": "object",
        "properties": nodes,
        **{word: {"node": tree(leaf, nodes[word], **more)} for word in words},
    }


def resource(leaf: Json) -> Json:
    """Return a leaf with a new base, where the same reference has another target than outside."""
    return {"$id": "https://example.com/leaf", "$ref": "#/$defs/leaf", "$defs": {"leaf": leaf}}


ROOT = {"$id": "https://example.com/tree"}
PROVED = [
    ({"type": "integer"}, {"type": "number"}),
    ({"enum": [1, "a"]}, {"enum": ["a", 1.0, 2]}),
    ({"const": 3}, {"type": "integer", "minimum": 3}),
    ({"type": "string", "minLength": 2}, {"type": "string", "minLength": 1, "default": "x"}),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": ["string", "number"]}),
    (linked(NODE), linked({**NODE, "value": {"type": "number"}})),
    (linked(NODE), linked({**NODE, "label": {"type": "string"}})),
    (DRAFT_7 | {"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
    (DRAFT_4 | {"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
    (DRAFT_7 | {"dependencies": {"a": ["b"]}}, {"dependentRequired": {"a": ["b"]}}),
    (DRAFT_7 | {"$ref": "#/definitions/a", "definitions": {"a": True}}, {"$ref": "#/$defs/a", "$defs": {"a": {}}}),
    (tree({"type": "integer"}), tree({"type": "number"})),
    (tree({"type": "integer"}, **ROOT), tree({"type": "number"}, **ROOT)),
    (tree({"type": "number", "minimum": 3}), tree({"not": {"type": "number", "maximum": 2}})),
    (defined({"type": "integer"}), defined({"type": "number"})),
    (defined({"type": "integer"}, **{"not": {"enum": [{"leaf": [1]}]}}), defined({"type": "number"})),
]


@pytest.mark.parametrize(("old", "new"), PROVED)
def test_a_proof_is_found(old: Json, new: Json) -> None:
    assert covers(SchemaValidator(new), SchemaValidator(old))


NOT_PROVED = [
    ({"type": "number"}, {"type": "integer"}),
    ({"type": "number"}, {"type": "number", "minimum": 0}),
    ({"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
    (linked({**NODE, "value": {"type": "number"}}), linked(NODE)),
    (linked(NODE), linked({**NODE, "next": {"type": "null"}})),
    (
        linked(NODE, **{"not": {"$ref": "#/$defs/node"}}),
        linked({**NODE, "x": True}, **{"not": {"$ref": "#/$defs/node"}}),
    ),
    ({"type": "integer"}, DRAFT_4 | {"type": "integer"}),
    ({"items": {"type": "string"}}, DRAFT_7 | {"items": [{"type": "string"}], "additionalItems": False}),
    ({"contentEncoding": "base64"}, DRAFT_7 | {"contentEncoding": "base64"}),
    ({"type": "string"}, {"$ref": "#nowhere"}),
]


@pytest.mark.parametrize(("old", "new"), NOT_PROVED)
def test_no_proof_is_found_where_there_is_none(old: Json, new: Json) -> None:
    assert not covers(SchemaValidator(new), SchemaValidator(old))


REFUTED = [
    (tree({"type": "number"}), tree({"type": "integer"}), {"leaf": 0.5}),
    (tree({"type": "number"}, **ROOT), tree({"type": "integer"}, **ROOT), {"leaf": 0.5}),
    (defined({"type": "number"}), defined({"type": "integer"}), {"$defs": {"leaf": 0.5}}),
    (tree(True), tree(resource({"type": "string"}), **{"$defs": {"leaf": True}}), {"leaf": 1}),
    (tree(resource(True), **{"$defs": {"leaf": {"type": "string"}}}), tree({"type": "string"}), {"leaf": 1}),
    (
        tree(resource(True), **{"$defs": {"leaf": {"type": "string"}}}),
        tree(resource({"type": "string"}), **{"$defs": {"leaf": True}}),
        {"leaf": 1},
    ),
    (
        tree({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
        tree({"type": "number", "exclusiveMinimum": 1.6, "exclusiveMaximum": 2}),
        {"leaf": 1.5},
    ),
    (tree({"type": "number", "minimum": 5}), tree({"type": "number", "minimum": 6}), {"leaf": 5}),
    (tree({"type": "array", "maxItems": 1}), tree({"type": "array", "maxItems": 0}), {"leaf": [1]}),
]


@pytest.mark.parametrize(("old", "new", "instance"), REFUTED)
def test_no_proof_is_found_where_an_instance_refutes_it(old: Json, new: Json, instance: Json) -> None:
    assert SchemaValidator(old).accepts(instance)
    assert not SchemaValidator(new).accepts(instance)
    assert not covers(SchemaValidator(new), SchemaValidator(old))


def test_formats_count_where_they_are_asserted() -> None:
    old, new = {"type": "string"}, {"type": "string", "format": "date"}
    wrap = [{"type": "object", "properties": {"day": schema}} for schema in (old, new)]
    assert compared(wrap[0], wrap[1]) == "compatible"
    assert compared(wrap[0], wrap[1], formats=("assert", "assert")) == "breaking"
    assert compared(wrap[1], wrap[1], formats=("annotate", "assert")) == "breaking"
    assert compared(wrap[1], wrap[1], formats=("assert", "annotate")) is None
    assert compared(wrap[1], wrap[1], "output", formats=("assert", "annotate")) == "breaking"


DAY: dict[str, Any] = {
    "type": "object",
    "properties": {"day": {"type": "string", "format": "date"}, "mail": {"format": "email"}},
}
IMAGE: dict[str, Any] = {"type": "object", "properties": {"image": {"type": "string", "contentEncoding": "base64"}}}


@pytest.mark.parametrize(
    ("old", "new", "given", "returned"),
    [
        ("annotate", "exact", "breaking", None),
        ("assert", "exact", "may break", "breaking"),  # by a mail address that is none
        ("assert", "assert and exact", "may break", None),
        ("assert and exact", "assert", None, "may break"),
        ("exact", "annotate", None, "breaking"),
        ("exact", "assert and exact", "breaking", None),
        ("assert and exact", "exact", None, "breaking"),
    ],
)
def test_exact_formats_accept_less(
    old: ir.Formats, new: ir.Formats, given: Impact | None, returned: Impact | None
) -> None:
    assert compared(DAY, DAY, "input", (old, new)) == given
    assert compared(DAY, DAY, "output", (old, new)) == returned


def test_exactness_changes_nothing_without_a_format_that_has_a_type() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "format": "email"}, "n": {"type": "integer"}}}
    for direction in ("input", "output"):
        assert compared(schema, schema, direction, ("annotate", "exact")) is None
        assert compared(schema, schema, direction, ("assert and exact", "assert")) is None


def test_edits_are_judged_under_exact_formats() -> None:
    exact: tuple[ir.Formats, ir.Formats] = ("exact", "exact")
    bare = {"type": "object", "properties": {"image": {"type": "string"}, "day": {"type": "string"}}}
    both = {"type": "object", "properties": {**IMAGE["properties"], "day": DAY["properties"]["day"]}}
    assert compared(bare, both, formats=exact) == "breaking"
    assert compared(both, bare, formats=exact) == "compatible"
    bounded = {**DAY, "properties": {**DAY["properties"], "n": {"enum": ["a", "2026-11-22"]}}}
    assert compared(bounded, {**bounded, "minProperties": 1}, formats=exact) == "breaking"
    assert compared({**bounded, "minProperties": 1}, bounded, formats=exact) == "compatible"


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({"type": "string", "format": "date"}, {"enum": ["0000-01-01"]}),
        ({"type": "string", "contentEncoding": "base64"}, {"type": "string"}),
        ({"type": "string", "contentEncoding": "base64"}, {"const": "aGk"}),
    ],
)
def test_no_proof_is_found_for_texts_that_are_not_exact(wide: Json, narrow: Json) -> None:
    assert not covers(SchemaValidator(wide, "exact"), SchemaValidator(narrow, "exact"))


def test_less_exactness_below_not_is_not_proved() -> None:
    schema = {"not": {"type": "string", "format": "date"}}
    assert not covers(SchemaValidator(schema, "assert"), SchemaValidator(schema, "assert and exact"))
    assert SchemaValidator(schema, "assert and exact").accepts("0000-01-01")
    assert covers(SchemaValidator(schema, "exact"), SchemaValidator(schema, "exact"))


@pytest.mark.parametrize(
    "schema",
    [
        DRAFT_7 | {"items": [{"type": "string"}, {"const": 1}], "additionalItems": {"type": "null"}},
        DRAFT_7 | {"dependencies": {"a": ["b"], "b": {"required": ["c"]}}},
        DRAFT_7 | {"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {"type": "array"}}},
        DRAFT_4 | {"maximum": 3, "exclusiveMaximum": True, "minimum": 1, "exclusiveMinimum": False, "const": 9},
        {"$schema": dialects.DRAFT_2019_09.uri, "items": [{"type": "integer"}], "additionalItems": False},
    ],
)
def test_a_translated_schema_accepts_the_same(schema: Json) -> None:
    dialect = dialects.find_dialect(schema)
    assert dialect is not None
    made = upgrade(schema, dialect)
    assert made is not None
    judges = [jsonschema_rs.validator_for(one) for one in (schema, made)]
    values: list[Json] = [None, 0, 1, 2.5, 3, "a", [], ["a"], [1], ["a", 1], ["a", 1, None], ["a", 1, 2], [1, 2]]
    values += [{}, {"a": 1}, {"a": 1, "b": 2}, {"b": 1}, {"b": 1, "c": 2}]
    assert [judges[0].is_valid(value) for value in values] == [judges[1].is_valid(value) for value in values]
