"""State handles: ownership, expiry, and errors for missing handles."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import mcp
import mcp_types as types
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken

import amounts
import forked
import prompt_ends
import redis_server
from packages import generate, imported, manifest, tool
from serving import asgi

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")
HERE = "https://mcp.example.com/mcp"
BASKET: Any = {"type": "string", "x-handle": "basket"}
STATE: Any = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}}},
    "required": ["items"],
}
GIVEN: Any = {"type": "object", "properties": {"basket_id": BASKET, "count": {"type": "integer"}}}
TREE: Any = {
    "type": "object",
    "properties": {"own": {"$ref": "#/schemas/Mark"}, "below": {"type": "array", "items": {"$ref": "#/schemas/Tree"}}},
}
CHOICE: Any = {"anyOf": [{"const": "new"}, {**BASKET, "minLength": 8}]}


def shop(name: str = "shop", **more: Any) -> dict[str, Any]:
    """The manifest of a shop."""
    return manifest(
        [
            tool("create_basket", outputSchema={**GIVEN, "required": ["basket_id"]}),
            tool("add_item", {"basket_id": BASKET, "item": {"type": "string"}}, outputSchema=GIVEN),
            tool("drop_basket", {"basket_id": BASKET}),
            tool("merge", {"tree": {"$ref": "#/schemas/Tree"}, "by_name": {"additionalProperties": BASKET}}),
            tool("choose", {"basket_id": CHOICE}),
            tool("tell", {"basket_id": {"type": "string"}}, outputSchema=GIVEN),
            tool("say", {"basket_id": BASKET}, stubwright={"policy": {"confirm": True}}),
        ],
        name=name,
        schemas={"Mark": BASKET, "Tree": TREE},
        handles={"basket": {"state": STATE, "ttl": "7d", "idle": "24h", "most": 5}},
        audit={"arguments": True},
        **more,
    )


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("handles")
    generate(made, shop())
    generate(made, shop("bundled"))
    generate(made, shop("inlined", wire={"refs": "inlined"}))
    for name, audience in (("guarded", HERE), ("moved", f"{HERE}/2")):
        generate(made, shop(name, auth={"issuer": "https://auth.example.com", "audience": audience}))
    return made


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[ModuleType]:
    with imported(folder, "shop_mcp") as made:
        yield made


class Shop:
    """Handlers that keep baskets."""

    def __init__(self, package: ModuleType, **methods: Callable[..., Any]) -> None:
        self._models = importlib.import_module(f"{package.__name__}.models")
        self.handles: list[Any] = []
        for name, method in methods.items():
            setattr(self, name, method)

    def state(self, *items: str) -> Any:
        return self._models.BasketState(items=list(items))

    async def create_basket(self, _args: Any, ctx: Any) -> Any:
        return {"basket_id": await ctx.handles.basket.create(self.state())}

    async def add_item(self, args: Any, ctx: Any) -> Any:
        basket = ctx.handles["basket_id"]
        assert basket.id == args.basket_id
        self.handles.append(basket)
        changed = await ctx.handles.basket.update(basket, self.state(*basket.state.items, args.item))
        return {"basket_id": changed.id, "count": len(changed.state.items)}

    def drop_basket(self, args: Any, ctx: Any) -> str:
        return str(ctx.wait(ctx.handles.basket.delete(args.basket_id)))

    async def merge(self, _args: Any, ctx: Any) -> str:
        return json.dumps(sorted(pointer for pointer in self.asked if pointer in ctx.handles))

    asked = ("/tree/own", "/tree/below/0/own", "/tree/below/0/below/1/own", "/by_name/a~1b", "/by_name", "tree")

    async def choose(self, args: Any, ctx: Any) -> str:
        return f"{args.basket_id == 'new'} {'basket_id' in ctx.handles}"

    async def tell(self, args: Any, _ctx: Any) -> Any:
        return {"basket_id": args.basket_id}

    async def say(self, args: Any, _ctx: Any) -> str:
        logging.getLogger("shop_mcp").error("saw %s", args.basket_id)
        return "said"


@asynccontextmanager
async def client(server: Any, era: str = "2026-07-28", **more: Any) -> AsyncIterator[mcp.Client]:
    async with mcp.Client(server, mode=era, **more) as connected:
        yield connected


async def call(connected: mcp.Client, name: str, **arguments: Any) -> types.CallToolResult:
    return await connected.call_tool(name, arguments)


async def made(connected: mcp.Client) -> str:
    """The id of a new basket."""
    result = await call(connected, "create_basket")
    assert not result.is_error, result
    found: str = (result.structured_content or {})["basket_id"]
    return found


def text(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


def refused(result: types.CallToolResult) -> str:
    assert result.is_error
    return text(result)


UNKNOWN = (
    "add_item did not run: the basket in basket_id is unknown or has expired; create_basket or tell makes a new one"
)


@pytest.mark.parametrize("era", ERAS)
async def test_a_handle_is_made_used_and_ended(package: ModuleType, state: str, era: str) -> None:
    handlers = Shop(package)
    async with client(package.build_server(handlers, state=state), era) as connected:
        basket = await made(connected)
        assert len(basket) == 32, "24 bytes of randomness"
        for count, item in enumerate(("tea", "milk"), 1):
            result = await call(connected, "add_item", basket_id=basket, item=item)
            assert result.structured_content == {"basket_id": basket, "count": count}
        [first, second] = handlers.handles
        assert type(first.state) is package.BasketState
        assert (first.state.items, second.state.items) == ([], ["tea"])
        assert (first.version, second.version) == (0, 1)
        assert first.created == second.created
        assert abs(datetime.now(UTC) - first.created) < timedelta(minutes=1)
        assert first.expires == first.created + timedelta(days=7)
        assert basket not in repr(first)
        other = await made(connected)
        assert other != basket
        assert text(await call(connected, "drop_basket", basket_id=basket)) == "True"
        assert refused(await call(connected, "add_item", basket_id=basket, item="jam")) == UNKNOWN
        assert not (await call(connected, "add_item", basket_id=other, item="jam")).is_error


async def test_how_long_one_lives_is_said_by_the_tool_that_makes_one(package: ModuleType) -> None:
    async with client(package.build_server(Shop(package))) as connected:
        said = {one.name: one.description for one in (await connected.list_tools()).tools}
    kept = "A basket lives for 7 days, and expires after 24 hours without use."
    assert said["create_basket"] == f"The tool create_basket.\n\n{kept}"
    assert said["tell"] == f"The tool tell.\n\n{kept}"
    assert said["add_item"] == "The tool add_item.", "it takes one"
    assert package.TOOLS["create_basket"].definition["description"] == said["create_basket"]


@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
async def test_a_handle_goes_by_stdio(folder: Path, tmp_path: Path, era: str, redis_url: str) -> None:
    (tmp_path / "handlers.py").write_text(
        "class Shop:\n"
        "    async def create_basket(self, args, ctx):\n"
        "        return {'basket_id': await ctx.handles.basket.create({'items': []})}\n"
        "    async def add_item(self, args, ctx):\n"
        "        found = ctx.handles['basket_id']\n"
        "        await ctx.handles.basket.update(found, {'items': [*found.state.items, args.item]})\n"
        "        return {'count': len(found.state.items) + 1}\n"
        "    def __getattr__(self, name): raise AttributeError(name)\n"
        "    def drop_basket(self, args, ctx): return ''\n"
        "    merge = choose = say = drop_basket\n"
        "    def tell(self, args, ctx): return {}\n"
    )
    basket = ""
    for count in (1, 2):  # separate processes, because Redis' data outlives them
        command, *arguments = forked.interpreter()
        arguments += ["-m", "shop_mcp", "--handlers", "handlers:Shop", "--state", redis_url]
        where = StdioServerParameters(
            command=command, args=arguments, cwd=tmp_path, env={"PYTHONPATH": f"{folder}:{tmp_path}"}
        )
        async with client(stdio_client(where), era) as connected:
            basket = basket or await made(connected)
            result = await call(connected, "add_item", basket_id=basket, item="tea")
            assert result.structured_content == {"count": count}
            assert refused(await call(connected, "add_item", basket_id=basket[:-1], item="tea")) == UNKNOWN


class Anybody:
    """A verifier for which a token is whom it is for."""

    async def verify_token(self, token: str) -> AccessToken:
        said = {"iss": "https://auth.example.com"}
        return AccessToken(token=token, client_id="app", scopes=[], subject=token, claims=said)


@asynccontextmanager
async def as_(who: str, url: str, era: str = "2026-07-28") -> AsyncIterator[mcp.Client]:
    """Return a client with this user's token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {who}"}) as http,
        client(streamable_http_client(f"{url}/mcp", http_client=http), era) as connected,
    ):
        yield connected


@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
async def test_what_is_somebody_elses_is_as_unknown_as_what_never_was(folder: Path, state: str, era: str) -> None:
    with imported(folder, "guarded_mcp") as package:
        app = package.asgi_app(Shop(package), state=state, token_verifier=Anybody())
        with asgi(app) as url:
            async with as_("alice", url, era) as alice, as_("bob", url, era) as bob:
                basket = await made(alice)
                told = [
                    await call(who, name, basket_id=known_as, **more)
                    for who, known_as in ((bob, basket), (bob, basket[:-1] + "-"), (alice, ""))
                    for name, more in (("add_item", {"item": "tea"}), ("drop_basket", {}))
                ]
                assert {refused(one) for one in told} == {UNKNOWN, UNKNOWN.replace("add_item", "drop_basket", 1)}
                spoken = await call(bob, "tell", basket_id=basket)
                assert refused(spoken).startswith("The result of tell does not match its output schema")
                assert (await call(alice, "tell", basket_id=basket)).structured_content == {"basket_id": basket}
                for _ in range(5):
                    await made(bob)
                assert refused(await call(bob, "create_basket")).startswith(
                    "You already have 5 handles of the kind 'basket'"
                )
                await made(alice)


async def test_a_change_of_auth_leaves_no_handle_within_reach(folder: Path, redis_url: str) -> None:
    with imported(folder, "guarded_mcp") as guarded, imported(folder, "moved_mcp") as moved:
        apps = [one.asgi_app(Shop(one), state=redis_url, token_verifier=Anybody()) for one in (guarded, moved)]
        with asgi(apps[0]) as before, asgi(apps[1]) as after:
            async with as_("alice", before) as alice, as_("alice", after) as same:
                basket = await made(alice)
                assert refused(await call(same, "add_item", basket_id=basket, item="tea")) == UNKNOWN
                assert not (await call(alice, "add_item", basket_id=basket, item="tea")).is_error


async def test_two_servers_with_one_redis_have_the_same_handles(package: ModuleType, redis_url: str) -> None:
    one, two = (package.build_server(Shop(package), state=redis_url) for _ in range(2))
    async with client(one) as first, client(two, "legacy") as second:
        basket = await made(first)
        results = [
            (await call(each, "add_item", basket_id=basket, item="tea")).structured_content
            for each in (second, first, second)
        ]
        assert [(one or {})["count"] for one in results] == [1, 2, 3]
    async with client(package.build_server(Shop(package), state=redis_url)) as third:
        result = await call(third, "add_item", basket_id=basket, item="tea")
        assert result.structured_content == {"basket_id": basket, "count": 4}


@pytest.mark.parametrize("name", ["bundled_mcp", "inlined_mcp"])
async def test_ids_are_found_wherever_the_schema_marks_them(folder: Path, name: str) -> None:
    with imported(folder, name) as package:
        async with client(package.build_server(Shop(package))) as connected:
            one = await made(connected)
            tree = {"own": one, "below": [{"own": one, "below": [{}, {"own": one}]}]}
            found = await call(connected, "merge", tree=tree, by_name={"a/b": one})
            assert json.loads(text(found)) == [
                "/by_name/a~1b",
                "/tree/below/0/below/1/own",
                "/tree/below/0/own",
                "/tree/own",
            ]
            tree = {"own": "x", "below": [{"own": one, "below": [{}, {"own": "y"}]}]}
            assert refused(await call(connected, "merge", tree=tree, by_name={"k": "z"})) == "\n".join(
                [
                    "merge did not run:",
                    *(
                        f"- the basket in {place} is unknown or has expired; create_basket or tell makes a new one"
                        for place in ("by_name.k", "tree.below[0].below[1].own", "tree.own")
                    ),
                ]
            )


async def test_a_value_that_another_alternative_takes_is_no_id(package: ModuleType) -> None:
    async with client(package.build_server(Shop(package))) as connected:
        assert text(await call(connected, "choose", basket_id="new")) == "True False"
        assert text(await call(connected, "choose")) == "False False"
        assert text(await call(connected, "choose", basket_id=await made(connected))) == "False True"
        assert refused(await call(connected, "choose", basket_id="an older one")) == UNKNOWN.replace(
            "add_item", "choose", 1
        )


async def test_of_several_changes_at_once_one_is_kept(package: ModuleType, state: str) -> None:
    all_have_begun = asyncio.Barrier(12)  # each with the initial basket

    class Slow(Shop):
        async def add_item(self, args: Any, ctx: Any) -> Any:
            if args.item == "tea":
                await all_have_begun.wait()
            return await super().add_item(args, ctx)

    server = package.build_server(Slow(package), state=state)
    async with client(server) as connected:
        basket = await made(connected)
        results = await asyncio.gather(*(call(connected, "add_item", basket_id=basket, item="tea") for _ in range(12)))
        lost = [text(each) for each in results if each.is_error]
        assert len(lost) == 11
        assert {*lost} == {"Another call changed this basket, so this change was not saved. Try again."}
        last = await call(connected, "add_item", basket_id=basket, item="jam")
        assert last.structured_content == {"basket_id": basket, "count": 2}


async def test_a_handler_is_told_what_a_caller_is_told(package: ModuleType) -> None:
    told: list[str] = []

    async def merge(_args: Any, ctx: Any) -> str:
        handles = ctx.handles.basket
        basket = await handles.get(await handles.create({"items": ["tea"]}))
        for attempt in (handles.get("nothing"), handles.update(basket, {"items": ["tea", "jam"]})):
            try:
                told.append(str([*(await attempt).state.items]))
            except package.UnknownHandle as error:
                told.append(str(error))
        told.append(str(await handles.delete("nothing")))
        with pytest.raises(KeyError, match="no handle ID at 'tree'"):
            ctx.handles["tree"]
        assert await handles.delete(basket.id)
        await handles.update(basket, {"items": []})
        return "not reached"

    async with client(package.build_server(Shop(package, merge=merge))) as connected:
        gone = "This basket is unknown or has expired; create_basket or tell makes a new one."
        assert refused(await call(connected, "merge")) == gone
        assert told == [gone, "['tea', 'jam']", "False"]


@pytest.mark.parametrize("items", [["TEA"], "tea", [1]])
async def test_a_state_is_what_the_manifest_says(
    package: ModuleType, items: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def create_basket(_args: Any, ctx: Any) -> Any:
        return {"basket_id": await ctx.handles.basket.create({"items": items})}

    async with client(package.build_server(Shop(package, create_basket=create_basket))) as connected:
        assert refused(await call(connected, "create_basket")).startswith("Internal error in create_basket")
    assert "InvalidState: invalid basket state:\nstate.items" in caplog.text or "items" in caplog.text


async def test_one_principal_has_so_many_and_no_more(package: ModuleType, state: str) -> None:
    async with client(package.build_server(Shop(package), state=state)) as connected:
        baskets = [await made(connected) for _ in range(5)]
        assert refused(await call(connected, "create_basket")) == (
            "You already have 5 handles of the kind 'basket', which is the limit. "
            "Reuse one, delete one, or wait until one expires."
        )
        await call(connected, "drop_basket", basket_id=baskets[2])
        await made(connected)
        assert (await call(connected, "create_basket")).is_error


async def test_ids_are_in_no_log_no_record_and_no_question(
    package: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    records: list[Any] = []
    asked: list[str] = []

    async def agree(_ctx: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"confirm": True})

    async def create_basket(_args: Any, ctx: Any) -> Any:
        basket = await ctx.handles.basket.create({"items": []})
        logging.getLogger("shop_mcp").error("made %s", basket)
        return {"basket_id": basket}

    server = package.build_server(Shop(package, create_basket=create_basket), audit=records.append)
    async with client(server, elicitation_callback=agree) as connected:
        basket = await made(connected)
        assert text(await call(connected, "say", basket_id=basket)) == "said"
        await call(connected, "tell", basket_id="somebody-elses")
    server.core.recorder.flush()
    assert "[redacted]" in asked[0]
    [said] = [one for one in records if one.tool == "say" and one.outcome == "completed"]
    assert said.arguments == {"basket_id": "[redacted]"}
    assert basket not in f"{asked} {records} {caplog.text}"


async def test_a_server_without_its_state_says_so_and_goes_on_when_it_is_back(
    package: ModuleType, tmp_path: Path
) -> None:
    lost = "The server's store cannot be reached; "
    nothing, unknown = "the request had no effect. Try again in 5 seconds.", "the request may have taken effect. Check "
    records: list[Any] = []
    with redis_server.run_redis(tmp_path) as redis:
        server = package.build_server(Shop(package), state=redis.url, audit=records.append)
        async with client(server) as connected:
            basket = await made(connected)
            redis.stop(kill=True)
            made_none = refused(await call(connected, "create_basket"))
            assert made_none.startswith(f"{lost}{unknown}"), "the handler had begun"
            assert refused(await call(connected, "add_item", basket_id=basket, item="tea")) == f"{lost}{nothing}"
            assert text(await call(connected, "choose", basket_id="new")) == "True False", "it needs no state"
            redis.start()
            assert refused(await call(connected, "add_item", basket_id=basket, item="tea")) == UNKNOWN
            await made(connected)
        server.core.recorder.flush()
    assert [one.reason for one in records if one.outcome == "limited"] == ["state_lost"] * 2


async def test_only_tools_have_handles(folder: Path, tmp_path: Path) -> None:
    value = shop("reading", prompts=[{"name": "hello"}])
    generate(tmp_path, value)
    seen: list[str] = []

    async def prompt_hello(_args: Any, ctx: Any) -> str:
        with pytest.raises(AttributeError, match="has no attribute 'handles'"):
            _ = ctx.handles
        seen.append("asked")
        return "hello"

    with imported(tmp_path, "reading_mcp") as package:
        async with client(package.build_server(Shop(package, prompt_hello=prompt_hello))) as connected:
            await connected.get_prompt("hello")
    assert seen == ["asked"]


async def test_makers_are_named_to_those_who_may_use_them(tmp_path: Path) -> None:
    value = shop("scoped")
    value["tools"][0]["stubwright"] = {"policy": {"scopes": ["make"]}}
    value["lint"] = {"ignore": ["SW336"]}
    generate(tmp_path, value)
    with imported(tmp_path, "scoped_mcp") as package:
        for scopes, makers in (((), "tell makes a new one"), (("make",), "create_basket or tell makes a new one")):
            async with client(package.build_server(Shop(package), local_scopes=scopes)) as connected:
                told = refused(await call(connected, "drop_basket", basket_id="x"))
                assert told.endswith(f"has expired; {makers}")


def test_the_client_hides_ids_from_those_who_are_told_of_calls(package: ModuleType) -> None:
    said: Mapping[str, Any] = package.TOOLS["merge"].redact({"tree": {"own": "a"}, "by_name": {"k": "b"}, "other": "c"})
    assert said == {"tree": {"own": "[redacted]"}, "by_name": {"k": "[redacted]"}, "other": "c"}
    wrong = package.TOOLS["merge"].redact({"tree": {"own": 1}, "by_name": {"k": "b"}})
    assert wrong == {"tree": "[redacted]", "by_name": "[redacted]"}, "nobody knows where they stand"


def test_a_member_of_a_context_is_on_its_class_as_well(tmp_path: Path) -> None:
    """So `help`, documentation tools and debuggers can look at a generated class; only an instance has a request."""
    with imported(tmp_path, f"{generate(tmp_path, shop('shelf'))}.contexts") as contexts:
        member = contexts.AddItemContext.handles
        assert type(member).__name__ == "PerCall"
        assert member is vars(contexts.AddItemContext)["handles"]
