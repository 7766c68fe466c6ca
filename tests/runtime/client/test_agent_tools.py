"""Tools for agents without a framework: results for a model, approvals, and missing frameworks."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from packages import generate, imported, manifest, tool
from stubwright_runtime import ResultTooLarge, ToolError, as_tools, embedded, image, link, text
from stubwright_runtime.client.agents.calls import AgentTool, CallFailedError, Media, list_agent_tools
from stubwright_runtime.extras import MissingExtraError
from stubwright_runtime.projection.forms import FORMS

pytestmark = pytest.mark.anyio

READS = {"annotations": {"readOnlyHint": True}}
MANIFEST = manifest(
    [
        tool("show", **READS),
        tool("count", {"a b": {"type": "integer"}}, outputSchema={"type": "object"}, **READS),
        tool("fail", **READS),
        tool("wipe", stubwright={"policy": {"confirm": True}}),
        tool("add", annotations={"destructiveHint": False, "readOnlyHint": False}),
    ],
    toolsets={"reading": {"tools": ["show", "count"]}},
)


class Handlers:
    async def show(self, _args: Any, _ctx: Any) -> Any:
        return [
            text("a"),
            image("aGk=", "image/png"),
            link("notes://1", "n", description="the note"),
            embedded(uri="notes://2", text="inside"),
            embedded(uri="notes://3.bin", blob=b"hi"),
        ]

    async def count(self, args: Any, _ctx: Any) -> Any:
        return {"é": args.model_dump(mode="json", by_alias=True, exclude_unset=True)}

    async def fail(self, _args: Any, _ctx: Any) -> str:
        raise ToolError("no\x1b[31m way")

    async def wipe(self, _args: Any, _ctx: Any) -> str:
        return "gone"

    async def add(self, _args: Any, _ctx: Any) -> str:
        return "x" * 100_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("agents")
    with imported(folder, generate(folder, MANIFEST)) as made:
        yield made


def tools_of(client: Any) -> dict[str, AgentTool]:
    return {each.function.name: each for each in list_agent_tools(client, FORMS["openai"])}


async def test_content_is_read_as_texts_and_media(package: ModuleType) -> None:
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        result = await tools_of(sample)["show"].call("")
    assert result.parts == [
        "a",
        Media("aGk=", "image/png"),
        "n: notes://1 (the note)",
        "inside",
        Media("aGk=", "application/octet-stream", "3.bin"),
    ]
    assert (result.text, result.is_structured) == (None, False)
    media = result.parts[1]
    assert isinstance(media, Media)
    assert (media.kind, media.decoded, media.url) == ("image", b"hi", "data:image/png;base64,aGk=")


async def test_results_of_a_schema_are_json(package: ModuleType) -> None:
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        count = tools_of(sample)["count"]
        assert [*count.schema["properties"]] == ["a_b"]
        result = await count.call('{"a_b": 1}')
    assert (result.text, result.value) == ('{"é": {"a b": 1}}', {"é": {"a b": 1}})
    assert result.is_structured


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("fail", {}, "no"),
        ("wipe", {}, "wipe requires the user's confirmation, but this client does not support elicitation"),
        ("count", {"a_b": "x"}, "expected an integer, got the string"),
        ("count", "{", "the arguments of count are not JSON"),
        ("count", "[]", "the arguments of count must be an object"),
        ("count", {"a_b": 10**5000}, "a b: an integer with more than 4300 digits cannot be sent"),
    ],
)
async def test_a_model_learns_why_a_call_failed(package: ModuleType, name: str, arguments: Any, said: str) -> None:
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        with pytest.raises(CallFailedError) as error:
            await tools_of(sample)[name].call(arguments)
    assert said in str(error.value)
    assert "\x1b" not in str(error.value)


async def test_a_result_that_is_too_large_ends_the_run(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    async with package.SampleClient.connect(server, max_result_bytes=1000) as sample:
        with pytest.raises(ResultTooLarge):
            await tools_of(sample)["add"].call({})


async def test_dangerous_tools_need_approval_unless_the_client_asks(package: ModuleType) -> None:
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        assert [name for name, each in tools_of(sample).items() if each.needs_approval] == ["wipe"]
        asking = sample.with_options(confirm=lambda _name, _arguments: False)
        assert not any(each.needs_approval for each in tools_of(asking).values())
        with pytest.raises(CallFailedError, match="the call to 'wipe' was not confirmed"):
            await tools_of(asking)["wipe"].call({})


async def test_the_client_of_a_toolset_gives_its_tools(package: ModuleType) -> None:
    async with package.SampleReadingClient.connect(package.build_server(Handlers())) as sample:
        assert [*tools_of(sample)] == ["show", "count"]


@pytest.mark.parametrize(
    ("framework", "module", "requirement"),
    [
        ("pydantic-ai", "pydantic_ai", "pydantic-ai-slim>=2.20"),
        ("langchain", "langchain_core", "langchain-core>=1.8"),
        ("openai-agents", "agents", "openai-agents>=0.24"),
    ],
)
async def test_a_missing_framework_is_named(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch, framework: Any, module: str, requirement: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        with pytest.raises(MissingExtraError) as error:
            as_tools(sample, framework)
    assert str(error.value) == f"as_tools(client, '{framework}') requires another package; install '{requirement}'"


async def test_an_unknown_framework_is_named(package: ModuleType) -> None:
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        with pytest.raises(ValueError, match="unknown framework 'crewai'; supported frameworks: pydantic-ai, langch"):
            as_tools(sample, "crewai")  # type: ignore[arg-type]
