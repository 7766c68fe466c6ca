"""Poorly described operations that still become tools: their arguments and requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import amounts
from fake_api import api
from http_tools import called, run_package
from openapi_documents import build, client, imported, operation

XML = '<a b="é">1</a>'


def test_what_only_the_path_names_is_a_required_string(tmp_path: Path) -> None:
    tool = operation(tmp_path, {}, "/x/{id}/{ part }")
    assert tool["inputSchema"]["properties"] == {"id": {"type": "string"}, "part": {"type": "string"}}
    assert tool["inputSchema"]["required"] == ["id", "part"]
    assert tool["stubwright"]["http"]["url"] == "/x/{id}/{part}"


@pytest.mark.parametrize("path", ["/x/{}", "/x/{a", "/x/a}"])
def test_a_path_with_odd_braces_is_still_left_out(path: str, tmp_path: Path) -> None:
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {path: {"get": {}}}})
    assert made.manifest["tools"] == []
    assert f"`GET {path}` was omitted" in made.notes[0]


def path_parameter(name: str, where: str = "path", kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": where, "required": True, "schema": {"type": kind}}


def imported_get(folder: Path, path: str, parameters: list[Any], **more: Any) -> tuple[Any, tuple[str, ...]]:
    item = {"get": {"operationId": "op", "parameters": parameters, "responses": {}, **more}}
    made = imported(folder, {"servers": [{"url": "https://h.example"}], "paths": {path: item}})
    return next(iter(made.manifest["tools"]), None), made.notes


def test_a_path_parameter_without_a_place_in_the_path_is_ignored(tmp_path: Path) -> None:
    tool, notes = imported_get(tmp_path, "/b/{id}/", [path_parameter("id"), path_parameter("page", kind="integer")])
    assert tool["inputSchema"]["properties"] == {"id": {"type": "string"}}
    assert tool["stubwright"]["http"]["url"] == "/b/{id}/"
    assert notes == ("`op` (GET /b/{id}/): the parameter `page` was ignored, because its path has no `{page}`",)


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ([path_parameter("a", "path", "integer")], "integer"),
        ([path_parameter("a", "query", "integer")], "integer"),
        ([], "string"),
    ],
)
def test_a_variable_in_a_query_after_the_path_is_a_query_parameter(
    parameters: list[Any], kind: str, tmp_path: Path
) -> None:
    tool, notes = imported_get(tmp_path, "/x?k=1&b%5B%5D={a}", parameters)
    assert tool["inputSchema"]["properties"] == {"b": {"type": kind}}
    assert tool["inputSchema"]["required"] == ["b"]
    assert tool["stubwright"]["http"]["url"] == "/x?k=1"
    assert tool["stubwright"]["http"]["query"] == {"b[]": "{b}"}
    assert len(notes) == 1
    assert "`b%5B%5D={a}` in its path was read as the query parameter `b[]`" in notes[0]


def test_a_variable_in_path_and_query_is_an_argument_for_each(tmp_path: Path) -> None:
    tool, _ = imported_get(tmp_path, "/x/{id}?a={a}", [path_parameter("id"), path_parameter("a", "query")])
    assert tool["stubwright"]["http"]["url"] == "/x/{id}"
    assert tool["stubwright"]["http"]["query"] == {"a": "{a}"}
    both, _ = imported_get(tmp_path, "/x/{id}?id={id}", [path_parameter("id")])
    assert sorted(both["inputSchema"]["required"]) == ["path_id", "query_id"]
    twice, _ = imported_get(tmp_path, "/x?a={a}&b={a}", [path_parameter("a", "query")])
    assert twice["stubwright"]["http"]["query"] == {"a": "{a}", "b": "{b}"}


@pytest.mark.parametrize("field", ["a=x{a}", "{a}=1", "{a}", "a={}"])
def test_other_templates_in_a_query_are_left_out(field: str, tmp_path: Path) -> None:
    tool, notes = imported_get(tmp_path, f"/x?{field}", [path_parameter("a")])
    assert tool is None
    assert f"`/x?{field}` is not a path" in notes[0]


def test_an_import_names_the_tools_that_return_events(tmp_path: Path) -> None:
    events = {"200": {"description": "", "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
    tool, notes = imported_get(tmp_path, "/x", [], responses=events)
    assert tool["stubwright"]["http"]["accept"] == "text/event-stream"
    assert len(notes) == 1
    assert notes[0].startswith("`op`: the API responds with an event stream")
    events["200"]["content"]["application/json"] = {}  # type: ignore[index]
    assert imported_get(tmp_path, "/x", [], responses=events)[1] == ()


def test_a_parameter_for_cookies_is_left_out_and_its_operation_stays(tmp_path: Path) -> None:
    parameters = [{"name": name, "in": "header", "schema": {"type": "string"}} for name in ("Cookie", "X-Fine")]
    tool = operation(tmp_path, {"parameters": parameters})
    assert list(tool["inputSchema"]["properties"]) == ["X-Fine"]


def test_a_file_behind_a_reference_is_a_file(tmp_path: Path) -> None:
    body = {"content": {"application/vnd.file": {"schema": {"$ref": "#/components/schemas/File"}}}}
    components = {"schemas": {"File": {"type": "string", "format": "binary"}}}
    tool = operation(tmp_path, {"requestBody": body}, method="post", components=components)
    assert tool["inputSchema"]["properties"]["body"]["contentEncoding"] == "base64"


TEXTS = [
    *((media, {"type": "string"}) for media in ("application/xml", "application/yaml", "application/x-ndjson")),
    *((media, None) for media in ("application/sql", "application/graphql", "application/jwt", "text/csv")),
    ("text/plain", {"$ref": "#/components/schemas/Text"}),
    ("application/soap+xml", {"$ref": "#/components/schemas/Text"}),
]


@pytest.mark.parametrize(("media", "schema"), [*amounts.sample(TEXTS[:-1], 2), TEXTS[-1]])
def test_texts_are_sent_as_they_are(media: str, schema: Any, tmp_path: Path) -> None:
    entry = {} if schema is None else {"schema": schema}
    body = {"required": True, "content": {media: entry}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Texts", "version": "1"},
        "servers": [{"url": "https://h.example"}],
        "paths": {"/x": {"post": {"operationId": "send", "requestBody": body, "responses": {}}}},
        "components": {"schemas": {"Text": {"type": "string"}}},
    }
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(document))
    package = build(path, tmp_path)
    with api(lambda _: "") as fake, client(tmp_path, package, "Texts", TEXTS_BASE_URL=fake.url) as call:
        call("send", body=XML)
        assert (fake.last.body.decode(), fake.last.headers["content-type"]) == (XML, media)


def test_a_text_in_base64_is_still_sent_as_bytes(tmp_path: Path) -> None:
    http = {"method": "POST", "url": "/x", "contentType": "application/xml", "body": "{body}"}
    schema = {"type": "string", "contentEncoding": "base64"}
    with run_package(tmp_path, [called("send", {"body": schema}, http)], lambda _: "") as there:
        there.call("send", body="PGEvPg==")
        assert there.api.last.body == b"<a/>"


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("get", "/v1/customers/{customer}/cards", "Read cards of customers, by customer"),
        ("post", "/repos/{owner}/{repo}/issues", "Post to issues of repos, by owner and repo"),
        ("get", "/", "Read the root"),
        ("put", "/{key}", "Replace the resource, by key"),
    ],
)
def test_who_has_no_words_is_described_by_its_path(method: str, path: str, words: str, tmp_path: Path) -> None:
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {path: {method: {}}}})
    assert made.manifest["tools"][0]["description"] == f"{words} ({method.upper()} {path})."
