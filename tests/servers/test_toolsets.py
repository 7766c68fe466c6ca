"""Toolsets: a subset of the tools, over each transport and in each revision, which no request can extend."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import mcp
import pytest
from mcp.types import TextContent

import amounts
import forked
from packages import check, generate, imported, manifest, tool
from serving import asgi, listening

pytestmark = pytest.mark.anyio

READING = {"annotations": {"readOnlyHint": True}}
MANIFEST = manifest(
    [
        tool("list_issues", **READING),
        tool("search_code", {"text": {"type": "string"}}, execution={"taskSupport": "optional"}, **READING),
        tool("search_and_replace", {"text": {"type": "string"}}, stubwright={"deprecated": {"reason": "Edit files."}}),
        tool("close_issue", stubwright={"policy": {"scopes": ["write"]}}),
    ],
    toolsets={
        "triage": {"title": "Triage", "tools": ["list_issues", "search_*"], "readOnly": True},
        "editing": {"tools": ["search_*", "close_issue"]},
    },
    resources=[{"name": "rules", "uri": "issues://rules", "description": "The rules."}],
    prompts=[
        {
            "name": "summarize",
            "description": "Summarize a topic.",
            "arguments": [{"name": "topic"}],
            "stubwright": {"complete": {"topic": ["bugs", "releases"]}},
        }
    ],
)
HANDLERS = """\
class Handlers:
    async def list_issues(self, args, ctx):
        return "listed"

    async def search_code(self, args, ctx):
        return "found"

    async def search_and_replace(self, args, ctx):
        return "replaced"

    async def close_issue(self, args, ctx):
        return "closed"

    async def read_rules(self, ctx):
        return "Be kind."

    async def prompt_summarize(self, args, ctx):
        return f"Summarize {args.topic}."
"""
TRIAGE = ["list_issues", "search_code"]
MODES = ["legacy", "2026-07-28"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("toolsets")
    generate(made, MANIFEST)
    (made / "handlers.py").write_text(HANDLERS)
    return made


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    made = tmp_path_factory.mktemp("toolsets")
    with imported(made, generate(made, MANIFEST)) as found:
        yield found


def handlers() -> Any:
    values: dict[str, Any] = {}
    exec(HANDLERS, values)
    return values["Handlers"]()


async def names(client: mcp.Client) -> list[str]:
    return [listed.name for listed in (await client.list_tools()).tools]


async def refused(client: mcp.Client, name: str) -> str:
    with pytest.raises(mcp.MCPError) as error:
        await client.call_tool(name, {})
    return str(error.value)


@pytest.mark.parametrize("parser", ["httptools", "h11"])
@pytest.mark.parametrize("mode", MODES)
async def test_each_has_an_endpoint(package: ModuleType, mode: str, parser: Any) -> None:
    with listening(package.asgi_app(handlers()), parser) as root:
        url = f"{root}/mcp"
        async with mcp.Client(f"{url}/triage", mode=mode) as client:
            assert await names(client) == TRIAGE
            (content,) = (await client.call_tool("search_code", {})).content
            assert isinstance(content, TextContent)
            assert content.text == "found"
            assert "Unknown tool: search_and_replace" in await refused(client, "search_and_replace")
        async with mcp.Client(url, mode=mode) as client:
            assert await names(client) == ["list_issues", "search_code", "search_and_replace"]


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
async def test_a_header_names_one_and_narrows_an_endpoint(package: ModuleType, mode: str) -> None:
    with listening(package.asgi_app(handlers()), "httptools") as root:
        url = f"{root}/mcp"
        for path, expected in (("", TRIAGE), ("/triage", TRIAGE), ("/editing", ["search_code"])):
            async with httpx2.AsyncClient(headers={"X-MCP-Toolset": "triage"}) as http:
                from mcp.client.streamable_http import streamable_http_client

                async with mcp.Client(streamable_http_client(f"{url}{path}", http_client=http), mode=mode) as client:
                    assert await names(client) == expected
                    assert "Unknown tool: close_issue" in await refused(client, "close_issue")
                    assert "Unknown tool: search_and_replace" in await refused(client, "search_and_replace")


async def test_an_unknown_one_is_refused(package: ModuleType) -> None:
    with asgi(package.asgi_app(handlers())) as root:
        url = f"{root}/mcp"
        async with httpx2.AsyncClient() as http:
            answer = await http.post(url, headers={"X-MCP-Toolset": "triag"}, json={})
            assert answer.status_code == 400
            assert answer.json() == {"error": "No toolset 'triag'; the toolsets are triage, editing"}
            assert (await http.post(f"{url}/triag", json={})).status_code == 404
    with pytest.raises(ValueError, match="no toolset 'triag'; the toolsets are triage, editing"):
        package.build_server(handlers(), toolset="triag")


@pytest.mark.parametrize("mode", amounts.sample(MODES, 1))
async def test_nothing_widens_what_a_server_was_started_with(package: ModuleType, mode: str) -> None:
    with asgi(package.asgi_app(handlers(), toolset="triage")) as root:
        url = f"{root}/mcp"
        for path in ("", "/triage"):
            async with mcp.Client(f"{url}{path}", mode=mode) as client:
                assert await names(client) == TRIAGE
        async with mcp.Client(f"{url}/editing", mode=mode) as client:
            assert await names(client) == ["search_code"]
            assert "Unknown tool: close_issue" in await refused(client, "close_issue")
    async with mcp.Client(
        package.build_server(handlers(), toolset="editing", local_scopes=["write"]), mode=mode
    ) as client:
        assert await names(client) == ["search_code", "search_and_replace", "close_issue"]
    async with mcp.Client(package.build_server(handlers(), toolset="editing"), mode=mode) as client:
        assert await names(client) == ["search_code", "search_and_replace"]
        assert "Unknown tool: close_issue" in await refused(client, "close_issue")


@pytest.mark.parametrize("mode", MODES)
async def test_over_standard_input(package: ModuleType, folder: Path, mode: str) -> None:
    async with reached(package, folder, "stdio", mode) as target, target as client:
        assert await names(client) == TRIAGE
        assert "Unknown tool: search_and_replace" in await refused(client, "search_and_replace")


async def test_an_unknown_one_does_not_start(folder: Path) -> None:
    command = ["-m", "sample_mcp", "--handlers", "handlers:Handlers", "--toolset", "triag"]
    done = forked.python(command, folder, [folder])
    assert done.returncode == 2
    assert "--toolset: no toolset 'triag'; the toolsets are triage, editing" in done.stderr


async def test_its_client_has_those_methods_alone(package: ModuleType, folder: Path) -> None:
    triage = package.SampleTriageClient
    assert hasattr(triage, "search_code")
    assert not hasattr(triage, "close_issue")
    with asgi(package.asgi_app(handlers())) as root:
        url = f"{root}/mcp"
        async with triage.connect(url) as client:
            assert (await client.search_code(text="x"))[0].text == "found"
            assert [listed.name for listed in (await client.raw.list_tools()).tools] == TRIAGE
            assert [each["name"] for each in client.tools_for("anthropic")] == TRIAGE
            with pytest.raises(ValueError, match="unknown function 'close_issue'"):
                await client.call_for("anthropic", "close_issue", {})
        async with package.SampleClient.connect(url, toolset="triage") as client:
            assert [listed.name for listed in (await client.raw.list_tools()).tools] == TRIAGE
        async with triage.connect(url, toolset="editing", drift="error") as client:
            assert await names(client.raw) == ["search_code"]
        async with package.SampleClient.connect(url, headers={"x-mcp-toolset": "editing"}, toolset="triage") as client:
            assert await names(client.raw) == ["search_code"]
        with pytest.raises(
            package.ConnectError, match="400 Bad Request: No toolset 'triag'; the toolsets are triage, "
        ):
            async with package.SampleClient.connect(url, toolset="triag"):
                pass
    command = [*forked.interpreter(), "-m", "sample_mcp", "--handlers", "handlers:Handlers"]
    async with triage.connect(command, cwd=folder, env={"PYTHONPATH": str(folder)}) as client:
        assert [listed.name for listed in (await client.raw.list_tools()).tools] == TRIAGE
    async with triage.connect(command, toolset="editing", cwd=folder, env={"PYTHONPATH": str(folder)}) as client:
        assert await names(client.raw) == ["search_code"]
    async with triage.connect(package.build_server(handlers())) as client:
        assert (await client.list_issues())[0].text == "listed"
    with pytest.raises(ValueError, match="toolset requires a URL or a command"):
        package.SampleClient.connect(package.build_server(handlers()), toolset="triage")


@pytest.mark.parametrize(
    ("revision", "transport"), amounts.sample(product(["2025-06-18", "2025-11-25", "2026-07-28"], ["stdio", "http"]), 3)
)
async def test_its_client_has_what_the_whole_one_has(
    package: ModuleType, folder: Path, transport: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", revision)
    mode = "legacy" if revision < "2026" else revision
    async with (
        reached(package, folder, transport, mode) as target,
        package.SampleTriageClient.connect(target) as client,
    ):
        assert client.raw.protocol_version == revision
        response = await client.with_raw_response.search_code(text="x")
        assert (response.text, response.is_error) == ("found", False)
        for view in (client, client.with_raw_response, client.tasks):
            assert not hasattr(view, "search_and_replace")
        if revision == "2025-06-18":
            with pytest.raises(package.TasksUnsupported):
                await client.tasks.search_code(text="x")
        else:
            task = await client.tasks.search_code(text="x")
            assert (await client.tasks.search_code.resume(task.id)).text == "found"
        (rules,) = await client.read_rules()
        assert rules.text == "Be kind."
        (message,) = await client.prompt_summarize(topic="bugs")
        assert message.content.text == "Summarize bugs."
        assert (await client.complete_prompt_summarize("topic", "r")).values == ["releases"]
        assert [each.name for each in await package.list_tools(client)] == TRIAGE


async def test_its_client_marks_what_is_deprecated(package: ModuleType) -> None:
    async with package.SampleEditingClient.connect(package.build_server(handlers())) as client:
        with pytest.warns(DeprecationWarning, match="Edit files"):
            assert (await client.search_and_replace())[0].text == "replaced"
        with pytest.warns(DeprecationWarning, match="Edit files"):
            assert (await client.with_raw_response.search_and_replace()).text == "replaced"


@asynccontextmanager
async def reached(package: ModuleType, folder: Path, transport: str, mode: str) -> AsyncIterator[mcp.Client]:
    """A client of the SDK, in a mode, for the toolset `triage` of a server."""
    if transport == "http":
        with listening(package.asgi_app(handlers()), "httptools") as root:
            yield mcp.Client(f"{root}/mcp/triage", mode=mode)
        return
    command = [*forked.interpreter(), "-m", "sample_mcp", "--handlers", "handlers:Handlers", "--toolset", "triage"]
    parameters = mcp.StdioServerParameters(
        command=command[0], args=command[1:], cwd=str(folder), env={"PYTHONPATH": "."}
    )
    from mcp.client.stdio import stdio_client

    yield mcp.Client(stdio_client(parameters), mode=mode)


@pytest.mark.parametrize("drift", amounts.sample(["warn", "error"], 1))
async def test_its_client_misses_no_tool_outside_it(package: ModuleType, folder: Path, drift: str) -> None:
    triage = package.SampleTriageClient
    command = [*forked.interpreter(), "-m", "sample_mcp", "--handlers", "handlers:Handlers"]
    own = {"cwd": folder, "env": {"PYTHONPATH": str(folder)}}
    with asgi(package.asgi_app(handlers())) as root, warnings.catch_warnings():
        warnings.simplefilter("error")
        for connected in (
            triage.connect(f"{root}/mcp", drift=drift),
            triage.connect(f"{root}/mcp/triage", drift=drift),
            package.SampleClient.connect(f"{root}/mcp", toolset="triage", drift=drift),
            triage.connect(command, drift=drift, **own),
            triage.connect(package.build_server(handlers()), drift=drift),
            triage.connect(package.build_server(handlers(), toolset="triage"), drift=drift),
        ):
            async with connected as client:
                assert (await client.list_issues())[0].text == "listed"


async def test_its_client_misses_its_own_tools(package: ModuleType) -> None:
    narrower = package.build_server(handlers(), toolset="editing")
    with pytest.raises(package.DriftError) as caught:
        async with package.SampleTriageClient.connect(narrower, drift="error"):
            pass
    assert caught.value.changes == ('"list_issues" is no longer listed',)


async def test_equal_callers_get_equal_bytes(package: ModuleType) -> None:
    with listening(package.asgi_app(handlers()), "httptools") as root:
        url = f"{root}/mcp"
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": _ENVELOPE}}
        headers = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28"}
        async with httpx2.AsyncClient(headers={**headers, "Mcp-Method": "tools/list"}) as http:
            answers = {(await http.post(f"{url}/triage", json=body)).content for _ in range(5)}
            answers.add((await http.post(url, json=body, headers={"X-MCP-Toolset": "triage"})).content)
    (answer,) = answers
    assert [listed["name"] for listed in json.loads(answer)["result"]["tools"]] == TRIAGE


_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def test_what_is_wrong_with_toolsets_is_said(tmp_path: Path) -> None:
    value = {**MANIFEST, "toolsets": {"a": {"tools": ["list_issue", "x*", "close_issue"], "readOnly": True}}}
    assert [(each.code, each.message, each.help) for each in check(tmp_path, value) if each.code < "SW300"] == [
        ("SW285", "no tool matches `list_issue` in the toolset `a`", "did you mean `list_issues`?"),
        ("SW285", "no tool matches `x*` in the toolset `a`", None),
        (
            "SW286",
            "`close_issue` is in the read-only toolset `a`, but is not marked read-only",
            "remove it, or set `annotations: {readOnlyHint: true}` if it has no side effects",
        ),
    ]
