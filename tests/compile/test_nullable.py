"""Lists of types sent as `anyOf` (`wire: {nullable: anyOf}`) accept the same instances."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from packages import generate, imported, manifest, tool
from stubwright import ir
from stubwright.compile import pipeline
from stubwright.compile.audience.nullable import split_types
from stubwright.diagnostics import Place
from stubwright.diff.compare import compare
from stubwright.diff.subsumption.proof import SchemaValidator, covers
from stubwright.jsonschema import dialects
from stubwright.project.files import disk

if TYPE_CHECKING:
    from pathlib import Path

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
PLACE = Place("m.yaml", ("tools", 0, "inputSchema"))
NULL = {"type": "null"}


def split(schema: dict[str, Any], *kept: tuple[str | int, ...]) -> Any:
    before = json.dumps(schema)
    result = split_types(schema, dialects.find_dialect(schema) or dialects.DRAFT_2020_12, PLACE, kept)
    assert json.dumps(schema) == before, "the schema itself is unchanged"
    return result


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, NULL]}),
        ({"type": "string"}, {"type": "string"}),
        ({"type": ["string"], "minLength": 1}, {"type": "string", "minLength": 1}),
        ({"type": ["null"]}, NULL),
        (
            {"title": "T", "type": ["string", "null"], "minLength": 1, "default": None, "x-a": 1},
            {"title": "T", "anyOf": [{"type": "string", "minLength": 1}, NULL], "default": None, "x-a": 1},
        ),
        (
            {"type": ["null", "object"], "properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"]},
            {
                "anyOf": [
                    NULL,
                    {
                        "type": "object",
                        "properties": {"a": {"anyOf": [{"type": "integer"}, NULL]}},
                        "required": ["a"],
                    },
                ]
            },
        ),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
        (
            {"type": ["string", "null"], "enum": ["a"]},
            {"anyOf": [{"type": "string"}, NULL], "enum": ["a"]},
        ),
        (
            {"type": ["string", "integer", "null"], "minLength": 2, "minimum": 3},
            {"anyOf": [{"type": "string"}, {"type": "integer"}, NULL], "minLength": 2, "minimum": 3},
        ),
        (
            {"type": ["string", "null"], "anyOf": [{"minLength": 2}, NULL]},
            {"anyOf": [{"minLength": 2}, NULL], "allOf": [{"anyOf": [{"type": "string"}, NULL]}]},
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": ["integer", "null"], "minimum": 1}}},
            {
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"anyOf": [{"type": "integer", "minimum": 1}, NULL]}},
            },
        ),
        (  # the target of a reference does not move
            {
                "properties": {
                    "a": {"type": ["array", "null"], "items": {"type": "string"}},
                    "b": {"$ref": "#/properties/a/items"},
                }
            },
            {
                "properties": {
                    "a": {"anyOf": [{"type": "array"}, NULL], "items": {"type": "string"}},
                    "b": {"$ref": "#/properties/a/items"},
                }
            },
        ),
        (  # before 2019-09, what is next to a reference has no effect
            {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#/definitions/A", "type": ["string", "null"]}}}
            | {"definitions": {"A": {"type": "string"}}},
            {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#/definitions/A", "type": ["string", "null"]}}}
            | {"definitions": {"A": {"type": "string"}}},
        ),
        ({"enum": [{"type": ["string", "null"]}]}, {"enum": [{"type": ["string", "null"]}]}),
        (
            {"properties": {"type": {"type": ["string", "null"]}}},
            {"properties": {"type": {"anyOf": [{"type": "string"}, NULL]}}},
        ),
    ],
)
def test_each_type_becomes_an_alternative_and_the_schema_accepts_the_same(
    schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = split(schema)
    assert result == expected
    before, after = SchemaValidator(schema), SchemaValidator(result)
    assert covers(before, after)
    assert covers(after, before)


def test_marked_places_do_not_move() -> None:
    schema = {"type": ["array", "null"], "items": {"type": "string"}, "minItems": 1}
    assert split(schema, ("items",)) == {"anyOf": [{"type": "array"}, NULL], "items": {"type": "string"}, "minItems": 1}


def read(folder: Path, value: dict[str, Any]) -> ir.Manifest:
    path = folder / "manifest.json"
    path.write_text(json.dumps(value))
    result = pipeline.compile_manifest(str(path), disk.Disk(), "manifest.json")
    assert result.manifest is not None
    return result.manifest


@pytest.mark.parametrize("refs", ["bundled", "inlined"])
def test_it_changes_the_wire_alone(refs: str, tmp_path: Path) -> None:
    name = {"type": ["string", "null"], "minLength": 1}
    say = tool("say", {"name": name, "place": {"$ref": "#/schemas/Place"}}, outputSchema={"$ref": "#/schemas/Place"})
    place = {"type": "object", "properties": {"city": name}}
    plain = manifest([say], schemas={"Place": place}, emit=["server"], wire={"refs": refs})
    split_up = {**plain, "wire": {"refs": refs, "nullable": "anyOf"}}
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, value in ((one, plain), (other, split_up)):
        folder.mkdir()
        generate(folder, value)
    models = [(folder / "sample_mcp" / "models" / "say.py").read_text() for folder in (one, other)]
    assert models[0] == models[1]
    with imported(other, "sample_mcp") as package:
        wire = package.TOOLS["say"].definition
    assert wire["inputSchema"]["properties"]["name"] == {"anyOf": [{"type": "string", "minLength": 1}, NULL]}
    assert '["string", "null"]' not in json.dumps(wire)
    changes = compare(read(one, plain), read(other, split_up))
    assert [(change.code, change.impact) for change in changes] == [("SW507", "cosmetic")]
