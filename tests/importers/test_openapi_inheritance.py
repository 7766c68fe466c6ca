"""Inheritance in documents: alternatives of a parent that are `allOf` the parent and more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openapi_documents import imported
from stubwright_runtime.schema.validation import Validator

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def child(of: str, **properties: Any) -> dict[str, Any]:
    return {"allOf": [ref(of), {"type": "object", "properties": properties}]}


PET = {"type": "object", "required": ["kind"], "properties": {"kind": TEXT, "name": TEXT}}
FAMILY = {
    "Pet": {
        **PET,
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat"}},
        "oneOf": [ref("Cat"), ref("Dog")],
    },
    "Cat": child("Pet", lives=NUMBER),
    "Dog": child("Pet", tricks={"type": "array", "items": TEXT}),
}
NOTE = "`Pet` has alternatives that extend it with `allOf`; in these, its own alternatives are ignored"


def operation(name: str, body: str) -> dict[str, Any]:
    content = {"application/json": {"schema": ref(body)}}
    answer = {"description": "d", "content": content}
    return {"operationId": name, "requestBody": {"content": content}, "responses": {"200": answer}}


def schemas(folder: Path, family: dict[str, Any], body: str, **document: Any) -> tuple[Any, tuple[str, ...], Any]:
    """The shared schemas, the notes and the tool that sends and gets `body`."""
    paths = {"/x": {"post": operation("send", body)}}
    servers = [{"url": "https://api.example.com"}]
    made = imported(folder, {"servers": servers, "paths": paths, "components": {"schemas": family}, **document})
    (tool,) = made.manifest["tools"]
    return made.manifest["schemas"], made.notes, tool


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_a_child_has_what_its_parent_says_of_each(version: str, tmp_path: Path) -> None:
    made, notes, tool = schemas(tmp_path, FAMILY, "Cat", openapi=version)
    assert NOTE in notes
    kind = {**TEXT, "const": "cat"}
    assert made["Cat"]["allOf"] == [PET, {"type": "object", "properties": {"lives": NUMBER}}]
    assert made["Cat"]["properties"] == {"kind": kind}
    assert tool["inputSchema"]["properties"] == {"kind": kind, "name": TEXT, "lives": NUMBER}
    assert tool["inputSchema"]["required"] == ["kind"]


def test_the_parent_keeps_its_alternatives(tmp_path: Path) -> None:
    made, notes, _ = schemas(tmp_path, FAMILY, "Pet")
    assert NOTE in notes
    assert made["Pet"]["anyOf"] == [{"$ref": "#/schemas/Cat"}, {"$ref": "#/schemas/Dog"}]
    validator = Validator({**made["Pet"], "anyOf": [made["Cat"], made["Dog"]]})
    assert validator.find_errors({"kind": "cat", "name": "Tom"}) == [], "which fits both, for all that schemas say"
    assert validator.find_errors({"kind": "cat", "lives": "nine", "tricks": 1}) != []
    assert validator.find_errors({"name": "Tom"}) != []


def test_grandchildren_and_chains(tmp_path: Path) -> None:
    family = {
        **FAMILY,
        "Cat": {**child("Pet", lives=NUMBER), "oneOf": [ref("Lion")]},
        "Lion": child("Cat", mane=TEXT),
    }
    made, _, tool = schemas(tmp_path, family, "Lion")
    assert [*tool["inputSchema"]["properties"]] == ["kind", "name", "lives", "mane"]
    assert "anyOf" not in str(made["Lion"])


def test_alternatives_that_do_not_lead_back_stay(tmp_path: Path) -> None:
    pet = {**PET, "oneOf": [{"required": ["name"]}, {"required": ["chip"]}]}
    family = {"Pet": pet, "Cat": child("Pet", lives=NUMBER)}
    made, notes, _ = schemas(tmp_path, family, "Cat")
    assert notes == ()
    assert made["Cat"]["allOf"][0] == {"$ref": "#/schemas/Pet"}
    assert made["Pet"]["oneOf"] == pet["oneOf"]


def test_only_the_keyword_that_leads_back_is_left_out(tmp_path: Path) -> None:
    more = [{"required": ["name"]}, {"required": ["chip"]}]
    made, _, _ = schemas(tmp_path, {**FAMILY, "Pet": {**FAMILY["Pet"], "anyOf": more}}, "Cat")
    assert made["Cat"]["allOf"][0] == {**PET, "anyOf": more}


def test_parts_of_what_is_closed_as_a_whole(tmp_path: Path) -> None:
    closed = {"type": "object", "properties": {"lives": NUMBER}, "additionalProperties": False}
    made, _, _ = schemas(tmp_path, {**FAMILY, "Cat": {"allOf": [ref("Pet"), closed]}}, "Pet")
    assert made["Cat"]["allOf"][0] == PET
    assert made["Cat"]["unevaluatedProperties"] is False
