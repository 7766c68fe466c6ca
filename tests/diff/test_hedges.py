"""Schema changes that the comparison now decides, although earlier versions could not."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any, Literal

import pytest

import amounts
import schema_edits
from stubwright import ir
from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, find_worst_impact
from stubwright.diff.kinds import schemas
from stubwright.diff.kinds.schemas import SchemaComparison
from stubwright.diff.subsumption import memory
from stubwright.diff.subsumption.memory import ProofMemory
from stubwright.diff.subsumption.proof import SchemaValidator
from stubwright.jsonschema import dialects
from stubwright.jsonschema.instances.parts import Subschema
from stubwright.jsonschema.instances.scalars import list_numbers
from stubwright.jsonschema.instances.search import Budget, ExhaustedError, Search
from stubwright.jsonschema.instances.violations import make_invalid

Json = Any
DIRECTIONS: tuple[Literal["input", "output"], ...] = ("input", "output")
ITSELF = {"$ref": "#"}


def compare(old: Json, new: Json, direction: Literal["input", "output"]) -> list[Change]:
    place = Place("manifest.json", ())
    before, after = (ir.Schema(schema, dialects.DRAFT_2020_12.uri, place) for schema in (old, new))
    return SchemaComparison("tool `t`", direction, before, after, "annotate", "annotate", {}).compare()


def decide(old: Json, new: Json, direction: Literal["input", "output"]) -> str | None:
    """The worst impact of the changes between two schemas."""
    return find_worst_impact(compare(old, new, direction))


def part(schema: Json, **more: Json) -> Subschema:
    """Return a schema as a part of a schema with more keywords."""
    return Subschema(schema, SchemaValidator(schema | more))


def find_values(*group: Subschema) -> list[Json]:
    """The values that a search makes for all of them."""
    return list(Search(1_000, 2, Budget(1_000)).find_values(group))


def recursive(**properties: Json) -> Json:
    """An object whose other properties are objects like itself."""
    return {"type": "object", "additionalProperties": ITSELF, "properties": properties}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"type": "array", "items": {"type": "object"}},
            {"type": "array", "items": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
        ),
        ({"type": "integer"}, {"type": "number"}),
        ({"type": "array", "items": {"enum": ["a"]}}, {"type": "array", "items": {"enum": ["a", "b"]}}),
        ({"type": "object", "required": ["a"]}, {"type": "object"}),
    ],
    ids=["null", "number", "enum", "required"],
)
def test_a_break_beside_a_reference_to_the_root_is_shown(old: Json, new: Json) -> None:
    assert decide(recursive(x=old), recursive(x=new), "output") == "breaking"
    assert decide(recursive(x=new), recursive(x=old), "input") == "breaking"
    assert decide(recursive(x=old), recursive(x=new), "input") == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    amounts.sample(
        [
            (None, "^(?!no)"),
            ("^a", "^(?!ab)a"),
            ("^[a-z]+$", "^(?!con$|aux$)[a-z]+$"),
            ("^[a-z]+$", "^[a-z]+(?<!x)$"),
            ("^[a-z]+$", "^(?=a)[a-z]+$"),
            ("^.*$", "^(?!.*secret).*$"),
            ("^[a-z]{5,}$", "^(?!no)[a-z]{5,}$"),
        ],
        2,
    ),
)
def test_what_a_pattern_looks_at_shows_a_break(old: str | None, new: str) -> None:
    schemas = [recursive() | {"properties": {"s": {"type": "string", **rule}}} for rule in _rules(old, new)]
    assert decide(schemas[0], schemas[1], "input") == "breaking"
    assert decide(schemas[1], schemas[0], "output") == "breaking"


def _rules(*texts: str | None) -> list[Json]:
    return [{} if text is None else {"pattern": text} for text in texts]


def test_a_look_ahead_that_never_fails_breaks_nothing() -> None:
    """What starts with `a` does not start with `no`: no example exists, and none is shown."""
    old, new = ({"type": "object", "properties": {"s": rule}} for rule in _rules("^a", "^(?!no)a"))
    assert decide(old, new, "input") != "breaking"
    assert decide(old, new, "output") != "breaking"


OBJECT = {"type": "object", "properties": {"a": {"type": "array"}}, "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize(
    "more",
    amounts.sample(
        [
            {"not": {"required": ["a"], "properties": {"a": {"enum": [[1], [{"b": 1}]]}}}},
            {"not": {"enum": [{"a": [1]}]}},
            {"if": {"not": {"const": {"a": [1]}}}, "then": {"minProperties": 1}, "else": {"maxProperties": 7}},
            {"oneOf": [{"const": {"a": [1]}}, {"not": {"enum": [{"b": ""}, {"a": [2]}]}}]},
            {"propertyNames": {"pattern": "^(?!no)"}},
        ],
        2,
    ),
    ids=["not", "enum", "if", "oneOf", "propertyNames"],
)
def test_one_keyword_more_only_narrows(more: Json) -> None:
    for place in ("items", "additionalProperties"):
        old, new = ({"type": "object", "properties": {"x": {place: schema}}} for schema in (OBJECT, OBJECT | more))
        assert decide(old, new, "output") == "compatible"
        assert decide(new, old, "input") == "compatible"
        assert decide(old, new, "input") != "compatible"


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        ({"additionalProperties": False}, {"properties": {"a": {}}}),
        ({"additionalProperties": False}, {"patternProperties": {"^a": {}}}),
        ({"items": False}, {"prefixItems": [{}]}),
        ({"contains": {"const": 1}}, {"minContains": 0}),
        ({"unevaluatedProperties": False}, {"anyOf": [{"properties": {"a": {}}}, {"required": ["b"]}]}),
    ],
)
def test_a_keyword_more_that_its_siblings_see_may_widen(schema: Json, more: Json) -> None:
    old, new = ({"type": "object", "properties": {"x": side}} for side in (schema, schema | more))
    assert decide(old, new, "output") == "breaking"
    assert decide(new, old, "input") == "breaking"


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        ({"type": "boolean"}, {"enum": [[1]]}),
        ({"type": "boolean"}, {"const": {"a": 1}}),
        ({"type": ["boolean", "null"]}, {"enum": [[1], {}, "a"]}),
        ({"type": "array"}, {"enum": [{"a": [1]}, True]}),
    ],
)
def test_values_of_other_types_are_refused_anyway(schema: Json, refused: Json) -> None:
    old, new = ({"type": "object", "properties": {"x": side}} for side in (schema, schema | {"not": refused}))
    for direction in DIRECTIONS:
        assert decide(old, new, direction) == decide(new, old, direction) == "compatible"


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        ({"type": "boolean"}, {"enum": [[1], True]}),
        ({"type": ["boolean", "array"]}, {"enum": [[1]]}),
        ({"type": "integer"}, {"const": 1.0}),
        ({"type": "boolean"}, {"enum": [True], "const": True}),
        ({"type": "boolean"}, {"type": "boolean"}),
    ],
)
def test_values_of_its_types_are_refused_now(schema: Json, refused: Json) -> None:
    old, new = ({"type": "object", "properties": {"x": side}} for side in (schema, schema | {"not": refused}))
    assert decide(old, new, "input") == "breaking"
    assert decide(new, old, "output") == "breaking"


def test_what_a_reference_leads_to_is_not_idle() -> None:
    old, new = (
        {
            "type": "object",
            "properties": {
                "x": {"type": "boolean", "not": {"enum": [[number]]}},
                "y": {"$ref": "#/properties/x/not"},
            },
        }
        for number in (1, 2)
    )
    assert decide(old, new, "input") != "compatible"
    assert decide(old, new, "output") != "compatible"


def test_a_keyword_that_a_dialect_does_not_know_refuses_everything() -> None:
    draft = dialects.DRAFT_4.uri
    old, new = (
        {"$schema": draft, "type": "object", "properties": {"x": {"type": "boolean", **more}}}
        for more in ({}, {"not": {"const": [1]}})
    )
    assert decide(old, new, "input") == "breaking"


@pytest.mark.parametrize("dialect", [dialects.DRAFT_7, dialects.DRAFT_2020_12])
def test_a_keyword_is_violated_unless_a_reference_hides_it(dialect: dialects.Dialect) -> None:
    """In draft-07, a reference hides its siblings (Core 8.3)."""
    bound = {"$schema": dialect.uri, "minimum": 1}
    referring = {**bound, "$ref": "#/definitions/any", "definitions": {"any": True}}
    for schema, violations in ((bound, 1), (referring, 1 if dialect.reference_hides_siblings else 2)):
        assert len([*make_invalid(Subschema(schema, SchemaValidator(schema)), ())]) == violations


def test_siblings_of_a_reference_break_where_a_dialect_sees_them() -> None:
    for dialect, worst in ((dialects.DRAFT_7, "compatible"), (dialects.DRAFT_2020_12, "breaking")):
        old, new = (
            {
                "$schema": dialect.uri,
                "type": "object",
                "properties": {"x": {"$ref": "#/definitions/any", **more}},
                "definitions": {"any": {}},
            }
            for more in ({}, {"minLength": 2})
        )
        assert decide(old, new, "input") == decide(new, old, "output") == worst


@pytest.mark.parametrize("limit", ["minimum", "maximum"])
@pytest.mark.parametrize("is_exclusive", [True, False])
def test_a_bound_of_draft_04_violates_itself_if_it_is_exclusive(limit: str, *, is_exclusive: bool) -> None:
    schema = {"$schema": dialects.DRAFT_4.uri, limit: 3, f"exclusive{limit.capitalize()}": is_exclusive}
    whole = Subschema(schema, SchemaValidator(schema))
    found = find_values(whole.negate(schema))
    assert len(found) > 1
    assert (3 in found) == is_exclusive
    assert not any(map(whole.validator.accepts, found))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    """The search of each step that is taken."""
    taken: list[Search] = []
    take = Search._spend

    def count(search: Search) -> None:
        take(search)
        taken.append(search)

    monkeypatch.setattr(Search, "_spend", count)
    return taken


@pytest.mark.parametrize("number", [203, *map(amounts.mark_long, [166, 414])])
def test_a_comparison_ends(number: int, steps: list[Search]) -> None:
    """These took up to 112,800 steps, which are four seconds."""
    chance = random.Random(f"hedge/{number}")
    old = schema_edits.schema(chance)
    new = schema_edits.edited(chance, old)
    found = compare(old, new, "output")
    assert 4_000 < len(steps) <= 14_000
    assert compare(old, new, "output") == found


def test_what_is_too_long_to_search_may_break(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_STEPS", 0)
    monkeypatch.setattr(schemas, "_STEPS_FOR_BLAME", 0)
    monkeypatch.setattr(schemas, "_EFFORT", 0)
    (change,) = compare({"type": "integer"}, {"type": "number"}, "output")
    reason = (
        "could not prove or disprove that no new results are possible: the search for a counterexample took too long"
    )
    assert (change.impact, change.help) == ("may break", reason)


def test_texts_that_do_not_fit_take_steps(steps: list[Search]) -> None:
    pattern = {"type": "string", "pattern": "^(?=b)a"}
    search = Search(1_000, 2, Budget(1_000))
    assert list(search.find_values((Subschema(pattern, SchemaValidator(pattern)),))) == []
    assert 10 < len(steps) < 100


@pytest.mark.parametrize(("references", "is_found"), [(1, True), (12, True), (13, False), (14, False)])
def test_so_many_references_are_followed_for_one_value(references: int, *, is_found: bool) -> None:
    chain = {f"{number}": {"$ref": f"#/$defs/{number + 1}"} for number in range(1, references)}
    last = {f"{references}": {"const": "found"}}
    assert find_values(part({"$ref": "#/$defs/1"}, **{"$defs": chain | last})) == (["found"] if is_found else [])


@pytest.mark.parametrize(("wanted", "refused"), [(1, True), (True, 1), (0, False), (False, 0)])
def test_values_that_are_equal_only_in_python_do_not_contradict_each_other(wanted: Json, refused: Json) -> None:
    group = (part({"const": wanted}), part({"not": {"const": refused}}))
    for ordered in (group, group[::-1]):
        assert find_values(*ordered) == [wanted]


INTEGER, NUMBER = ({"$defs": {"a": {"type": name}}} for name in ("integer", "number"))
NAMED = {"$ref": "#/$defs/a"}


@pytest.mark.parametrize(
    ("wanted", "refused", "is_found"), [(NUMBER, INTEGER, True), (INTEGER, NUMBER, False), (INTEGER, INTEGER, False)]
)
def test_a_reference_contradicts_another_one_only_if_both_lead_to_the_same(
    wanted: Json, refused: Json, *, is_found: bool, steps: list[Search]
) -> None:
    """If they do, that is seen in one step."""
    group = (part(NAMED, **wanted), part({"not": NAMED}, **refused))
    for ordered in (group, group[::-1]):
        steps.clear()
        assert any(value % 1 for value in find_values(*ordered)) == is_found
        assert (len(steps) == 1) == (wanted is refused)


@pytest.mark.parametrize("bound", ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"])
def test_four_multiples_on_each_side_of_a_bound_are_tried(bound: str) -> None:
    tried = {*list_numbers([{bound: 1000}, {"multipleOf": 7}])}
    assert {number for number in tried if number % 7 == 0 and 900 < number < 1100} == {*range(973, 1023, 7)}


def test_a_budget_ends_all_its_searches() -> None:
    budget = Budget(5)
    part = Subschema({"type": "integer"}, SchemaValidator({"type": "integer"}))
    first = islice(Search(1_000, 2, budget).find_values((part,)), 3)
    assert len(list(first)) == 3
    with pytest.raises(ExhaustedError):
        list(Search(1_000, 2, budget).find_values((part,)))
    assert budget.steps == 0


def test_steps_are_kept_for_later_searches() -> None:
    budget = Budget(9)
    part = Subschema({"type": "integer"}, SchemaValidator({"type": "integer"}))
    left = []
    for later in (2, 1, 0):
        budget.reserve_for(later)
        with pytest.raises(ExhaustedError):
            list(Search(1_000, 2, budget).find_values((part,)))
        left.append(budget.steps)
    assert left == [6, 3, 0]


@pytest.mark.parametrize(("levels", "is_cut"), [(0, True), (1, True), (2, False)])
def test_a_search_says_if_more_levels_may_find_more(levels: int, *, is_cut: bool) -> None:
    schema = {"type": "array", "items": {"type": "array", "items": {"const": 1}, "maxItems": 1}, "maxItems": 1}
    search = Search(1_000, levels, Budget(1_000))
    assert ([[1]] in list(search.find_values((Subschema(schema, SchemaValidator(schema)),)))) != is_cut
    assert search.is_cut == is_cut


@pytest.mark.parametrize("keyword", ["dependentRequired", "dependentSchemas"])
def test_keywords_of_later_dialects_mean_nothing_to_a_search(keyword: str) -> None:
    schema = {"$schema": dialects.DRAFT_7.uri, "const": 1, keyword: True}
    assert find_values(part(schema)) == [1]


def test_a_circle_of_references_says_nothing() -> None:
    circle = {"$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert find_values(part({"$ref": "#/$defs/a", "const": 1}, **circle)) == [1]


def test_anchors_are_followed() -> None:
    assert find_values(part({"$ref": "#it"}, **{"$defs": {"it": {"$anchor": "it", "const": 1}}})) == [1]


def test_a_proof_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[SchemaValidator, SchemaValidator]] = []

    def covers(wide: SchemaValidator, narrow: SchemaValidator) -> bool:
        asked.append((wide, narrow))
        return True

    monkeypatch.setattr(memory, "covers", covers)
    proofs = ProofMemory(10_000)
    wide, narrow = SchemaValidator({"type": "number"}), SchemaValidator({"type": "integer"})
    assert proofs.covers(wide, narrow)
    assert proofs.covers(SchemaValidator({"type": "number"}), narrow)
    assert len(asked) == 1
    assert proofs.covers(narrow, wide)
    assert proofs.covers(SchemaValidator({"type": "number"}, "assert"), narrow)
    assert len(asked) == 3


def test_the_first_proof_is_tried_and_no_more_than_its_effort_allows() -> None:
    proofs = ProofMemory(1)
    wide, narrow = SchemaValidator({"type": "number"}), SchemaValidator({"type": "integer"})
    assert proofs.covers(wide, narrow)
    assert proofs.effort == 1 - (len('{"type": "number"}') + len('{"type": "integer"}')) ** 2
    assert not proofs.covers(wide, wide)
    assert proofs.find_rejected(narrow, wide) == ()
    assert ProofMemory(1).find_rejected(narrow, wide) != ()


TEXTS: Json = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("is_added", [False, True])
def test_a_property_that_a_reference_leads_to_is_added_or_gone(
    direction: Literal["input", "output"], is_added: bool
) -> None:
    """Both schemas are complete, but a schema with only this edit has an unresolved reference."""
    linked = {"staged": TEXTS, "rest": {"$ref": "#/properties/staged"}}
    pair = [
        {"type": "object", "additionalProperties": False, "properties": properties}
        for properties in (linked, {"rest": {**TEXTS, "maxItems": 3}, "kept": TEXTS})
    ]
    old, new = pair[::-1] if is_added else pair
    changes = compare(old, new, direction)
    assert find_worst_impact(changes) == "breaking"
    assert any("staged" in change.subject for change in changes)


@pytest.mark.parametrize("maximum", [1e15, 1e308])
def test_large_bounds_beside_steps_are_compared(maximum: float) -> None:
    """The validator of the server replaces such numbers by decimals."""
    old = {"type": "number", "multipleOf": 0.01}
    assert decide(old, {**old, "maximum": maximum}, "input") in ("breaking", "may break")
