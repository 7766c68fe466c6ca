"""Tools that are HTTP calls, with real HTTP servers: requests, results, and data that never leaves the server."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import resource
import time
import zlib
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

import amounts
import prompt_ends
from fake_api import Answer, Asked, api
from http_tools import called, run_package
from packages import tool
from stubwright_runtime.errors import ToolError
from stubwright_runtime.http.media import find_contents
from stubwright_runtime.http.requests import Api, Binding
from stubwright_runtime.http.responses import Answer as HttpAnswer

ends_are_prompt = prompt_ends.ends_are_prompt

ANY: dict[str, Any] = {}
OBJECT = {"outputSchema": {"type": "object"}}


def echo(asked: Asked) -> Answer:
    return {"path": asked.path, "query": asked.query, "body": asked.body.decode()}


STYLES: list[tuple[dict[str, Any], Any, str]] = [
    ({}, "a b&c=d#é", "q=a%20b%26c%3Dd%23%C3%A9"),
    ({}, 1.5, "q=1.5"),
    ({}, True, "q=true"),
    ({}, None, ""),
    ({}, ["a,b", "c"], "q=a%2Cb&q=c"),
    ({}, [], ""),
    ({"explode": False}, ["a,b", "c"], "q=a%2Cb,c"),
    ({}, {"a": 1, "b": "x y"}, "a=1&b=x%20y"),
    ({"explode": False}, {"a": 1, "b": 2}, "q=a,1,b,2"),
    ({"style": "spaceDelimited"}, ["a", "b"], "q=a%20b"),
    ({"style": "pipeDelimited"}, ["a", "b"], "q=a%7Cb"),
    ({"style": "tabDelimited", "explode": False}, ["a", "b"], "q=a%09b"),
    (
        {"style": "deepObject"},
        {"a": 1, "b": {"c": [2, 3]}},
        "q%5Ba%5D=1&q%5Bb%5D%5Bc%5D%5B0%5D=2&q%5Bb%5D%5Bc%5D%5B1%5D=3",
    ),
    ({"reserved": True}, "a/b:c&d", "q=a/b:c%26d"),
    ({"contentType": "application/json"}, {"a": [1]}, "q=%7B%22a%22%3A%5B1%5D%7D"),
]


def bind(http: Mapping[str, Any], properties: Mapping[str, Any] = ANY, **said: Any) -> Binding:
    return Binding(http, Api.from_entry({"baseUrl": "https://api.example.com/v1", **said}), {"properties": properties})


@pytest.mark.parametrize(("how", "value", "query"), STYLES)
def test_a_query_is_written_in_its_style(how: Mapping[str, Any], value: Any, query: str) -> None:
    sent = bind({"url": "/x", "query": {"q": {"value": "{a}", **how}}}).make_request({"a": value}, {})
    assert sent.url == "https://api.example.com/v1/x" + (f"?{query}" if query else "")


@pytest.mark.parametrize(
    ("how", "value", "path"),
    [
        ({}, "a/b", "a%2Fb"),
        ({}, ["a", "b,c"], "a,b%2Cc"),
        ({}, {"a": 1}, "a,1"),
        ({"explode": True}, {"a": 1, "b": 2}, "a=1,b=2"),
        ({"style": "label"}, 5, ".5"),
        ({"style": "label", "explode": True}, ["a", "b"], ".a.b"),
        ({"style": "label"}, ["a", "b"], ".a,b"),
        ({"style": "matrix"}, 5, ";a=5"),
        ({"style": "matrix"}, ["x", "y"], ";a=x,y"),
        ({"style": "matrix", "explode": True}, ["x", "y"], ";a=x;a=y"),
        ({"style": "matrix", "explode": True}, {"x": 1}, ";x=1"),
        ({"style": "spaceDelimited"}, ["a", "b c"], "a%20b%20c"),
        ({"style": "pipeDelimited"}, ["a", 1], "a%7C1"),
        ({"style": "pipeDelimited", "explode": True}, {"a": 1, "b": 2}, "a=1%7Cb=2"),
        ({"style": "tabDelimited"}, {"a": 1}, "a%091"),
        ({"style": "tabDelimited"}, "a", "a"),
    ],
)
def test_a_path_is_written_in_its_style(how: Mapping[str, Any], value: Any, path: str) -> None:
    sent = bind({"url": "/x/{a}/y", "path": {"a": how}}).make_request({"a": value}, {})
    assert sent.url == f"https://api.example.com/v1/x/{path}/y"


@pytest.mark.parametrize(
    ("how", "value", "header"),
    [
        ({}, ["a", "b"], b"a,b"),
        ({"explode": True}, {"a": 1, "b": 2}, b"a=1,b=2"),
        ({"style": "spaceDelimited"}, ["a", "b"], b"a b"),
        ({"style": "pipeDelimited"}, ["a", "b"], b"a|b"),
        ({"style": "tabDelimited"}, ["a", "b"], b"a\tb"),
    ],
)
def test_a_header_is_written_in_its_style(how: Mapping[str, Any], value: Any, header: bytes) -> None:
    sent = bind({"url": "/x", "headers": {"H": {"value": "{a}", **how}}}).make_request({"a": value}, {})
    assert dict(sent.headers)["H"] == header


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_value_cannot_leave_its_place(value: str) -> None:
    binding = bind({"url": "/x/{a}/y", "query": {"q": "{a}"}, "headers": {"H": "{a}"}, "cookies": {"c": "{a}"}})
    try:
        sent = binding.make_request({"a": value}, {})
    except ToolError:
        return
    assert sent.url.isascii()
    path, _, query = sent.url.removeprefix("https://api.example.com").partition("?")
    steps = path.split("/")
    assert steps[:3] == ["", "v1", "x"]
    assert (len(steps), steps[4], unquote(steps[3])) == (5, "y", value)
    assert steps[3] not in (".", "..", "")
    assert (query.count("&"), unquote(query)) == (0, f"q={value}")
    headers = dict(sent.headers)
    assert not {10, 13} & set(headers["H"])
    assert headers["Cookie"].count(b";") == 0


LINES = [f"a{char}X-Other: 1" for char in "\r\n\0\x0b\x0c\x1b\x7f"] + ["a\r\n\r\nGET / HTTP/1.1", "\n", "\r"]


@pytest.mark.parametrize("line", LINES, ids=ascii)
def test_an_argument_adds_no_header(line: str) -> None:
    for value in (line, [line], {"a": line}, {line: "a"}):
        with pytest.raises(ToolError, match="The header H cannot contain line breaks or control characters"):
            bind({"url": "/x", "headers": {"H": "{a}"}}).make_request({"a": value}, {})
        sent = bind({"url": "/x", "cookies": {"c": "{a}"}}).make_request({"a": value}, {})
        assert not {10, 13, 59} & set(dict(sent.headers).get("Cookie", b""))
    file = {"type": "string", "contentEncoding": "base64", "contentMediaType": line}
    form = {"url": "/x", "method": "POST", "contentType": "multipart/form-data"}
    assert bind(form, {"f": file}).make_request({"f": "YQ=="}, {}).parts == [
        ("f", ("f", b"a", "application/octet-stream"))
    ]


def test_an_argument_with_a_line_break_for_a_header_reaches_nobody(tmp_path: Path) -> None:
    tools = [called("send", {"a": {"type": "string"}}, {"url": "/x", "headers": {"X-A": "{a}"}})]
    with run_package(tmp_path, tools, echo) as server:
        assert "The header X-A cannot contain line breaks" in server.refused("send", a="a\r\nX-Other: 1")
        assert server.api.asked == []


@pytest.mark.parametrize("value", ["..", ".", "../admin", "a/../../b", "a\\..\\b", "..;/x", ""])
def test_a_value_is_no_step_of_a_path(value: str) -> None:
    with pytest.raises(ToolError, match="part of the URL"):
        bind({"url": "/x/{a}"}).make_request({"a": value}, {})


def test_what_is_left_out_is_left_out(tmp_path: Path) -> None:
    http = {
        "method": "POST",
        "url": "/x",
        "query": {"q": "{q}", "fixed": "1"},
        "headers": {"X-Both": "{a}-{q}", "X-Fixed": "{{1}}"},
        "cookies": {"c": "{a}"},
    }
    with run_package(tmp_path, [called("go", {"a": {}, "q": {}, "b": {}, "n": {}}, http)], echo) as there:
        there.call("go", n=None)
        last = there.api.last
        assert (last.path, last.query, last.json) == ("/v1/x", "fixed=1", {"n": None})
        assert (last.headers.get("x-both"), last.headers["x-fixed"]) == (None, "{1}")
        assert "cookie" not in last.headers
        there.call("go", a="1", q="2", b={"deep": [1.0]})
        last = there.api.last
        assert (last.query, last.headers["x-both"], last.headers["cookie"]) == ("q=2&fixed=1", "1-2", "c=1")
        assert last.body == b'{"b":{"deep":[1.0]}}'


def test_a_body_is_what_the_manifest_says(tmp_path: Path) -> None:
    template = {"title": "{title}", "tags": ["{tag}", "new"], "text": "Said {title}", "n": 1}
    tools = [
        called("one", {"title": {}, "tag": {}}, {"method": "PATCH", "url": "/x", "body": template}),
        called("whole", {"body": {}}, {"method": "DELETE", "url": "/x", "body": "{body}"}),
        called("none", {"q": {}}, {"method": "POST", "url": "/x", "query": {"q": "{q}"}}),
        called("text", {"body": {}}, {"method": "PUT", "url": "/x", "body": "{body}", "contentType": "text/plain"}),
        called("bytes", {"body": {}}, {"method": "PUT", "url": "/x", "body": "{body}", "contentType": "image/png"}),
        called(
            "form",
            {"a": {}, "b": {}, "c": {}},
            {"method": "POST", "url": "/x", "contentType": "application/x-www-form-urlencoded"},
        ),
        called(
            "styled",
            {"a": {}, "b": {}},
            {
                "method": "POST",
                "url": "/x",
                "contentType": "application/x-www-form-urlencoded",
                "fields": {"a": {"style": "deepObject"}, "b": {"explode": False}},
            },
        ),
    ]
    with run_package(tmp_path, tools, echo) as there:
        there.call("one", title=7)
        assert there.api.last.json == {"title": 7, "tags": ["new"], "text": "Said 7", "n": 1}
        there.call("whole", body=[1, None])
        assert (there.api.last.method, there.api.last.json) == ("DELETE", [1, None])
        there.call("none", q="1")
        assert (there.api.last.body, there.api.last.headers.get("content-type")) == (b"", None)
        there.call("text", body="é\n")
        assert there.api.last.body.decode() == "é\n"
        there.call("bytes", body=base64.b64encode(b"\x00\xff").decode())
        assert (there.api.last.body, there.api.last.headers["content-type"]) == (b"\x00\xff", "image/png")
        assert there.refused("bytes", body="%%%") == "`body` is not base64 (RFC 4648, section 4)."
        there.call("form", a="x y", b=["1", "2"], c={"d": 1})
        assert there.api.last.body == b"a=x%20y&b=1&b=2&c=%7B%22d%22%3A1%7D"
        there.call("styled", a=[{"b": 1}], b=[1, 2])
        assert there.api.last.body == b"a%5B0%5D%5Bb%5D=1&b=1,2"


def test_a_form_of_parts_has_files(tmp_path: Path) -> None:
    properties = {
        "file": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
        "more": {"type": "array", "items": {"type": "string", "contentEncoding": "base64"}},
        "note": {"type": "string"},
        "meta": {"type": "object"},
    }
    http = {"method": "POST", "url": "/x", "contentType": "multipart/form-data"}
    with run_package(tmp_path, [called("send", properties, http)], echo) as there:
        there.call("send", file="AAE=", more=["Ag==", "Aw=="], note="é", meta={"a": 1})
        last = there.api.last
    assert last.headers["content-type"].startswith("multipart/form-data; boundary=")
    boundary = last.headers["content-type"].partition("boundary=")[2].encode()
    parts = [part.strip(b"\r\n").split(b"\r\n\r\n", 1) for part in last.body.split(b"--" + boundary)[1:-1]]
    told = [(head.decode().lower(), body) for head, body in parts]
    assert [body for _, body in told] == [b"\x00\x01", b"\x02", b"\x03", "é".encode(), b'{"a":1}']
    assert 'name="file"; filename="file"' in told[0][0]
    assert "content-type: image/png" in told[0][0]
    assert "application/octet-stream" in told[1][0]
    assert "filename" not in told[3][0]
    assert "application/json" in told[4][0]


RESULTS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"type": "object"}, {"a": 1.0, "b": None}, {"a": 1.0, "b": None}),
    ({"type": "array"}, [1, "2"], [1, "2"]),
    ({"type": "string"}, "x", "x"),
    ({"type": ["null", "integer"]}, None, None),
]


@pytest.mark.parametrize(("schema", "answer", "structured"), amounts.sample(RESULTS, 2))
def test_json_is_structured_content(schema: dict[str, Any], answer: Any, structured: Any, tmp_path: Path) -> None:
    tools = [called("get", {}, {"url": "/x"}, outputSchema=schema)]
    with run_package(
        tmp_path, tools, lambda _: (200, answer) if not isinstance(answer, str) else _json(answer)
    ) as there:
        result = there.call("get")
        assert (result.is_error, result.structured_content) == (False, structured)
        assert json.loads(result.content[0].text) == structured


@pytest.mark.parametrize("levels", amounts.sample([193, 250, 900, 100_000], 2))
def test_json_that_no_message_can_carry_is_a_failed_call(levels: int, tmp_path: Path) -> None:
    answer = Response("[" * levels + "]" * levels, media_type="application/json")
    tools = [called("get", {}, {"url": "/x"}, outputSchema={"type": "array"}), called("text", {}, {"url": "/x"})]
    with run_package(tmp_path, tools, lambda _: answer) as there:
        refused = there.refused("get")
        assert "nested more than 192 levels deep" in refused or "is not JSON" in refused
        assert len(there.text("text")) == 2 * levels  # as text it is no deeper than any other


def _json(value: Any) -> Response:
    return Response(json.dumps(value), media_type="application/json")


@pytest.mark.parametrize(
    ("answer", "why"),
    amounts.sample(
        [
            ((200, [1]), "The API returned 200 OK without the required JSON object."),
            (Response(b"", 204), "The API returned 204 No Content without the required JSON object."),
            (Response("<p>", media_type="text/html"), "The API returned 200 OK with text/html that is not JSON."),
            (Response("NaN", media_type="application/json"), "with application/json that is not JSON."),
            (Response("[" * 100_000, media_type="application/json"), "with application/json that is not JSON."),
            ((200, {"a": "x"}), "The result of get does not match its output schema"),
        ],
        3,
    ),
)
def test_an_answer_that_breaks_its_promise_is_an_error(answer: Answer, why: str, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with run_package(tmp_path, [called("get", {}, {"url": "/x"}, outputSchema=schema)], lambda _: answer) as there:
        assert why in there.refused("get")


@pytest.mark.parametrize(
    ("answer", "block"),
    amounts.sample(
        [
            (Response("é\x1b[31m", media_type="text/csv"), {"type": "text", "text": "é"}),
            (Response("é".encode("latin-1"), media_type="text/plain; charset=latin-1"), {"type": "text", "text": "é"}),
            (Response('{"a": 1}', media_type="application/json"), {"type": "text", "text": '{"a": 1}'}),
            (Response(b"", 204), {"type": "text", "text": "204 No Content"}),
            (Response(b"\x89P", media_type="image/png"), {"type": "image", "data": "iVA=", "mimeType": "image/png"}),
            (Response(b"\x00", media_type="audio/wav"), {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
        ],
        3,
    ),
)
def test_other_answers_are_content(answer: Response, block: Mapping[str, Any], tmp_path: Path) -> None:
    with run_package(tmp_path, [called("get", {}, {"url": "/x"})], lambda _: answer) as there:
        (made,) = there.call("get").content
        assert made.model_dump(mode="json", by_alias=True, exclude_none=True) == block


def test_bytes_are_an_embedded_resource_without_the_query(tmp_path: Path) -> None:
    http = {"url": "/x", "query": {"secret": "1"}}
    answer = Response(b"\x00\x01", media_type="application/octet-stream")
    with run_package(tmp_path, [called("get", {}, http)], lambda _: answer) as there:
        (block,) = there.call("get").content
        assert (block.resource.uri, block.resource.blob) == (f"{there.api.url}/v1/x", "AAE=")


AUTH: dict[str, Any] = {
    "auth": {
        "bearer": {"type": "bearer", "env": "T_TOKEN"},
        "basic": {"type": "basic", "usernameEnv": "T_USER", "passwordEnv": "T_PASSWORD"},
        "key": {"type": "apiKey", "name": "X-Key", "env": "T_KEY"},
        "query": {"type": "apiKey", "in": "query", "name": "key", "env": "T_KEY"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid", "env": "T_KEY"},
    },
    "security": [["bearer"]],
}


@pytest.mark.parametrize(
    ("security", "environment", "headers", "query"),
    [
        (None, {"T_TOKEN": "toktok"}, {"authorization": "Bearer toktok"}, ""),
        (None, {}, {}, ""),
        ([], {"T_TOKEN": "toktok"}, {}, ""),
        ([["basic"]], {"T_USER": "u", "T_PASSWORD": "p:é"}, {"authorization": "Basic dTpwOsOp"}, ""),
        ([["basic"]], {"T_USER": "u"}, {}, ""),
        ([["key"]], {"T_KEY": "keykey"}, {"x-key": "keykey"}, ""),
        ([["query"]], {"T_KEY": "k &"}, {}, "key=k%20%26"),
        ([["cookie"]], {"T_KEY": "k;"}, {"cookie": "sid=k%3B"}, ""),
        (
            [["basic"], ["bearer", "key"]],
            {"T_TOKEN": "toktok", "T_KEY": "keykey"},
            {"authorization": "Bearer toktok", "x-key": "keykey"},
            "",
        ),
        ([["bearer"], []], {"T_TOKEN": "toktok"}, {"authorization": "Bearer toktok"}, ""),
        ([[], ["bearer"]], {"T_TOKEN": "toktok"}, {}, ""),
    ],
)  # fmt: skip
def test_credentials_come_from_the_environment(
    security: Any, environment: dict[str, str], headers: dict[str, str], query: str
) -> None:
    http = {"url": "/x"} | ({} if security is None else {"security": security})
    sent = bind(http, **AUTH).make_request({}, environment)
    told = {name.lower(): value.decode() for name, value in sent.headers if name != "Accept"}
    assert (told, sent.url.partition("?")[2]) == (headers, query)
    assert all(secret not in repr(sent) for secret in sent.secrets)
    assert "u" not in sent.secrets


def test_after_a_401_the_next_way_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_TOKEN", "toktok")
    monkeypatch.setenv("T_KEY", "keykey")

    def answer(asked: Asked) -> Answer:
        return (200, "in") if asked.headers.get("x-key") == "keykey" else (401, "out")

    tools = [
        called("get", {}, {"url": "/x", "security": [[], ["basic"], ["bearer"], ["key"]]}),
        called("out", {}, {"url": "/x", "security": []}),
    ]
    with run_package(tmp_path, tools, answer, **AUTH) as there:
        assert there.text("get") == "in"
        assert [asked.headers.get("authorization") for asked in there.api.asked] == [None, "Bearer toktok", None]
        assert there.refused("out").startswith("The API returned 401 Unauthorized for GET /x: ")
        assert len(there.api.asked) == 4
        server = there.package.build_server()

        async def twice() -> None:
            async with there.package.SampleClient.connect(server) as client:
                await client.get()
                await client.get()

        asyncio.run(twice())
        assert len(there.api.asked) == 8  # the second goes straight to what worked


def test_errors_tell_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("T_KEY", 'se"cret&1')
    monkeypatch.setenv("T_USER", "user")
    monkeypatch.setenv("T_PASSWORD", "pass word")
    secrets = ('se"cret&1', 'se\\"cret&1', "se%22cret%261", "pass word", base64.b64encode(b"user:pass word").decode())

    def answer(asked: Asked) -> Answer:
        return 403, {"sent": [asked.query, dict(asked.headers), *secrets], "esc": "\x1b[31mred\u202e"}

    caplog.set_level(logging.DEBUG)
    tools = [called("get", {"a": {}}, {"url": "/x/{a}", "security": [["query", "basic"]]})]
    with run_package(tmp_path, tools, answer, **AUTH) as there:
        text = there.refused("get", a="private")
        assert text.startswith("The API returned 403 Forbidden for GET /x/{a}: ")
        assert "se%22cret%261" in there.api.last.query
        assert "\x1b" not in text
        assert "[redacted]" in text
        for secret in secrets:
            assert secret not in text
            assert secret not in "".join(record.getMessage() for record in caplog.records if "httpx" in record.name)


def test_an_error_says_what_the_server_lacks_and_when_to_come_back(tmp_path: Path) -> None:
    answers: list[Answer] = [
        (401, {"message": "who?"}),
        Response("x" * 5000, 400),
        Response("", 429, {"Retry-After": "60"}),
        Response("<h1>Oh\n\nno</h1>", 599, media_type="text/html"),
    ]
    tools = [called("get", {}, {"method": "POST", "url": "/x"})]
    with run_package(tmp_path, tools, lambda _: answers.pop(0), **AUTH) as there:
        assert there.refused("get") == (
            "The API returned 401 Unauthorized for POST /x; no credentials were sent, because the server's environment "
            'lacks T_TOKEN: {"message": "who?"}'
        )
        assert len(there.refused("get")) < 700
        text = "The API returned 429 Too Many Requests for POST /x; try again in 60 seconds."
        assert there.refused("get") == text
        assert there.refused("get") == "The API returned 599 for POST /x: <h1>Oh no</h1>"


def test_a_base_url_can_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_package(tmp_path, [called("get", {}, {"url": "/x"})], echo) as there:
        monkeypatch.setenv("FAKE_URL", f"{there.api.url}/other/")
        there.call("get")
        assert there.api.last.path == "/other/x"
        for wrong in ("nowhere", "ftp://x", f"{there.api.url}?a=1"):
            monkeypatch.setenv("FAKE_URL", wrong)
            assert there.refused("get").startswith("FAKE_URL in the server's environment is not a base URL")


def test_without_a_base_url_the_caller_is_told(tmp_path: Path) -> None:
    with run_package(tmp_path, [called("get", {}, {"url": "/x"})], echo):
        pass
    binding = Binding({"url": "/x"}, Api.from_entry({"baseUrlEnv": "FAKE_URL"}), {})
    with pytest.raises(ToolError, match="FAKE_URL is not set in the server's environment"):
        binding.make_request({}, {})


@pytest.mark.parametrize(
    ("method", "hints", "times"),
    amounts.sample(
        [("GET", {}, 3), ("POST", {}, 1), ("POST", {"idempotentHint": True}, 3), ("DELETE", {}, 3), ("PATCH", {}, 1)], 4
    ),
)
def test_only_what_can_be_repeated_is(method: str, hints: dict[str, bool], times: int, tmp_path: Path) -> None:
    tools = [called("go", {}, {"method": method, "url": "/x"}, annotations=hints)]
    with run_package(tmp_path, tools, lambda _: Response("", 503, {"Retry-After": "0"})) as there:
        assert (
            there.refused("go") == f"The API returned 503 Service Unavailable for {method} /x; try again in 0 seconds."
        )
        assert len(there.api.asked) == times


def test_a_call_is_repeated_until_it_works_and_no_longer(tmp_path: Path) -> None:
    answers: list[Answer] = [Response("", 429, {"Retry-After": formatdate(time.time() - 5, usegmt=True)}), "done"]
    with run_package(tmp_path, [called("get", {}, {"url": "/x"})], lambda _: answers.pop(0)) as there:
        assert there.text("get") == "done"
        assert len(there.api.asked) == 2


def test_an_api_that_wants_a_long_pause_is_not_waited_for(tmp_path: Path) -> None:
    with run_package(
        tmp_path, [called("get", {}, {"url": "/x"})], lambda _: Response("", 503, {"Retry-After": "900"})
    ) as there:
        begun = time.monotonic()
        assert there.refused("get").endswith("; try again in 900 seconds.")
        assert (len(there.api.asked), time.monotonic() - begun < 5) == (1, True)


def test_an_api_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_package(tmp_path, [called("get", {}, {"url": "/x"})], echo, retries=1) as there:
        monkeypatch.setenv("FAKE_URL", "http://user:hidden@127.0.0.1:1")
        text = there.refused("get")
        assert text == "The API at 127.0.0.1:1 cannot be reached: connection refused."
        assert "hidden" not in text


def test_an_api_that_is_slow_is_an_error(tmp_path: Path) -> None:
    def slow(_asked: Asked) -> Answer:
        time.sleep(0.5)
        return "late"

    with run_package(tmp_path, [called("get", {}, {"url": "/x"})], slow, timeout="100ms") as there:
        assert there.refused("get").endswith(" did not respond within 0.1 seconds.")


def test_an_answer_has_a_size(tmp_path: Path) -> None:
    with run_package(
        tmp_path, [called("get", {}, {"url": "/x"})], lambda _: "x" * 2000, maxResponseBytes="1KiB"
    ) as there:
        assert there.refused("get") == "The API's response is larger than 1,024 bytes; request less data."


@pytest.mark.parametrize("status", amounts.sample([200, 404], 1))
def test_a_size_is_that_after_decompression(status: int, tmp_path: Path) -> None:
    packed = gzip.compress(b" " * (64 << 20), 1)

    def bomb(_asked: Asked) -> Answer:
        return Response(packed, status, {"Content-Encoding": "gzip"}, "application/json")

    with run_package(tmp_path, [called("get", {}, {"url": "/x"})], bomb, maxResponseBytes="1KiB") as there:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert there.refused("get") == "The API's response is larger than 1,024 bytes; request less data."
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 << 10


@pytest.mark.parametrize("charset", ["zlib", "bz2", "hex", "idna", "undefined", "unicode_escape", "none", "\0", ""])
def test_a_charset_is_no_way_to_break_a_call(charset: str) -> None:
    body = zlib.compress(b"x" * 999)
    assert HttpAnswer(200, {"content-type": f"text/plain; charset={charset}"}, body, "").text
    assert HttpAnswer(200, {"content-type": f"text/plain; charset={charset}"}, b"abc", "").text in ("abc", "\ufffd")


def test_redirects_are_followed_only_to_the_same_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_TOKEN", "hidden")
    tools = [
        called("get", {}, {"url": "/moved"}),
        called("post", {}, {"method": "POST", "url": "/moved"}),
        called("circle", {}, {"url": "/circle"}),
    ]
    with api(lambda _: "elsewhere") as other:
        target = ["/v1/here"]

        def answer(asked: Asked) -> Answer:
            if asked.path == "/v1/here":
                return "here"
            return Response("", 307, {"Location": target[0] if asked.path == "/v1/moved" else asked.path})

        with run_package(tmp_path, tools, answer, **AUTH) as there:
            assert there.text("get") == "here"
            assert there.api.last.headers["authorization"] == "Bearer hidden"
            assert there.refused("post") == (
                "The API returned 307 Temporary Redirect for a POST request, which is not resent to /v1/here."
            )
            assert there.refused("circle") == "The API redirected too many times."
            target[0] = other.url + "/x?token=hidden"
            assert there.refused("get") == "The API's redirect to another host, 127.0.0.1, was not followed."
        assert other.asked == []


def test_cookies_of_the_api_are_not_kept(tmp_path: Path) -> None:
    with run_package(
        tmp_path, [called("get", {}, {"url": "/x"})], lambda _: Response("", headers={"Set-Cookie": "a=1"})
    ) as there:
        package = there.package

        async def go() -> None:
            async with package.SampleClient.connect(package.build_server()) as client:
                await client.get()
                await client.get()

        asyncio.run(go())
        assert all("cookie" not in asked.headers for asked in there.api.asked)


def test_a_handler_goes_before_the_call(tmp_path: Path) -> None:
    tools = [called("one", {}, {"url": "/one"}), called("two", {}, {"url": "/two"}), tool("three")]
    with run_package(tmp_path, tools, echo) as there:

        class Handlers(there.package.SampleHandlers):  # type: ignore[name-defined, misc]
            entered = 0

            async def __aenter__(self) -> None:
                type(self).entered += 1

            async def __aexit__(self, *exception: object) -> None:
                type(self).entered -= 1

            def one(self, args: Any, ctx: Any) -> str:
                return f"handled {self.entered}"

            def three(self, args: Any, ctx: Any) -> str:
                return "three"

        def text(name: str) -> str:
            return str(there.call(name, Handlers()).content[0].text)

        assert (text("one"), text("three")) == ("handled 1", "three")
        assert json.loads(text("two"))["path"] == "/v1/two"
        assert Handlers.entered == 0
        with pytest.raises(TypeError, match="NoHandlers lacks a method") as unfit:
            there.package.build_server(None)
        assert "def three(" in str(unfit.value)
        assert "def one(" not in str(unfit.value)

        class Wrong:
            def one(self) -> str:
                return ""

            def three(self, args: Any, ctx: Any) -> str:
                return ""

        with pytest.raises(TypeError, match=r"one\(\) -> .* must accept the arguments \(args, ctx\)"):
            there.package.build_server(Wrong())


def test_files_are_found_in_schemas_that_refer_to_each_other() -> None:
    """A walk along each path of references would not end."""
    names = [f"Child{number}" for number in range(60)]
    parent = {
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in names],
        "properties": {"f": {"contentEncoding": "base64"}},
    }
    child = {"allOf": [{"$ref": "#/$defs/Pet"}]}
    schema = {"properties": {"body": {"$ref": "#/$defs/Pet"}}, "$defs": {"Pet": parent, **dict.fromkeys(names, child)}}
    contents = find_contents(schema, "body").by_name
    assert [(name, content.is_file) for name, content in contents.items()] == [("f", True)]
