"""Composed schemas: objects in `allOf`, and properties that are read-only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openapi_documents import imported, operation
from stubwright_runtime.schema.validation import Validator

NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SIZE: dict[str, Any] = {"type": "object", "properties": {"size": {"type": "integer"}}}
CLOSED = {"additionalProperties": False}


def input_of(tmp_path: Path, schema: Any, **schemas: Any) -> tuple[dict[str, Any], Any]:
    """Return the schema of an argument that is a list of `schema`, and the import's notes."""
    body = {"content": {"application/json": {"schema": {"type": "array", "items": schema}}}}
    document = {
        "servers": [{"url": "https://h.example"}],
        "components": {"schemas": schemas},
        "paths": {"/x": {"post": {"operationId": "send", "requestBody": body}}},
    }
    made = imported(tmp_path, document)
    item = made.manifest["tools"][0]["inputSchema"]["properties"]["body"]["items"]
    return {**item, "$defs": {}, "schemas": made.manifest.get("schemas", {})}, made


@pytest.mark.parametrize(
    "whole",
    [
        {"allOf": [{**NAME, **CLOSED}, {**SIZE, **CLOSED}]},
        {"allOf": [{"$ref": "#/components/schemas/Name"}, {"$ref": "#/components/schemas/Size"}]},
        {"allOf": [{"$ref": "#/components/schemas/Name"}, SIZE]},
        {"allOf": [{"$ref": "#/components/schemas/Name", "description": "d"}], **SIZE},
        {"allOf": [{"allOf": [{"$ref": "#/components/schemas/Name"}]}, {**SIZE, **CLOSED}]},
        {"allOf": [NAME], **SIZE, **CLOSED},
    ],
)
def test_parts_that_exclude_each_other_are_one_object_that_is_closed(whole: dict[str, Any], tmp_path: Path) -> None:
    schema, made = input_of(tmp_path, whole, Name={**NAME, **CLOSED}, Size={**SIZE, **CLOSED})
    validator = Validator({key: value for key, value in schema.items() if key != "schemas"})
    assert validator.find_errors({"name": "a", "size": 1}) == []
    assert validator.find_errors({"name": "a"}) == []
    assert validator.find_errors({"size": 1}) == ["name: required, but missing"]
    assert validator.find_errors({"name": "a", "other": 1}) == ["other: unknown key"]
    assert any("forbid each other's properties" in note for note in made.notes)


def body_of(tmp_path: Path, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of the arguments of a tool whose body is `allOf` these."""
    body = {"required": True, "content": {"application/json": {"schema": {"allOf": [*parts], **more}}}}
    document = {
        "servers": [{"url": "https://h.example"}],
        "paths": {"/x": {"post": {"operationId": "send", "requestBody": body}}},
    }
    schema: dict[str, Any] = imported(tmp_path, document).manifest["tools"][0]["inputSchema"]
    return schema


def named(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"name": {"type": "string", **schema}}}


@pytest.mark.parametrize(
    ("parts", "more"),
    [
        ([named(minLength=2), named(maxLength=4)], {}),
        ([named(minLength=2, maxLength=4), named(description="A name.", minLength=2, maxLength=4)], {}),
        ([named(minLength=2)], named(maxLength=4)),
    ],
)
def test_what_two_parts_say_of_a_property_holds(
    parts: list[dict[str, Any]], more: dict[str, Any], tmp_path: Path
) -> None:
    """If they say the same, it is an argument; otherwise the body is one, with both."""
    schema = body_of(tmp_path, *parts, **more)
    is_flat = "name" in schema["properties"]
    assert is_flat == (parts[-1]["properties"]["name"].get("description") is not None)
    validator = Validator(schema)
    for name, fits in {"ab": True, "a": False, "abcde": False}.items():
        value = {"name": name} if is_flat else {"body": {"name": name}}
        assert (validator.find_errors(value) == []) == fits, name


SIZED: dict[str, Any] = {**SIZE, "required": ["size"]}
WEIGHT: dict[str, Any] = {"type": "object", "properties": {"weight": {"type": "number"}}, "required": ["weight"]}


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
@pytest.mark.parametrize(
    ("common", "alternatives"),
    [
        ({**NAME, **CLOSED}, [{**SIZED, **CLOSED}, {"$ref": "#/components/schemas/Weight"}]),
        ({"$ref": "#/components/schemas/Name"}, [SIZED, WEIGHT]),
        (NAME, [{**SIZED, **CLOSED}, {"$ref": "#/components/schemas/Weight"}]),
    ],
)
def test_alternatives_that_exclude_what_they_add_to_are_parts_too(
    common: Any, alternatives: list[Any], keyword: str, tmp_path: Path
) -> None:
    shared = {"Name": {**NAME, **CLOSED}, "Weight": {**WEIGHT, **CLOSED}}
    schema, made = input_of(tmp_path, {"allOf": [common, {keyword: alternatives}]}, **shared)
    validator = Validator({key: value for key, value in schema.items() if key != "schemas"})
    assert validator.find_errors({"name": "a", "size": 1}) == []
    assert validator.find_errors({"name": "a", "weight": 1.5}) == []
    assert validator.find_errors({"name": "a"}) != []
    assert validator.find_errors({"name": "a", "size": 1, "other": 1}) != []
    assert any("forbid each other's properties" in note for note in made.notes)
    assert not any("accept no call" in note for note in made.notes)


def test_closed_alternatives_that_add_nothing_are_left_as_they_are(tmp_path: Path) -> None:
    kinds = [{**NAME, **CLOSED, "minProperties": 1}, {**SIZE, **CLOSED, "minProperties": 1}]
    schema, made = input_of(tmp_path, {"allOf": [{"type": "object"}, {"oneOf": kinds}]})
    assert schema["allOf"][1] == {"oneOf": kinds}
    assert not any("forbid" in note for note in made.notes)


def test_parts_that_agree_are_left_as_they_are(tmp_path: Path) -> None:
    whole = {"allOf": [{"$ref": "#/components/schemas/Name"}, {"required": ["name"]}]}
    schema, made = input_of(tmp_path, whole, Name={**NAME, **CLOSED})
    assert schema["allOf"] == [{"$ref": "#/schemas/Name"}, {"required": ["name"]}]
    assert not any("forbid" in note for note in made.notes)


def test_a_body_in_closed_parts_has_its_properties_as_arguments(tmp_path: Path) -> None:
    body = {"content": {"application/json": {"schema": {"allOf": [{**NAME, **CLOSED}, {**SIZE, **CLOSED}]}}}}
    tool = operation(tmp_path, {"requestBody": body}, method="post")
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {**NAME["properties"], **SIZE["properties"]},
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_tool_that_accepts_nothing_is_told(tmp_path: Path) -> None:
    both = {"allOf": [{"type": "string"}, {"type": "integer"}]}
    fits = {"type": "object", "properties": {"x": both, "y": {"type": "string"}}, "required": ["y"]}
    bad = {**fits, "required": ["x"]}
    document: dict[str, Any] = {"servers": [{"url": "https://h.example"}], "paths": {}}
    for name, schema in (("fits", fits), ("bad", bad), ("worse", bad)):
        body = {"content": {"application/json": {"schema": schema}}}
        document["paths"][f"/{name}"] = {"post": {"operationId": name, "requestBody": body}}
    made = imported(tmp_path, document)
    assert ("2 tools may reject every call, because their schemas contradict themselves: `bad`, `worse`") in made.notes


REFERENCE: dict[str, Any] = {
    "type": "object",
    "required": ["id", "type"],
    "properties": {"id": {"type": "string", "readOnly": True}, "type": {"type": "string"}, "href": {"readOnly": True}},
}


def test_what_a_nested_object_needs_stays_although_it_is_read_only(tmp_path: Path) -> None:
    """PagerDuty's `ReferenceRequest`: an incident refers to a service by an `id` that only the API makes."""
    schema, _ = input_of(tmp_path, {"type": "object", "properties": {"service": REFERENCE}})
    service = schema["properties"]["service"]
    assert list(service["properties"]) == ["id", "type"]
    assert service["required"] == ["type"]


@pytest.mark.parametrize("at", ["body", "schema"])
def test_what_an_example_sends_stays_although_it_is_read_only(at: str, tmp_path: Path) -> None:
    example = {"href": "/a", "type": "t"}
    media: dict[str, Any] = {"schema": dict(REFERENCE)}
    if at == "body":
        media["examples"] = {"plain": {"value": example}}
        body = {"content": {"application/json": media}}
        tool = operation(tmp_path, {"requestBody": body}, method="post")
        assert list(tool["inputSchema"]["properties"]) == ["type", "href"]  # the root's `id` is the API's to make
        assert tool["inputSchema"]["required"] == ["type"]
    else:
        schema, _ = input_of(tmp_path, {**REFERENCE, "example": example})
        assert list(schema["properties"]) == ["id", "type", "href"]


def test_alternatives_that_always_fit_together_may_do_so(tmp_path: Path) -> None:
    """PagerDuty's `updateAutomationActionsRunner`: two open objects of which exactly one is to fit."""
    alternatives = [{"type": "object", "properties": {name: {"type": "string"}}} for name in ("a", "b")]
    body = {"content": {"application/json": {"schema": {"oneOf": alternatives}}}, "required": True}
    document = {
        "servers": [{"url": "https://h.example"}],
        "paths": {"/x": {"post": {"operationId": "send", "requestBody": body}}},
    }
    made = imported(tmp_path, document)
    assert made.manifest["tools"][0]["inputSchema"]["properties"]["body"] == {"anyOf": alternatives}
    why = "`oneOf` was replaced with `anyOf`, because every value that matches one alternative also matches another"
    assert f"`send`: {why}" in made.notes
    assert not any("accept no call" in note for note in made.notes)


def test_examples_that_the_document_itself_refuses_are_told(tmp_path: Path) -> None:
    """Intercom: 49 of 120 examples of requests violate their own schemas."""
    schema = {**NAME, "properties": {**NAME["properties"], "size": {"type": "integer"}}}
    examples = {"fits": {"value": {"name": "a", "size": 1}}, "not": {"value": {"name": "a", "size": "large"}}}
    listed = {"schema": {"type": "array", "items": schema}, "example": [{"size": 1}]}
    document: dict[str, Any] = {"servers": [{"url": "https://h.example"}], "paths": {}}
    for name, media in (("good", {"schema": schema, "example": {"name": "a"}}), ("list", listed)):
        document["paths"][f"/{name}"] = {
            "post": {"operationId": name, "requestBody": {"content": {"application/json": media}}}
        }
    body = {"content": {"application/json": {"schema": schema, "examples": examples}}, "required": True}
    document["paths"]["/{id}"] = {"post": {"operationId": "some", "requestBody": body}}
    made = imported(tmp_path, document)
    assert (
        "2 of the document's 4 request examples do not match its own schemas: `list`, `some`; such calls are "
        "rejected, unless `input: lenient` is set for the API or for these tools"
    ) in made.notes
