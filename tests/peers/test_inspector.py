"""The MCP Inspector lists, calls and reads all features of the committed servers without errors."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import amounts
import conformance
import forked
import inspector
from inspector import Inspector

SERVERS = ["weather", "everything"]
ERAS = ["legacy", "modern"]  # with a handshake, and without

ARGUMENTS = '{"name": "Ada", "address": {"city": "London"}, "email": "ada@example.com"}'


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    """The Inspector, fetched once, however many processes the tests run in."""
    with (tmp_path_factory.getbasetemp().parent / "inspector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return inspector.fetch()
        except inspector.NotThereError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))


def declared(server: str, key: str) -> list[str]:
    """Return the names declared in a committed server's manifest."""
    manifest = json.loads((ROOT / "generated" / f"{server}_mcp" / "manifest.json").read_text("utf-8"))
    return names(manifest, key)


def names(listed: Any, key: str) -> list[str]:
    return [entry["name"] for entry in listed.get(key, [])]


def ask(inspect: Inspector, server: str, *arguments: str) -> Any:
    """Ask a server that the Inspector starts on stdio."""
    return inspect.ask([*forked.interpreter(), "-m", f"{server}_mcp"], conformance.paths(), *arguments)


@pytest.mark.long
@pytest.mark.parametrize(
    ("server", "era"), amounts.sample([(server, era) for server in reversed(SERVERS) for era in reversed(ERAS)], 1)
)
def test_the_schemas_of_all_tools_are_portable(inspect: Inspector, server: str, era: str) -> None:
    listed = ask(inspect, server, "--method", "tools/list", "--strict", "--protocol-era", era)
    assert names(listed, "tools") == declared(server, "tools")


@pytest.mark.long
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ],
)
def test_lists(inspect: Inspector, server: str, method: str, key: str) -> None:
    assert names(ask(inspect, server, "--method", method), key) == declared(server, key)


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
def test_a_call_with_a_structured_result(inspect: Inspector, era: str) -> None:
    call = ["--method", "tools/call", "--tool-name", "get_weather", "--tool-arg", "location=Oslo", "units=imperial"]
    result = ask(inspect, "weather", *call, "--protocol-era", era)
    assert result["structuredContent"] == {"temperature": 26.6, "conditions": "Snow", "humidity": 90}


@pytest.mark.long
def test_a_call_with_nested_arguments(inspect: Inspector) -> None:
    call = ["--method", "tools/call", "--tool-name", "json_schema_2020_12_tool", "--tool-args-json", ARGUMENTS]
    [block] = ask(inspect, "everything", *call)["content"]
    assert '"city":"London"' in block["text"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("uri", "part"),
    [
        ("test://static-text", {"text": "This is the content of the static text resource."}),
        ("test://template/7/data", {"mimeType": "application/json"}),
    ],
)
def test_reading(inspect: Inspector, uri: str, part: dict[str, str]) -> None:
    [contents] = ask(inspect, "everything", "--method", "resources/read", "--uri", uri)["contents"]
    assert contents.items() >= {"uri": uri, **part}.items()


@pytest.mark.long
def test_a_prompt_with_arguments(inspect: Inspector) -> None:
    get = ["--method", "prompts/get", "--prompt-name", "test_prompt_with_arguments"]
    [message] = ask(inspect, "everything", *get, "--prompt-args", "arg1=one", "arg2=two")["messages"]
    assert message["content"]["text"] == "Prompt with arguments: arg1='one', arg2='two'"


@pytest.mark.long
def test_over_http(inspect: Inspector, tmp_path: Path) -> None:
    call = ["--method", "tools/call", "--tool-name", "test_simple_text"]
    with conformance.serving("everything_mcp", conformance.paths(), tmp_path / "server.log") as url:
        tools, prompts, resource, result = (
            inspect.ask([url], [], *arguments)
            for arguments in (
                ["--method", "tools/list", "--strict"],
                ["--method", "prompts/list"],
                ["--method", "resources/read", "--uri", "test://static-binary"],
                [*call, "--protocol-era", "modern"],
            )
        )
    assert names(tools, "tools") == declared("everything", "tools")
    assert names(prompts, "prompts") == declared("everything", "prompts")
    assert resource["contents"][0]["blob"]
    assert result["content"][0]["text"] == "This is a simple text response for testing."
