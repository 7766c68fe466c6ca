"""Resources, prompts, completion, lists and changes of a compiled server, in both eras."""

from __future__ import annotations

import base64
import gc
import importlib
from collections.abc import Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp
import mcp_types as types
import pytest

import amounts
from packages import generate, imported, manifest, tool
from server_fixture import HELLO, exchange, opened
from stubwright_runtime.server.core.lists import PrimitiveList, StaleCursorError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType


pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")
PIXEL = bytes(range(8))
CITIES = [f"City {number}" for number in range(150)]
PNG = base64.b64encode(PIXEL).decode()

_REPLAY = "stubwright_runtime.server.transports.http.resumption.replay"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("offers")
    (folder / "docs").mkdir()
    (folder / "docs" / "notes.md").write_text("# Notes\n\x1b[31m…\n")
    (folder / "docs" / "pixel.png").write_bytes(PIXEL)
    value = manifest(
        [tool("first"), tool("second"), tool("third")],
        name="offers",
        pageSize=2,
        cache={"ttl": "5m", "scope": "public"},
        schemas={"Kind": {"$ref": "#/schemas/Genre"}, "Genre": {"enum": ["novel", "poem", None, "play"]}},
        resources=[
            {"uri": "docs://a", "name": "a", "mimeType": "text/plain", "x": None, "stubwright": {"text": "A"}},
            {"uri": "docs://notes", "name": "notes", "stubwright": {"file": "docs/notes.md"}},
            {
                "uri": "docs://pixel",
                "name": "pixel",
                "mimeType": "image/png",
                "stubwright": {"file": "docs/pixel.png"},
            },
            {"uri": "docs://live", "name": "live", "mimeType": "text/plain"},
        ],
        resourceTemplates=[
            {
                "uriTemplate": "weather://{city}/now{?units}",
                "name": "current",
                "mimeType": "application/json",
                "stubwright": {"complete": {"city": CITIES, "units": "handler"}},
            },
            {"uriTemplate": "weather://{city}/in{/path*}", "name": "any"},
        ],
        prompts=[
            {
                "name": "review",
                "title": "Review",
                "description": "Reviews code.",
                "arguments": [
                    {"name": "code", "required": True},
                    {"name": "language", "required": True},
                    {"name": "tone"},
                    {"name": "genre"},
                ],
                "stubwright": {
                    "messages": [
                        {"text": "Review {{ language }}, {{tone}}:\n{{code}}"},
                        {"role": "assistant", "image": {"file": "docs/pixel.png", "mimeType": "image/png"}},
                        {"audio": {"data": PNG, "mimeType": "audio/wav"}, "annotations": {"priority": 1}},
                        {"resource": {"uri": "docs://{{language}}", "text": "{{code}}", "mimeType": "text/plain"}},
                        {"resource": {"uri": "docs://n", "file": "docs/notes.md"}},
                    ],
                    "complete": {
                        "language": ["Python", "Go", "PHP"],
                        "tone": "handler",
                        "genre": {"$ref": "#/schemas/Kind"},
                    },
                },
            },
            {"name": "free-form", "arguments": [{"name": "user name"}]},
        ],
    )
    name = generate(folder, value)
    with imported(folder, name) as made:
        yield made


class Handlers:
    """What the manifest leaves to code."""

    def __init__(self, **methods: Any) -> None:
        self.__dict__ |= methods

    def first(self, args: Any, ctx: Any) -> str:
        return "1"

    second = third = first

    async def read_live(self, ctx: Any) -> Any:
        return "now\x1b[0m"

    def read_current(self, params: Any, ctx: Any) -> Any:
        return None if params.city == "Nowhere" else f"{params.city} {params.units}"

    def read_any(self, params: Any, ctx: Any) -> Any:
        return f"{params.city} {params.path}"

    def prompt_free_form(self, args: Any, ctx: Any) -> Any:
        return f"Hello {args.user_name}"

    def complete_read_current(self, args: Any, ctx: Any) -> Any:
        return [args.argument, args.value, *args.given.values()]

    async def complete_prompt_review(self, args: Any, ctx: Any) -> Any:
        return [f"{args.value}{number}" for number in range(101)]


@asynccontextmanager
async def client(package: ModuleType, era: str = "legacy", **methods: Any) -> AsyncIterator[mcp.Client]:
    async with mcp.Client(package.build_server(Handlers(**methods)), mode=era) as made:
        yield made


async def refusal(awaitable: Any) -> types.ErrorData:
    with pytest.raises(mcp.MCPError) as caught:
        await awaitable
    return caught.value.error


# Resources


@pytest.mark.parametrize("era", ERAS)
async def test_what_the_manifest_holds_is_read_as_it_is(package: ModuleType, era: str) -> None:
    async with client(package, era) as made:
        [a] = (await made.read_resource("docs://a")).contents
        [notes] = (await made.read_resource("docs://notes")).contents
        [pixel] = (await made.read_resource("docs://pixel")).contents
    assert a == types.TextResourceContents(uri="docs://a", mime_type="text/plain", text="A")
    assert notes == types.TextResourceContents(uri="docs://notes", text="# Notes\n\x1b[31m…\n")
    assert pixel == types.BlobResourceContents(uri="docs://pixel", mime_type="image/png", blob=PNG)


async def test_the_forms_of_contents(package: ModuleType) -> None:
    forms = [
        "text",
        b"\x00",
        package.embedded("docs://other", text="o\x1b[0m", mime_type="text/html"),
        types.BlobResourceContents(uri="docs://blob", blob="AAA="),
        ["one", b"two"],
    ]
    read = []
    for form in forms:
        async with client(package, read_live=lambda ctx, form=form: form) as made:
            result = await made.read_resource("docs://live")
            read.append([one.model_dump(by_alias=True, exclude_none=True) for one in result.contents])
    mine = {"uri": "docs://live", "mimeType": "text/plain"}
    assert read == [
        [{**mine, "text": "text"}],
        [{**mine, "blob": "AA=="}],
        [{"uri": "docs://other", "mimeType": "text/html", "text": "o"}],
        [{"uri": "docs://blob", "blob": "AAA="}],
        [{**mine, "text": "one"}, {**mine, "blob": "dHdv"}],
    ]


@pytest.mark.parametrize(("era", "code"), [("legacy", -32002), ("2026-07-28", -32602)])
async def test_unknown_resources_are_the_revisions_own_error(package: ModuleType, era: str, code: int) -> None:
    async with client(package, era) as made:
        for uri in ("docs://nothing", "weather://Nowhere/now"):
            error = await refusal(made.read_resource(uri))
            assert (error.code, error.message, error.data) == (code, f"Resource not found: {uri}", {"uri": uri})


async def test_templates_are_tried_in_order(package: ModuleType) -> None:
    async with client(package) as made:
        read = {
            uri: (await made.read_resource(uri)).contents[0]
            for uri in ("weather://S%C3%A3o%20Paulo/now?units=m&x=1", "weather://Oslo/now", "weather://Oslo/in/a/b")
        }
    assert [(one.uri, one.mime_type, getattr(one, "text", None)) for one in read.values()] == [
        ("weather://S%C3%A3o%20Paulo/now?units=m&x=1", "application/json", "São Paulo m"),
        ("weather://Oslo/now", "application/json", "Oslo None"),
        ("weather://Oslo/in/a/b", None, "Oslo ['a', 'b']"),
    ]


def fails(*_: Any) -> Any:
    raise ValueError("the password is correct horse")


def deep(*_: Any) -> Any:
    """What no message can carry, for a resource or for a prompt."""
    value: Any = []
    for _level in range(250):
        value = [value]
    inner = types.TextResourceContents(uri="a://b", text="said", _meta={"a": value})
    return types.EmbeddedResource(type="resource", resource=inner)


@pytest.mark.parametrize("broken", [fails, deep, lambda *_: 5, lambda *_: [None], lambda *_: exit(3)])
async def test_a_method_that_fails_is_an_internal_error_without_its_text(
    package: ModuleType, broken: Any, caplog: pytest.LogCaptureFixture
) -> None:
    methods = dict.fromkeys(("read_live", "read_current", "prompt_free_form", "complete_read_current"), broken)
    template = types.ResourceTemplateReference(uri="weather://{city}/now{?units}")
    async with client(package, **methods) as made:
        for asked, method in (
            (made.read_resource("docs://live"), "read_live"),
            (made.read_resource("weather://Oslo/now"), "read_current"),
            (made.get_prompt("free-form"), "prompt_free_form"),
            (made.complete(template, {"name": "units", "value": ""}), "complete_read_current"),
        ):
            error = await refusal(asked)
            assert error.code == types.INTERNAL_ERROR
            assert error.message.startswith(f"Internal error in {method} (reference ")
            assert error.message.partition("(")[2][10:18] in caplog.text
    assert broken is not fails or "correct horse" in caplog.text


# Prompts


@pytest.mark.parametrize("era", ERAS)
async def test_messages_are_filled_in_once(package: ModuleType, era: str) -> None:
    async with client(package, era) as made:
        result = await made.get_prompt("review", {"code": "{{tone}} {{code}}", "language": "Go", "unknown": "x"})
    assert result.description == "Reviews code."
    assert [(one.role, one.content.model_dump(by_alias=True, exclude_none=True)) for one in result.messages] == [
        ("user", {"type": "text", "text": "Review Go, :\n{{tone}} {{code}}"}),
        ("assistant", {"type": "image", "data": PNG, "mimeType": "image/png"}),
        ("user", {"type": "audio", "data": PNG, "mimeType": "audio/wav", "annotations": {"priority": 1.0}}),
        (
            "user",
            {
                "type": "resource",
                "resource": {"uri": "docs://Go", "mimeType": "text/plain", "text": "{{tone}} {{code}}"},
            },
        ),
        ("user", {"type": "resource", "resource": {"uri": "docs://n", "text": "# Notes\n\x1b[31m…\n"}}),
    ]


async def test_a_prompt_for_the_oldest_clients(package: ModuleType) -> None:
    arguments = {"code": "a", "language": "Go"}
    asked = ("prompts/get", {"name": "review", "arguments": arguments})
    [result] = await exchange(package.build_server(Handlers()), "2024-11-05", asked)
    assert [message["content"]["type"] for message in result["messages"]] == [
        "text",
        "image",
        "resource",
        "resource",
        "resource",
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_missing_arguments_are_all_told(package: ModuleType, era: str) -> None:
    async with client(package, era) as made:
        error = await refusal(made.get_prompt("review", {"tone": "kind"}))
        assert error == types.ErrorData(
            code=types.INVALID_PARAMS,
            message="Missing required arguments of review: 'code', 'language'",
            data={"missing": ["code", "language"]},
        )
        assert (await refusal(made.get_prompt("revue"))).message == "Unknown prompt: revue"


async def test_the_forms_of_messages(package: ModuleType) -> None:
    forms = [
        "text",
        package.text("block"),
        package.assistant("said"),
        ["one", package.user(package.image(PIXEL, "image/png"))],
    ]
    said = []
    for form in forms:
        async with client(package, prompt_free_form=lambda args, ctx, form=form: form) as made:
            result = await made.get_prompt("free-form", {"user name": "Ada"})
            said.append([(one.role, one.content.type) for one in result.messages])
    assert said == [
        [("user", "text")],
        [("user", "text")],
        [("assistant", "text")],
        [("user", "text"), ("user", "image")],
    ]
    async with client(package) as made:
        [message] = (await made.get_prompt("free-form", {"user name": "Ada"})).messages
    assert message == types.PromptMessage(role="user", content=types.TextContent(type="text", text="Hello Ada"))


# Completion


async def test_what_is_completed(package: ModuleType) -> None:
    prompt = types.PromptReference(name="review")
    template = types.ResourceTemplateReference(uri="weather://{city}/now{?units}")
    async with client(package) as made:

        async def complete(ref: Any, name: str, value: str, given: dict[str, str] | None = None) -> types.Completion:
            return (await made.complete(ref, {"name": name, "value": value}, given)).completion

        assert await complete(prompt, "language", "p") == types.Completion(
            values=["Python", "PHP"], total=2, has_more=False
        )
        assert (await complete(prompt, "genre", "")).values == ["novel", "poem", "play"]
        assert (await complete(prompt, "genre", "P")).values == ["poem", "play"]
        every = await complete(template, "city", "")
        assert (every.values, every.total, every.has_more) == (CITIES[:100], 150, True)
        most = await complete(prompt, "tone", "k")
        assert (len(most.values), most.total, most.has_more, most.values[0]) == (100, 101, True, "k0")
        assert (await complete(template, "units", "m", {"city": "Oslo"})).values == ["units", "m", "Oslo"]
        assert (await complete(prompt, "code", "")).values == []
        error = await refusal(complete(types.PromptReference(name="nope"), "a", ""))
        assert (error.code, error.message) == (types.INVALID_PARAMS, "Unknown prompt: nope")
        error = await refusal(complete(types.ResourceTemplateReference(uri="docs://a"), "a", ""))
        assert (error.code, error.message) == (types.INVALID_PARAMS, "Unknown URI template: docs://a")


# Lists

LISTS = {
    "tools/list": ("tools", ["first", "second", "third"]),
    "resources/list": ("resources", ["a", "notes", "pixel", "live"]),
    "resources/templates/list": ("resourceTemplates", ["current", "any"]),
    "prompts/list": ("prompts", ["review", "free-form"]),
}


async def test_only_what_the_manifest_holds_is_kept_by_clients(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    for uri, hints in [
        ("docs://a", (300_000, "public")),
        ("docs://notes", (300_000, "public")),
        ("docs://live", (0, "private")),
        ("weather://Oslo/now", (0, "private")),
    ]:
        [read] = await exchange(server, "2026-07-28", ("resources/read", {"uri": uri}))
        assert (read["ttlMs"], read["cacheScope"]) == hints, uri
        [read] = await exchange(server, "2025-11-25", ("resources/read", {"uri": uri}))
        assert not {"ttlMs", "cacheScope"} & read.keys()


def test_a_cursor_is_spelled_as_it_was_given() -> None:
    listing = PrimitiveList("tools", "tools", {name: {"name": name} for name in ("a", "b", "c", "d")})
    _, cursor = listing.make_page(None, 2)
    assert cursor is not None
    assert listing.make_page(cursor, 2) == ([{"name": "c"}, {"name": "d"}], None)
    digest = base64.urlsafe_b64decode(cursor)[:-1]
    forged = [base64.urlsafe_b64encode(digest + position).decode() for position in (b"0", b"4", b"5", b"02", b"-1")]
    for other in (*forged, f"{cursor}\n", f"!{cursor}", f"{cursor}="):
        with pytest.raises(StaleCursorError):
            listing.make_page(other, 2)


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
async def test_all_lists_come_in_pages(package: ModuleType, revision: str) -> None:
    server = package.build_server(Handlers())
    cursors = []
    for method, (name, expected) in LISTS.items():
        names: list[str] = []
        cursor = None
        while True:
            [page] = await exchange(server, revision, (method, {"cursor": cursor} if cursor else {}))
            assert len(page[name]) <= 2
            assert (page.get("ttlMs"), page.get("cacheScope")) == (
                (300_000, "public") if revision > "2026" else (None, None)
            )
            names += [entry["name"] for entry in page[name]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
            cursors.append((method, cursor))
        assert names == expected
    assert [method for method, _ in cursors] == ["tools/list", "resources/list"]
    for method in LISTS:
        for owner, cursor in [*cursors, ("", "nonsense"), ("", "é"), ("", "")]:
            [answer] = await exchange(server, revision, (method, {"cursor": cursor}))
            assert ("error" not in answer) == (method == owner)
            if method != owner:
                assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, "Invalid cursor")


async def test_definitions_go_out_verbatim(package: ModuleType) -> None:
    [page] = await exchange(package.build_server(Handlers()), "2025-11-25", ("resources/list", {}))
    assert page["resources"][0] == {"uri": "docs://a", "name": "a", "mimeType": "text/plain", "x": None}


async def test_what_is_switched_off_is_not_there(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    [before] = await exchange(server, "2025-11-25", ("tools/list", {}))
    await server.tools.disable("first")
    await server.prompts.disable("review")
    await server.resources.disable("docs://a")
    await server.resources.disable("weather://{city}/now{?units}")
    [stale] = await exchange(server, "2025-11-25", ("tools/list", {"cursor": before["nextCursor"]}))
    assert stale["error"]["message"] == "Invalid cursor"
    async with mcp.Client(server) as made:
        assert [one.name for one in (await made.list_tools()).tools] == ["second", "third"]
        assert (await refusal(made.call_tool("first"))).message == "Unknown tool: first"
        assert (await refusal(made.get_prompt("review", {"code": "", "language": ""}))).message == (
            "Unknown prompt: review"
        )
        assert (await refusal(made.read_resource("docs://a"))).message == "Resource not found: docs://a"
        assert (await refusal(made.read_resource("weather://Oslo/now"))).message.startswith("Resource not found")
        await server.tools.enable("first")
        assert (await made.call_tool("first")).content == [types.TextContent(type="text", text="1")]
    with pytest.raises(KeyError, match="no 'fourth' in tools"):
        await server.tools.enable("fourth")


# Changes


async def heard(made: mcp.Client, told: list[Any], count: int) -> list[str]:
    with anyio.fail_after(60):
        while len(told) < count:  # noqa: ASYNC110 - the list is the client's own
            await anyio.sleep(0.01)
    await anyio.sleep(0.05)
    return [getattr(one.params, "uri", None) or one.method for one in told]


async def test_clients_that_shook_hands_hear_of_changes(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    told: list[Any] = []
    others: list[Any] = []

    async def hear(message: Any) -> None:
        told.append(message)

    async def overhear(message: Any) -> None:
        others.append(message)

    async with (
        mcp.Client(server, mode="legacy", message_handler=hear) as made,
        mcp.Client(server, mode="legacy", message_handler=overhear) as other,
    ):
        assert made.server_capabilities.resources == types.ResourcesCapability(subscribe=True, list_changed=True)
        await made.session.send_request(
            types.SubscribeRequest(params=types.SubscribeRequestParams(uri="docs://a")), types.EmptyResult
        )
        await server.tools.disable("third")
        await server.tools.disable("third")
        await server.prompts.changed()
        await server.resources.updated("docs://a")
        await server.resources.updated("docs://notes")
        await server.resources.changed()
        assert await heard(made, told, 4) == [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "docs://a",
            "notifications/resources/list_changed",
        ]
        await made.session.send_request(
            types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri="docs://a")), types.EmptyResult
        )
        await server.resources.updated("docs://a")
        await server.tools.enable("third")
        assert len(await heard(made, told, 5)) == 5
        assert "docs://a" not in await heard(other, others, 4)
    await server.tools.changed()
    assert len(told) == 5


async def test_what_changed_before_a_client_was_ready_is_told_then(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    await server.prompts.changed()  # before any handshake
    [_, *told] = await exchange(
        server,
        "2025-11-25",
        ("tools/list", {}),
    )
    assert told == []
    async with opened(server) as (send, receive):
        await send({"id": 1, "method": "initialize", "params": {**HELLO, "protocolVersion": "2025-11-25"}})
        assert (await receive())["id"] == 1
        await server.tools.disable("third")
        await server.tools.enable("third")
        await server.resources.changed()
        await send({"method": "notifications/initialized"})
        methods = [(await receive())["method"] for _ in range(2)]
        assert methods == ["notifications/tools/list_changed", "notifications/resources/list_changed"]
        await server.prompts.changed()
        assert (await receive())["method"] == "notifications/prompts/list_changed"
        await send({"id": 2, "method": "ping"})
        assert (await receive())["id"] == 2


async def test_a_change_right_after_connecting_is_heard(package: ModuleType) -> None:
    for _ in range(20):
        server = package.build_server(Handlers())
        told: list[Any] = []

        async def hear(message: Any, told: list[Any] = told) -> None:
            told.append(message)

        async with mcp.Client(server, mode="legacy", message_handler=hear) as made:
            await server.tools.changed()
            assert await heard(made, told, 1) == ["notifications/tools/list_changed"]


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_nobody_subscribes_to_what_is_not_there(package: ModuleType, revision: str) -> None:
    server = package.build_server(Handlers())
    await server.resources.disable("docs://notes")
    await server.resources.disable("weather://{city}/in{/path*}")
    there = ("docs://a", "docs://live", "weather://Oslo/now?units=C")
    absent = ("docs://unknown", "docs://notes", "weather://Oslo/in/a/b", "", "x" * 10_000)
    answers = await exchange(server, revision, *(("resources/subscribe", {"uri": uri}) for uri in (*there, *absent)))
    assert answers[:3] == [{}, {}, {}]
    for uri, answer in zip(absent, answers[3:], strict=True):
        error = {"code": -32002, "message": f"Resource not found: {uri}", "data": {"uri": uri}}
        assert answer == {"error": error}


async def test_clients_that_listen_hear_of_changes(package: ModuleType) -> None:
    async def first(args: Any, ctx: Any) -> str:
        await ctx.tools.changed()
        await ctx.resources.updated("docs://a")
        await ctx.resources.updated("docs://notes")
        await ctx.prompts.changed()
        return "told"

    async with (
        client(package, "2026-07-28", first=first) as made,
        made.listen(tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=["docs://a"]) as events,
    ):
        await made.call_tool("first")
        told = []
        with anyio.fail_after(60):
            async for event in events:
                told.append(event)
                if len(told) == 3:
                    break
    assert [type(event).__name__ for event in told] == ["ToolsListChanged", "ResourceUpdated", "PromptsListChanged"]


LISTENERS: Sequence[tuple[dict[str, Any], list[str]]] = (
    ({"tools_list_changed": True}, ["ToolsListChanged"]),
    ({"prompts_list_changed": True}, ["PromptsListChanged"]),
    ({"resources_list_changed": True}, ["ResourcesListChanged"]),
    ({"resource_subscriptions": ["docs://a"]}, ["ResourceUpdated"]),
    ({"resource_subscriptions": ["docs://notes"]}, []),
)


async def test_each_listener_hears_what_it_asked_for_and_nothing_else(package: ModuleType) -> None:
    """MCP 2026-07-28, basic/utilities/subscriptions: a server MUST NOT send what was not asked for."""

    async def first(args: Any, ctx: Any) -> str:
        await ctx.tools.changed()
        await ctx.prompts.changed()
        await ctx.resources.changed()
        await ctx.resources.updated("docs://a")
        return "told"

    heard: list[list[str]] = [[] for _ in LISTENERS]

    all_heard = anyio.Event()

    async def note(events: Any, names: list[str]) -> None:
        async for event in events:
            names.append(type(event).__name__)
            if sum(map(len, heard)) == 4:
                all_heard.set()

    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(client(package, "2026-07-28", first=first))
        streams = [await stack.enter_async_context(made.listen(**wanted)) for wanted, _ in LISTENERS]
        async with anyio.create_task_group() as tasks:
            for events, names in zip(streams, heard, strict=True):
                tasks.start_soon(note, events, names)
            await made.call_tool("first")
            with anyio.fail_after(60):
                await all_heard.wait()
            await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
    assert heard == [expected for _, expected in LISTENERS]


async def test_names_differ_by_case(package: ModuleType) -> None:
    async with client(package, "2026-07-28") as made:
        for name in ("First", "FIRST"):
            with pytest.raises(mcp.MCPError, match=f"Unknown tool: {name}"):
                await made.call_tool(name)
        with pytest.raises(mcp.MCPError, match="HELLO"):
            await made.get_prompt("HELLO")
        with pytest.raises(mcp.MCPError):
            await made.read_resource("docs://A")


async def test_keys_of_meta_that_are_mcps_do_not_go_out(package: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    async def first(args: Any, ctx: Any) -> Any:
        meta = {"io.modelcontextprotocol/serverInfo": {"name": "other"}, "example.com/a": 1}
        return importlib.import_module("stubwright_runtime").Reply("hi", meta=meta)

    for revision in ("legacy", "2026-07-28"):
        async with client(package, revision, first=first) as made:
            result = await made.call_tool("first")
        meta = result.meta or {}
        assert meta.get("example.com/a") == 1
        assert meta.get("io.modelcontextprotocol/serverInfo", {}).get("name") != "other"
    assert "`meta` of a Reply from first: 'io.modelcontextprotocol/serverInfo'" in caplog.text


async def test_the_capabilities_follow_from_the_manifest(tmp_path: Any) -> None:
    plain = generate(tmp_path, manifest([tool("one")], name="plain"))
    meant = {"name": "meant", "version": "1", "capabilities": {"logging": True, "resources": True}}
    declared = generate(tmp_path, {**manifest([tool("one")], name="meant"), "server": meant})
    handlers = SimpleNamespace(one=lambda args, ctx: "1")
    with imported(tmp_path, plain) as package:
        async with mcp.Client(package.build_server(handlers), mode="legacy") as made:
            has = made.server_capabilities.model_dump(exclude_none=True)
        assert has == {"logging": {}, "tools": {"list_changed": True}}
        runtime = importlib.import_module("stubwright_runtime")
        assert not (set(runtime.__path__) and {"resources", "prompts", "completion"} & set(dir(runtime)))
    with imported(tmp_path, declared) as package:
        async with mcp.Client(package.build_server(handlers)) as made:
            assert made.server_capabilities.logging is not None
        async with mcp.Client(package.build_server(handlers), mode="legacy") as made:
            assert made.server_capabilities.resources is not None
            assert (await made.list_resources()).resources == []


@pytest.mark.parametrize(
    ("kinds", "found"),
    amounts.sample(
        [("l", "a resource link"), ("e", "an embedded resource"), ("el", "a resource link and an embedded resource")], 2
    ),
)
async def test_resources_in_results_that_nobody_declared_are_told_once(
    tmp_path: Any, caplog: pytest.LogCaptureFixture, kinds: str, found: str
) -> None:
    name = generate(tmp_path, manifest([tool("one")], name="links"))
    meant = {"name": "meant", "version": "1", "capabilities": {"resources": True}}
    declared = generate(tmp_path, {**manifest([tool("one")], name="meant"), "server": meant})
    for each, count in ((declared, 0), (name, 1)):
        with imported(tmp_path, each) as package:
            blocks = {"l": package.link("docs://a", "a"), "e": package.embedded("docs://a", text="A")}
            handlers = SimpleNamespace(one=lambda args, ctx, blocks=blocks: [blocks[kind] for kind in kinds])
            async with mcp.Client(package.build_server(handlers)) as made:
                await made.call_tool("one")
                await made.call_tool("one")
        assert caplog.text.count("declares no resources") == count
    assert f"one returned {found}, but the manifest declares no resources" in caplog.text


async def test_tools_are_declared_where_there_are_some(tmp_path: Any) -> None:
    prompts = [{"name": "p", "stubwright": {"messages": [{"text": "hi"}]}}]
    without = generate(tmp_path, manifest([], name="without", prompts=prompts))
    meant = {"name": "meant", "version": "1", "capabilities": {"tools": True}}
    declared = generate(tmp_path, {**manifest([], name="meant"), "server": meant})
    for era in ("legacy", "auto"):
        with imported(tmp_path, without) as package:
            async with mcp.Client(package.build_server(object()), mode=era) as made:
                assert made.server_capabilities.tools is None
                assert made.server_capabilities.prompts is not None
                assert (await refusal(made.list_tools())).code == types.METHOD_NOT_FOUND
                assert (await refusal(made.call_tool("one"))).code == types.METHOD_NOT_FOUND
        with imported(tmp_path, declared) as package:
            async with mcp.Client(package.build_server(object()), mode=era) as made:
                assert made.server_capabilities.tools == types.ToolsCapability(list_changed=True)
                assert (await made.list_tools()).tools == []
                assert (await refusal(made.call_tool("one"))).message == "Unknown tool: one"


@pytest.mark.parametrize(
    ("kind", "value"), amounts.sample(product(["tools", "resources", "prompts", "completions"], [True, False, None]), 7)
)
async def test_a_capability_without_entries_is_there_if_the_manifest_declares_it(
    kind: str, value: bool | None, tmp_path: Any
) -> None:
    prompts = [{"name": "p", "stubwright": {"messages": [{"text": "hi"}]}}]
    other: dict[str, Any] = manifest([], name="bare", prompts=prompts) if kind == "tools" else manifest([tool("one")])
    said = {} if value is None else {"capabilities": {kind: value}}
    name = generate(tmp_path, {**other, "server": {"name": "bare", "version": "1", **said}})
    with imported(tmp_path, name) as package:
        for era in ("legacy", "auto"):
            async with mcp.Client(package.build_server(SimpleNamespace(one=lambda args, ctx: "1")), mode=era) as made:
                assert (getattr(made.server_capabilities, kind) is not None) is (value is True)


# Messages for clients that resume


async def replayed(replay: Any, last: str, sent: list[tuple[bytes, str]]) -> str | None:
    """The stream that is known by an id; what came after it is added."""

    async def send(message: bytes, name: str) -> None:
        sent.append((message, name))

    if (position := await replay.find(last)) is None:
        return None
    await replay.replay(position, send)
    stream: str = position.stream
    return stream


async def test_messages_of_lost_streams_are_kept_within_bounds(package: ModuleType) -> None:
    archive = importlib.import_module(_REPLAY).Archive()
    replay = archive.open_session(events=5)
    message = b"{}"
    first = await replay.append("a", None)
    ids = [await replay.append("a", message) for _ in range(4)]
    sent: list[tuple[bytes, str]] = []

    assert await replayed(replay, ids[1], sent) == "a"
    assert [name for _, name in sent] == ids[2:]
    assert await replayed(replay, first, sent) == "a"
    assert [name for _, name in sent] == [*ids[2:], *ids]
    last = await replay.append("b/c", message)
    assert await replayed(replay, last, sent) == "b/c"
    sent.clear()
    for _ in range(2):
        await replay.append("d", message)
    assert await replayed(replay, first, sent) == "a"
    assert [name for _, name in sent] == ids[2:]  # the oldest are forgotten
    sent.clear()
    assert await replayed(replay, "1/e", sent) == "e"
    assert sent == []
    for odd in ("nonsense", "9" * 5000 + "/a", "9/a"):
        assert await replayed(replay, odd, sent) is None


async def test_messages_are_kept_up_to_a_size(package: ModuleType) -> None:
    archive = importlib.import_module(_REPLAY).Archive()
    replay = archive.open_session(size=2000)
    sent: list[tuple[bytes, str]] = []

    big = b"x" * 600
    ids = [await replay.append("a", big) for _ in range(3)]
    assert await replayed(replay, "0/a", sent) == "a"
    assert [name for _, name in sent] == ids[2:]


async def test_sessions_share_a_budget_and_leave_nothing_behind(package: ModuleType) -> None:
    archive = importlib.import_module(_REPLAY).Archive(20_000)
    big = b"x" * 5000
    sent: list[tuple[bytes, str]] = []

    sessions = [archive.open_session() for _ in range(20)]
    for session in sessions:
        await session.append("a", big)
        assert archive.size <= 20_000
    for session in (sessions[0], sessions[-1]):
        assert await replayed(session, "0/a", sent) == "a"
    assert [message for message, _ in sent] == [big]
    huge = b"x" * 50_000
    await sessions[0].append("a", huge)
    assert await replayed(sessions[0], "0/a", sent) == "a"  # the newest is stored at any size
    del session
    sessions.clear()
    gc.collect()
    assert archive.size == 0


async def test_a_principal_keeps_no_more_of_its_sessions_than_its_share(package: ModuleType) -> None:
    archive = importlib.import_module(_REPLAY).Archive(30_000, 20_000)
    big = b"x" * 5000
    huge = b"x" * 50_000

    async def kept(session: Any) -> bool:
        sent: list[tuple[bytes, str]] = []
        await replayed(session, "0/a", sent)
        return sent != []

    bob = archive.open_session("bob")
    await bob.append("a", big)
    anns = [archive.open_session("ann") for _ in range(10)]
    for session in anns:
        await session.append("a", big)
    assert [await kept(session) for session in anns] == [False] * 7 + [True] * 3
    cid = archive.open_session("cid")
    await cid.append("a", big)
    await cid.append("a", big)
    assert [await kept(session) for session in anns] == [False] * 8 + [True] * 2, "who has most gives way"
    assert await kept(bob)
    await cid.append("a", huge)
    assert [await kept(one) for one in (*anns, bob, cid)] == [False] * 11 + [True]


async def test_sessions_do_not_hear_of_each_other(package: ModuleType) -> None:
    """Streams are called by request ids, which are alike in all sessions."""
    app = package.asgi_app(Handlers(first=lambda args, ctx: f"for {ctx.request_id}"))
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost:8000") as web,
    ):

        async def post(session: dict[str, str], method: str, params: Any, number: int | None = 7) -> Any:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            if number is not None:
                message["id"] = number
            return await web.post("/mcp", json=message, headers={**headers, **session})

        sessions = []
        for _ in range(2):
            opened = await post({}, "initialize", hello, 0)
            sessions.append({"mcp-session-id": opened.headers["mcp-session-id"]})
            await post(sessions[-1], "notifications/initialized", {}, None)
        secret = await post(sessions[0], "tools/call", {"name": "first"})
        assert "for 7" in secret.text
        for last in ("0/7", "1/7"):
            with anyio.move_on_after(0.3):
                asked = {**headers, **sessions[1], "last-event-id": last}
                answer = await web.get("/mcp", headers=asked)
                assert "for 7" not in answer.text


async def test_a_client_that_says_hello_twice_hears_once(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    told: list[Any] = []

    async def hear(message: Any) -> None:
        told.append(message)

    async with mcp.Client(server, mode="legacy", message_handler=hear) as made:
        for _ in range(3):
            await made.session.send_notification(types.InitializedNotification())
        await server.tools.changed()
        assert len(await heard(made, told, 1)) == 1


async def test_what_is_off_is_not_read_through_a_template(tmp_path: Any) -> None:
    value = manifest(
        [],
        name="shadow",
        resources=[{"uri": "w://oslo/now", "name": "oslo", "stubwright": {"text": "own"}}],
        resourceTemplates=[{"uriTemplate": "w://{city}/now", "name": "any"}],
    )
    with imported(tmp_path, generate(tmp_path, value)) as package:
        server = package.build_server(SimpleNamespace(read_any=lambda params, ctx: params.city))
        async with mcp.Client(server) as made:
            assert getattr((await made.read_resource("w://oslo/now")).contents[0], "text", "") == "own"
            await server.resources.disable("w://oslo/now")
            assert (await refusal(made.read_resource("w://oslo/now"))).message == "Resource not found: w://oslo/now"
            assert getattr((await made.read_resource("w://bern/now")).contents[0], "text", "") == "bern"


@pytest.mark.parametrize(
    "more",
    [
        {"prompts": [{"name": "p", "stubwright": {"messages": [{"text": "hi"}]}}]},
        {"resources": [{"uri": "a://b", "name": "b", "stubwright": {"text": "B"}}]},
        {"emit": ["server"]},
        {"emit": ["client"]},
        {"prompts": [], "resources": [], "resourceTemplates": []},
    ],
)
async def test_packages_without_tools_and_without_code(tmp_path: Any, more: dict[str, Any]) -> None:
    name = generate(tmp_path, manifest([], name="still", **more))
    for path in (tmp_path / name).rglob("*.py"):
        compile(path.read_text("utf-8"), str(path), "exec")
    with imported(tmp_path, name) as package:
        for exported in dir(package):
            getattr(package, exported)
        if more.get("emit") != ["client"]:
            async with mcp.Client(package.build_server(object())) as made:
                assert made.server_capabilities.tools is None
