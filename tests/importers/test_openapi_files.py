"""Files and form parts as an imported API receives them, for all places of their schemas in a document."""

from __future__ import annotations

import asyncio
import json
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

import amounts
import prism_run
from fake_api import Asked, api
from openapi_documents import imported as imported_document
from packages import imported

TEXT = {"type": "string"}
NULL = {"type": "null"}
BINARY = {"type": "string", "format": "binary"}
OCTETS = {"type": "string", "contentMediaType": "application/octet-stream"}
FORM = "multipart/form-data"
FILE = ("file", "application/octet-stream", b"\x00\xff1")
LINK = (None, "application/json", b'{"url":"u"}')
NESTED = (None, "application/json", b'["a"]')
TEXT_FILE = ("text/plain", b"AP8x")


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def form(part: Any, name: str = "file", **more: Any) -> dict[str, Any]:
    """A form with one part."""
    return {FORM: {"schema": {"type": "object", "properties": {name: part}}, **more}}


def open_form(part: Any, **properties: Any) -> dict[str, Any]:
    """A form with parts of any name."""
    return {FORM: {"schema": {"type": "object", "properties": properties, "additionalProperties": part}}}


def encoded(part: Any, **encoding: Any) -> dict[str, Any]:
    return form(part, encoding={"file": encoding})


LISTED = {"type": "array", "items": TEXT}
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}
SHARED = {
    "File": BINARY,
    "Files": {"type": "array", "items": ref("File")},
    "Alias": ref("File"),
    "Octets": OCTETS,
    "Base64": {"type": "string", "format": "byte"},
    "Upload": {"type": "object", "properties": {"file": ref("File"), "name": TEXT}},
    "Link": {"type": "object", "properties": {"url": TEXT}},
    "Name": {"type": "string", "enum": ["x", "y"]},
    "Words": TEXT,
    "Nested": {"type": "array", "items": {"anyOf": [TEXT, ref("Nested")]}},
    "Tree": {"anyOf": [OCTETS, {"type": "array", "items": ref("Tree")}]},
    "Pairs": {"type": "array", "prefixItems": [ref("Pairs")] * 4},
}

OLD: dict[str, tuple[Any, dict[str, Any], list[Any]]] = {
    "plain": (form(BINARY), {"file": "AP8x"}, [FILE]),
    "reference": (form(ref("File")), {"file": "AP8x"}, [FILE]),
    "alias": (form(ref("Alias")), {"file": "AP8x"}, [FILE]),
    "wrapped": (form({"allOf": [ref("File")], "description": "A file."}), {"file": "AP8x"}, [FILE]),
    "nullable": (form({"allOf": [ref("File")], "nullable": True}), {"file": "AP8x"}, [FILE]),
    "null": (form({"allOf": [ref("File")], "nullable": True}), {"file": None}, []),
    "alternatives": (form({"oneOf": [ref("File"), ref("Files")]}), {"file": ["AP8x", "AP8x"]}, [FILE, FILE]),
    "either": (form({"oneOf": [ref("File"), ref("Files")]}), {"file": "AP8x"}, [FILE]),
    "list": (form(ref("Files")), {"file": ["AP8x", "AP8x"]}, [FILE, FILE]),
    "whole": ({FORM: {"schema": ref("Upload")}}, {"file": "AP8x", "name": "n"}, [FILE, (None, "text/plain", b"n")]),
    "one_of_forms": (
        {FORM: {"schema": {"oneOf": [ref("Upload"), ref("Link")]}}},
        {"body": {"file": "AP8x"}},
        [FILE],
    ),
    "styled": (encoded(LISTED, style="form", explode=False), {"file": ["a", "b"]}, [*((None, "text/plain", b"a"),)]),
    "typed": (encoded(TEXT, contentType="application/xml"), {"file": "<a/>"}, [(None, "application/xml", b"<a/>")]),
    "vendor": (
        encoded(OBJECT, contentType="application/vnd.x+json"),
        {"file": {"a": 1}},
        [(None, "application/vnd.x+json", b'{"a":1}')],
    ),
    "list_in_one": (
        encoded(LISTED, contentType="application/json"),
        {"file": ["a", "b"]},
        [(None, "application/json", b'["a","b"]')],
    ),
    "charset": (
        encoded(TEXT, contentType="text/plain; charset=iso-8859-1"),
        {"file": "é"},
        [(None, "text/plain; charset=iso-8859-1", b"\xe9")],
    ),
    "chosen": (encoded(ref("Name"), contentType="application/xml"), {"file": "x"}, [(None, "application/xml", b"x")]),
    "kinds": (
        {
            FORM: {
                "schema": {
                    "oneOf": [
                        {"type": "object", "properties": {"k": {"type": "string", "enum": ["a"]}, "file": BINARY}},
                        {
                            "type": "object",
                            "properties": {"k": {"type": "string", "enum": ["b"]}, "file": ref("Files")},
                        },
                    ]
                }
            }
        },
        {"body": {"file": "AP8x", "k": "a"}},
        [(None, "text/plain", b"a"), FILE],
    ),
    "link_or_file": (
        form({"anyOf": [{"type": "string", "format": "uri"}, ref("File")]}),
        {"file": "http://x/y"},
        [(None, "text/plain", b"http://x/y")],
    ),
    "name_or_file": (form({"oneOf": [ref("Name"), ref("File")]}), {"file": "x"}, [(None, "text/plain", b"x")]),
    "file_or_name": (form({"oneOf": [ref("Name"), ref("File")]}), {"file": "AP8x"}, [FILE]),
    "nested_files": (
        form({"oneOf": [ref("Name"), {"anyOf": [ref("File"), ref("Files")]}]}),
        {"file": ["AP8x"]},
        [FILE],
    ),
    "base64": (form(ref("Base64")), {"file": "AP8x"}, [(None, "application/octet-stream", b"AP8x")]),
    "number_or_file": (form({"oneOf": [{"type": "integer"}, ref("Alias")]}), {"file": 5}, [(None, "text/plain", b"5")]),
    "quoted": (
        encoded(OBJECT, contentType='application/json; profile="a,b"'),
        {"file": {"a": 1}},
        [(None, 'application/json; profile="a,b"', b'{"a":1}')],
    ),
    "lone_files": ({FORM: {"schema": {**ref("Files")}}}, {"file": ["AP8x", "AP8x"]}, [FILE, FILE]),
    "text_of_bytes": (encoded(TEXT, contentType="image/png"), {"file": "AP8x"}, [("file", "image/png", FILE[2])]),
    "text_of_octets": (encoded(ref("Words"), contentType="application/octet-stream"), {"file": "AP8x"}, [FILE]),
    "texts_of_bytes": (
        encoded(LISTED, contentType="image/png, image/jpeg"),
        {"file": ["AP8x", "AP8x"]},
        [("file", "image/png", FILE[2])] * 2,
    ),
    "text_of_a_range": (encoded({**TEXT, "nullable": True}, contentType="image/*"), {"file": "AP8x"}, [FILE]),
    "text_of_drawings": (
        encoded(TEXT, contentType="image/svg+xml"),
        {"file": "<svg/>"},
        [(None, "image/svg+xml", b"<svg/>")],
    ),
    "text_or_bytes": (encoded(TEXT, contentType="text/csv, image/png"), {"file": "a,b"}, [(None, "text/csv", b"a,b")]),
    "text_of_anything": (encoded(TEXT, contentType="*/*"), {"file": "a"}, [(None, "text/plain", b"a")]),
    "names_of_bytes": (encoded(ref("Name"), contentType="image/png"), {"file": "x"}, [(None, "image/png", b"x")]),
    "sized": (form({**BINARY, "minLength": 3, "maxLength": 3, "pattern": "^GIF"}), {"file": "AP8x"}, [FILE]),
    "raw": ({"text/csv": {"schema": BINARY}}, {"body": "YSxi"}, [(None, "text/csv", b"a,b")]),
    "raw_base64": (
        {"text/plain": {"schema": {"type": "string", "format": "byte"}}},
        {"body": "YSxi"},
        [(None, "text/plain", b"YSxi")],
    ),
    "raw_null": ({"image/png": {"schema": {"allOf": [ref("File")], "nullable": True}}}, {"body": None}, []),
    "raw_no_text": ({"text/plain": {"schema": {**TEXT, "nullable": True}}}, {"body": None}, []),
    "header": (encoded(BINARY, headers={"X-Rate": {"schema": {"type": "integer"}}}), {"file": "AP8x"}, [FILE]),
    "open_keys": (open_form(BINARY), {"body": {"a": "AP8x", "b": "AP8x"}}, [("a", *FILE[1:]), ("b", *FILE[1:])]),
    "open_lists": (open_form(ref("Files")), {"body": {"a": ["AP8x", "AP8x"]}}, [("a", *FILE[1:])] * 2),
    "open_rest": (
        open_form(ref("File"), n=TEXT),
        {"n": "x", "a": "AP8x"},
        [(None, "text/plain", b"x"), ("a", *FILE[1:])],
    ),
    "open_text": (open_form(TEXT, file=BINARY), {"file": "AP8x", "a": "AP8x"}, [FILE, (None, *TEXT_FILE)]),
    "hidden": (
        {FORM: {"schema": {**ref("Upload"), "required": ["file"], "properties": {}}}},
        {"file": "AP8x"},
        [FILE],
    ),
}
OLD["styled"][2].append((None, "text/plain", b"b"))  # 3.0 ignores the style of a part

NEW: dict[str, tuple[Any, dict[str, Any], list[Any]]] = {
    "octets": (form(OCTETS), {"file": "AP8x"}, [FILE]),
    "optional": (form({"anyOf": [OCTETS, NULL]}), {"file": "AP8x"}, [FILE]),
    "absent": (form({"anyOf": [OCTETS, NULL]}), {"file": None}, []),
    "optional_list": (form({"anyOf": [{"type": "array", "items": OCTETS}, NULL]}), {"file": ["AP8x"]}, [FILE]),
    "optional_reference": (form({"anyOf": [ref("Octets"), NULL]}), {"file": "AP8x"}, [FILE]),
    "lone_file": ({FORM: {"schema": {"oneOf": [ref("Octets"), NULL]}}}, {"file": "AP8x"}, [FILE]),
    "optional_form": ({FORM: {"schema": {"anyOf": [ref("Upload"), NULL]}}}, {"file": "AP8x"}, [FILE]),
    "keyword_or_file": (
        form({"oneOf": [{"const": "none"}, OCTETS]}),
        {"file": "none"},
        [(None, "text/plain", b"none")],
    ),
    "base64": (
        form({"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"}),
        {"file": "AP8x"},
        [(None, "image/png", b"AP8x")],
    ),
    "json_text": (
        form({"type": "string", "contentMediaType": "application/json", "contentSchema": OBJECT}),
        {"file": '{"a":1}'},
        [(None, "application/json", b'{"a":1}')],
    ),
    "styled": (encoded(LISTED, style="form", explode=False), {"file": ["a", "b"]}, [(None, "text/plain", b"a,b")]),
    "unencoded": (form({"type": "string", "contentEncoding": "binary"}), {"file": "AP8x"}, [FILE]),
    "raw_unencoded": (
        {"image/png": {"schema": {"type": ["string", "null"], "contentEncoding": "binary"}}},
        {"body": "YSxi"},
        [(None, "image/png", b"a,b")],
    ),
    "patterns": (
        {FORM: {"schema": {"type": "object", "patternProperties": {"^f": OCTETS, "^t": TEXT}}}},
        {"body": {"f1": "AP8x", "t1": "AP8x"}},
        [("f1", *FILE[1:]), (None, *TEXT_FILE)],
    ),
    "first_file": (
        form({"type": "array", "prefixItems": [ref("File"), TEXT]}),
        {"file": ["AP8x", "AP8x", "AP8x"]},
        [FILE, (None, *TEXT_FILE), (None, *TEXT_FILE)],
    ),
    "text_then_files": (
        form({"anyOf": [{"type": "array", "prefixItems": [ref("Name")], "items": ref("Alias")}, NULL]}),
        {"file": ["x", "AP8x", "AP8x"]},
        [(None, "text/plain", b"x"), FILE, FILE],
    ),
    "pair_of_bytes": (
        encoded({"type": "array", "prefixItems": [TEXT, TEXT], "items": False}, contentType="image/png"),
        {"file": ["AP8x", "AP8x"]},
        [("file", "image/png", FILE[2])] * 2,
    ),
    "pair_in_one": (
        encoded({"type": "array", "prefixItems": [TEXT, {"type": "integer"}]}, contentType="application/json"),
        {"file": ["a", 1]},
        [(None, "application/json", b'["a",1]')],
    ),
    "pair_of_texts": (
        encoded({"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "items": False}, contentType="text/csv"),
        {"file": ["a", 1]},
        [(None, "text/csv", b"a"), (None, "text/csv", b"1")],
    ),
    "lists_in_lists": (form(ref("Nested")), {"file": [["a"], "b"]}, [NESTED, (None, "text/plain", b"b")]),
    "trees": (
        form(ref("Tree")),
        {"file": ["AP8x", ["a"]]},
        [FILE, NESTED],
    ),
    "object_or_file": (form({"oneOf": [ref("Link"), OCTETS]}), {"file": {"url": "u"}}, [LINK]),
    "file_or_object": (form({"oneOf": [ref("Link"), OCTETS]}), {"file": "AP8x"}, [FILE]),
    "pairs_of_pairs": (
        form({"type": "array", "prefixItems": [ref("Pairs"), ref("Pairs")]}),
        {"file": [[[], []]]},
        [(None, "application/json", b"[[],[]]")],
    ),
    "pair_or_files": (
        form({"anyOf": [{"type": "array", "items": ref("File")}, {"type": "array", "prefixItems": [NULL, TEXT]}]}),
        {"file": ["AP8x", "AP8x"]},
        [FILE, FILE],
    ),
    "piped": (encoded(LISTED, style="pipeDelimited"), {"file": ["a", "b"]}, [(None, "text/plain", b"a|b")]),
}


def _document(version: str, operations: dict[str, tuple[Any, dict[str, Any], list[Any]]]) -> dict[str, Any]:
    paths = {
        f"/{name}": {
            "post": {
                "operationId": name,
                "requestBody": {"required": True, "content": content},
                "responses": {"204": {"description": "ok"}},
            }
        }
        for name, (content, _, _) in operations.items()
    }
    document = {"openapi": version, "info": {"title": "Files", "version": "1"}, "paths": paths}
    return {**document, "servers": [{"url": "https://api.example.com"}], "components": {"schemas": SHARED}}


def _read_parts(asked: Asked) -> list[tuple[str | None, str, Any]]:
    """The parts of a form: name of the file, media type and content."""
    if not asked.body:
        return []
    message = message_from_bytes(f"Content-Type: {asked.headers['content-type']}\r\n\r\n".encode() + asked.body)
    parts = [part for part in message.walk() if not part.is_multipart()]
    return [(part.get_filename(), str(part["Content-Type"]), part.get_payload(decode=True)) for part in parts]


@pytest.mark.parametrize(("version", "operations"), [amounts.mark_long(("3.0.3", OLD)), ("3.1.0", NEW)])
def test_parts_are_sent_as_the_document_says(version: str, operations: Any, tmp_path: Path) -> None:
    (tmp_path / "files.json").write_text(json.dumps(_document(version, operations)))
    manifest = prism_run.build(tmp_path / "files.json", tmp_path, 60)
    sent: dict[str, list[Any]] = {}
    with (
        api(lambda asked: Response(status_code=204)) as fake,
        prism_run.credentials(manifest, fake.url),
        imported(tmp_path / "generated", "files_mcp") as package,
    ):

        async def go() -> None:
            async with package.FilesClient.connect(package.build_server()) as client:
                for name, (_, arguments, _) in operations.items():
                    result = await client.raw.call_tool(name, arguments)
                    assert not result.is_error, (name, result.content)
                    sent[name] = _read_parts(fake.last)

        asyncio.run(go())
    assert sent == {name: parts for name, (_, _, parts) in operations.items()}


@pytest.mark.parametrize("media", [FORM, "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("schema", amounts.sample([TEXT, LISTED, {"allOf": [TEXT]}], 2))
def test_a_form_that_is_no_object_is_told(schema: Any, media: str, tmp_path: Path) -> None:
    operation = {"operationId": "op", "requestBody": {"content": {media: {"schema": schema}}}, "responses": {}}
    made = imported_document(
        tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    )
    assert made.notes[0] == f"`op` (POST /x) was omitted: its body is `{media}`, whose schema is not an object"


def test_a_part_that_needs_a_header_is_told(tmp_path: Path) -> None:
    header = {"X-Rate": {"required": True, "schema": {"type": "integer"}}}
    content = encoded(BINARY, headers=header)
    operation = {"operationId": "op", "requestBody": {"content": content}, "responses": {}}
    made = imported_document(
        tmp_path, {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"post": operation}}}
    )
    assert made.notes[0] == (
        "`op` (POST /x) was omitted: its body is `multipart/form-data`, whose part `file` needs the header `X-Rate`"
    )


def test_lists_of_swagger_are_joined_as_it_says(tmp_path: Path) -> None:
    fields = [{"name": name, "in": "formData", "type": "array", "items": TEXT} for name in ("l", "m", "f", "t")]
    fields[3]["collectionFormat"] = "tsv"
    fields[1]["collectionFormat"] = "multi"
    fields[2]["items"] = {"type": "file"}
    operation = {
        "operationId": "op",
        "consumes": [FORM],
        "parameters": fields,
        "responses": {"200": {"description": "d"}},
    }
    document = {"swagger": "2.0", "info": {"title": "Files", "version": "1"}, "host": "h.example", "openapi": None}
    made = imported_document(tmp_path, {**document, "paths": {"/x": {"post": operation}}})
    (tool,) = made.manifest["tools"]
    assert tool["stubwright"]["http"]["fields"] == {
        "l": {"style": "form", "explode": False},
        "t": {"style": "tabDelimited", "explode": False},
    }
    assert tool["inputSchema"]["properties"]["f"]["items"] == {"type": "string", "contentEncoding": "base64"}
