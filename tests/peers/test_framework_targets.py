"""The targets of two frameworks, compared with the frameworks' own schemas, each in a separate environment."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from conftest import ROOT

from stubwright import targets

pytestmark = pytest.mark.long

PACKAGES = {"langchain": "langchain-mcp-adapters", "autogen": "autogen-ext"}
"""The environments, by the names of targets."""

PROGRAMS = ROOT / "bench" / "client_programs"
_NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}


def _arguments(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SCHEMAS: Mapping[str, tuple[dict[str, Any], str]] = {
    "bounds": (_arguments(a={"type": "string", "pattern": "^a"}), '"pattern": "^a"'),
    "types": (_arguments(a={"type": ["string", "null"]}), '"null"'),
    "tree": ({**_arguments(node={"$ref": "#/$defs/Node"}), "$defs": {"Node": _NODE}}, "#/$defs/Node"),
    "constant": (_arguments(a={"type": "string", "const": "x"}), '"const"'),
    "untyped": (_arguments(a={"const": "x"}), '"const"'),
    "hidden": (_arguments(_a={"type": "string"}), '"_a"'),
    "either": ({"type": "object", "oneOf": [_arguments(a={"type": "string"})]}, '"oneOf"'),
}
"""The schemas of tools, each with a part that a model must see."""

Read: TypeAlias = "Callable[[Sequence[str]], dict[str, str] | None]"
"""Returns the schemas of the tools of these names as text, or `None` if the framework fails."""


@pytest.fixture(scope="module", params=PACKAGES)
def framework(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Read]:
    """A target, and a function that lists tools in its framework."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        peers = importlib.import_module("peers")
    try:
        python: Path = peers.framework(PACKAGES[request.param])
    except peers.NotThereError as error:
        pytest.skip(f"{request.param} is not installed: {error}")
    file = tmp_path_factory.mktemp("canned") / "tools.json"

    def read(names: Sequence[str]) -> dict[str, str] | None:
        file.write_text(json.dumps({"tools": [_define(name) for name in names]}))
        command = [sys.executable, str(PROGRAMS / "canned.py"), str(file)]
        program = [str(python), str(PROGRAMS / "framework_tools.py"), request.param, json.dumps(command)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
        return None if done.returncode else {name: json.dumps(schema) for name, _, schema in json.loads(done.stdout)}

    return request.param, read


def _define(name: str) -> dict[str, Any]:
    return {"name": name, "description": "A tool.", "inputSchema": SCHEMAS[name][0]}


def test_a_target_says_what_its_framework_refuses_and_loses(framework: tuple[str, Read]) -> None:
    target, read = framework
    findings = list(targets.find_violations(targets.make_list(map(_define, SCHEMAS), "s"), targets.TARGETS[target]))
    refused = {finding.tool for finding in findings if not finding.rule.is_lossy}
    lossy = {finding.tool for finding in findings if finding.rule.is_lossy} - refused

    listed = read([name for name in SCHEMAS if name not in refused])
    assert listed is not None
    assert [*listed] == [name for name in SCHEMAS if name not in refused]
    assert {name for name, schema in listed.items() if SCHEMAS[name][1] not in schema} == lossy
    assert {name for name in SCHEMAS if read([name]) is None} == refused
