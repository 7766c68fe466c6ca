"""Estimated result sizes distinguish a list of deep records from a one-line result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openapi_documents import imported
from stubwright.importers import large_results
from stubwright.jsonschema.sizes import ITEMS, estimate_characters

TEXT = {"type": "string"}
RECORD = {"type": "object", "properties": {f"field_{number}": TEXT for number in range(10)}}


@pytest.mark.parametrize(
    ("schema", "like"),
    [
        ({"const": "always"}, "always"),
        ({"enum": ["on", "off"]}, "off"),
        ({"type": "boolean"}, True),
        ({"type": ["integer", "null"]}, 10000),
        ({"type": "string", "format": "date-time"}, "2026-11-24T14:00:00Z"),
        ({"type": "string", "maxLength": 2}, "de"),
        (RECORD, dict.fromkeys(RECORD["properties"], "about twenty letters.")),
        ({"type": "array", "items": TEXT, "maxItems": 2}, ["about twenty letters.", "about twenty letters."]),
        ({"anyOf": [TEXT, RECORD]}, "about twenty letters."),
    ],
)
def test_an_estimate_is_near_a_typical_value(schema: Any, like: Any) -> None:
    typical = len(json.dumps(like, separators=(",", ":")))
    assert typical / 1.5 <= estimate_characters(schema) <= typical * 1.5


def test_a_list_of_records_counts_each() -> None:
    one = estimate_characters(RECORD)
    listed = {"type": "object", "properties": {"data": {"type": "array", "items": RECORD}}}
    assert ITEMS * one <= estimate_characters(listed) <= ITEMS * one * 1.1
    tags = {"type": "object", "properties": {"tags": {"type": "array", "items": TEXT}}}
    inner = {"type": "array", "items": tags}
    assert estimate_characters(inner) < ITEMS * ITEMS * estimate_characters(TEXT) / 3, "lists inside are shorter"
    assert estimate_characters({"type": "object", "properties": {"body": TEXT}}) > 300, "a body is prose"


def test_circles_end() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"name": TEXT}}
    node["properties"] |= {name: {"$ref": "#/$defs/Node"} for name in ("left", "right")}
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    assert 0 < estimate_characters(schema) < 100_000
    assert estimate_characters({"$ref": "#/nowhere"}) == 2
    assert estimate_characters(True) > 0


def test_an_import_names_the_tools_whose_results_are_large(tmp_path: Path) -> None:
    wide = {"type": "object", "properties": {f"field_{number}": {"type": "string"} for number in range(100)}}
    document: dict[str, Any] = {"servers": [{"url": "https://h.example"}], "paths": {}}
    for name, schema in (("all", {"type": "array", "items": wide}), ("one", wide)):
        content = {"application/json": {"schema": schema}}
        responses = {"200": {"description": "x", "content": content}}
        document["paths"][f"/{name}"] = {"get": {"operationId": name, "responses": responses}}
    made = imported(tmp_path, document)
    (note,) = [note for note in made.cost if "large results" in note]
    size = large_results.estimate_tokens({"all": {"type": "array", "items": wide}})["all"]
    assert size > large_results.LARGE
    assert note == (f"tools with large results (estimated tokens): `all` {size:,}; reduce them with `select` or `page`")
