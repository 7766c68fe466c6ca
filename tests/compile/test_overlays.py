"""Overlays on the wire format of included tools: JSON merge patches, and the locations of their errors."""

from __future__ import annotations

from typing import Any

import pytest

from memory import Files, load
from stubwright.compile import overlays, pipeline
from stubwright.compile.overlays import merge_patch
from stubwright.compile.resolve import resolve

Json = Any


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [  # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches(target: Json, patch: Json, expected: Json) -> None:
    assert merge_patch(target, patch) == expected


INNER = """
    schemas:
      Pet: {type: object, properties: {id: {type: integer}}}
    tools:
      - name: get_pet
        description: Old.
        inputSchema: {type: object, properties: {id: {type: integer, description: Old}}, required: [id]}
        outputSchema: {$ref: "#/schemas/Pet"}
    overlay:
      tools:
        get_pet: {title: Inner, description: Inner}
"""
OUTER = """
    stubwright: 1
    server: {name: pets, version: "1"}
    include: [{path: api/pets.yaml, prefix: p_}]
    schemas:
      Mine: {type: object, properties: {name: {type: string}}}
    overlay:
      tools:
        p_get_pet:
          title: Outer
          inputSchema: {required: null, properties: {id: {description: null}, pet: {$ref: "#/schemas/Mine"}}}
          outputSchema: {$ref: "api/pets.yaml#/schemas/Pet", additionalProperties: false}
          policy: {confirm: true}
"""


def test_the_strongest_overlay_wins_and_references_count_from_its_file() -> None:
    bundle = load("m.yaml", **{"m.yaml": OUTER, "api/pets.yaml": INNER})
    (tool,) = resolve(bundle).tools
    assert tool.wire["title"] == "Outer"
    assert tool.wire["description"] == "Inner"
    assert tool.wire["inputSchema"] == {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "pet": {"$ref": "../m.yaml#/schemas/Mine"}},
    }
    assert tool.wire["outputSchema"] == {"$ref": "#/schemas/Pet", "additionalProperties": False}
    assert tool.extension == {"policy": {"confirm": True}}


def test_what_is_served_is_the_patched_tool() -> None:
    made = pipeline.compile_manifest("m.yaml", Files(**{"m.yaml": OUTER, "api/pets.yaml": INNER}))
    assert made.manifest is not None, made.diagnostics
    (tool,) = made.manifest.tools
    assert tool.definition["title"] == "Outer"
    assert "required" not in tool.definition["inputSchema"]
    [pet] = tool.definition["outputSchema"]["allOf"]
    assert pet["properties"] == {"id": {"type": "integer"}}
    assert set(overlays.FIELDS) >= {"title", "inputSchema"}
