"""`as_tools` in the frameworks themselves, each in a separate environment."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from frameworks.desk import INPUT, MANIFEST, PNG
from packages import generate

pytestmark = pytest.mark.long

SCRIPTS = {"pydantic-ai": "on_pydantic_ai", "langchain": "on_langchain", "openai-agents": "on_openai_agents"}
"""The agents, by the names of their frameworks."""


@pytest.fixture(scope="module", params=SCRIPTS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an agent's script says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        peers = importlib.import_module("peers")
    try:
        python: Path = peers.framework(request.param)
    except peers.NotThereError as error:
        pytest.skip(f"{request.param} is not installed: {error}")
    folder = tmp_path_factory.mktemp("frameworks")
    generate(folder, MANIFEST)
    script = ROOT / "tests" / "peers" / "frameworks" / f"{SCRIPTS[request.param]}.py"
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT / 'tests' / 'peers'}"}
    done = subprocess.run(
        [str(python), str(script)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_model_gets_the_schema_as_on_the_wire(report: dict[str, Any]) -> None:
    tools = report["tools"]
    assert [*tools] == ["get_ticket", "find_ticket", "draw", "upload", "configure", "delete"]
    schema, description, _ = tools["get_ticket"]
    assert (schema, description) == (INPUT, "Get it.")
    assert tools["upload"][0]["properties"] == {"data": {"type": "string", "contentEncoding": "base64"}}


def test_a_model_reads_results_as_json_and_content(report: dict[str, Any]) -> None:
    calls = report["calls"]
    assert json.loads(calls["structured"]["text"]) == {"id": "T-1", "title": "Café", "tags": ["a", None]}
    assert calls["image"] == {"text": "a drawing", "is_error": False, "media": [["image/png", PNG]]}
    assert calls["base64"]["text"] == "7 bytes: b'seven..'"
    assert json.loads(calls["config"]["text"]) == {"config": "c", "self": "s"}


def test_a_run_goes_on_after_a_tool_that_fails(report: dict[str, Any]) -> None:
    calls = report["calls"]
    assert calls["failed"]["text"].removeprefix("Error: ") == "no ticket is called Lunch; look for another"
    assert "limit: expected at least 1, got 0" in calls["refused by the contract"]["text"]
    assert [label for label, call in calls.items() if call["is_error"]] == ["refused by the contract", "failed"]
    assert report["said"] == "done"


def test_the_framework_asks_before_dangerous_calls(report: dict[str, Any]) -> None:
    assert [name for name, (_, _, asks) in report["tools"].items() if asks] == ["delete"]
    assert report["denied"][1] == []
    assert report["approved"] == ["T-1 is deleted", ["T-1"]]


def test_a_client_s_own_confirm_is_asked_instead(report: dict[str, Any]) -> None:
    assert report["confirm"]["is_error"]
    assert report["confirm"]["text"].removeprefix("Error: ") == "the call to 'delete' was not confirmed"
