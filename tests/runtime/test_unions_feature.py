"""Whether a package has what tells the alternatives of a union apart: wherever its models have alternatives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import modules
from toolwright.codegen.features import may_be_union
from toolwright_runtime import model, unions

PLAIN: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"enum": ["x", 1, None]}}, "additionalProperties": {"type": "number"}},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "array", "items": {}}}},
]
OTHERS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}, {"type": "array"}]}}},
    {"type": "object", "properties": {"a": {"type": ["object", "array"]}}},
    {"type": "object", "properties": {"a": {"properties": {"b": {"type": "string"}}}}},
    {"type": "object", "patternProperties": {"^a": {"type": "object"}}},
]


class Counting:
    """Counts the unions whose alternatives have to be told apart."""

    note = staticmethod(unions.note)
    refer = staticmethod(unions.refer)

    def __init__(self) -> None:
        self.count = 0

    def choose(self, union: Any, exact: Callable[[Any], Any]) -> Any:
        made = unions.choose(union, exact)
        self.count += made["type"] != "union"
        return made


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    counting = Counting()
    monkeypatch.setattr(unions, "install", lambda: model.ALTERNATIVES.__setitem__(slice(None), [cast("Any", counting)]))
    yield counting
    model.ALTERNATIVES.clear()


def build(wire: Any, result: Any, name: str) -> None:
    """Make the models of a tool, and what validates with them."""
    made, loaded = modules.made(wire, result, name)
    for each in made.names:
        getattr(loaded, each).model_rebuild(force=True)


def test_a_schema_with_one_type_everywhere_needs_nothing(counting: Counting) -> None:
    for number, schema in enumerate(PLAIN):
        assert not may_be_union(schema)
        build(schema, None, f"plain_{number}")
    assert counting.count == 0
    assert all(map(may_be_union, OTHERS))
    either = {"type": "object", "properties": {"b": {"type": "string"}}}
    build({"type": "object", "properties": {"a": {"anyOf": [either, {"type": "array"}]}}}, None, "either")
    assert counting.count > 0


def test_no_real_tool_lacks_it(corpus: Path, counting: Counting) -> None:
    plain = 0
    for path in sorted((corpus / "tools").glob("*.json"))[::12]:
        for wire in json.loads(path.read_text("utf-8"))["tools"]:
            if not any(map(may_be_union, [wire["inputSchema"], *filter(None, [wire.get("outputSchema")])])):
                plain += 1
                build(wire["inputSchema"], wire.get("outputSchema"), wire["name"])
                assert counting.count == 0, wire["name"]
    assert plain > 50
