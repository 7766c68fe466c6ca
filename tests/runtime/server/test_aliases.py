"""Tools called by their old names: by old clients, and in every feature that uses names."""

from __future__ import annotations

import json
import logging
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2
import mcp
import pytest
import yaml
from conftest import ROOT
from mcp.server.auth.provider import AccessToken

import prompt_ends
from packages import generate, imported, manifest, tool
from server_fixture import ENVELOPE, exchange
from serving import WAYS
from task_wire import in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

REVISIONS: Final = ("2025-11-25", "2026-07-28")
NOTE: Final = "io.stubwright/alias"
DEGREES: Final = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}
EXCHANGED: Final = {"type": "object", "properties": {"way": {"type": "string"}}, "required": ["way"]}


def weather(name: str, place: str, **more: Any) -> dict[str, Any]:
    properties = {place: {"type": "string", "x-mcp-header": "Place"}, "units": {"type": "string", "default": "C"}}
    schema = {"type": "object", "properties": properties, "required": [place], "additionalProperties": False}
    return {**tool(name, **more), "inputSchema": schema, "outputSchema": DEGREES}


def route(name: str, **more: Any) -> dict[str, Any]:
    text = {"type": "string"}
    return tool(name, {"from": text, "to": text}, outputSchema=EXCHANGED, **more)


OLD: Final = manifest(
    [weather("get_forecast", "city"), route("travel")], name="weather", python={"package": "old_weather_mcp"}
)
NEW: Final = {
    **manifest(
        [
            weather(
                "get_weather",
                "location",
                stubwright={
                    "aliases": [{"name": "get_forecast", "removeAfter": "3.0.0", "arguments": {"city": "location"}}],
                    "policy": {"rateLimit": "50/hour", "maxArgumentBytes": "1KiB", "redact": ["/units"]},
                },
            ),
            route("plan", stubwright={"aliases": [{"name": "travel", "arguments": {"from": "to", "to": "from"}}]}),
            tool("rare", stubwright={"aliases": [{"name": "seldom"}], "policy": {"rateLimit": "2/hour"}}),
            tool(
                "long",
                {"x": {"type": "integer"}},
                execution={"taskSupport": "required"},
                stubwright={"aliases": [{"name": "endless", "arguments": {"y": "x"}}]},
            ),
            tool("pay", stubwright={"aliases": [{"name": "buy"}], "policy": {"confirm": True}}),
        ],
        audit={"arguments": True},
        toolsets={"weather": {"tools": ["get_weather"]}, "routes": {"tools": ["plan"]}},
    ),
    "server": {"name": "weather", "version": "2.4.0"},
}


VAULT: Final = manifest(
    [tool("guarded", stubwright={"aliases": [{"name": "once_open"}], "policy": {"scopes": ["guard"]}})],
    name="vault",
    auth={"issuer": "https://auth.example.com", "audience": "https://here/mcp", "onMissing": "challenge"},
)


class Handlers:
    async def get_weather(self, args: Any, ctx: Any) -> Any:
        return {"degrees": float(len(args.location))}

    async def plan(self, args: Any, ctx: Any) -> Any:
        return {"way": f"{args.from_} to {args.to}"}

    async def guarded(self, args: Any, ctx: Any) -> str:
        return f"as {ctx.name}"

    async def long(self, args: Any, ctx: Any) -> str:
        return str(args.x)

    rare = pay = guarded


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("old")
    generate(folder, OLD)
    with imported(folder, "old_weather_mcp") as package:
        yield package


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("new")
    generate(folder, NEW)
    with imported(folder, "weather_mcp") as package:
        yield package


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


async def test_a_typed_client_of_the_old_version_calls_the_new_server(old: ModuleType, new: ModuleType) -> None:
    for revision in REVISIONS:
        mode = "legacy" if revision < "2026" else revision
        await use_old_client(old, mcp.Client(new.build_server(Handlers()), mode=mode), revision)


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("revision", REVISIONS)
async def test_so_it_does_over_http(old: ModuleType, new: ModuleType, revision: str, way: int) -> None:
    with over_http(new, way) as url:
        await use_old_client(old, mcp.Client(url, mode="legacy" if revision < "2026" else revision), revision)


@contextmanager
def over_http(new: ModuleType, way: int) -> Iterator[str]:
    with WAYS[way](new.asgi_app(Handlers(), allowed_hosts=["127.0.0.1"])) as url:
        yield f"{url}/mcp"


async def use_old_client(old: ModuleType, target: mcp.Client, revision: str) -> None:
    async with old.WeatherClient.connect(target) as client:
        assert client.raw.protocol_version == revision
        response = await client.with_raw_response.get_forecast(city="Paris")
        assert response.parse() == old.GetForecastOutput(degrees=5)
        assert response.meta[NOTE] == {"tool": "get_weather", "removeAfter": "3.0.0"}
        assert (await client.travel(from_="here", to="there")).way == "there to here"
        with pytest.raises(old.ToolFailed, match="Invalid arguments for get_weather:\n- units"):
            await client.get_forecast(city="Paris", units=7)


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return version


async def test_no_list_has_old_names(new: ModuleType, revision: str) -> None:
    [listed] = await exchange(new.build_server(Handlers()), revision, ("tools/list", {}))
    assert [each["name"] for each in listed["tools"]] == ["get_weather", "plan", "rare", "long", "pay"]


async def test_a_result_names_the_tool_and_the_log_says_so_once(
    new: ModuleType, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answers = await exchange(
            new.build_server(Handlers()),
            revision,
            call("get_forecast", city="Rome"),
            call("get_forecast", city=3),
            call("get_weather", location="Rome"),
            call("travel", **{"from": "a", "to": "b"}),
        )
    assert [answer.get("_meta", {}).get(NOTE) for answer in answers] == [
        {"tool": "get_weather", "removeAfter": "3.0.0"},
        {"tool": "get_weather", "removeAfter": "3.0.0"},
        None,
        {"tool": "plan"},
    ]
    assert [answer.get("isError", False) for answer in answers] == [False, True, False, False]
    assert [record.getMessage() for record in caplog.records if "old name" in record.getMessage()] == [
        "a client called get_weather by its old name, get_forecast; the alias is removed after 3.0.0",
        "a client called plan by its old name, travel",
    ]


async def test_an_argument_that_comes_under_both_names_is_refused(new: ModuleType, revision: str) -> None:
    [both, only_new] = await exchange(
        new.build_server(Handlers()),
        revision,
        call("get_forecast", city="Rome", location="Paris"),
        call("get_forecast", location="Paris"),
    )
    assert both["isError"]
    [block] = both["content"]
    assert block["text"] == (
        "Invalid arguments for get_weather:\n- `city` and `location` are the same argument; send only one"
    )
    assert only_new["structuredContent"] == {"degrees": 5}


async def test_what_is_not_there_is_not_there_by_an_old_name(new: ModuleType, revision: str) -> None:
    """The response does not reveal the new name, either."""
    server = new.build_server(Handlers(), toolset="routes")
    unknown, there = await exchange(server, revision, call("get_forecast", city="Rome"), call("travel", to="x"))
    assert unknown["error"]["message"] == "Unknown tool: get_forecast"
    assert there["structuredContent"] == {"way": "x to None"}
    server = new.build_server(Handlers())
    await server.tools.disable("plan")
    [off] = await exchange(server, revision, call("travel", to="x"))
    assert off["error"]["message"] == "Unknown tool: travel"


async def test_limits_and_confirmations_hold(new: ModuleType, revision: str) -> None:
    large, *rare, unconfirmed = await exchange(
        new.build_server(Handlers()),
        revision,
        call("get_forecast", city="x" * 2000),
        call("seldom"),
        call("rare"),
        call("seldom"),
        call("buy"),
    )
    assert "are too large" in large["content"][0]["text"]
    assert [answer.get("isError", False) for answer in rare] == [False, False, True]
    assert "isError" in unconfirmed or "error" in unconfirmed


async def test_the_record_names_what_was_called(new: ModuleType, revision: str) -> None:
    records: list[Any] = []
    server = new.build_server(Handlers(), audit=records.append)
    await exchange(server, revision, call("get_forecast", city="Rome", units="F"), call("plan", to="x"), call("gone"))
    server.core.recorder.flush()
    assert [(record.tool, record.alias_of, record.outcome) for record in records] == [
        ("get_forecast", "get_weather", "completed"),
        ("plan", None, "completed"),
        ("gone", None, "denied"),
    ]
    assert (records[0].keys, records[0].arguments) == (
        ("city", "units"),
        {"location": "Rome", "units": "[redacted]"},
    )


async def test_a_task_is_started_by_an_alias(new: ModuleType) -> None:
    records: list[Any] = []
    server = new.build_server(Handlers(), audit=records.append)
    async with in_memory(server, "2025-11-25", {}) as wire:
        created = await wire("tools/call", name="endless", arguments={"y": 4}, task={})
        assert created["task"]["status"] == "working"
        assert created["_meta"][NOTE] == {"tool": "long"}
        await wire.until(created["task"]["taskId"], "completed")
        refused = await wire("tools/call", name="endless", arguments={"y": 4})
        assert "error" in refused, "it must run as a task"
    server.core.recorder.flush()
    assert {(record.tool, record.alias_of) for record in records} == {("endless", "long")}
    assert len({record.id for record in records}) < len(records) == 3, "the task's call and its run have one ID"


async def post(app: Any, name: str, body_name: str, arguments: Mapping[str, Any], **more: str) -> httpx2.Response:
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
        **more,
    }
    params = {"name": body_name, "arguments": arguments, "_meta": ENVELOPE}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client,
    ):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return await client.post("/mcp", json=message, headers=headers)


@pytest.mark.parametrize(
    ("header", "body", "place", "status"),
    [
        ("get_forecast", "get_forecast", "Rome", 200),
        ("get_weather", "get_forecast", "Rome", 400),
        ("get_forecast", "get_weather", "Rome", 400),
        ("get_forecast", "get_forecast", "Paris", 400),
        ("get_forecast", "get_forecast", None, 200),
    ],
)
async def test_headers_say_what_the_body_says(
    new: ModuleType, header: str, body: str, place: str | None, status: int
) -> None:
    """A client that has only the list cannot detect which arguments of an old name are mirrored."""
    app = new.asgi_app(Handlers(), allowed_hosts=["here"])
    mirrored = {} if place is None else {"Mcp-Param-Place": place}
    answer = await post(app, header, body, {"city": "Rome"}, **mirrored)
    assert answer.status_code == status, answer.text


class Verifier:
    """Takes a list of scopes as a token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        claims = {"iss": "https://auth.example.com"}
        return AccessToken(token="", client_id="c", scopes=json.loads(token), subject="alice", claims=claims)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("vault")
    generate(folder, VAULT)
    with imported(folder, "vault_mcp") as package:
        yield package


@pytest.mark.parametrize("name", ["once_open", "guarded"])
async def test_scopes_are_those_of_the_tool(vault: ModuleType, name: str, revision: str) -> None:
    app = vault.asgi_app(Handlers(), allowed_hosts=["here"], token_verifier=Verifier())
    challenged = await post(app, name, name, {}, Authorization="Bearer []")
    assert challenged.status_code == 403
    assert 'scope="guard"' in challenged.headers["www-authenticate"]
    app = vault.asgi_app(Handlers(), allowed_hosts=["here"], token_verifier=Verifier())
    assert "as guarded" in (await post(app, name, name, {}, Authorization='Bearer ["guard"]')).text
    [refused] = await exchange(vault.build_server(Handlers()), revision, call(name))
    assert refused["error"]["message"] == f"Unknown tool: {name}"


async def test_the_page_is_true(tmp_path: Path, revision: str) -> None:
    page = (ROOT / "docs" / "diff.md").read_text("utf-8")
    [example] = re.findall(r"^## Renaming a tool$.*?^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    generate(tmp_path, {**yaml.safe_load(example), "python": {"package": "page_mcp"}})

    class Weather:
        async def get_forecast(self, args: Any, ctx: Any) -> str:
            return f"sunny in {args.location}"

    with imported(tmp_path, "page_mcp") as package:
        [answer] = await exchange(package.build_server(Weather()), revision, call("get_forecast", city="Rome"))
    assert answer["content"][0]["text"] == "sunny in Rome"
    assert f'"{NOTE}": {json.dumps(answer["_meta"][NOTE])}' in page
