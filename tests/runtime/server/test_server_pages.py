"""Pagination of a tool's list: handlers' parameters, and the scope of cursors."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx2
import mcp
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken

import prompt_ends
from packages import generate, imported, manifest, tool
from serving import asgi
from stubwright_runtime.server.features import paging
from stubwright_runtime.state.sealing import Call, InvalidStateError, StateSealer

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")
TASK = {"taskSupport": "optional"}
HERE = "https://mcp.example.com/mcp"
TITLES = ("Beloved", "Dune", "Emma", "Middlemarch", "Ulysses")
START_AGAIN = (
    "The cursor is not valid for this call to {}: it has expired, was changed, or is for other arguments. "
    "Start again without `cursor`."
)


def library(name: str = "library", **more: Any) -> dict[str, Any]:
    """The manifest of a library."""
    books = {
        "type": "object",
        "properties": {"books": {"type": "array", "items": {"type": "string"}}},
        "required": ["books"],
        "additionalProperties": False,
    }
    paginate = {"paginate": {"items": "books", "size": 2}}
    return manifest(
        [
            tool("list_books", {"genre": {"type": "string"}}, outputSchema=books, stubwright=paginate),
            tool("list_lent", {"genre": {"type": "string"}}, outputSchema=books, stubwright=paginate, execution=TASK),
        ],
        name=name,
        **more,
    )


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    generate(made, library(toolsets={"reading": {"tools": ["list_books"]}}))
    generate(made, library("guarded", auth={"issuer": "https://auth.example.com", "audience": HERE}))
    return made


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[ModuleType]:
    with imported(folder, "library_mcp") as made:
        yield made


class Library:
    """Handlers that note which pages they are asked for."""

    def __init__(self, following: Any = None) -> None:
        self.asked: list[tuple[str | None, int, set[str]]] = []
        self._following = following

    async def list_books(self, args: Any, ctx: Any) -> Any:
        self.asked.append((ctx.page.position, ctx.page.size, set(type(args).model_fields)))
        found = [title for title in TITLES if title > (ctx.page.position or "")]
        page = found[: ctx.page.size]
        following = self._following or (page[-1] if len(found) > len(page) else None)
        models = sys.modules[type(args).__module__]
        return models.ListBooksOutput(books=page, nextCursor=following)

    async def list_lent(self, args: Any, ctx: Any) -> Any:
        return {"books": ["Emma"], **({} if args.genre is None or ctx.page.position else {"nextCursor": args.genre})}


async def call(connected: mcp.Client, name: str = "list_books", **arguments: Any) -> types.CallToolResult:
    return await connected.call_tool(name, arguments)


async def cursor_of(connected: mcp.Client, **arguments: Any) -> str:
    """The cursor of the second page."""
    result = await call(connected, **arguments)
    assert result.structured_content is not None, result
    cursor: str = result.structured_content["nextCursor"]
    return cursor


def told(result: types.CallToolResult) -> str:
    """Return the error of a rejected call."""
    assert result.is_error
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_each_page_begins_where_the_handler_said(package: ModuleType, era: str) -> None:
    handlers = Library()
    async with mcp.Client(package.build_server(handlers), mode=era) as connected:
        [listed, _] = (await connected.list_tools()).tools
        assert listed.input_schema["properties"].keys() == {"genre", "cursor"}
        assert listed.output_schema is not None
        assert listed.output_schema["properties"].keys() == {"books", "nextCursor"}
        pages: list[list[str]] = []
        arguments: dict[str, str] = {}
        for _ in TITLES:
            result = await call(connected, **arguments)
            content = result.structured_content
            assert content is not None
            [block] = result.content
            assert isinstance(block, types.TextContent)
            pages.append(content["books"])
            if "nextCursor" not in content:
                break
            assert content["nextCursor"] in block.text
            assert not any(title in content["nextCursor"] for title in TITLES)
            arguments = {"cursor": content["nextCursor"]}
    assert pages == [["Beloved", "Dune"], ["Emma", "Middlemarch"], ["Ulysses"]]
    assert handlers.asked == [(position, 2, {"genre"}) for position in (None, "Dune", "Middlemarch")]


@pytest.mark.parametrize("era", ERAS)
async def test_a_cursor_holds_for_its_own_call_alone(
    package: ModuleType, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = Library()
    async with mcp.Client(package.build_server(handlers), mode=era) as connected:
        cursor = await cursor_of(connected, genre="novel")
        asked = len(handlers.asked)
        middle = len(cursor) // 2
        changed = cursor[:middle] + ("A" if cursor[middle] != "A" else "B") + cursor[middle + 1 :]
        with caplog.at_level(logging.WARNING):
            wrong = [
                await call(connected, cursor="Dune", genre="novel"),
                await call(connected, cursor=changed, genre="novel"),
                await call(connected, cursor=cursor, genre="poem"),
                await call(connected, cursor=cursor),
            ]
            elsewhere = await call(connected, "list_lent", cursor=cursor, genre="novel")
        assert {told(result) for result in wrong} == {START_AGAIN.format("list_books")}
        assert told(elsewhere) == START_AGAIN.format("list_lent")
        assert len(handlers.asked) == asked, "no handler saw a cursor that does not hold"
        assert not (await call(connected, cursor=cursor, genre="novel")).is_error
    reasons = [record.getMessage() for record in caplog.records if "rejected a cursor" in record.getMessage()]
    assert [reason.partition(": ")[2] for reason in reasons] == [
        "an unknown key",
        "authentication failed",
        "it belongs to another call",
        "it belongs to another call",
        "it belongs to another call",
    ]


async def test_a_cursor_expires(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    async with mcp.Client(package.build_server(Library()), mode="2026-07-28") as connected:
        cursor = await cursor_of(connected)
        monkeypatch.setattr(paging, "time", SimpleNamespace(time=lambda: now + paging.HOLDS - 5))
        assert not (await call(connected, cursor=cursor)).is_error
        monkeypatch.setattr(paging, "time", SimpleNamespace(time=lambda: now + paging.HOLDS + 5))
        assert told(await call(connected, cursor=cursor)) == START_AGAIN.format("list_books")


async def test_a_state_of_a_call_is_no_cursor() -> None:
    call_ = Call("tools/call", {"name": "list_books"}, "me")
    state, cursor = StateSealer([b"k" * 32], "library", 60), StateSealer([b"k" * 32], "library", 60, "cursor")
    token = state.seal("here", call_, 0)
    assert state.open(token, call_, 1) == "here"
    with pytest.raises(InvalidStateError, match="an unknown key"):
        cursor.open(token, call_, 1)


async def test_a_position_that_is_too_long_is_the_handlers_mistake(package: ModuleType) -> None:
    for length, fits in ((2048, True), (2049, False)):
        async with mcp.Client(package.build_server(Library("x" * length)), mode="2026-07-28") as connected:
            result = await call(connected)
            assert result.is_error is not fits
    assert told(result).startswith("Internal error in list_books")


async def test_pages_that_do_not_go_on_are_the_handlers_mistake(
    package: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with mcp.Client(package.build_server(Library("here")), mode="2026-07-28") as connected:
        again = await call(connected, cursor=await cursor_of(connected))
    assert told(again).startswith("Internal error in list_books")
    assert "the next page starts at the same position as this page, 'here'" in caplog.text


async def test_a_result_without_a_position_is_the_last_page(package: ModuleType) -> None:
    async with mcp.Client(package.build_server(Library()), mode="2026-07-28") as connected:
        assert (await call(connected, "list_lent")).structured_content == {"books": ["Emma"]}


async def test_a_task_returns_the_requested_page(package: ModuleType) -> None:
    async with package.LibraryClient.connect(package.build_server(Library())) as client:
        first = await (await client.tasks.list_lent(genre="novel"))
        last = await (await client.tasks.list_lent(genre="novel", cursor=first.nextCursor))
    assert last.nextCursor is None


class Anybody:
    """Accepts any token as that of the user it names."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="app", scopes=[], subject=token, resource=HERE)


@asynccontextmanager
async def as_(user: str, url: str) -> AsyncIterator[mcp.Client]:
    headers = {"Authorization": f"Bearer {user}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        mcp.Client(streamable_http_client(f"{url}/mcp", http_client=http), mode="2026-07-28") as connected,
    ):
        yield connected


async def test_two_servers_with_one_redis_know_each_others_cursors(folder: Path, redis_url: str) -> None:
    with imported(folder, "guarded_mcp") as guarded:
        apps = [guarded.asgi_app(Library(), state=redis_url, token_verifier=Anybody()) for _ in range(2)]
        with asgi(apps[0]) as one, asgi(apps[1]) as two:
            async with as_("alice", one) as alice, as_("alice", two) as same, as_("bob", two) as bob:
                cursor = await cursor_of(alice)
                content = (await call(same, cursor=cursor)).structured_content
                assert content is not None
                assert content["books"] == ["Emma", "Middlemarch"]
                assert told(await call(bob, cursor=cursor)) == START_AGAIN.format("list_books")


async def test_a_client_follows_the_pages(package: ModuleType) -> None:
    async with package.LibraryClient.connect(package.build_server(Library())) as client:
        assert [title async for title in client.list_books.pages(genre="novel")] == [*TITLES]
        sizes = [len(page.books) async for page in client.list_books.pages().by_page()]
        assert sizes == [2, 2, 1]
        first = await client.list_books()
        raw = await client.with_raw_response.list_books(cursor=first.nextCursor)
        assert raw.parse().books == ["Emma", "Middlemarch"]
        assert [title async for title in client.list_books.pages(cursor=first.nextCursor)] == [*TITLES[2:]]


async def test_the_client_of_a_toolset_follows_the_pages(package: ModuleType) -> None:
    with asgi(package.asgi_app(Library())) as root:
        for target in (f"{root}/mcp", package.build_server(Library())):
            async with package.LibraryReadingClient.connect(target) as client:
                assert [title async for title in client.list_books.pages(genre="novel")] == [*TITLES]
                assert (await client.list_books()).books == [*TITLES[:2]]
