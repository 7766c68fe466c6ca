"""The choice between media types, and base64 in examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fake_api import Answer, Asked, api
from openapi_documents import build, client, imported, operation, query
from stubwright.importers.openapi.options import Options

JSON = "application/json"
MERGE = "application/merge-patch+json"
STEPS = "application/json-patch+json"
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}
BYTES = {"type": "string", "format": "binary"}


def content(*types: str, **schemas: Any) -> dict[str, Any]:
    return {"content": {media: {"schema": schemas.get(media, OBJECT)} for media in types}}


@pytest.mark.parametrize(
    ("types", "preferred", "sent"),
    [
        (["*/*"], [], None),
        (["application/*+json"], [], None),
        (["application/*"], [], None),
        (["*/*", "application/x-www-form-urlencoded"], [], "application/x-www-form-urlencoded"),
        (["application/*+json", "text/json", JSON], [], None),
        (["application/*+json", "text/json"], [], "text/json"),
        ([STEPS, "application/strategic-merge-patch+json", MERGE], [], MERGE),
        ([STEPS, "application/strategic-merge-patch+json"], [], "application/strategic-merge-patch+json"),
        ([STEPS, MERGE, JSON], [], None),
        ([STEPS], [], STEPS),
        ([JSON, "multipart/form-data"], ["multipart/form-data"], "multipart/form-data"),
        ([JSON, MERGE, STEPS], ["text/none", "APPLICATION/JSON-patch+json", MERGE], STEPS),
        (["application/json; charset=utf-8", MERGE], [], "application/json; charset=utf-8"),
        (["application/json; v=2", MERGE], ["application/json"], "application/json; v=2"),
    ],
)
def test_the_media_type_of_a_body(types: list[str], preferred: list[str], sent: str | None, tmp_path: Path) -> None:
    told = {"operationId": "op", "requestBody": content(*types)}
    document = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"patch": told}}}
    made = imported(tmp_path, document, options=Options(media_types=preferred))
    assert made.manifest["tools"][0]["stubwright"]["http"].get("contentType") == sent


FORM = "multipart/form-data"
FIELDS = "application/x-www-form-urlencoded"
TEXT = {"type": "string"}
FILE: dict[str, Any] = {"type": "object", "properties": {"file": BYTES, "name": TEXT}}
FILES: dict[str, Any] = {"type": "object", "properties": {"files": {"type": "array", "items": BYTES}}}


@pytest.mark.parametrize(
    ("types", "form", "preferred", "sent"),
    [
        ([JSON, FORM], {"schema": FILE}, [], FORM),
        ([JSON, FIELDS, FORM], {"schema": FILES}, [], FORM),
        ([JSON, FORM], {"schema": {"oneOf": [OBJECT, {"allOf": [FILE]}]}}, [], FORM),
        ([JSON, FORM], {"schema": {"properties": {"file": {"anyOf": [BYTES, {"type": "null"}]}}}}, [], FORM),
        ([JSON, FORM], {"schema": {"type": "object", "additionalProperties": BYTES}}, [], FORM),
        ([JSON, FORM], {"schema": {"type": "object", "patternProperties": {"^f": BYTES}}}, [], FORM),
        ([JSON, FORM], {"schema": BYTES}, [], FORM),
        ([JSON, FORM], {"schema": OBJECT, "encoding": {"a": {"contentType": "image/png"}}}, [], FORM),
        ([JSON, FORM], {"schema": FILE}, [JSON], None),
        ([JSON, FORM], {"schema": OBJECT}, [], None),
        ([FORM, FIELDS], {"schema": OBJECT}, [], FIELDS),
        ([JSON, FORM], {"schema": {"properties": {"id": {"type": "string", "contentEncoding": "base64"}}}}, [], None),
        ([JSON, FORM], {"schema": {"properties": {"id": {"$ref": "#/components/schemas/Lost"}}}}, [], None),
        ([JSON, FORM], {"schema": {"properties": {"file": BYTES, "a": {"type": "object"}}},
                        "encoding": {"a": {"contentType": "application/xml"}}}, [], None),
    ],
)  # fmt: skip
def test_a_form_with_a_file_goes_before_json(
    types: list[str], form: Any, preferred: list[str], sent: str | None, tmp_path: Path
) -> None:
    bodies = {**content(*types)["content"], FORM: form}
    told = {"operationId": "op", "requestBody": {"content": bodies}}
    document = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": told}}}
    made = imported(tmp_path, document, options=Options(media_types=preferred))
    assert made.manifest["tools"][0]["stubwright"]["http"].get("contentType") == sent


def test_a_body_of_any_type_that_is_bytes_is_sent_as_bytes(tmp_path: Path) -> None:
    tool = operation(tmp_path, {"requestBody": {"content": {"*/*": {"schema": BYTES}}}}, method="post")
    assert tool["stubwright"]["http"]["contentType"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("types", "preferred", "accept", "has_schema"),
    [
        ([JSON], [], None, True),
        (["*/*"], [], None, True),
        (["application/*+json"], [], None, True),
        (["text/csv", JSON], [], None, True),
        (["text/csv", JSON], ["text/csv"], "text/csv", False),
        (["application/vnd.a+json", "text/csv"], [], "application/vnd.a+json", True),
        (["*/*", "application/vnd.a+json"], [], "application/vnd.a+json", True),
        (["application/xml", "text/csv"], [], "application/xml, text/csv", False),
        (["image/*", "image/png"], [], "image/png, image/*", False),
        (["image/*"], [], "image/*", False),
        ([JSON, "application/vnd.a+json"], ["application/vnd.a+json"], "application/vnd.a+json", True),
        ([JSON, "text/csv"], [JSON], None, True),
    ],
)
def test_the_media_type_that_is_asked_for(
    types: list[str], preferred: list[str], accept: str | None, has_schema: bool, tmp_path: Path
) -> None:
    told = {"operationId": "op", "responses": {"200": {"description": "x", **content(*types)}}}
    document = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"get": told}}}
    (tool,) = imported(tmp_path, document, options=Options(media_types=preferred)).manifest["tools"]
    assert (tool["stubwright"]["http"].get("accept"), "outputSchema" in tool) == (accept, has_schema)


def test_what_is_sent_says_what_it_is(tmp_path: Path) -> None:
    """A call that patches is sent as a merge patch, which the API detects by its `Content-Type`."""

    def answer(asked: Asked) -> Answer:
        return {"sent": asked.headers["content-type"], "asked": asked.headers["accept"], "body": asked.json}

    document = {
        "openapi": "3.0.0",
        "info": {"title": "Patch", "version": "1"},
        "paths": {"/x": {"patch": {
            "operationId": "patch",
            "requestBody": content(STEPS, "*/*", MERGE),
            "responses": {"200": {"description": "x", **content("*/*", "application/vnd.a+json")}},
        }}},
    }  # fmt: skip
    (tmp_path / "d.json").write_text(json.dumps(document))
    package = build(tmp_path / "d.json", tmp_path)
    with api(answer) as fake, client(tmp_path, package, "Patch", PATCH_BASE_URL=fake.url) as call:
        said = call("patch", a="b").model_dump()
    assert said == {"sent": MERGE, "asked": "application/vnd.a+json", "body": {"a": "b"}}


@pytest.mark.parametrize(
    ("example", "stays"), [("photo.png", False), ("not base64!", False), ("aGk=", True), (7, False)]
)
def test_an_example_that_is_no_base64_is_left_out_of_what_is(example: Any, stays: bool, tmp_path: Path) -> None:
    told: dict[str, Any] = {"contentEncoding": "base64", "type": "string"}
    shown = {"examples": [example]} if stays else {}
    old = {"openapi": "3.0.0", "servers": [{"url": "https://h.example"}]}
    form = {"multipart/form-data": {"schema": {"properties": {"file": {**BYTES, "example": example}}}}}
    paths = {
        "/form": {"post": {"operationId": "form", "requestBody": {"content": form}}},
        "/query": {"get": {"operationId": "query", "parameters": [
            query("q", {"type": "string", "format": "byte"}, example=example)]}},
        "/byte": {"get": {"operationId": "byte", "parameters": [
            query("q", {"type": "string", "format": "byte", "example": example})]}},
    }  # fmt: skip
    made = imported(tmp_path, {**old, "paths": paths})
    for tool in made.manifest["tools"]:
        (schema,) = tool["inputSchema"]["properties"].values()
        assert schema == {**told, **shown}
