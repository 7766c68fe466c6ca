"""Requests of an imported API where the document is ambiguous; docs/openapi.md compares them with FastMCP's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.responses import Response

import amounts
import prism_run
from command_line import stubwright
from fake_api import api
from packages import imported

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
OBJECT = {"type": "object", "properties": {"x": TEXT}}


def _body(schema: Any, media: str = "application/json", **said: Any) -> dict[str, Any]:
    return {"requestBody": {**said, "content": {media: {"schema": schema}}}}


def _query(schema: Any) -> dict[str, Any]:
    return {"parameters": [{"name": "a", "in": "query", "schema": schema}]}


BYTES = "application/octet-stream"
LATIN = "application/x-www-form-urlencoded; charset=iso-8859-1"
OPERATIONS: dict[str, Any] = {
    "optional_object": _body(OBJECT),
    "optional_list": _body(LIST),
    "optional_with_required": _body({**OBJECT, "required": ["x"]}),
    "byte": _body({"type": "string", "format": "byte"}, BYTES, required=True),
    "binary": _body({"type": "string", "format": "binary"}, BYTES, required=True),
    "latin": _body(OBJECT, LATIN, required=True),
    "list": _query(LIST),
    "object": _query({"type": "object", "properties": {"x": TEXT, "y": {"type": "integer"}}}),
    "nullable_list": _query({**LIST, "nullable": True}),
    "nullable_items": _query({"type": "array", "items": {**TEXT, "nullable": True}}),
    "nullable": _query({**TEXT, "nullable": True}),
}
CALLS = [
    ("optional_object", {}, "application/json", "", "{}"),
    ("optional_object", {"x": "v"}, "application/json", "", '{"x":"v"}'),
    ("optional_list", {}, None, "", ""),
    ("optional_list", {"body": ["v"]}, "application/json", "", '["v"]'),
    ("byte", {"body": "aGVsbG8="}, BYTES, "", "aGVsbG8="),
    ("binary", {"body": "aGVsbG8="}, BYTES, "", "hello"),
    ("latin", {"x": "é/"}, LATIN, "", "x=%E9%2F"),
    ("list", {"a": ["v", "w /"]}, None, "a=v&a=w%20%2F", ""),
    ("list", {"a": []}, None, "", ""),
    ("object", {"a": {"x": "v", "y": 1}}, None, "x=v&y=1", ""),
    ("nullable_list", {"a": ["v"]}, None, "a=v", ""),
    ("nullable_list", {"a": None}, None, "", ""),
    ("nullable_items", {"a": ["v", None]}, None, "a=v&a=", ""),
    ("nullable", {"a": None}, None, "", ""),
]
REFUSED = [
    ("optional_with_required", {}, "x: required, but missing"),
    ("latin", {"x": "€"}, "`x` cannot be encoded in iso-8859-1"),
    ("byte", {"body": "no base64!"}, "`body` is not base64"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("sending")
    paths = {
        f"/{name}": {
            "get" if "parameters" in said else "post": {
                "operationId": name,
                **said,
                "responses": {"204": {"description": "ok"}},
            }
        }
        for name, said in OPERATIONS.items()
    }
    document = {"openapi": "3.0.3", "info": {"title": "S", "version": "1"}, "paths": paths}
    (folder / "sending.json").write_text(json.dumps({**document, "servers": [{"url": "https://api.example.com"}]}))
    return folder, prism_run.build(folder / "sending.json", folder, 60)


def test_what_is_sent(built: tuple[Path, dict[str, Any]]) -> None:
    folder, manifest = built
    sent, said = [], []
    with (
        api(lambda asked: (200, "ok")) as fake,
        prism_run.credentials(manifest, fake.url),
        imported(folder / "generated", "sending_mcp") as package,
    ):

        async def go() -> None:
            async with package.SendingClient.connect(package.build_server()) as client:
                for name, arguments, *_ in CALLS:
                    assert not (await client.raw.call_tool(name, arguments)).is_error
                    asked = fake.last
                    sent.append((name, arguments, asked.headers.get("content-type"), asked.query, asked.body.decode()))
                for name, arguments, _ in REFUSED:
                    said.append((await client.raw.call_tool(name, arguments)).content[0].text)

        asyncio.run(go())
        assert len(fake.asked) == len(CALLS)
    assert sent == CALLS
    assert all(text in one for one, (_, _, text) in zip(said, REFUSED, strict=True)), said


@pytest.mark.parametrize(
    ("schema", "is_text"),
    amounts.sample([({"contentEncoding": "base64"}, True), ({"contentEncoding": "base64url"}, False), ({}, False)], 2),
)
def test_base64_is_sent_as_it_is_where_a_document_of_3_1_says_so(schema: Any, is_text: bool, tmp_path: Path) -> None:
    told = {"operationId": "op", **_body({"type": "string", **schema}, BYTES), "responses": {}}
    document = {"openapi": "3.1.0", "info": {"title": "S", "version": "1"}, "paths": {"/x": {"post": told}}}
    (tmp_path / "sending.json").write_text(json.dumps({**document, "servers": [{"url": "https://api.example.com"}]}))
    manifest = prism_run.build(tmp_path / "sending.json", tmp_path, 1)
    body = manifest["tools"][0]["inputSchema"]["properties"]["body"]
    assert body["contentEncoding"] == "base64"
    assert (body.get("format") == "byte") is is_text


FIELDS = "application/x-www-form-urlencoded"
ENCODED: list[tuple[Any, Any, str]] = [
    ({}, "a/b:c&d=e+f", "x=a%2Fb%3Ac%26d%3De%2Bf"),
    ({"allowReserved": True}, "a/b:c&d=e+f", "x=a/b:c%26d%3De%2Bf"),
    ({"allowReserved": True}, "100%25/a b", "x=100%25/a%20b"),
    ({"allowReserved": True, "contentType": "text/plain"}, "a/b", "x=a/b"),
    ({"allowReserved": True, "explode": False}, ["a/b", "c,d"], "x=a/b,c,d"),
    ({"allowReserved": True}, ["a/b", "c"], "x=a/b&x=c"),
    ({"allowReserved": True, "style": "deepObject"}, {"y": "a/b"}, "x%5By%5D=a/b"),
    ({"allowReserved": False}, "a/b", "x=a%2Fb"),
    ({"allowReserved": False}, {"y": "a/b"}, "y=a%2Fb"),
    ({"contentType": "application/json"}, ["a", 1], "x=%5B%22a%22%2C1%5D"),
    ({"contentType": "application/json; v=1"}, "a", "x=%22a%22"),
    ({"contentType": "text/plain"}, ["a", 1], "x=a&x=1"),
    ({"contentType": "application/json"}, None, ""),
]


def test_fields_of_a_form_are_written_as_their_encoding_says(tmp_path: Path) -> None:
    paths = {
        f"/{index}": {
            "post": {
                "operationId": f"op{index}",
                "requestBody": {
                    "content": {FIELDS: {"schema": {"properties": {"x": {}}}, "encoding": {"x": encoding}}}
                },
                "responses": {"204": {"description": "ok"}},
            }
        }
        for index, (encoding, *_) in enumerate(ENCODED)
    }
    document = {"openapi": "3.1.0", "info": {"title": "Sending", "version": "1"}, "paths": paths}
    (tmp_path / "sending.json").write_text(json.dumps({**document, "servers": [{"url": "https://api.example.com"}]}))
    manifest = prism_run.build(tmp_path / "sending.json", tmp_path, 60)
    with (
        api(lambda asked: Response(status_code=204)) as fake,
        prism_run.credentials(manifest, fake.url),
        imported(tmp_path / "generated", "sending_mcp") as package,
    ):

        async def go() -> None:
            async with package.SendingClient.connect(package.build_server()) as client:
                for index, (_, value, _) in enumerate(ENCODED):
                    assert not (await client.raw.call_tool(f"op{index}", {"x": value})).is_error

        asyncio.run(go())
        assert [asked.body.decode() for asked in fake.asked] == [body for *_, body in ENCODED]


def test_headers_of_an_answer_without_a_body_are_the_result(tmp_path: Path) -> None:
    headers = {
        "Operation-Location": {"schema": TEXT},
        "X-Count": {"$ref": "#/components/headers/Count"},
        "X-Tags": {"schema": {"type": "array", "items": TEXT}},
        "X-Left": {"schema": {"type": ["integer", "null"]}},
        "Set-Cookie": {"schema": TEXT},
    }
    content = {"application/json": {"schema": OBJECT}}
    paths = {
        "/start": {"post": {"operationId": "start", "responses": {"202": {"description": "d", "headers": headers}}}},
        "/either": {
            "post": {
                "operationId": "either",
                "responses": {
                    "200": {
                        "description": "d",
                        "headers": {"x-count": {"schema": {"type": "integer"}}},
                        "content": content,
                    },
                    "202": {"description": "d", "headers": headers},
                },
            }
        },
        "/head": {
            "head": {
                "operationId": "head",
                "responses": {"200": {"description": "d", "headers": headers, "content": content}},
            }
        },
        "/get": {
            "get": {
                "operationId": "get",
                "responses": {"200": {"description": "d", "headers": headers, "content": content}},
            }
        },
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Sending", "version": "1"},
        "servers": [{"url": "https://api.example.com"}],
        "paths": paths,
        "components": {"headers": {"Count": {"schema": {"type": "integer"}}}},
    }
    (tmp_path / "sending.json").write_text(json.dumps(document))
    manifest = prism_run.build(tmp_path / "sending.json", tmp_path, 10)
    told = {"Operation-Location": "/jobs/1", "X-Count": "3", "X-Tags": "a, b", "X-Left": "4", "Set-Cookie": "a=b"}
    results: dict[str, Any] = {}
    with (
        api(lambda asked: Response(status_code=202 if asked.method == "POST" else 200, headers=told)) as fake,
        prism_run.credentials(manifest, fake.url),
        imported(tmp_path / "generated", "sending_mcp") as package,
    ):

        async def go() -> None:
            async with package.SendingClient.connect(package.build_server()) as client:
                for name in ("start", "head", "either"):
                    results[name] = (await client.raw.call_tool(name, {})).structured_content

        asyncio.run(go())
    headers_alone = {"operation_location": "/jobs/1", "x_tags": ["a", "b"], "x_left": 4}
    expected = {"body": None, "headers": {**headers_alone, "x_count": 3}}
    alone = {"body": None, "headers": headers_alone}
    assert results == {"start": expected, "head": expected, "either": alone}
    either, *_, get = (tool for tool in manifest["tools"] if tool["name"] in ("either", "get"))
    assert either["outputSchema"] == {"anyOf": [OBJECT, {"type": "null"}]}
    assert "responseHeaders" not in get["stubwright"]["http"]


def test_the_server_makes_the_key_of_a_call(tmp_path: Path) -> None:
    def keyed(name: str, *, required: bool) -> dict[str, Any]:
        header = {"name": name, "in": "header", "required": required, "schema": TEXT}
        return {"parameters": [header], "responses": {"200": {"description": "d"}}, **_body(OBJECT)}

    paths = {
        "/pay": {"post": {"operationId": "pay", **keyed("Idempotency-Key", required=True)}},
        "/refund": {"patch": {"operationId": "refund", **keyed("x-idempotency-key", required=False)}},
        "/charge": {"post": {"operationId": "charge", **keyed("Klarna_IdempotencyKey", required=True)}},
        "/retry": {"post": {"operationId": "retry", **keyed("Idempotency-Key-Age", required=False)}},
        "/list": {"get": {"operationId": "list", "parameters": keyed("Idempotency-Key", required=False)["parameters"]}},
    }
    document = {"openapi": "3.1.0", "info": {"title": "Till", "version": "1"}, "paths": paths}
    (tmp_path / "till.json").write_text(json.dumps({**document, "servers": [{"url": "https://api.example.com"}]}))
    done = stubwright("import", "openapi", "till.json", "--name", "till", "-o", "till.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        "note: `pay`: the server generates the header `Idempotency-Key`, so it is not an argument; "
        "calls with the same key from the client (`once: {key: request}`) send the same value\n"
    ) in done.stderr
    tools = {tool["name"]: tool for tool in yaml.safe_load((tmp_path / "till.yaml").read_text())["tools"]}
    arguments = {name: [*tool["inputSchema"]["properties"]] for name, tool in tools.items()}
    assert [arguments.pop(name) for name in ("pay", "refund", "charge")] == [["x"]] * 3
    assert arguments == {"retry": ["Idempotency-Key-Age", "x"], "list": ["Idempotency-Key"]}
    assert tools["pay"]["stubwright"]["http"]["idempotencyHeader"] == "Idempotency-Key"
    assert tools["refund"]["stubwright"]["http"]["idempotencyHeader"] == "x-idempotency-key"
    assert [tool["stubwright"].get("policy") for tool in tools.values()] == [{"once": {"key": "request"}}] * 3 + [
        None
    ] * 2

    assert stubwright("generate", "till.yaml", cwd=tmp_path).returncode == 0
    with (
        api(lambda asked: Response(status_code=204)) as fake,
        prism_run.credentials(yaml.safe_load((tmp_path / "till.yaml").read_text()), fake.url),
        imported(tmp_path / "generated", "till_mcp") as package,
    ):

        async def go() -> None:
            async with package.TillClient.connect(package.build_server()) as client:
                for name in ("pay", "pay", "refund"):
                    assert not (await client.raw.call_tool(name, {"x": "v"})).is_error

        asyncio.run(go())
        keys = [asked.headers.get("idempotency-key") or asked.headers["x-idempotency-key"] for asked in fake.asked]
        assert len(set(keys)) == 3
