"""OpenAPI documents as manifests: conversion of each part, reported omissions, and no guesses.

`tests/openapi/library.yaml` has one operation for each feature; `library.manifest.yaml` and `library.notes.txt` have
the output of the import. `pytest --update` rewrites both.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import forked
from command_line import stubwright
from openapi_documents import HERE, imported, operation, query
from stubwright.importers.document_reader import DocumentError
from stubwright.importers.openapi import arguments, manifest
from stubwright.importers.openapi.documents import Documents
from stubwright.importers.openapi.naming import Selection, SelectionError
from stubwright.importers.openapi.operations import Parameter
from stubwright.project.files import disk

FORM = "application/x-www-form-urlencoded"


def test_a_document_becomes_a_manifest(tmp_path: Path, update: bool) -> None:
    shutil.copytree(HERE, tmp_path / "api")
    output = tmp_path / "library.yaml"
    done = stubwright("import", "openapi", "api/library.yaml", "-o", "library.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    for name, text in (("library.manifest.yaml", output.read_text()), ("library.notes.txt", done.stderr)):
        if update:
            (HERE / name).write_text(text)
        assert text == (HERE / name).read_text()
    checked = stubwright("check", str(output), cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("method", "reads", "repeats"),
    [
        ("get", True, True),
        ("head", True, True),
        ("options", True, True),
        ("post", False, False),
        ("put", False, True),
        ("patch", False, False),
        ("delete", False, True),
    ],
)
def test_annotations_follow_from_the_method(method: str, reads: bool, repeats: bool, tmp_path: Path) -> None:
    hints = {"readOnlyHint": reads, "destructiveHint": not reads, "idempotentHint": repeats, "openWorldHint": True}
    annotations = operation(tmp_path, {"summary": "X"}, method=method)["annotations"]
    assert annotations == {"title": "X", **hints}


def test_one_note_names_what_is_guessed_of_posts(tmp_path: Path) -> None:
    paths = {f"/{name}": {"post": {"operationId": name}} for name in ("find", "add")}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {**paths, "/c": {"put": {}}}})
    (note,) = made.guesses
    assert "a guess for 2 tools, which POST;" in note
    corrected = yaml.safe_load(note.split("`")[-2])
    assert corrected == {"overlay": {"tools": {"find": {"annotations": {"destructiveHint": False}}}}}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {"/c": {"put": {}}}})
    assert made.guesses == ()


@pytest.mark.parametrize(
    ("told", "title"),
    [
        ({"summary": "List all pets."}, "List all pets"),
        ({"summary": " List\n all pets ", "description": "Pages."}, "List all pets"),
        ({"summary": "word " * 40}, f"{'word ' * 15}word…"),
        ({"description": "Pages of them."}, "Read pets of owners, by id"),
        ({"summary": "."}, "Read pets of owners, by id"),
        ({}, "Read pets of owners, by id"),
    ],
)
def test_each_tool_has_a_title(told: dict[str, str], title: str, tmp_path: Path) -> None:
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {}}]
    tool = operation(tmp_path, {**told, "parameters": parameters}, path="/v1/owners/{id}/pets")
    assert tool["title"] == tool["annotations"]["title"] == title
    assert tool["description"]


LONG = "retrieve_all_of_the_archived_and_deleted_purchase_orders_of_a_customer_by_date"
CAMEL = "retrieveAllOfTheArchivedAndDeletedPurchaseOrdersOfACustomerByDate"


@pytest.mark.parametrize(
    ("server", "prefix", "wire_id", "name"),
    [
        ("acme", "", LONG, "retrieve_all_of_the_archived_and_deleted"),
        ("acme", "v2_legacy_", LONG, "v2_legacy_retrieve_all_of_the_archived_and"),
        ("acme", "", CAMEL, "retrieveAllOfTheArchivedAndDeletedPurchase"),
        ("a server with a name of its own", "", LONG, "retrieve_all_of_the_archived_and_deleted_purchase_orders"),
        ("acme", "", "x" * 90, "x" * 46),
    ],
)
def test_a_long_name_is_cut_at_a_word_for_clients_that_prefix_it(
    server: str, prefix: str, wire_id: str, name: str, tmp_path: Path
) -> None:
    others = {"/b": {"get": {"operationId": "other"}}}
    document = {"info": {"title": server, "version": "1"}, "servers": [{"url": "https://h.example"}]}
    paths = {"/a": {"get": {"operationId": wire_id}}}
    for more in ({}, others):  # neighbors change nothing
        made = imported(tmp_path, {**document, "paths": {**more, **paths}}, Selection(prefix=prefix))
        tool = made.manifest["tools"][-1]["name"]
        assert re.fullmatch(re.escape(name) + "_[0-9a-f]{6}", tool), tool
        assert len(tool) <= 64
        assert len(f"mcp__{server}__{tool}") <= 64 or len(server) > 25


def test_a_name_that_fits_is_not_cut(tmp_path: Path) -> None:
    fitting = "a_" * 26 + "b"  # mcp__acme__ has 11 characters
    document = {"info": {"title": "acme", "version": "1"}, "servers": [{"url": "https://h.example"}]}
    made = imported(tmp_path, {**document, "paths": {"/a": {"get": {"operationId": fitting}}}})
    assert [tool["name"] for tool in made.manifest["tools"]] == [fitting]


def test_without_an_operation_id_the_name_is_the_method_and_the_path(tmp_path: Path) -> None:
    made = imported(tmp_path, {"paths": {"/users/{userId}/avatar.png": {"get": {"responses": {}, "parameters": [
        {"name": "userId", "in": "path", "required": True, "schema": {}}]}}}})  # fmt: skip
    assert [tool["name"] for tool in made.manifest["tools"]] == ["get_users_user_id_avatar_png"]


def test_operations_that_meet_are_told_apart(tmp_path: Path) -> None:
    paths = {"/a": {"get": {"operationId": "get.it", "responses": {}}}, "/b": {"get": {"operationId": "get it"}}}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": paths})
    assert [tool["name"] for tool in made.manifest["tools"]] == ["get_it", "get_b"]
    assert made.notes == ("`get it` (GET /b) has the same name as another operation; its tool is named `get_b`",)


def test_tools_that_meet_in_python_get_a_name(tmp_path: Path) -> None:
    paths = {f"/{name}": {"get": {"operationId": name}} for name in ("getIt", "get_it")}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": paths})
    assert made.manifest["tools"][0]["stubwright"]["pythonName"].startswith("get_it_")
    assert "pythonName" not in made.manifest["tools"][1]["stubwright"]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(include=["pets"]), ["a", "b"]),
        (Selection(include=["/people/*"]), ["c"]),
        (Selection(exclude=["b", "c"]), ["a"]),
        (Selection(include=["?"], exclude=["pets"]), ["c"]),
        (Selection(rename={"a": "list_pets"}), ["list_pets", "b", "c"]),
        (Selection(prefix="x_", rename={"c": "see"}), ["x_a", "x_b", "x_see"]),
    ],
)
def test_operations_are_selected_and_renamed(selection: Selection, names: list[str], tmp_path: Path) -> None:
    paths = {
        "/pets": {"get": {"operationId": "a", "tags": ["pets"]}, "put": {"operationId": "b", "tags": ["pets"]}},
        "/people/all": {"get": {"operationId": "c"}},
    }
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": paths}, selection)
    assert [tool["name"] for tool in made.manifest["tools"]] == names


def test_what_is_left_out_is_not_told_to_be_called_otherwise(tmp_path: Path) -> None:
    body = {"content": {"application/xml": {"schema": {"type": "object"}}}}
    paths = {
        "/a": {"post": {"operationId": "go"}},
        "/b": {"post": {"operationId": "go", "requestBody": body}},
        "/c": {"post": {"operationId": "go"}},
    }
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": paths}, Selection(prefix="t_"))
    assert made.notes == (
        "`go` (POST /b) was omitted: its body is `application/xml`",
        "`go` (POST /c) has the same name as another operation; its tool is named `t_post_c`",
    )


@pytest.mark.parametrize(
    ("selection", "why"),
    [
        (Selection(include=["z*"]), "`z*` does not match any `operationId`, tag, path or method"),
        (Selection(rename={"z": "y"}), "the operation to rename, `z`, does not exist"),
        (Selection(rename={"a": "b"}), "two tools would be named `b`"),
    ],
)
def test_a_selection_that_fits_nothing_is_an_error(selection: Selection, why: str, tmp_path: Path) -> None:
    paths = {"/pets": {"get": {"operationId": "a"}, "put": {"operationId": "b"}}}
    with pytest.raises(SelectionError) as refused:
        imported(tmp_path, {"paths": paths}, selection)
    assert str(refused.value) == why


def test_parameters_that_meet_get_their_place(tmp_path: Path) -> None:
    places = ("path", "query", "header", "cookie")
    parameters = [{"name": "id", "in": place, "required": True, "schema": {"type": "string"}} for place in places]
    body = {"required": True, "content": {"application/json": {"schema": {"properties": {"id": {}, "name": {}}}}}}
    told = {"parameters": [*parameters, query("body", {}), query("path_id", {})], "requestBody": body}
    tool = operation(tmp_path, told, "/x/{id}", "post")
    names = list(tool["inputSchema"]["properties"])
    assert names[1:5] == ["query_id", "header_id", "cookie_id", "query_body"]
    assert names[0].startswith("path_id_")
    assert names[5:] == ["path_id", "body"]
    http = tool["stubwright"]["http"]
    assert http["url"] == f"/x/{{{names[0]}}}"
    assert http["query"] == {"id": "{query_id}", "body": "{query_body}", "path_id": "{path_id}"}
    assert (http["headers"], http["cookies"], http["body"]) == ({"id": "{header_id}"}, {"id": "{cookie_id}"}, "{body}")


@pytest.mark.parametrize(("explode", "written"), [({}, {}), ({"explode": True}, {}), ({"explode": False},) * 2])
def test_a_cookie_in_its_own_style_is_exploded_unless_the_document_forbids_it(
    explode: dict[str, bool], written: dict[str, bool], tmp_path: Path
) -> None:
    cookie = {"name": "a", "in": "cookie", "style": "cookie", "schema": {"type": "object"}, **explode}
    tool = operation(tmp_path, {"parameters": [cookie]}, openapi="3.2.0")
    assert tool["stubwright"]["http"]["cookies"] == {"a": {"value": "{a}", "style": "cookie", **written}}


def test_headers_that_frame_a_request_are_no_arguments_and_names_that_are_none_are_told(tmp_path: Path) -> None:
    def operation(*names: str) -> dict[str, Any]:
        listed = [{"name": name, "in": "header", "required": True, "schema": {"type": "string"}} for name in names]
        return {"get": {"parameters": listed}}

    framing = ["Host", "Cookie", "Content-Length", "Transfer-Encoding", "connection", "Content_Length", "TE", "X-Fine"]
    odd = ["a\r\nX-Other: 1", "a b", "é"]
    paths = {"/fine": operation(*framing), **{f"/{number}": operation(name) for number, name in enumerate(odd)}}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": paths})
    (tool,) = made.manifest["tools"]
    assert [*tool["stubwright"]["http"]["headers"]] == ["X-Fine"]
    assert [*tool["inputSchema"]["properties"]] == ["X-Fine"]
    assert [name for name, note in zip(odd, made.notes, strict=True) if f"`{name}` cannot be a header" in note] == odd


@given(st.lists(st.tuples(st.sampled_from(["path", "query", "header", "cookie"]), st.text(min_size=1)), unique=True))
def test_arguments_are_named_apart_whatever_parameters_are_called(named: list[tuple[Any, str]]) -> None:
    parameters = [
        Parameter(name, where, True, "form", True, False, None, None, None, False, None) for where, name in named
    ]
    for has_body in (False, True):
        names = arguments.name_arguments(parameters, has_body=has_body)
        assert len({*names}) == len(names)
        assert not has_body or arguments.BODY not in names
        assert all(name == arguments.to_argument_name(name) and len(name) <= 64 for name in names)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        (
            {"nullable": True, "description": "x", "oneOf": [{"type": "string"}]},
            {"description": "x", "anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 1, "exclusiveMaximum": False}, {"type": "integer", "maximum": 1}),
        ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
        ({"type": "string", "format": "byte"}, {"type": "string", "contentEncoding": "base64"}),
        ({"type": "string", "x-mcp-header": "A", "xml": {}, "externalDocs": {}}, {"type": "string"}),
        ({"type": "object", "properties": {"nullable": {"type": "string", "nullable": True}}},
         {"type": "object", "properties": {"nullable": {"type": ["string", "null"]}}}),
        ({"type": "array", "items": {"$ref": "#/components/schemas/A", "maxLength": 1}},
         {"type": "array", "items": {"$ref": "#/schemas/A"}}),
    ],
)  # fmt: skip
def test_schemas_of_3_0_become_json_schema(old: Any, new: Any, tmp_path: Path) -> None:
    components = {"schemas": {"A": {"type": "string"}}}
    told = {"parameters": [query("q", old)]}
    made = operation(tmp_path, told, openapi="3.0.0", components=components)["inputSchema"]["properties"]["q"]
    assert made == new
    Draft202012Validator.check_schema(made)


def test_what_a_reference_hides_counts_from_3_1_on(tmp_path: Path) -> None:
    told = {"parameters": [query("q", {"$ref": "#/components/schemas/A", "maxLength": 1})]}
    tool = operation(tmp_path, told, components={"schemas": {"A": {"type": "string"}}})
    assert tool["inputSchema"]["properties"]["q"] == {"$ref": "#/schemas/A", "maxLength": 1}


def test_only_the_schemas_that_are_used_are_taken_and_names_of_the_package_are_left_to_it(tmp_path: Path) -> None:
    schemas = {
        "Context": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Context"}}},
        "Unused": {"type": "string"},
        "Part": {"properties": {"inner": {"type": "object"}}},
    }
    told = {"parameters": [query("a", {"$ref": "#/components/schemas/Context"}),
                           query("b", {"$ref": "#/components/schemas/Part/properties/inner"})]}  # fmt: skip
    made = imported(tmp_path, {"paths": {"/x": {"get": told}}, "components": {"schemas": schemas}})
    assert made.manifest["schemas"] == {
        "ContextSchema": {"type": "object", "properties": {"next": {"$ref": "#/schemas/ContextSchema"}}},
        "Part_inner": {"type": "object"},
    }


@pytest.mark.parametrize(
    ("responses", "schema"),
    [
        ({"200": {"type": "object"}}, {"type": "object"}),
        ({"2XX": {"type": "array"}}, {"type": "array"}),
        ({"default": {"type": "object"}}, None),
        ({"200": {"type": "string"}, "404": {"type": "object"}}, {"type": "string"}),
        ({"200": {"type": "string"}, "201": {"type": "string"}}, {"type": "string"}),
        ({"200": {"type": "string"}, "204": None}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"200": {"type": "object"}, "201": {"type": "object", "title": "B"}},
         {"type": "object", "anyOf": [{"type": "object"}, {"type": "object", "title": "B"}]}),
        ({"200": {}}, None),
        ({"204": None}, None),
    ],
)  # fmt: skip
def test_the_output_schema_is_what_success_promises(responses: Any, schema: Any, tmp_path: Path) -> None:
    told = {
        status: {"description": "x"} | ({} if one is None else {"content": {"application/json": {"schema": one}}})
        for status, one in responses.items()
    }
    assert operation(tmp_path, {"responses": told}).get("outputSchema") == schema


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"parameters": [{"name": "q", "in": "querystring"}]},
         "the parameter `q` has the unsupported location `querystring`"),
        ({"parameters": [query("q", {}, style="matrix")]}, "the parameter `q` has the unsupported style `matrix`"),
        ({"parameters": [{"name": "q", "in": "query", "content": {"text/csv": {}}}]},
         "the parameter `q` has the unsupported media type `text/csv`"),
        ({"requestBody": {"required": True, "content": {}}}, "it is a GET operation that needs a body"),
        ({"security": [{"none": []}]}, "it needs the security scheme `none`, which the document does not define"),
        ({"parameters": [query("q", {"$ref": "#/components/nowhere"})]},
         "the reference `#/components/nowhere` does not resolve"),
        ({"parameters": [query("q", {"$ref": "../up.yaml"})]},
         "the reference `../up.yaml` leaves the document's folder"),
        ({"parameters": [query("q", {"$ref": "https://e.example/x"})]},
         "the reference `https://e.example/x` is not a relative path"),
        ({"parameters": [query("q", {"$dynamicRef": "#a"})]},
         "the schema at document.json#/paths/~1x/get/parameters/0/schema has the unsupported keyword `$dynamicRef`"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_left_out_and_told(told: Any, why: str, tmp_path: Path) -> None:
    document = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"get": {"operationId": "op", **told}}}}
    made = imported(tmp_path, document)
    assert made.manifest["tools"] == []
    assert made.notes == (f"`op` (GET /x) was omitted: {why}",)


def test_security_is_that_of_the_operation_else_of_the_document(tmp_path: Path) -> None:
    schemes = {
        "a": {"type": "http", "scheme": "bearer"},
        "b": {"type": "oauth2", "flows": {}},
        "c": {"type": "mutualTLS"},
    }
    said: dict[str, Any] = {
        "default": {},
        "none": {"security": []},
        "other": {"security": [{"b": ["read"]}]},
        "both": {"security": [{"a": [], "b": []}]},
        "maybe": {"security": [{}, {"b": []}]},
        "some": {"security": [{"c": []}, {"b": []}]},
    }
    made = imported(tmp_path, {
        "servers": [{"url": "https://h.example"}],
        "security": [{"a": []}],
        "paths": {f"/{name}": {"get": {"operationId": name, **more}} for name, more in said.items()},
        "components": {"securitySchemes": schemes},
    })  # fmt: skip
    assert made.manifest["apis"]["sample"]["security"] == [["b"]]
    own = {tool["name"]: tool["stubwright"]["http"].get("security") for tool in made.manifest["tools"]}
    assert own == {
        "default": [["a"]],
        "none": [[], ["a"]],
        "other": None,
        "both": [["a", "b"]],
        "maybe": [["b"], []],
        "some": None,
    }


@pytest.mark.parametrize(
    ("method", "body", "http"),
    [
        ("get", {"content": {"application/json": {"schema": {"type": "object"}}}}, {}),
        ("post", {"content": {FORM: {"schema": {"type": "object", "properties": {}}}}}, {}),
        ("delete", {"content": {"application/json": {"schema": {"properties": {"a": {}}}}}}, {"body": "{body}"}),
        ("post", {"content": {"*/*": {"schema": {"properties": {"a": {}}}}}}, {}),
        ("post", {"content": {"application/json-patch+json": {"schema": {"type": "array"}}}},
         {"contentType": "application/json-patch+json", "body": "{body}"}),
        ("post", {"content": {FORM: {
            "schema": {"properties": {"a": {}, "b": {}}},
            "encoding": {"a": {"style": "deepObject", "explode": True}, "b": {"contentType": "application/json"}}}}},
         {"contentType": FORM, "fields": {
             "a": {"style": "deepObject", "explode": True}, "b": {"contentType": "application/json"}}}),
        ("post", {"content": {"text/plain": {}}}, {"contentType": "text/plain", "body": "{body}"}),
    ],
)  # fmt: skip
def test_bodies(method: str, body: Any, http: dict[str, Any], tmp_path: Path) -> None:
    made = operation(tmp_path, {"requestBody": body}, method=method)["stubwright"]["http"]
    assert made == {"api": "sample", "method": method.upper(), "url": "/x", **http}


@pytest.mark.parametrize(
    ("schema", "media", "made"),
    [
        ({"type": "string", "format": "binary"}, "image/png", "image/png"),
        ({"type": "string", "format": "binary"}, "image/png, image/jpeg", "image/png"),
        ({"type": "string", "format": "binary"}, "image/*", None),
        ({}, "image/png, image/jpeg", "image/png"),
    ],
)
def test_a_file_of_a_form_has_the_type_that_the_document_says(
    schema: Any, media: str, made: str | None, tmp_path: Path
) -> None:
    body = {"schema": {"type": "object", "properties": {"f": schema}}, "encoding": {"f": {"contentType": media}}}
    tool = operation(tmp_path, {"requestBody": {"content": {"multipart/form-data": body}}}, method="post")
    told = {"contentMediaType": made} if made else {}
    assert tool["inputSchema"]["properties"]["f"] == {"type": "string", "contentEncoding": "base64", **told}


def test_a_part_of_a_form_that_is_not_json_is_told(tmp_path: Path) -> None:
    media = {
        "schema": {"type": "object", "properties": {"x": {"type": "object"}}},
        "encoding": {"x": {"contentType": "application/xml"}},
    }
    told = {"operationId": "op", "requestBody": {"content": {"multipart/form-data": media}}}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": told}}})
    assert made.manifest["tools"] == []
    assert made.notes[0] == "`op` (POST /x) was omitted: the part `x` of its form has the media type `application/xml`"


def test_a_pattern_that_is_none_is_left_out_and_told(tmp_path: Path) -> None:
    told = {"operationId": "op", "parameters": [query("q", {"type": "string", "pattern": "["})]}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"get": told}}})
    assert made.manifest["tools"][0]["inputSchema"]["properties"]["q"] == {"type": "string"}
    assert made.notes[0].startswith("the pattern `[` was omitted: ")


def test_a_document_without_a_host_needs_a_variable(tmp_path: Path) -> None:
    made = imported(tmp_path, {"servers": [{"url": "/api/v3"}], "paths": {"/x": {"get": {"operationId": "op"}}}})
    assert made.manifest["apis"] == {"sample": {"baseUrlEnv": "SAMPLE_BASE_URL", "output": "lenient"}}
    assert made.notes == (
        "the document has no host; the server calls the URL in `SAMPLE_BASE_URL`, such as https://HOST/api/v3",
    )


@pytest.mark.parametrize("schema", [{"type": "strong"}, {"minLength": "1"}, {"$ref": "#/components/schemas/Loop"}])
def test_what_check_would_refuse_is_left_out_and_told(schema: Any, tmp_path: Path) -> None:
    parameters = [query("q", schema)]
    paths = {"/x": {"get": {"operationId": "bad", "parameters": parameters}, "put": {"operationId": "good"}}}
    loop = {"Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}]}}
    made = imported(
        tmp_path, {"servers": [{"url": "https://h.example"}], "paths": paths, "components": {"schemas": loop}}
    )
    assert [tool["name"] for tool in made.manifest["tools"]] == ["good"]
    assert "schemas" not in made.manifest
    assert made.notes[0].startswith("tool `bad` was omitted: ")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"swagger": "1.2"}', "it is Swagger 1.2; Swagger 2.0 and OpenAPI 3.0 to 3.2 can be imported"),
        ('{"swagger": "2.0"}', "it has no `info`"),
        ('{"openapi": "4.0.0"}', "its `openapi` is 4.0.0; OpenAPI 3.0, 3.1 and 3.2 can be imported"),
        ("{}", "it is not an OpenAPI document: it has no `openapi`"),
        ("[]", "it is not an OpenAPI document: expected a mapping"),
        ('{"openapi": "3.0.0"}', "it has no `info`"),
        ("openapi: [a", "document.yaml:1:10: error[SW004]: this `[` is not closed"),
    ],
)
def test_a_file_that_is_no_such_document_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "document.yaml").write_text(text)
    done = stubwright("import", "openapi", "document.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fragment_is_a_file_for_an_include(tmp_path: Path) -> None:
    imports = ("import", "openapi", str(HERE / "library.yaml"), "--name", "books", "--fragment", "-o", "parts.yaml")
    assert stubwright(*imports, cwd=tmp_path).returncode == 0
    (tmp_path / "manifest.yaml").write_text(
        "stubwright: 1\nserver: {name: mine, version: '1'}\ninclude: [{path: parts.yaml, prefix: lib_}]\n"
        "overlay: {tools: {listBooks: {policy: {confirm: true}}}}\n".replace("listBooks", "lib_listBooks")
    )
    assert stubwright("check", "manifest.yaml", cwd=tmp_path).returncode == 0
    made = stubwright("generate", "manifest.yaml", cwd=tmp_path)
    assert "it needs stubwright-runtime" in made.stdout


@pytest.mark.long
def test_a_project_starts_from_a_document(tmp_path: Path) -> None:
    options = ("--include", "books", "--rename", "listBooks=list_books")
    done = stubwright("new", "shelf", "--from", "openapi", str(HERE / "library.yaml"), *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "shelf 2: 2 tools" in done.stderr
    project = tmp_path / "shelf"
    assert "- `SHELF_TOKEN`: the token for `shelf`" in (project / "README.md").read_text()
    assert '"stubwright-runtime"' in (project / "pyproject.toml").read_text()
    assert stubwright("check", cwd=project).returncode == 0
    assert stubwright("generate", "--check", cwd=project).returncode == 0
    path = [project, project / "generated"]
    tested = forked.python(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio"], project, path, **forked.ALONE
    )
    assert "1 passed" in tested.stdout, tested.stdout


@pytest.mark.long
def test_a_project_that_lacks_what_calls_need_is_told(tmp_path: Path) -> None:
    assert stubwright("new", "shelf", "--from", "openapi", str(HERE / "library.yaml"), cwd=tmp_path).returncode == 0
    file = tmp_path / "shelf" / "pyproject.toml"
    file.write_text(file.read_text().replace('  "stubwright-runtime",\n', ""))
    checked = stubwright("check", cwd=tmp_path / "shelf")
    assert "SW411" in checked.stderr
    assert "stubwright-runtime" in checked.stderr


@pytest.mark.long
def test_handlers_need_not_have_what_is_called(tmp_path: Path) -> None:
    done = stubwright("new", "shelf", "--from", "openapi", str(HERE / "library.yaml"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "shelf" / "shelf_server" / "handlers.py"
    text = file.read_text()
    assert "def " not in text
    wrong = f"{text}\n    async def list_books(self, args: int) -> str:\n        return ''\n"
    file.write_text(wrong)
    told = stubwright("check", cwd=tmp_path / "shelf").stderr
    assert "list_books" in told
    assert "has no method" not in told


def test_a_rename_that_is_none_is_a_wrong_command_line(tmp_path: Path) -> None:
    assert stubwright("import", "openapi", "x.yaml", "--rename", "a", cwd=tmp_path).returncode == 2


def test_other_files_are_read_only_below_the_documents_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text('{"type": "string"}')
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.json").symlink_to(tmp_path / "outside.json")
    document = {"openapi": "3.1.0", "info": {"title": "S", "version": "1"}, "paths": {
        "/x": {"get": {"operationId": "op", "parameters": [query("q", {"$ref": "link.json"})]}}}}  # fmt: skip
    (inside / "document.json").write_text(json.dumps(document))
    made = manifest.make_manifest(Documents(str(inside / "document.json"), disk.Disk()), Selection())
    assert made.manifest["tools"] == []
    assert "leaves the document's folder" in made.notes[0]


def test_a_document_in_yaml_may_have_numbers_for_keys(tmp_path: Path) -> None:
    text = "openapi: 3.1.0\ninfo: {title: S, version: 1.0}\npaths:\n  /x: {get: {responses: {200: {content: {}}}}}\n"
    (tmp_path / "d.yaml").write_text(text)
    documents = Documents(str(tmp_path / "d.yaml"), disk.Disk())
    assert documents.root.value["paths"]["/x"]["get"]["responses"] == {"200": {"content": {}}}
    (tmp_path / "d.yaml").write_text(text + "x-a: &a {1: 2}\nx-b: {true: *a}\n")
    documents = Documents(str(tmp_path / "d.yaml"), disk.Disk())
    assert documents.root.value["x-b"] == {"true": {"1": 2}}


def test_an_error_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{\n  "openapi": "3.0.0",,\n}')
    with pytest.raises(DocumentError) as refused:
        Documents(str(tmp_path / "d.json"), disk.Disk())
    assert [getattr(found.at, "line", None) for found in refused.value.diagnostics] == [2]


def _lists(properties: Mapping[str, Any], *names: str, **response: Any) -> dict[str, Any]:
    """An operation that lists something, with parameters of these names."""
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}, **properties}}
    parameters = [
        query(name, {"type": "string" if "ursor" in name or "after" in name else "integer"}) for name in names
    ]
    answer = {"description": "d", "content": {"application/json": {"schema": schema}}, **response}
    return {"operationId": "list", "parameters": parameters, "responses": {"200": answer}}


TEXT, NUMBER, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
LINKS = {"Link": {"schema": TEXT}}


@pytest.mark.parametrize(
    ("operation", "page"),
    [
        (
            _lists({"next_cursor": TEXT}, "cursor", "limit"),
            {"by": "cursor", "argument": "cursor", "items": "/rows", "next": "/next_cursor", "limit": "limit"},
        ),
        (
            _lists({"meta": {"type": "object", "properties": {"nextCursor": TEXT}}}, "after"),
            {"by": "cursor", "argument": "after", "items": "/rows", "next": "/meta/nextCursor"},
        ),
        (
            _lists({"has_more": TRUTH}, "starting_after", "limit"),
            {
                "by": "cursor",
                "argument": "starting_after",
                "items": "/rows",
                "next": "/rows/-/id",
                "more": "/has_more",
                "limit": "limit",
            },
        ),
        (_lists({}, "page", headers=LINKS), {"by": "link", "argument": "page", "items": "/rows"}),
        (
            _lists({"total_count": NUMBER}, "offset", "limit"),
            {"by": "offset", "argument": "offset", "items": "/rows", "total": "/total_count", "limit": "limit"},
        ),
        (
            _lists({}, "pageNumber", "perPage"),
            {"by": "number", "argument": "pageNumber", "items": "/rows", "limit": "perPage"},
        ),
        (_lists({}, "page"), None),  # nothing says when to stop
        (_lists({"next": {"type": "string", "format": "uri"}}, "cursor"), None),  # not a cursor, but a URL
        (_lists({"others": {"type": "array"}}, "offset", "limit"), None),  # which of the two are the items?
        (_lists({}, "q"), None),
    ],
)
def test_pages_that_are_plain_are_recognized(operation: dict[str, Any], page: Any, tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    document = {"openapi": "3.1.0", "info": {"title": "sample", "version": "1"}, "paths": {"/x": {"get": operation}}}
    path.write_text(json.dumps(document))
    output = tmp_path / "sample.yaml"
    done = stubwright("import", "openapi", str(path), "--pages", "-o", str(output), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tool,) = yaml.safe_load(output.read_text())["tools"]
    assert tool["stubwright"]["http"].get("page") == page
    assert ("pages: `list` (by" in done.stderr) is (page is not None)
    checked = stubwright("check", str(output), cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    plain = stubwright("import", "openapi", str(path), "-o", str(output), cwd=tmp_path)
    assert plain.returncode == 0
    assert "page" not in yaml.safe_load(output.read_text())["tools"][0]["stubwright"]["http"]
