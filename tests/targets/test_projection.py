"""Tools as functions of models' APIs, and back: the output is accepted, and round trips are lossless."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import amounts
import instances
from corpus import files
from stubwright import targets
from stubwright_runtime.projection.codecs import NotExpressibleError, ProjectionError
from stubwright_runtime.projection.forms import FORMS
from stubwright_runtime.projection.functions import ProjectedTool, project_tools
from suite import VALUE, groups

pytestmark = pytest.mark.corpus

Json = Any
REWRITTEN = [name for name, form in FORMS.items() if form.rewrites]
STRICT = "openai-strict"


def project(schema: Json, target: str = STRICT, name: str = "get") -> ProjectedTool:
    (projected,) = project_tools([{"name": name, "description": "d", "inputSchema": schema}], FORMS[target])
    return projected


def refused(projected: ProjectedTool, target: str) -> list[str]:
    """Return the violations of the table of targets by a function."""
    definition = {"name": projected.name, "description": "d", "inputSchema": projected.parameters}
    found = targets.find_violations(targets.make_list([definition], "s"), targets.TARGETS[target])
    return [finding.what for finding in found if finding.tool is not None]


def with_value(schema: Json, *, is_required: bool = True) -> dict[str, Json]:
    return {"type": "object", "properties": {"v": schema}, **({"required": ["v"]} if is_required else {})}


ROUNDS: Mapping[str, tuple[Json, Json, Json]] = {
    "an optional property": (with_value({"type": "string"}, is_required=False), {}, {"v": None}),
    "an optional property that is given": (with_value({"type": "string"}, is_required=False), {"v": "x"}, {"v": "x"}),
    "null where null is a value": (
        with_value({"type": ["string", "null"]}, is_required=False),
        {"v": None},
        {"v": {"value": None}},
    ),
    "nothing where null is a value": (with_value({"type": ["string", "null"]}, is_required=False), {}, {"v": None}),
    "nothing where null is the default": (
        with_value({"type": ["string", "null"], "default": None}, is_required=False),
        {},
        {"v": None},
    ),
    "a single alternative that is nullable": (
        with_value({"anyOf": [{"type": ["object", "null"], "additionalProperties": {"type": "integer"}}]}),
        {"v": {"a": 1}},
        {"v": [{"key": "a", "value": 1}]},
    ),
    "an open map": (
        with_value({"type": "object", "additionalProperties": {"type": "integer"}}),
        {"v": {"a": 1, "": 2}},
        {"v": [{"key": "a", "value": 1}, {"key": "", "value": 2}]},
    ),
    "further properties": (
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
        {"a": "x", "b": 1},
        {"a": "x", "further_properties": [{"key": "b", "value": 1}]},
    ),
    "anything": (with_value({}), {"v": {"a": [None]}}, {"v": '{"a": [null]}'}),
    "a text that looks like a number": (with_value({}), {"v": "1"}, {"v": '"1"'}),
    "a tuple": (
        with_value({"type": "array", "prefixItems": [{"type": "string"}, {}]}),
        {"v": ["a", 1]},
        {"v": '["a", 1]'},
    ),
    "a schema that contains itself": (
        {
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/Tree"}},
            "required": ["tree"],
            "$defs": {"Tree": {"type": "object", "properties": {"below": {"$ref": "#/$defs/Tree"}}}},
        },
        {"tree": {"below": {"below": {}}}},
        {"tree": {"below": '{"below": {}}'}},
    ),
    "alternatives at the root": (
        {
            "type": "object",
            "anyOf": [
                {"properties": {"content": {"type": "string"}}, "required": ["content"]},
                {"properties": {"source": {"type": "string"}}, "required": ["source"]},
            ],
        },
        {"source": "x"},
        {"content": None, "source": "x"},
    ),
    "objects in a union": (
        with_value(
            {
                "anyOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
                    {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}},
                ]
            }
        ),
        {"v": [{"k": "x"}]},
        {"v": [[{"key": "k", "value": "x"}]]},
    ),
    "a constant": (with_value({"const": 3}), {"v": 3}, {"v": 3}),
    "a name that is not allowed": (
        {
            "type": "object",
            "properties": {"a[]": {"type": "string"}, "a__": {"type": "string"}},
            "required": ["a[]", "a__"],
        },
        {"a[]": "x", "a__": "y"},
        {"_a__": "x", "a__": "y"},
    ),
}


@pytest.mark.parametrize("case", ROUNDS)
def test_there_and_back(case: str) -> None:
    schema, contract, function = ROUNDS[case]
    projected = project(schema)
    assert refused(projected, STRICT) == []
    assert jsonschema_rs.is_valid(dict(projected.parameters), function)
    assert projected.encode(contract) == function
    assert projected.decode(function) == contract


def test_enums_of_gemini_are_strings() -> None:
    projected = project(with_value({"enum": [1, "two", None]}), "gemini")
    assert projected.parameters["properties"]["v"]["enum"] == ["1", "two", "null"]
    assert [projected.decode({"v": text})["v"] for text in ("1", "two", "null")] == [1, "two", None]
    assert projected.encode({"v": 1}) == {"v": "1"}


@pytest.mark.parametrize(
    ("schema", "given", "message"),
    [
        (with_value({}), {"v": "{"}, "v must be JSON text"),
        (with_value({}), {"v": "NaN"}, "v must be JSON text: NaN is not JSON"),
        (
            with_value({"type": "object", "additionalProperties": {"type": "string"}}),
            {"v": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]},
            "v has the key 'a' twice",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            {"a": "x", "further_properties": [{"key": "a", "value": "y"}]},
            "further_properties has the key 'a' twice",
        ),
    ],
)
def test_what_cannot_be_read_says_why(schema: Json, given: Json, message: str) -> None:
    with pytest.raises(ProjectionError) as error:
        project(schema).decode(given)
    assert str(error.value).startswith(message)


def test_what_the_model_made_up_is_left_for_the_contract() -> None:
    projected = project(with_value({"type": "object", "additionalProperties": {"type": "integer"}}))
    assert projected.decode({"v": "no list", "w": 1}) == {"v": "no list", "w": 1}


def test_objects_of_gemini_have_properties() -> None:
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    (ping,) = project_tools([{"name": "ping", "description": "d", "inputSchema": empty}], FORMS["gemini"])
    assert ping.function == {"name": "ping", "description": "d"}
    assert ping.decode({}) == {}
    nested = project({"type": "object", "properties": {"a": empty, "b": {"type": "array", "items": empty}}}, "gemini")
    assert nested.parameters["properties"]["a"]["type"] == "string"
    assert refused(nested, "gemini") == []
    assert nested.encode({"a": {}, "b": [{}]}) == {"a": "{}", "b": ["{}"]}
    assert nested.decode({"a": "{}", "b": ["{}"]}) == {"a": {}, "b": [{}]}


@pytest.mark.parametrize("target", ["gemini", "gemini-developer-api"])
def test_empty_properties_are_named(target: str) -> None:
    tools = [{"name": "ping", "inputSchema": {"type": "object", "properties": {}}}]
    (finding,) = targets.find_violations(targets.make_list(tools, "s"), targets.TARGETS[target])
    assert (finding.what, finding.pointer) == ("has an object with `properties: {}`", ("inputSchema", "properties"))


def test_bounds_that_have_no_place_are_said() -> None:
    projected = project(with_value({"type": "string", "minLength": 2, "pattern": "^(?!a)", "description": "A name."}))
    said = projected.parameters["properties"]["v"]
    assert said == {"type": "string", "description": 'A name. (pattern: "^(?!a)"; minLength: 2)'}


def test_loose_apis_get_the_schema_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"oneOf": [{"type": "string"}, {"minimum": 1}]}},
        "minProperties": 1,
    }
    for name in ("openai", "anthropic", "bedrock"):
        assert project(schema, name).parameters == schema


@pytest.mark.parametrize("target", ["openai", "openai-responses", "openai-strict"])
def test_roots_of_openai_have_properties(target: str) -> None:
    assert refused(project({"type": "object"}, target), target) == []


def test_names_of_tools_are_mended() -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("a.b", "a_b", "2fa", "x" * 70)]
    names = [projected.name for projected in project_tools(tools, FORMS["gemini"])]
    assert names == ["a.b", "a_b", "_2fa", names[3]]
    assert len(names[3]) <= 64
    assert [each.name for each in project_tools(tools, FORMS["openai"])][:3] == ["_a_b", "a_b", "2fa"]


@pytest.mark.parametrize("target", amounts.sample(FORMS, 3))
def test_all_tools_of_public_servers_are_taken(target: str, corpus: Path) -> None:
    tools = [tool for path in files(corpus) for tool in json.loads(path.read_text("utf-8"))["tools"]]
    assert tools
    for tool in tools:
        projected = project(tool["inputSchema"], target, tool["name"])
        assert refused(projected, target) == [], tool["name"]


@pytest.mark.parametrize("target", amounts.sample(FORMS, 1))
def test_nothing_changes_on_the_way(target: str, corpus: Path) -> None:
    """All instances that a function can express return unchanged, and conform to its schema."""
    counts = {True: 0, False: 0}
    for path in files(corpus):
        for tool in json.loads(path.read_text("utf-8"))["tools"]:
            projected = project(tool["inputSchema"], target, tool["name"])
            for instance in instances.valid(tool["inputSchema"], tool["name"], 8):
                _goes_round(projected, instance, counts, target)
    assert counts[True] > counts[False]


@pytest.mark.parametrize("target", amounts.sample(REWRITTEN, 1))
def test_what_a_model_may_write_is_read_in_one_way(target: str, corpus: Path) -> None:
    """An instance of the function's schema maps to an instance of the contract, which a round trip does not change."""
    read = 0
    for path in files(corpus):
        for tool in json.loads(path.read_text("utf-8"))["tools"]:
            projected = project(tool["inputSchema"], target, tool["name"])
            for instance in instances.valid(projected.parameters, tool["name"], 4):
                try:
                    meant = projected.decode(instance)
                    again = projected.encode(meant)
                except (ProjectionError, NotExpressibleError):
                    continue
                read += 1
                assert instances.same(projected.decode(again), meant), (tool["name"], instance, meant)
    assert read


@pytest.mark.parametrize("target", amounts.sample(REWRITTEN, 2))
@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_the_official_cases_go_round(target: str, draft: str, corpus: Path) -> None:
    counts = {True: 0, False: 0}
    for group in groups(corpus, draft):
        projected = project(group.tool["inputSchema"], target)
        assert refused(projected, target) == [], group.name
        for test in group.tests:
            if test["valid"]:
                _goes_round(projected, {VALUE: test["data"]}, counts, target)
    assert counts[True] > 100


def _goes_round(projected: ProjectedTool, instance: Json, counts: dict[bool, int], target: str) -> None:
    try:
        written = projected.encode(instance)
    except NotExpressibleError:
        counts[False] += 1
        return
    counts[True] += 1
    assert instances.same(projected.decode(written), instance), (projected.tool, instance, written)
    if target.endswith("-strict"):
        assert _takes(projected.parameters, written), (projected.tool, instance, written)


def _takes(schema: Json, instance: Json) -> bool:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=False).is_valid(instance)
