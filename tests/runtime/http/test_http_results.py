"""Responses of APIs: deviations, selections, headers, and the four common kinds of pagination."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis.asyncio
from mcp import Client
from mcp.server.auth.provider import AccessToken
from starlette.responses import Response, StreamingResponse

import amounts
import prompt_ends
from fake_api import Answer, Asked
from http_tools import Running, called, run_package
from packages import check, manifest
from serving import asgi
from stubwright_runtime.http import events as runtime_events
from stubwright_runtime.http.pagination import find_next_link
from stubwright_runtime.policy.result_budget import measure
from stubwright_runtime.server.core.principal import Principal
from stubwright_runtime.server.features.large_results import find_result, store_result
from stubwright_runtime.state.budget import BudgetExceeded
from stubwright_runtime.state.stores import store_at

ends_are_prompt = prompt_ends.ends_are_prompt

STRICT = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "kind": {"oneOf": [{"type": "number"}, {"type": "integer"}]}},
    "required": ["id"],
    "additionalProperties": False,
}
DEVIATIONS: dict[str, tuple[Answer, str, str]] = {
    "a new key": ({"id": 1, "new": 2}, '{"id": 1, "new": 2}', "additionalProperties"),
    "overlapping alternatives": ({"id": 1, "kind": 2}, '{"id": 1, "kind": 2}', "oneOf"),
    "a list for an object": ([1], "[1]", "type"),
    "nothing": (Response(status_code=204), "204 No Content", "type"),
    "text for JSON": ("done", "done", ""),
}
MODES = ("legacy", "2026-07-28")
NO_REDIS = "redis://127.0.0.1:1"


def results(server: Running, name: str, mode: str, *calls: Mapping[str, Any]) -> list[Any]:
    """Results as the official client has them, which lists the tools and validates what it gets."""

    async def go() -> list[Any]:
        async with Client(server.package.build_server(None), mode=mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            return [listed[name], *[await client.call_tool(name, dict(each)) for each in calls]]

    return asyncio.run(go())


def outcome(server: Running, use: Callable[[Any], Any]) -> Any:
    """What a use of the package's own client gives."""

    async def go() -> Any:
        async with server.package.SampleClient.connect(server.package.build_server(None), drift="error") as client:
            return await use(client)

    return asyncio.run(go())


@pytest.mark.parametrize(("why", "mode"), amounts.sample([*product(DEVIATIONS, MODES)], 2))
def test_an_answer_that_deviates_is_still_an_answer(
    why: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answer, text, keyword = DEVIATIONS[why]
    tools = [called("put", {}, {"url": "/x", "method": "POST"}, outputSchema=STRICT)]
    with run_package(tmp_path, tools, lambda _: answer, output="lenient") as server:
        listed, result = results(server, "put", mode, {})
        assert listed.output_schema is None  # a promise that is not kept would be refused by the client
        assert (result.is_error, result.structured_content, result.content[0].text) == (False, None, text)
        said = result.meta["io.stubwright/output"]
        assert said["fits"] is False
        assert [each["keyword"] for each in said["violations"]] == [keyword]
        assert len(server.api.asked) == 1
        with pytest.raises(server.package.DeviatingResult) as caught:
            outcome(server, lambda client: client.put())
        assert caught.value.text == text
        assert caught.value.value == (json.loads(text) if text[0] in "[{" else None)
        assert isinstance(caught.value, server.package.InvalidResult)
    assert said["violations"][0]["message"] in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_fits_is_structured(mode: str, tmp_path: Path) -> None:
    tools = [called("get", {}, {"url": "/x"}, outputSchema=STRICT)]
    with run_package(tmp_path, tools, lambda _: {"id": 1}, output="lenient") as server:
        _, result = results(server, "get", mode, {})
        assert (result.structured_content, result.is_error) == ({"id": 1}, False)
        assert "io.stubwright/output" not in (result.meta or {})
        assert outcome(server, lambda client: client.get()).id == 1


@pytest.mark.parametrize("http", [{}, {"output": "strict"}])
def test_strict_is_the_default_and_goes_before_what_the_api_says(http: Mapping[str, Any], tmp_path: Path) -> None:
    tools = [called("get", {}, {"url": "/x", **http}, outputSchema=STRICT)]
    said = {"output": "lenient"} if http else {}
    with run_package(tmp_path, tools, lambda _: {"id": 1, "new": 2}, **said) as server:
        assert "does not match its output schema" in server.refused("get")
        listed, _ = results(server, "get", "legacy", {})
        assert listed.output_schema == STRICT


def test_a_method_that_is_written_is_held_to_the_schema(tmp_path: Path) -> None:
    class Written:
        async def get(self, _args: Any, _ctx: Any) -> Any:
            return {"id": "one"}

    tools = [called("get", {}, {"url": "/x"}, outputSchema=STRICT)]
    with run_package(tmp_path, tools, lambda _: {}, output="lenient") as server:
        result = server.call("get", Written())
        assert result.is_error
        assert server.api.asked == []


# --- Parts and headers ---

PET = {"type": "object", "properties": {"id": {"type": "integer"}, "tag": {"type": "string"}}, "required": ["id"]}
PETS: dict[str, Any] = {
    "type": "object",
    "properties": {"data": {"type": "array", "items": PET}, "next": {"type": "string"}},
}


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
def test_a_part_of_a_response_is_kept(mode: str, tmp_path: Path) -> None:
    http = {"url": "/pets", "select": ["/data/*/id"]}
    body = {"data": [{"id": 1, "tag": "a"}, {"id": 2, "more": [1]}], "next": "n", "secret": "s"}
    with run_package(tmp_path, [called("pets", {}, http, outputSchema=PETS)], lambda _: body) as server:
        listed, result = results(server, "pets", mode, {})
        item = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
        assert listed.output_schema == {
            "type": "object",
            "properties": {"data": {"type": "array", "items": item}},
        }
        assert result.structured_content == {"data": [{"id": 1}, {"id": 2}]}
        assert "secret" not in result.content[0].text
        made = outcome(server, lambda client: client.pets())
        assert [each.id for each in made.data] == [1, 2]


def test_a_part_of_a_response_without_a_schema(tmp_path: Path) -> None:
    http = {"url": "/pets", "select": ["/a"]}
    with run_package(tmp_path, [called("pets", {}, http)], lambda _: {"a": "é", "b": 2}) as server:
        assert server.text("pets") == '{"a": "é"}'


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
def test_headers_of_a_response_are_typed(mode: str, tmp_path: Path) -> None:
    wanted = {"total": {"name": "X-Total", "type": "integer"}, "on": {"name": "X-On", "type": "boolean"}, "tag": "ETag"}
    wanted |= {"allowed": {"name": "Allow", "type": "array"}}
    http = {"url": "/pets", "responseHeaders": wanted}
    answers = [
        Response(
            "[1]",
            headers={"X-Total": "12", "x-on": "TRUE", "allow": "GET, HEAD", "etag": '"a"'},
            media_type="application/json",
        ),
        Response("[]", media_type="application/json"),
    ]
    schema = {"type": "array", "items": {"type": "integer"}}
    tools = [called("pets", {}, http, outputSchema=schema)]
    waiting = iter(answers)
    with run_package(tmp_path, tools, lambda _: next(waiting)) as server:
        listed, first, second = results(server, "pets", mode, {}, {})
        assert first.structured_content == {
            "body": [1],
            "headers": {"total": 12, "on": True, "tag": '"a"', "allowed": ["GET", "HEAD"]},
        }
        assert second.structured_content == {"body": [], "headers": {}}
        assert listed.output_schema["properties"]["headers"]["properties"]["total"] == {"type": "integer"}


def test_a_header_of_another_type_does_not_fit(tmp_path: Path) -> None:
    http = {"url": "/pets", "responseHeaders": {"total": {"name": "X-Total", "type": "number"}}, "output": "lenient"}
    answer = Response("1", headers={"X-Total": "nan"}, media_type="application/json")
    with run_package(
        tmp_path, [called("pets", {}, http, outputSchema={"type": "integer"})], lambda _: answer
    ) as server:
        result = server.call("pets")
        assert (result.is_error, result.structured_content) == (False, None)
        assert result.meta["io.stubwright/output"]["violations"][0]["pointer"] == "/headers/total"


# --- Pages ---

PAGE = {**PETS, "properties": {**PETS["properties"], "more": {"type": "boolean"}, "total": {"type": "integer"}}}
ITEMS = [{"id": number, "tag": "t"} for number in range(7)]
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cursor": ({"after": {"type": "string"}}, {"by": "cursor", "argument": "after", "items": "/data", "next": "/next"}),
    "last": (
        {"after": {"type": "integer"}},
        {"by": "cursor", "argument": "after", "items": "/data", "next": "/data/-/id", "more": "/more"},
    ),
    "link": ({"page": {"type": "integer"}}, {"by": "link", "argument": "page", "items": ""}),
    "offset": ({"skip": {"type": "integer"}}, {"by": "offset", "argument": "skip", "items": "/data", "limit": "limit"}),
    "total": (
        {"skip": {"type": "integer"}},
        {"by": "offset", "argument": "skip", "items": "/data", "total": "/total", "first": 0},
    ),
    "number": (
        {"page": {"type": "integer"}},
        {"by": "number", "argument": "page", "items": "/data", "limit": "limit", "size": 3},
    ),
    "empty": ({"page": {"type": "integer"}}, {"by": "number", "argument": "page", "items": "/data", "first": 0}),
}


def paging(kind: str) -> Callable[[Asked], Answer]:
    """An API that has its seven items in pages of three, one way or another."""

    def answer(asked: Asked) -> Answer:
        query = dict(part.split("=") for part in asked.query.split("&") if part)
        first = 0 if kind == "empty" else 1
        start = {
            "cursor": lambda: int(query.get("after", "c0")[1:]),
            "last": lambda: int(query.get("after", -1)) + 1,
            "link": lambda: (int(query.get("page", 1)) - 1) * 3,
            "offset": lambda: int(query.get("skip", 0)),
            "total": lambda: int(query["skip"]),
            "number": lambda: (int(query.get("page", 1)) - 1) * 3,
            "empty": lambda: (int(query["page"]) - first) * 3,
        }[kind]()
        items = ITEMS[start : start + 3]
        is_last = start + 3 >= len(ITEMS)
        if kind == "link":
            # Another host and another path: neither is ever called.
            link = f'<http://elsewhere.example/other?page={start // 3 + 2}&q=x>; title="a, b"; rel="last next"'
            headers = {} if is_last else {"Link": f'<http://x/>; rel="prev", {link}'}
            return Response(json.dumps(items), headers=headers, media_type="application/json")
        body: dict[str, Any] = {"data": items, "total": len(ITEMS), "more": not is_last}
        return body | ({} if is_last else {"next": f"c{start + 3}"})

    return answer


def page_tool(kind: str, **more: Any) -> dict[str, Any]:
    arguments, page = KINDS[kind]
    properties = {**arguments, "limit": {"type": "integer"}, "q": {"type": "string"}}
    schema = {"type": "array", "items": PET} if kind == "link" else PAGE
    http = {"url": "/pets", "query": {name: f"{{{name}}}" for name in properties}, "page": page, **more}
    made: dict[str, Any] = called("list-pets", properties, http, outputSchema=schema)
    made["inputSchema"]["required"] = [*arguments]
    return made


@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
def test_pages_have_one_shape_whatever_the_api_does(kind: str, tmp_path: Path) -> None:
    with run_package(tmp_path, [page_tool(kind)], paging(kind)) as server:

        async def use(client: Any) -> tuple[list[int], list[int]]:
            ids = [item.id async for item in client.list_pets.pages(limit=3, q="x")]
            sizes = [len(page.items) async for page in client.list_pets.pages(limit=3, q="x").by_page()]
            return ids, sizes

        ids, sizes = outcome(server, use)
        assert ids == [0, 1, 2, 3, 4, 5, 6]
        assert sizes == ([3, 3, 1, 0] if kind == "empty" else [3, 3, 1])
        assert {asked.path for asked in server.api.asked} == {"/v1/pets"}
        assert all("limit=3" in asked.query and "q=x" in asked.query for asked in server.api.asked)


@pytest.mark.parametrize(("kind", "mode"), amounts.sample([*product(KINDS, MODES)], 3))
def test_the_official_client_turns_pages(kind: str, mode: str, tmp_path: Path) -> None:
    with run_package(tmp_path, [page_tool(kind)], paging(kind)) as server:

        async def go() -> list[int]:
            found: list[int] = []
            async with Client(server.package.build_server(None), mode=mode) as client:
                (listed,) = (await client.list_tools()).tools
                assert list(listed.input_schema["properties"]) == ["limit", "q", "cursor"]
                assert "required" not in listed.input_schema
                assert listed.output_schema is not None
                assert listed.output_schema["required"] == ["items"]
                arguments: dict[str, Any] = {"limit": 3, "q": "x"}
                for _ in range(9):
                    result = await client.call_tool("list-pets", arguments)
                    content = result.structured_content
                    assert isinstance(content, dict)
                    found += [item["id"] for item in content["items"]]
                    if "next" not in content:
                        return found
                    arguments["cursor"] = content["next"]
            raise AssertionError("there is no end")

        assert asyncio.run(go()) == [0, 1, 2, 3, 4, 5, 6]


def test_a_page_has_a_part_of_its_items_and_headers(tmp_path: Path) -> None:
    tool = page_tool("cursor", select=["/data/*/id"], responseHeaders={"kind": "Content-Type"})
    with run_package(tmp_path, [tool], paging("cursor")) as server:
        _, result = results(server, "list-pets", "legacy", {})
        assert result.structured_content["items"] == [{"id": 0}, {"id": 1}, {"id": 2}]
        assert result.structured_content["headers"] == {"kind": "application/json"}


@pytest.mark.parametrize(
    ("following", "sent"),
    [
        ("1e3", "1000"),
        ("1700000000.25", "1700000000.25"),
        ("12345678901234567890", None),
        ("-9223372036854775808", None),
        ("[1]", ""),
    ],
)
def test_numbers_as_cursors_are_sent_back_exactly(following: str, sent: str | None, tmp_path: Path) -> None:
    body = f'{{"data": [], "next": {following}}}'
    tool = page_tool("cursor", output="lenient")
    with run_package(tmp_path, [tool], lambda _: Response(body, media_type="application/json")) as server:
        first = server.call("list-pets")
        if sent == "":
            assert "neither a string nor a number" in str(first.meta)
            return
        server.call("list-pets", cursor=first.structured_content["next"])
        assert server.api.last.query == f"after={sent or following}"


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def decoded(cursor: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))


@pytest.mark.parametrize("kind", amounts.sample(["cursor", "link", "offset", "number"], 1))
def test_a_hostile_cursor_is_refused_or_stays_in_its_place(kind: str, tmp_path: Path) -> None:
    with run_package(tmp_path, [page_tool(kind)], paging(kind)) as server:
        _, first = results(server, "list-pets", "legacy", {"limit": 3, "q": "x"})
        version, tag, position = decoded(first.structured_content["next"])
        assert version == 1
        asked = len(server.api.asked)
        wrong: list[Any] = [[2, tag, position], [1, "00000000", position], [1, tag], [1, tag, position, 0], {}, None, 7]
        positions: list[Any] = [
            None,
            True,
            *([] if kind == "cursor" else [-1, 1.5]),
            1e17,
            float("nan"),
            2**130,
            {},
            "",
            *([] if kind == "link" else [[]]),
        ]
        wrong += [[1, tag, each] for each in positions]
        wrong += [[1, tag, [["api_key", "x"]]], [1, tag, [["page"]]], [1, tag, [["page", 1]]], [1, tag, ["pa"]]]
        cursors = [encoded(each) for each in wrong] + ["%%%", "é", "a" * 4096, "W" * 5000, "[" * 4000, "//example.com"]
        for cursor in cursors:
            text = server.refused("list-pets", limit=3, q="x", cursor=cursor)
            assert "cursor" in text
        assert len(server.api.asked) == asked
        if kind in ("cursor", "link"):
            hostile = "../../admin?x=1&y=2#z\r\nHost: evil.example"
            value = hostile if kind == "cursor" else [["page", hostile]]
            server.call("list-pets", cursor=encoded([1, tag, value]))
            last = server.api.last
            assert last.path == "/v1/pets"
            name = "after" if kind == "cursor" else "page"
            assert last.query == f"{name}=..%2F..%2Fadmin%3Fx%3D1%26y%3D2%23z%0D%0AHost%3A%20evil.example"


def test_credentials_in_the_query_are_in_no_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_KEY", "geheim")
    auth = {"key": {"type": "apiKey", "in": "query", "name": "key", "env": "PET_KEY"}}

    def answer(asked: Asked) -> Answer:
        following = asked.query.replace("page=2", "page=3") if "page" in asked.query else f"{asked.query}&page=2"
        link = f"</v1/pets?{following}>"
        return Response("[]", headers={"Link": f"{link}; rel=next"}, media_type="application/json")

    with run_package(tmp_path, [page_tool("link")], answer, auth=auth, security=[["key"]]) as server:
        _, first = results(server, "list-pets", "legacy", {"q": "x"})
        assert decoded(first.structured_content["next"])[2] == [["page", "2"]]
        server.call("list-pets", q="x", cursor=first.structured_content["next"])
        assert sorted(server.api.last.query.split("&")) == ["key=geheim", "page=2", "q=x"]


@pytest.mark.parametrize("kind", ["cursor", "link"])
def test_a_cursor_of_the_api_with_credentials_is_not_given(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PET_KEY", "ge/heim")
    auth = {"key": {"type": "bearer", "env": "PET_KEY"}}

    def answer(_asked: Asked) -> Answer:
        if kind == "cursor":
            return {"data": [{"id": 1}], "next": "https://pets.example/v1/pets?key=ge%2Fheim&page=2", "more": True}
        link = "</v1/pets?page=ge%2Fheim>; rel=next"
        return Response("[]", headers={"Link": link}, media_type="application/json")

    with run_package(tmp_path, [page_tool(kind)], answer, auth=auth, security=[["key"]]) as server:
        assert "credentials" in server.refused("list-pets", q="x")


def test_a_link_with_a_parameter_that_nobody_named(tmp_path: Path) -> None:
    answer = Response("[]", headers={"Link": "<?token=1>; rel=next"}, media_type="application/json")
    with run_package(tmp_path, [page_tool("link")], lambda _: answer) as server:
        assert "`token`, which the call does not have: add it to `http.page.parameters`" in server.refused("list-pets")
    tool = page_tool("link")
    tool["stubwright"]["http"]["page"] = {**tool["stubwright"]["http"]["page"], "parameters": ["token"]}
    (tmp_path / "named").mkdir()
    with run_package(tmp_path / "named", [tool], lambda _: answer) as server:
        _, first = results(server, "list-pets", "legacy", {})
        assert decoded(first.structured_content["next"])[2] == [["token", "1"]]


def test_a_server_that_always_gives_one_cursor_ends_with_an_error(tmp_path: Path) -> None:
    with run_package(tmp_path, [page_tool("cursor")], lambda _: {"data": [{"id": 1}], "next": "again"}) as server:

        async def use(client: Any) -> list[Any]:
            return [item async for item in client.list_pets.pages()]

        with pytest.raises(server.package.EndlessPages, match="form a cycle"):
            outcome(server, use)
        assert len(server.api.asked) == 2


@pytest.mark.parametrize(("output", "is_error"), [("strict", True), ("lenient", False)])
def test_a_page_without_a_list(output: str, is_error: bool, tmp_path: Path) -> None:
    with run_package(tmp_path, [page_tool("cursor", output=output)], lambda _: {"data": "none"}) as server:
        result = server.call("list-pets")
        assert result.is_error is is_error
        assert ("no list of items at `/data`" in result.content[0].text) is is_error


def test_pages_in_a_body(tmp_path: Path) -> None:
    page = {"by": "offset", "argument": "from", "items": "/data", "total": "/total"}
    http = {"url": "/search", "method": "POST", "page": page}
    properties = {"from": {"type": "integer"}, "q": {"type": "string"}}

    def answer(asked: Asked) -> Answer:
        start = asked.json.get("from", 0)
        return {"data": ITEMS[start : start + 4], "total": len(ITEMS)}

    with run_package(tmp_path, [called("search", properties, http, outputSchema=PAGE)], answer) as server:

        async def use(client: Any) -> list[int]:
            return [item.id async for item in client.search.pages(q="x")]

        assert outcome(server, use) == [0, 1, 2, 3, 4, 5, 6]
        assert [asked.json for asked in server.api.asked] == [{"q": "x"}, {"q": "x", "from": 4}]


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ('<https://a/?page=2>; rel="next"', "https://a/?page=2"),
        ("<a>; rel=prev, <b>; REL=Next", "b"),
        ('<a>; title="x, <b>; rel=next"; rel="last"', None),
        ('<a>;rel="start next"', "a"),
        ("<a>; rel=nextpage", None),
        ("nonsense", None),
        ("<" * 20_000, None),
    ],
)
def test_links(header: str, target: str | None) -> None:
    assert find_next_link(header) == target


def problems(folder: Path, http: Mapping[str, Any], properties: Sequence[str] = ()) -> list[str]:
    tool = called("pets", {name: {"type": "string"} for name in properties}, {"url": "/x", **http}, outputSchema=PETS)
    found = check(folder, manifest([tool], apis={"fake": {"baseUrl": "https://example.com"}}))
    return [f"{one.code} {one.message} ({one.help})" for one in found if one.severity == "error"]


@pytest.mark.parametrize(
    ("http", "problem"),
    [
        ({"select": ["/dat/*/id"]}, "SW266 no response of `pets` has `/dat` (did you mean `data`?)"),
        ({"select": ["/data/*/idd"]}, "SW266 no response of `pets` has `/data/*/idd` (did you mean `id`?)"),
        ({"select": ["/data/*/id/x"]}, "SW266 no response of `pets` has `/data/*/id/x` (remove this step)"),
        ({"select": ["/next/*"]}, "SW266 no response of `pets` has `/next/*` (remove this step)"),
        ({"page": {"by": "cursor"}}, "SW267 pagination by cursor requires `argument` (add `argument`)"),
        (
            {"page": {"by": "offset", "argument": "skipp", "items": "/data"}},
            "SW267 the tool has no argument `skipp` (did you mean `skip`?)",
        ),
        ({"page": {"by": "link", "items": "/date"}}, "SW266 no response of `pets` has `/date` (did you mean `data`?)"),
        (
            {"page": {"by": "link", "items": "/data"}, "select": ["/next"]},
            "SW267 `select` omits everything in `/data` (add pointers into the items to `select`)",
        ),
        ({"responseHeaders": {"a": "X Y"}}, "SW265 `X Y` is not a valid header name"),
    ],
)
def test_what_cannot_be_is_found_before_it_is_served(http: Mapping[str, Any], problem: str, tmp_path: Path) -> None:
    query = {"query": {"skip": "{skip}"}}
    found = problems(tmp_path, {**query, **http}, ["skip"])
    assert any(each.startswith(problem) for each in found), found


def test_an_argument_called_cursor_is_one_of_the_pages(tmp_path: Path) -> None:
    http = {"query": {"cursor": "{cursor}", "skip": "{skip}"}}
    page = {"by": "offset", "argument": "skip", "items": "/data"}
    (found,) = problems(tmp_path, {**http, "page": page}, ["skip", "cursor"])
    assert found.startswith("SW267 the tool already has an argument `cursor`")
    own = {"by": "cursor", "argument": "cursor", "items": "/data", "next": "/next"}
    assert problems(tmp_path, {**http, "page": own}, ["skip", "cursor"]) == []


# --- Files ---


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
def test_a_download_from_another_host_is_a_link(mode: str, tmp_path: Path) -> None:
    target = "https://files.example.com/a/report%201.pdf?signature=x"
    answer = Response(status_code=302, headers={"Location": target})
    with run_package(tmp_path, [called("load", {}, {"url": "/x"})], lambda _: answer) as server:
        _, result = results(server, "load", mode, {})
        (block,) = result.content
        assert (block.type, str(block.uri), block.name, result.is_error) == (
            "resource_link",
            target,
            "report 1.pdf",
            False,
        )
        assert len(server.api.asked) == 1  # the other host is never asked


def test_a_link_to_another_host_is_no_answer_where_json_is_promised(tmp_path: Path) -> None:
    answer = Response(status_code=307, headers={"Location": "https://elsewhere.example.com/x"})
    tools = [called("get", {}, {"url": "/x"}, outputSchema=STRICT)]
    with run_package(tmp_path, tools, lambda _: answer) as server:
        assert "redirect to another host, elsewhere.example.com" in server.refused("get")
    (tmp_path / "lenient").mkdir()
    with run_package(tmp_path / "lenient", tools, lambda _: answer, output="lenient") as server:
        result = server.call("get")
        assert (result.content[0].type, result.is_error) == ("resource_link", False)


def test_a_link_with_a_secret_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_KEY", "gehe im")
    auth = {"key": {"type": "apiKey", "in": "query", "name": "key", "env": "PET_KEY"}}
    answer = Response(status_code=302, headers={"Location": "https://elsewhere.example.com/?key=gehe%20im"})
    with run_package(
        tmp_path, [called("load", {}, {"url": "/x"})], lambda _: answer, auth=auth, security=[["key"]]
    ) as server:
        text = server.refused("load")
        assert "another host" in text
        assert "gehe" not in text


def test_a_file_is_sent_with_its_name_and_type(tmp_path: Path) -> None:
    properties = {
        "photo": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
        "title": {"type": "string"},
        "kind": {"type": "string"},
        "note": {"type": "string"},
    }
    parts = {"photo": {"filename": "{title}", "contentType": "{kind}"}}
    http = {"url": "/x", "method": "POST", "contentType": "multipart/form-data", "parts": parts}
    with run_package(tmp_path, [called("send", properties, http)], lambda _: "ok") as server:
        server.call("send", photo="YQ==", title='kätzchen".png', kind="image/webp", note="n")
        body = server.api.last.body.decode()
        assert 'name="photo"; filename="kätzchen%22.png"' in body
        assert "Content-Type: image/webp" in body
        assert 'name="note"' in body
        assert 'name="title"' not in body
        server.call("send", photo="YQ==")
        body = server.api.last.body.decode()
        assert 'filename="photo"' in body
        assert "Content-Type: image/png" in body
        asked = len(server.api.asked)
        assert "line breaks" in server.refused("send", photo="YQ==", title="a\r\nX-Other: 1")
        assert "line breaks" in server.refused("send", photo="YQ==", kind="a/b\r\nX-Other: 1")
        assert len(server.api.asked) == asked


def test_a_name_for_a_file_that_nobody_gives(tmp_path: Path) -> None:
    http = {"method": "POST", "contentType": "multipart/form-data", "parts": {"skip": {"filename": "{nmae}"}}}
    (found,) = problems(tmp_path, http, ["skip", "name"])
    assert found == "SW260 `pets` has no argument `nmae` (did you mean `name`?)"


# --- Streams ---


def stream(*texts: str, pause: float = 0.0) -> Response:
    async def sent() -> AsyncIterator[str]:
        for text in texts:
            yield text
            await asyncio.sleep(pause)

    return StreamingResponse(sent(), media_type="text/event-stream")


EVENTS = (
    'data: {"step": 1}\n\n: a comment\n\nevent: x\r\nda',
    "ta: two\r\ndata: lines\r\n\r\n",
    'data: {"id": 3}\n\ndata: cut',
)


def streamed(server: Running, name: str, mode: str) -> tuple[Any, list[tuple[float, str | None]]]:
    told: list[tuple[float, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        told.append((progress, message))

    async def go() -> Any:
        async with Client(server.package.build_server(None), mode=mode) as client:
            return await client.call_tool(name, {}, progress_callback=heard)

    return asyncio.run(go()), told


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
def test_events_arrive_as_progress_and_end_as_a_result(mode: str, tmp_path: Path) -> None:
    http = {"url": "/x", "accept": "text/event-stream"}
    tools = [called("watch", {}, http), called("last", {}, http, outputSchema=STRICT)]
    with run_package(tmp_path, tools, lambda _: stream(*EVENTS, pause=0.05)) as server:
        result, told = streamed(server, "watch", mode)
        assert result.content[0].text == '{"step": 1}\ntwo\nlines\n{"id": 3}'
        assert told == [(1, '{"step": 1}'), (2, "two\nlines"), (3, '{"id": 3}')]
        result, _ = streamed(server, "last", mode)
        assert result.structured_content == {"id": 3}
        assert server.api.last.headers["accept"] == "text/event-stream"


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
def test_progress_of_events_has_no_credentials(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_KEY", "s3cret-value")
    auth = {"key": {"type": "bearer", "env": "X_KEY"}}
    http = {"url": "/x", "accept": "text/event-stream"}
    # The last secret would be cut in two.
    sent = ("you are s3cret-value", '{"key": "s3cret\\u002dvalue"}', f"{'.' * 294}s3cret-value")
    events = stream(*(f"data: {text}\n\n" for text in sent))
    with run_package(tmp_path, [called("watch", {}, http)], lambda _: events, auth=auth, security=[["key"]]) as server:
        _, told = streamed(server, "watch", mode)
    assert [text for _, text in told] == ["you are [redacted]", '{"key": "[redacted]"}', f"{'.' * 294}[redac"]


def test_a_stream_without_an_end_is_cut_in_time(tmp_path: Path) -> None:
    http = {"url": "/x", "accept": "text/event-stream", "timeout": "1s"}
    answers = stream(*[f"data: {number}\n\n" for number in range(200)], pause=0.1)
    with run_package(tmp_path, [called("watch", {}, http)], lambda _: answers) as server:
        result = server.call("watch")
        assert result.is_error is False
        assert result.content[0].text.startswith("0\n1\n")
        assert len(server.api.asked) == 1


def test_a_stream_is_bounded(tmp_path: Path) -> None:
    http = {"url": "/x", "accept": "text/event-stream", "maxResponseBytes": 100}
    with run_package(tmp_path, [called("watch", {}, http)], lambda _: stream("data: " + "a" * 200)) as server:
        assert "larger than 100 bytes" in server.refused("watch")


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        (["data: a\r", "\ndata: b\r", "\r", "data: c", "\n\n"], ["a\nb", "c"]),
        (["da", "ta: ", "é\n", "\n", "data", ": x", "y\n\n"], ["é", "xy"]),
        (["data: a\n\ndata: b", "c"], ["a"]),
    ],
)
def test_events_arrive_in_any_pieces(pieces: Sequence[str], events: Sequence[str]) -> None:
    assert asyncio.run(heard(pieces)) == events


async def heard(pieces: Sequence[str]) -> list[str]:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece.encode()

    async def tell(_number: int, _shown: str) -> None:
        return None

    return await runtime_events.read(chunks(), 10**8, 60, tell)


def test_a_long_line_in_many_pieces_costs_what_it_is_long() -> None:
    def cost(count: int) -> float:
        start = time.process_time()
        assert len(asyncio.run(heard(["data: ", *["x" * 64] * count, "\n\n"]))[0]) == 64 * count
        return time.process_time() - start

    few = min(cost(2_000) for _ in range(3))
    assert cost(32_000) < few * 16 * 4  # linear: 16 times; quadratic would be 256 times


# --- Large results ---


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
def test_a_large_result_is_a_part_and_a_link_to_the_whole(mode: str, tmp_path: Path) -> None:
    body = {"id": 1, "more": "é" * 1000}
    tools = [called("get", {}, {"url": "/x", "large": "resource"}, outputSchema={"type": "object"})]
    tools[0]["stubwright"]["policy"] = {"maxResultBytes": "1KiB"}
    with run_package(tmp_path, tools, lambda _: body, output="lenient") as server:

        async def go() -> tuple[Any, Any]:
            async with Client(server.package.build_server(None), mode=mode) as client:
                await client.list_tools()
                result = await client.call_tool("get", {})
                (link,) = [block for block in result.content if block.type == "resource_link"]
                with pytest.raises(Exception, match="not found"):
                    await client.read_resource(str(link.uri)[:-1] + "~")
                return result, await client.read_resource(str(link.uri))

        result, read = asyncio.run(go())
        assert (result.is_error, result.structured_content) == (False, None)
        assert result.content[0].text == json.dumps(body, ensure_ascii=False).encode()[:1024].decode("utf-8", "ignore")
        assert json.loads(read.contents[0].text) == body
        assert read.contents[0].mime_type == "application/json"
        with pytest.raises(server.package.DeviatingResult, match="the full result is available at kept://"):
            outcome(server, lambda client: client.get())


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
def test_a_result_over_its_budget_of_tokens_is_a_part_and_a_link_too(mode: str, tmp_path: Path) -> None:
    """The part, the note and the link fit into it together, so there is no second cut."""
    body = "é" * 1000 + "\n" + "x" * 1000
    tools = [called("get", {}, {"url": "/x", "large": "resource"}), called("cut", {}, {"url": "/x"})]
    for each in tools:
        each["stubwright"]["budget"] = {"result": 300}
    answer = Response(body, media_type="text/plain; charset=utf-8")
    with run_package(tmp_path, tools, lambda _: answer) as server:

        async def go() -> tuple[Any, Any, Any]:
            async with Client(server.package.build_server(None), mode=mode) as client:
                result: Any = await client.call_tool("get", {})
                link = result.content[-1]
                return result, await client.read_resource(str(link.uri)), await client.call_tool("cut", {})

        result, read, cut = asyncio.run(go())
        start, note, _ = result.content
        assert result.is_error is False
        assert body.startswith(start.text)
        assert len(start.text) > 500
        assert "the result has 3,001 bytes, about 455 tokens; the full result is available at" in note.text
        blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
        assert measure({"content": blocks}) <= 300
        assert read.contents[0].text == body
        assert cut.content[0].text.startswith("é" * 1000 + "\n[1 of 2 lines are omitted"), "nothing is kept"


def test_a_result_that_is_not_large_is_as_it_is(tmp_path: Path) -> None:
    tools = [
        called("get", {}, {"url": "/x", "large": "resource"}),
        called("file", {}, {"url": "/f", "large": "resource"}),
    ]
    blob = Response(bytes(100_000), media_type="application/zip")
    with run_package(tmp_path, tools, lambda asked: blob if asked.path.endswith("f") else "short") as server:
        assert server.text("get") == "short"
        note, link = server.call("file").content
        assert (link.type, link.size, link.mime_type) == ("resource_link", 100_000, "application/zip")
        assert "100,000 bytes" in note.text


@pytest.mark.parametrize(
    ("state", "reason"),
    [("memory://", "the caller's storage has no room for it"), (NO_REDIS, "the server's store cannot be reached")],
)
def test_a_result_that_cannot_be_stored_is_truncated(state: str, reason: str, tmp_path: Path) -> None:
    tools = [called("get", {}, {"url": "/x", "large": "resource"})]
    tools[0]["stubwright"]["policy"] = {"maxResultBytes": "1KiB"}
    with run_package(tmp_path, tools, lambda _: "x" * 2**24, maxResponseBytes="16MiB") as server:
        start, note = server.call("get", state=state).content
    assert start.text == "x" * 1024
    assert note.text == f"(the result has 16,777,216 bytes, and is not stored because {reason})"


@pytest.mark.parametrize("mime_type", ["text/html", "image/png", "application/zip"])
def test_a_large_answer_that_is_not_json_is_a_link_too(mime_type: str, tmp_path: Path) -> None:
    tools = [called("get", {}, {"url": "/x", "large": "resource"}, outputSchema=STRICT)]
    body = Response(b"x" * 70_000, media_type=mime_type)
    with run_package(tmp_path, tools, lambda _: body, output="lenient") as server:
        result = server.call("get")
        assert (result.content[-1].type, result.content[-1].size) == ("resource_link", 70_000)
        messages = [each["message"] for each in result.meta["io.stubwright/output"]["violations"]]
        assert ["is not JSON" in messages[0], "70,000 bytes" in messages[1]] == [True, True]


class _Names:
    """Accepts the name of a user as the user's token."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="app", scopes=[], subject=token)


def test_the_caller_of_a_task_can_read_its_large_result(tmp_path: Path) -> None:
    tools = [called("get", {}, {"url": "/x", "large": "resource"}, execution={"taskSupport": "optional"})]

    async def go(package: Any, url: str) -> list[str]:
        headers = [{"Authorization": f"Bearer {name}"} for name in ("ann", "bob")]
        async with package.SampleClient.connect(url, headers=headers[0]) as ann:
            response = await (await ann.tasks.get()).response()
            uri = response.content[-1].uri
            async with package.SampleClient.connect(url, headers=headers[1]) as bob:
                with pytest.raises(package.MCPError, match="not found"):
                    await bob.raw.read_resource(uri)
            return [each.text for each in (await ann.raw.read_resource(uri)).contents]

    with (
        run_package(tmp_path, tools, lambda _: "x" * 70_000) as server,
        asgi(server.package.asgi_app(None, token_verifier=_Names())) as url,
    ):
        assert asyncio.run(go(server.package, f"{url}/mcp")) == ["x" * 70_000]


OPTIONAL: dict[str, Any] = {"execution": {"taskSupport": "optional"}}


@pytest.mark.parametrize(
    ("minutes", "policy", "more"),
    [
        ("10", {}, {}),
        ("60", {}, OPTIONAL),
        ("1,440", {"once": {"key": "all"}}, {}),
        ("10", {"once": {"key": "all", "for": "10s"}}, {}),
    ],
)
def test_every_process_can_read_a_large_result_for_as_long_as_a_link_to_it_is_stored(
    minutes: str, policy: Mapping[str, Any], more: Mapping[str, Any], redis_url: str, tmp_path: Path
) -> None:
    tools = [called("get", {}, {"url": "/x", "large": "resource"}, **more)]
    tools[0]["stubwright"]["policy"] = policy

    async def go(package: Any) -> tuple[str, list[str], int]:
        servers = [package.build_server(state=redis_url) for _ in range(2)]
        async with package.SampleClient.connect(servers[0]) as one, package.SampleClient.connect(servers[1]) as other:
            result = await (await one.tasks.get()).response() if more else await one.raw.call_tool("get", {})
            if policy:
                assert (await other.raw.call_tool("get", {})).content == result.content, "replayed"
            uri = result.content[-1].uri
            texts = [(await each.raw.read_resource(uri)).contents[0].text for each in (one, other)]
        async with redis.asyncio.Redis.from_url(redis_url.partition("?")[0]) as connection:
            (name,) = await connection.keys(f"{redis_url.partition('=')[2]}:large_result:*")
            return result.content[1].text, texts, await connection.pttl(name)

    with run_package(tmp_path, tools, lambda _: "x" * 70_000) as server:
        note, texts, left = asyncio.run(go(server.package))
    assert texts == ["x" * 70_000] * 2
    assert note.endswith(f" for {minutes} minutes)")
    assert 0 <= int(minutes.replace(",", "")) * 60_000 - left < 60_000


def test_a_stored_result_is_bounded_and_belongs_to_its_caller(state: str) -> None:
    storage = {"maxBytesPerPrincipal": 12_000, "maxBytes": 100_000}
    package: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": "shop"}, "storage": storage})
    ann, app, bob = (Principal("token", "x", subject, client) for subject, client in ("ac", "ad", "bc"))

    async def go() -> None:
        store = store_at(state, package)

        async def create(size: int, principal: Principal = ann, ttl: float = 60) -> str:
            return await store_result(store, principal, b"\n" * size, "a/b", ttl)

        async def find(uri: str, *principals: Principal) -> list[Any]:
            return [await find_result(store, each, uri) for each in principals]

        async with store.run():
            first, second, bobs = await create(4000), await create(4001), await create(4002, bob)
            assert len(first) > len("kept://result/") + 30
            assert await find(first, ann, app, bob) == [(b"\n" * 4000, "a/b"), None, None]
            assert await find(bobs, ann, bob) == [None, (b"\n" * 4002, "a/b")]
            with pytest.raises(BudgetExceeded):
                await create(12_000)
            assert (await find(first, ann))[0], "a result that cannot fit evicts nothing"
            third = await create(4003, app)
            stored = {first: ann, second: ann, third: app, bobs: bob}
            assert [uri for uri, owner in stored.items() if await find(uri, owner) != [None]] == [second, third, bobs]
            await store.create("task", "t", bytes(4000), owner="a task", payer=ann.key, ttl=60)
            assert await find(second, ann) == [None], "a task needs its place"
            brief = await create(10, bob, 0.001)
            await asyncio.sleep(0.01)
            assert await find(brief, bob) == [None]

    asyncio.run(go())


def test_a_part_promises_no_structure(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, {"large": "resource"})
    assert found.startswith("SW264 a partial result of `pets` does not match its `outputSchema` (add `output: lenient`")
    assert problems(tmp_path, {"large": "resource", "output": "lenient"}) == []
