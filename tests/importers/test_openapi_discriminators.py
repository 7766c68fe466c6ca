"""Discriminators as constant values of a property in each alternative."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fake_api import api
from openapi_documents import build, client, imported

TEXT = {"type": "string"}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def animal(kind: Any = TEXT, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": ["kind"], "properties": {"kind": kind, "name": TEXT, **properties}}


def union(*names: str, **mapping: str) -> dict[str, Any]:
    discriminator: dict[str, Any] = {"propertyName": "kind"}
    if mapping:
        discriminator["mapping"] = mapping
    return {"oneOf": [ref(name) for name in names], "discriminator": discriminator}


def heir(of: str, **properties: Any) -> dict[str, Any]:
    return {"allOf": [ref(of), {"type": "object", "properties": properties}]}


PETS = {"kitty": "#/components/schemas/Cat", "doggo": "Dog", "puppy": "#/components/schemas/Dog", "none": "Nobody"}
BASE = {**animal(), "discriminator": {"propertyName": "kind", "mapping": {"c": "Cat"}}}
KINDS = {"type": "string", "enum": ["Cat", "Dog", "Cow"], "description": "The kind."}


def const(value: Any) -> dict[str, Any]:
    return {"type": "integer" if isinstance(value, int) else "string", "const": value}


@pytest.mark.parametrize(
    ("family", "kinds"),
    [
        pytest.param(
            {"Pet": union("Cat", "Dog", **PETS), "Cat": animal(), "Dog": animal()},
            {"Cat": const("kitty"), "Dog": {"type": "string", "enum": ["doggo", "puppy"]}},
            id="mapping",
        ),
        pytest.param(
            {"Pet": union("Cat", "Dog"), "Cat": animal(), "Dog": animal()},
            {"Cat": const("Cat"), "Dog": const("Dog")},
            id="names",
        ),
        pytest.param(
            {"Pet": union("Cat", "Dog", cat="Cat"), "Cat": animal(), "Dog": animal()},
            {"Cat": const("cat"), "Dog": const("Dog")},
            id="one name",
        ),
        pytest.param(
            {
                "Pet": union("Cat", "Dog", **{"1": "Cat", "2": "Dog"}),
                "Cat": animal({"type": "integer"}),
                "Dog": animal({"type": "integer"}),
            },
            {"Cat": const(1), "Dog": const(2)},
            id="numbers",
        ),
        pytest.param(
            {
                "Pet": union("Cat", "Dog", true="Cat", false="Dog"),
                "Cat": animal({"type": "boolean"}),
                "Dog": animal({"type": "boolean"}),
            },
            {"Cat": {"type": "boolean", "const": True}, "Dog": {"type": "boolean", "const": False}},
            id="booleans",
        ),
        pytest.param(
            {
                "Pet": {
                    "oneOf": [
                        {"allOf": [ref("Cat")], "description": "A cat."},
                        {"allOf": [ref("Dog"), {"title": "D"}]},
                    ],
                    "discriminator": {"propertyName": "kind", "mapping": {"c": "Cat"}},
                },
                "Cat": animal(),
                "Dog": animal(),
            },
            {"Cat": const("c"), "Dog": const("Dog")},
            id="wrapped alternatives",
        ),
        pytest.param(
            {
                "Pet": {
                    "oneOf": [ref("Cat"), {**heir("Dog", size=TEXT), "nullable": True}, heir("Cow", size=TEXT)],
                    "discriminator": {"propertyName": "kind", "mapping": {"d": "Dog"}},
                },
                "Cat": animal(),
                "Dog": animal(),
                "Cow": animal(),
            },
            {"Cat": const("Cat"), "Dog": const("d"), "Cow": TEXT},
            id="extended alternatives",
        ),
        pytest.param(
            {"Pet": union("Cat", "Dog"), "Cat": animal(KINDS), "Dog": animal(ref("Kind")), "Kind": KINDS},
            {"Cat": {**const("Cat"), "description": "The kind."}, "Dog": {**const("Dog"), "description": "The kind."}},
            id="shared enum",
        ),
        pytest.param(
            {"Pet": union("Cat", "Dog"), "Cat": animal({"enum": ["cat"]}), "Dog": animal({"enum": ["dog"]})},
            {"Cat": {"enum": ["cat"]}, "Dog": {"enum": ["dog"]}},
            id="own values",
        ),
        pytest.param(
            {"Pet": {"oneOf": [ref("Cat"), ref("Dog")]}, "Base": BASE, "Cat": heir("Base"), "Dog": heir("Base")},
            {"Cat": const("c"), "Dog": const("Dog")},
            id="inherited",
        ),
        pytest.param(
            {
                "Pet": {"oneOf": [ref("Cat"), ref("Puppy")]},
                "Base": BASE,
                "Cat": heir("Base"),
                "Dog": heir("Base"),
                "Puppy": heir("Dog"),
            },
            {"Cat": const("c"), "Puppy": const("Puppy"), "Dog": {"type": "string", "enum": ["Dog", "Puppy"]}},
            id="grandchildren",
        ),
        pytest.param(
            {
                "Pet": union("Cat", "Lion", "Cub"),
                "Base": BASE,
                "Cat": heir("Base"),
                "Lion": heir("Cat"),
                "Cub": heir("Lion"),
                "Lynx": heir("Cat"),
            },
            {"Cat": {"type": "string", "enum": ["Cat", "c", "Lynx"]}, "Lion": const("Lion"), "Cub": const("Cub")},
            id="grandchildren in the same union",
        ),
        pytest.param(
            {
                "Pet": {"anyOf": [ref("Base"), ref("Cat")]},
                "Base": {**animal(), "discriminator": {"propertyName": "kind"}},
                "Cat": heir("Base"),
            },
            {"Base": const("Base"), "Cat": const("Cat")},
            id="parent in the same union",
        ),
        pytest.param(
            {
                "Pet": union("com.acme.Cat", "Dog", c="com.acme.Cat", d="Dog"),
                "com.acme.Cat": animal(),
                "Dog": animal(),
            },
            {"com.acme.Cat": const("c"), "Dog": const("d")},
            id="names with dots",
        ),
        pytest.param(
            {"Pet": union("Cat", "Dog"), "Base": BASE, "Cat": heir("Base"), "Dog": heir("Base")},
            {"Cat": {"type": "string", "enum": ["Cat", "c"]}, "Dog": const("Dog")},
            id="union without the mapping of a parent",
        ),
        pytest.param(
            {"Pet": ref("Base"), "Base": BASE, "Cat": heir("Base"), "Lion": heir("Cat")},
            {"Base": {"type": "string", "enum": ["Base", "c", "Lion"]}},
            id="parent in place of a union",
        ),
        pytest.param(
            {"Pet": ref("Base"), "Base": {**BASE, **animal(KINDS)}, "Cat": heir("Base")},
            {"Base": KINDS},
            id="parent with its own values",
        ),
        pytest.param(
            {"Pet": union("Cat", "Dog"), "Cat": animal(), "Dog": union("Hound", hound="Hound"), "Hound": animal()},
            {"Cat": const("Cat"), "Hound": const("hound")},
            id="unions in unions",
        ),
    ],
)
def test_each_alternative_has_its_own_values(family: Any, kinds: dict[str, Any], tmp_path: Path) -> None:
    body = {"application/json": {"schema": {"type": "object", "properties": {"pet": ref("Pet")}}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "openapi": "3.0.3", "components": {"schemas": family}})
    shared = made.manifest["schemas"]
    assert {name: shared[name]["properties"]["kind"] for name in kinds} == kinds
    assert "#/components" not in json.dumps(made.manifest)


def test_wrapping_a_schema_with_a_discriminator_pins_nothing(tmp_path: Path) -> None:
    pet = {"allOf": [ref("Base")], "nullable": True}
    body = {"application/json": {"schema": {"type": "object", "properties": {"pet": pet}}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "components": {"schemas": {"Base": BASE, "Cat": heir("Base")}}})
    (tool,) = made.manifest["tools"]
    assert tool["inputSchema"]["properties"]["pet"]["anyOf"][0] == {"allOf": [{"$ref": "#/schemas/Base"}]}


def test_a_schema_keeps_its_heirs_outside_of_a_union_with_them(tmp_path: Path) -> None:
    family = {
        "Pet": union("Cat", "Lion", mapped="Cat"),
        "Cat": {**animal(meow=TEXT), "discriminator": {"propertyName": "kind"}},
        "Lion": heir("Cat", roar=TEXT),
    }
    properties = {"pet": ref("Pet"), "cat": ref("Cat")}
    body = {"application/json": {"schema": {"type": "object", "properties": properties}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "components": {"schemas": family}})
    shared = made.manifest["schemas"]
    kinds = {name: schema["properties"]["kind"] for name, schema in shared.items() if "properties" in schema}
    both = {"type": "string", "enum": ["mapped", "Lion"]}
    assert kinds == {"Cat": const("mapped"), "CatFamily": both, "Lion": const("Lion")}
    assert shared["Pet"]["discriminator"]["mapping"] == {"mapped": "#/schemas/Cat"}
    (tool,) = made.manifest["tools"]
    assert tool["inputSchema"]["properties"]["cat"] == {"$ref": "#/schemas/CatFamily"}


@pytest.mark.parametrize(
    ("other", "values"),
    [
        ({"oneOf": [ref("Cat"), ref("Bird")]}, ["kitty", "tiger"]),
        ({"anyOf": [ref("Cat"), ref("Bird")], "discriminator": {"propertyName": "wings"}}, ["kitty", "tiger"]),
        (union("Cat", "Bird"), ["kitty", "tiger"]),  # `Cat` is not a value of its `enum`
        ({"oneOf": [ref("Cat"), ref("Bird")]}, [1, 2]),
    ],
    ids=["no discriminator", "another property", "no mapping", "numbers"],
)
def test_a_mapping_restricts_an_enum_in_its_own_union_only(other: Any, values: list[Any], tmp_path: Path) -> None:
    kind = {"type": "string" if isinstance(values[0], str) else "integer", "enum": values}
    family = {
        "Pet": union("Cat", "Dog", **{str(values[0]): "Cat", "doggo": "Dog"}),
        "Guest": other,
        "Cat": animal(kind),
        "Dog": animal(),
        "Bird": animal(wings=TEXT),
    }
    properties = {"pet": ref("Pet"), "guest": ref("Guest"), "cat": ref("Cat")}
    body = {"application/json": {"schema": {"type": "object", "properties": properties}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "components": {"schemas": family}})
    shared = made.manifest["schemas"]
    assert shared["Cat"]["properties"]["kind"] == kind
    assert shared["CatAlternative"]["properties"]["kind"] == const(values[0])
    assert shared["Pet"]["oneOf"] == [{"$ref": "#/schemas/CatAlternative"}, {"$ref": "#/schemas/Dog"}]
    assert shared["Pet"]["discriminator"]["mapping"][str(values[0])] == "#/schemas/CatAlternative"
    assert shared["Guest"].get("oneOf", shared["Guest"].get("anyOf"))[0] == {"$ref": "#/schemas/Cat"}
    (tool,) = made.manifest["tools"]
    assert tool["inputSchema"]["properties"]["cat"] == {"$ref": "#/schemas/Cat"}


def test_several_mappings_of_a_schema_restrict_it_together(tmp_path: Path) -> None:
    family = {
        "Pet": union("Cat", "Dog", kitty="Cat", doggo="Dog"),
        "Guest": union("Cat", "Dog", tiger="Cat"),
        "Cat": animal({"type": "string", "enum": ["kitty", "tiger", "lion"]}),
        "Dog": animal(),
    }
    body = {"application/json": {"schema": {"type": "object", "properties": {"a": ref("Pet"), "b": ref("Guest")}}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    shared = imported(tmp_path, {**document, "components": {"schemas": family}}).manifest["schemas"]
    assert shared.keys() == {"Pet", "Guest", "Cat", "Dog"}
    assert sorted(shared["Cat"]["properties"]["kind"]["enum"]) == ["kitty", "tiger"]


def test_a_closed_parent_in_place_of_a_union_accepts_its_heirs(tmp_path: Path) -> None:
    family = {"Base": {**BASE, "additionalProperties": False}, "Cat": heir("Base", meow=TEXT)}
    body = {"application/json": {"schema": ref("Base")}}
    answers = {"200": {"description": "d", "content": body}}
    operation = {"operationId": "op", "requestBody": {"required": True, "content": body}, "responses": answers}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "components": {"schemas": family}})
    (tool,) = made.manifest["tools"]
    for schema in (tool["inputSchema"], made.manifest["schemas"]["Base"]):
        assert schema["properties"]["kind"] == {"type": "string", "enum": ["Base", "c"]}
        assert schema.get("additionalProperties") is not False


def test_a_client_gets_and_sends_the_class_that_the_value_means(tmp_path: Path) -> None:
    family = {
        "Pet": union("Cat", "Dog", "Puppy", kitty="#/components/schemas/Cat", doggo="#/components/schemas/Dog"),
        "Base": {**animal(), "discriminator": {"propertyName": "kind"}},
        "Cat": animal(lives={"type": "integer"}),
        "Dog": heir("Base", bark=TEXT),
        "Puppy": heir("Dog"),
    }
    content = {"application/json": {"schema": ref("Pet")}}
    listed = {
        "application/json": {
            "schema": {"type": "object", "properties": {"items": {"type": "array", "items": ref("Pet")}}}
        }
    }
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Pets", "version": "1"},
        "paths": {
            "/pets": {
                "get": {"operationId": "pets", "responses": {"200": {"description": "d", "content": listed}}},
                "post": {
                    "operationId": "add",
                    "requestBody": {"required": True, "content": content},
                    "responses": {"204": {"description": "d"}},
                },
            }
        },
        "components": {"schemas": family},
    }
    with api(lambda asked: {"items": [{"kind": "doggo", "bark": "w"}, {"kind": "kitty"}, {"kind": "Puppy"}]}) as fake:
        (tmp_path / "pets.json").write_text(json.dumps({**document, "servers": [{"url": fake.url}]}))
        package = build(tmp_path / "pets.json", tmp_path)
        with client(tmp_path, package, "Pets") as call:
            assert [type(pet).__name__ for pet in call("pets").items] == ["Dog", "Cat", "Puppy"]
            call("add", body=call.module.Dog(kind="doggo", bark="w"))
            assert fake.last.json == {"kind": "doggo", "bark": "w"}
            for wrong in ({"kind": "doggo", "bark": 5}, {"kind": "zzz"}):
                with pytest.raises(call.module.ToolFailed):
                    call("add", body=wrong)
            assert len([asked for asked in fake.asked if asked.method == "POST"]) == 1


def default_family(*, closed: bool = False) -> dict[str, Any]:
    optional = {"type": "object", "properties": {"kind": TEXT}, **({"additionalProperties": False} if closed else {})}
    pet = {"oneOf": [ref("Other"), ref("Cat"), ref("Dog")]}
    discriminator = {"propertyName": "kind", "mapping": {"kitty": "Cat"}, "defaultMapping": "Other"}
    family = {"Pet": {**pet, "discriminator": discriminator}, "Cat": optional, "Dog": heir("Base"), "Other": optional}
    return {**family, "Base": optional}


@pytest.mark.parametrize("closed", [False, True])
def test_the_default_alternative_has_all_other_values(closed: bool, tmp_path: Path) -> None:
    content = {"application/json": {"schema": ref("Pet")}}
    answers = {"200": {"description": "d", "content": content}}
    operation = {"operationId": "op", "requestBody": {"required": True, "content": content}, "responses": answers}
    document = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    document["components"] = {"schemas": default_family(closed=closed)}
    shared = imported(tmp_path, {**document, "openapi": "3.2.0"}).manifest["schemas"]
    assert shared["Other"]["properties"]["kind"] == {**TEXT, "not": {"enum": ["Dog", "kitty"]}}
    assert "required" not in shared["Other"]
    assert shared["Cat"]["properties"]["kind"] == const("kitty")
    assert shared["Cat"]["required"] == shared["Dog"]["required"] == ["kind"]
    before = imported(tmp_path, {**document, "openapi": "3.1.0"}).manifest["schemas"]
    assert before["Other"]["properties"]["kind"] == const("Other")  # OpenAPI 3.1 has no `defaultMapping`
    assert "required" not in before["Cat"]


def test_a_default_alternative_elsewhere_has_every_value(tmp_path: Path) -> None:
    properties = {"pet": ref("Pet"), "other": ref("Other")}
    body = {"application/json": {"schema": {"type": "object", "properties": properties}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.2.0", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "components": {"schemas": default_family()}})
    (tool,) = made.manifest["tools"]
    name = tool["inputSchema"]["properties"]["other"]["$ref"].rpartition("/")[2]
    assert made.manifest["schemas"][name]["properties"]["kind"] == TEXT


def test_a_parent_with_a_default_accepts_other_values(tmp_path: Path) -> None:
    base = {**animal(), "discriminator": {"propertyName": "kind", "mapping": {"c": "Cat"}, "defaultMapping": "Other"}}
    family = {"Base": base, "Cat": heir("Base", meow=TEXT), "Other": heir("Base")}
    body = {"application/json": {"schema": {"type": "object", "properties": {"pet": ref("Base"), "cat": ref("Cat")}}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.2.0", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    shared = imported(tmp_path, {**document, "components": {"schemas": family}}).manifest["schemas"]
    assert shared["Base"]["properties"]["kind"] == TEXT
    assert shared["Cat"]["properties"]["kind"] == const("c")


def test_a_client_gets_the_default_class_for_an_unknown_value(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": ref("Pet")}}}
    content = {"application/json": {"schema": schema}}
    responses = {"200": {"description": "d", "content": content}}
    document = {"openapi": "3.2.0", "info": {"title": "Pets", "version": "1"}}
    document["paths"] = {"/pets": {"get": {"operationId": "pets", "responses": responses}}}
    document["components"] = {"schemas": default_family()}
    kinds = ["kitty", "Dog", "zebra"]
    with api(lambda asked: {"items": [*({"kind": kind} for kind in kinds), {}]}) as fake:
        (tmp_path / "pets.json").write_text(json.dumps({**document, "servers": [{"url": fake.url}]}))
        package = build(tmp_path / "pets.json", tmp_path)
        with client(tmp_path, package, "Pets") as call:
            assert [type(pet).__name__ for pet in call("pets").items] == ["Cat", "Dog", "Other", "Other"]


def test_a_wrapper_of_a_union_is_no_alternative_of_it(tmp_path: Path) -> None:
    wrapper = {"allOf": [ref("Pet")], "nullable": True}
    family = {"Wrapper": wrapper, "Pet": union("Cat", "Dog"), "Cat": animal(), "Dog": animal()}
    body = {"application/json": {"schema": {"type": "object", "properties": {"pet": ref("Wrapper")}}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "components": {"schemas": family}})
    assert made.manifest["schemas"]["Wrapper"] == {"anyOf": [{"allOf": [{"$ref": "#/schemas/Pet"}]}, {"type": "null"}]}


def test_a_union_in_another_file_is_found(tmp_path: Path) -> None:
    pet = {"oneOf": [{"$ref": "cat.json"}, {"$ref": "all.json#/Dog"}], "discriminator": {"propertyName": "kind"}}
    pet["discriminator"] = {"propertyName": "kind", "mapping": {"kitty": "cat.json"}}
    for name, value in (("pet", pet), ("cat", animal()), ("all", {"Dog": animal()})):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    body = {"application/json": {"schema": {"type": "object", "properties": {"pet": {"$ref": "pet.json"}}}}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    shared = imported(tmp_path, document).manifest["schemas"]
    assert {name: schema["properties"]["kind"] for name, schema in shared.items() if "properties" in schema} == {
        "cat": const("kitty"),
        "Dog": const("Dog"),
    }


def test_a_large_family_is_walked_once(tmp_path: Path) -> None:
    """A parent that lists sixty children, each of which inherits from it: a walk along each path would not end."""
    names = [f"Child{number}" for number in range(60)]
    family = {"Pet": {**animal(), **union(*names)}} | {name: heir("Pet", own=TEXT) for name in names}
    body = {"application/json": {"schema": ref("Pet")}, "multipart/form-data": {"schema": ref("Pet")}}
    operation = {"operationId": "op", "requestBody": {"content": body}, "responses": {}}
    document = {"openapi": "3.0.3", "servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    made = imported(tmp_path, {**document, "components": {"schemas": family}})
    assert len(made.manifest["schemas"]) > len(names)
