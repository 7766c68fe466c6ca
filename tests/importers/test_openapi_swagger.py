"""Swagger 2.0: the same manifest as from the document in OpenAPI 3.0, and correct calls."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from fake_api import Answer, Asked, api
from openapi_documents import HERE, build, client
from stubwright.importers.acceptance import ImportResult
from stubwright.importers.openapi import manifest
from stubwright.importers.openapi.documents import Documents
from stubwright.importers.openapi.naming import Selection
from stubwright.project.files import disk


def read(path: Path) -> ImportResult:
    return manifest.make_manifest(Documents(str(path), disk.Disk()), Selection())


def swagger(folder: Path, **more: Any) -> ImportResult:
    """What a document of 2.0 becomes."""
    whole = {"swagger": "2.0", "info": {"title": "Sample", "version": "1"}, "host": "h.example", "paths": {}, **more}
    (folder / "d.json").write_text(json.dumps(whole))
    return read(folder / "d.json")


def test_a_document_becomes_what_its_counterpart_in_3_0_becomes() -> None:
    old, new = read(HERE / "swagger.yaml"), read(HERE / "swagger.openapi.yaml")
    assert json.dumps(old.manifest, indent=1) == json.dumps(new.manifest, indent=1)
    assert [tool["name"] for tool in old.manifest["tools"]] == [
        "listBooks", "addBook", "tabs", "getBook", "changeBook", "setCover"
    ]  # fmt: skip
    assert old.notes == new.notes
    tabs = old.manifest["tools"][2]["stubwright"]["http"]["query"]["tabs"]
    assert tabs == {"value": "{tabs}", "style": "tabDelimited"}


def test_calls_say_what_the_document_says(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return [{"title": f"{asked.query} {asked.headers['x-ids']} {asked.headers['x-key']}"}]
        if asked.path.endswith("/cover"):
            assert asked.headers["content-type"].startswith("multipart/form-data")
            assert b'name="image"; filename="image"' in asked.body
            assert b"\x89PNG" in asked.body
            return "kept"
        if asked.method == "PATCH":
            assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
            assert asked.body == b"title=T&pages=1&pages=2&lines=3,4&note=n"
            return 204, None
        return 201, asked.json

    package = build(HERE / "swagger.yaml", tmp_path)
    environment = {"SHELF_KEY": "kept"}
    with (
        api(answer) as fake,
        client(tmp_path, package, "Shelf", SHELF_BASE_URL=f"{fake.url}/v1", **environment) as call,
    ):
        lists = {"genres": ["a", "b"], "tags": ["x", "y"], "years": [1, 2], "words": ["v", "w"], "X_Ids": ["i", "j"]}
        (book,) = call("list_books", **lists).root
        assert book.title == "genres=a,b&tags=x&tags=y&years=1%7C2&words=v%20w i,j kept"
        assert call("add_book", title="Emma", subtitle=None).model_dump() == {"title": "Emma", "subtitle": None}
        call("change_book", id="b", note="n", title="T", pages=[1, 2], lines=[3, 4])
        call("set_cover", id="b", image=base64.b64encode(b"\x89PNG").decode())
    assert {asked.path for asked in fake.asked} == {"/v1/books", "/v1/books/b", "/v1/books/b/cover"}


LISTS = {
    "csv": ("a,b%7Cc", "a,b|c"),
    "ssv": ("a%20b%7Cc", "a b|c"),
    "tsv": ("a%09b%7Cc", "a\tb|c"),
    "pipes": ("a%7Cb%7Cc", "a|b|c"),
    "multi": ("a,b%7Cc", "a,b|c"),
}


def test_lists_in_paths_and_headers_are_joined_as_the_document_says(tmp_path: Path) -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    paths = {}
    for format_ in LISTS:
        path = {"in": "path", "name": "p", "required": True, **texts, "collectionFormat": format_}
        header = {"in": "header", "name": "X-H", **texts, "collectionFormat": format_}
        responses = {"204": {"description": "d", "headers": {"X-R": {**texts, "collectionFormat": format_}}}}
        paths[f"/{format_}/{{p}}"] = {
            "get": {"operationId": format_, "parameters": [path, header], "responses": responses}
        }
    document = {"swagger": "2.0", "info": {"title": "Lists", "version": "1"}, "paths": paths}
    (tmp_path / "d.json").write_text(json.dumps(document))
    package = build(tmp_path / "d.json", tmp_path)
    with (
        api(lambda asked: Response(status_code=204, headers={"X-R": asked.headers["x-h"]})) as fake,
        client(tmp_path, package, "Lists", LISTS_BASE_URL=fake.url) as call,
    ):
        for format_ in LISTS:
            answered = call(format_, p=["a", "b|c"], X_H=["a", "b|c"])
            assert answered.headers.x_r == (["a", "b", "c"] if format_ == "pipes" else ["a", "b|c"])
        sent = {asked.path.split("/")[1]: (asked.path.split("/")[2], asked.headers["x-h"]) for asked in fake.asked}
    assert sent == LISTS


@pytest.mark.parametrize(
    ("told", "base"),
    [
        ({}, "https://h.example"),
        ({"schemes": ["http"]}, "http://h.example"),
        ({"schemes": ["http", "https"], "basePath": "/v2/"}, "https://h.example/v2"),
        ({"schemes": ["ws"]}, "https://h.example"),
        ({"host": "h.example:8080", "basePath": "odd"}, "https://h.example:8080"),
        ({"host": None, "basePath": "/v2"}, None),
    ],
)
def test_the_base_url(told: Any, base: str | None, tmp_path: Path) -> None:
    made = swagger(tmp_path, paths={"/x": {"get": {"operationId": "op", "responses": {}}}}, **told)
    assert made.manifest["apis"]["sample"].get("baseUrl") == base


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"parameters": [{"in": "body", "name": "b", "schema": {"$ref": "#/definitions/None"}}]},
         "the reference `#/definitions/None` does not resolve"),
        ({"parameters": [{"$ref": "#/parameters/none"}]}, "the reference `#/parameters/none` does not resolve"),
        ({"parameters": [{"$ref": "#/parameters/a"}]}, "the reference `#/parameters/a` is circular"),
        ({"parameters": [{"in": "body", "name": "b", "schema": {}}], "consumes": ["application/xml"]},
         "its body is `application/xml`"),
        ({"parameters": [{"in": "query", "name": "q", "type": "array", "collectionFormat": ["x"]}]},
         "the parameter `q` has the unsupported style `csv`"),
        ({"security": [{"s": []}]}, "the security scheme `s` has the unsupported type strange"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_costs_the_operation_alone(told: Any, why: str, tmp_path: Path) -> None:
    paths = {"/x": {"post": {"operationId": "op", **told}, "get": {"operationId": "good"}}}
    circle = {"a": {"$ref": "#/parameters/a"}}
    made = swagger(tmp_path, paths=paths, parameters=circle, securityDefinitions={"s": {"type": "strange"}})
    assert [tool["name"] for tool in made.manifest["tools"]] == ["good"]
    assert f"`op` (POST /x) was omitted: {why}" in made.notes


def test_files_that_a_document_refers_to_are_of_2_0_as_well(tmp_path: Path) -> None:
    (tmp_path / "paths.yaml").write_text("/a: {post: {operationId: a, parameters: [{in: body, name: b, schema: {}}]}}")
    (tmp_path / "item.yaml").write_text(
        "get: {operationId: b, parameters: [{in: query, name: q, type: string, x-nullable: true}], responses: {}}"
    )
    (tmp_path / "op.yaml").write_text(
        "operationId: c\nresponses: {200: {description: x, schema: {$ref: 'schemas.yaml#/S'}}}"
    )
    (tmp_path / "schemas.yaml").write_text("S: {type: object, properties: {x: {type: string, x-nullable: true}}}")
    made = swagger(tmp_path, paths={"$ref": "paths.yaml"})
    assert made.manifest["tools"][0]["inputSchema"]["properties"] == {"body": {}}
    made = swagger(tmp_path, paths={"/b": {"$ref": "item.yaml"}, "/c": {"get": {"$ref": "op.yaml"}}})
    one, other = made.manifest["tools"]
    assert one["inputSchema"]["properties"] == {"q": {"type": ["string", "null"]}}
    assert other["outputSchema"] == {"type": "object", "$ref": "#/schemas/S"}
    assert made.manifest["schemas"]["S"]["properties"] == {"x": {"type": ["string", "null"]}}


@pytest.mark.parametrize("odd", [[], 1, "x", None, {"a": 1}, [{"$ref": 1}], {"get": 1}, {"get": {"parameters": 1}}])
@pytest.mark.parametrize(
    "key", ["paths", "parameters", "responses", "definitions", "securityDefinitions", "consumes", "schemes", "host"]
)
def test_odd_documents_are_read_or_refused(key: str, odd: Any, tmp_path: Path) -> None:
    told = {"operationId": "op", "parameters": odd, "responses": odd, "consumes": odd}
    paths = {"/x": {"get": told, "parameters": odd}}
    made = swagger(tmp_path, **{"paths": paths, key: odd})
    assert made.summary.startswith("Sample 1: ")
