"""`diff` of manifests with insignificant reorderings reports no break, and does not fail."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import amounts
import schema_edits
from amounts import choose
from stubwright import cli
from stubwright.diff.subsumption.orders import align
from stubwright.jsonschema import dialects

Json = Any

TOOLS = choose("STUBWRIGHT_WHOLE_DIFF", 20, 40, 600)
DIALECTS = (dialects.DRAFT_2020_12, dialects.DRAFT_7)


def differences(folder: Path, old: Json, new: Json, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Any]]:
    """The status of `stubwright diff`, and the changes that it names."""
    for name, value in (("old", old), ("new", new)):
        (folder / f"{name}.json").write_text(json.dumps(value))
    status = cli.run(["diff", str(folder / "old.json"), str(folder / "new.json"), "--format", "json"])
    printed = capsys.readouterr()
    assert printed.err == ""
    return status, json.loads(printed.out)["changes"]


def manifest(*schemas: Json) -> Json:
    tools = [
        {"name": f"tool_{number}", "description": "A tool.", "inputSchema": schema, "outputSchema": schema}
        for number, schema in enumerate(schemas)
    ]
    return {"stubwright": 1, "server": {"name": "orders", "version": "1.0.0"}, "tools": tools}


@pytest.mark.parametrize("dialect", amounts.sample(DIALECTS, 1), ids=lambda dialect: str(dialect.name))
def test_an_order_that_means_nothing_breaks_nobody(
    dialect: dialects.Dialect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(1)
    olds: list[Json] = []
    while len(olds) < TOOLS:
        schema = {"$schema": dialect.uri, **schema_edits.schema(chance)}
        (tmp_path / "one.json").write_text(json.dumps(manifest(schema)))
        if cli.run(["check", str(tmp_path / "one.json")]) == 0:  # some have recursive references
            olds.append(schema)
    capsys.readouterr()
    news = [schema_edits.reorder(chance, schema) for schema in olds]
    assert json.dumps(olds) != json.dumps(news)
    status, changes = differences(tmp_path, manifest(*olds), manifest(*news), capsys)
    worse = [change for change in changes if change["impact"] != "cosmetic"]
    # The class of an otherwise ambiguous alternative is named after its required properties: `…WithNameAndAge`.
    assert [change for change in worse if change["side"] == "wire" or "With" not in str(change)] == []
    assert status == 0 or worse


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}),
        ({"type": ["string", "null"]}, {"type": ["null", "string"]}),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, {"type": "array", "items": {"enum": ["b", "a"]}}),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ({"$ref": "#/schemas/Level"}, {"$ref": "#/schemas/Level"}),
    ],
    ids=["enum", "type", "items", "alternatives", "shared"],
)
def test_what_is_reordered_is_cosmetic_at_most(
    old: Json, new: Json, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [manifest({"type": "object", "properties": {"a": schema}, "required": ["a"]}) for schema in (old, new)]
    for side, values in zip(sides, (["low", "high"], ["high", "low"]), strict=True):
        side["schemas"] = {"Level": {"enum": values}}
    status, changes = differences(tmp_path, sides[0], sides[1], capsys)
    assert status == 0
    assert {change["impact"] for change in changes} <= {"cosmetic"}


def items(*values: Json) -> Json:
    return {"type": "array", "items": {"enum": [*values]}}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"anyOf": [items(1), items(2)]}, {"anyOf": [items(2), items(1)]}),
        ({"anyOf": [items(1, 2), items(3, 4)]}, {"anyOf": [items(4, 3), items(2, 1)]}),
        (
            {"oneOf": [{"properties": {"a": items(1, 2)}}, {"properties": {"a": items(3, 4)}}]},
            {"oneOf": [{"properties": {"a": items(4, 3)}}, {"properties": {"a": items(2, 1)}}]},
        ),
        ({"allOf": [{"const": [1, 2]}, {"const": [2, 1]}]}, {"allOf": [{"const": [2, 1]}, {"const": [1, 2]}]}),
    ],
    ids=["items", "enum", "properties", "const"],
)
def test_alternatives_find_their_old_places(dialect: dialects.Dialect, old: Json, new: Json) -> None:
    assert align(old, new, dialect) == old


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"required": ["b", "a"], "properties": {"b": {"type": ["null", "string"]}, "a": {}}}),
        ({}, {"anyOf": [{"type": "string"}, {"type": "null"}], "not": {"enum": [2, 1]}}),
        ({"required": ["a"], "properties": {"a": {}}}, {}),
        ({"type": "string"}, {"type": ["null", "string"]}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"items": [{"enum": [1, 2]}]}, {"items": {"enum": [2, 1]}}),
        ({"items": {"enum": [1, 2]}}, {"items": [{"enum": [2, 1]}]}),
        ({"properties": {"a": True}}, {"properties": {"a": {"enum": [2, 1]}}}),
        ({"default": {"enum": [1, 2]}, "const": [1, 2]}, {"default": {"enum": [2, 1]}, "const": [2, 1]}),
    ],
    ids=["constraints", "alternatives", "removed", "more-types", "a-type", "item", "tuple", "boolean", "values"],
)
def test_what_has_no_order_to_take_over_stays(dialect: dialects.Dialect, old: Json, new: Json) -> None:
    assert align(old, new, dialect) == new
