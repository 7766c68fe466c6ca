"""Generated clients under the official conformance suite, one test for each scenario that concerns bindings.

Each manifest is small, and compiled into a temporary folder only for the client. The suite needs Node. Clients in
TypeScript also play one scenario with authentication, with a provider of the SDK.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import amounts
import conformance
import forked
import npm
from packages import generate, manifest, tool

HERE: Final = Path(__file__).parent


def _header(name: str, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


def _needs(definition: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {**definition, "inputSchema": {**definition["inputSchema"], "required": [*required]}}


_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}
_MIRRORED = {
    "region": _header("Region"),
    "priority": _header("Priority", "integer"),
    "verbose": _header("Verbose", "boolean"),
    "query": _TEXT,
}

TOOLS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "tools_call": [_needs(tool("add_numbers", {"a": _NUMBER, "b": _NUMBER}), "a", "b")],
    "request-metadata": [tool("ping")],
    "http-standard-headers": [tool("test_headers"), tool("my-hyphenated-tool")],
    "http-custom-headers": [
        _needs(
            tool(
                "test_custom_headers",
                {
                    **_MIRRORED,
                    "debug": _header("Debug", "boolean"),
                    "empty_val": _header("EmptyVal"),
                    "method_val": _header("Method"),
                    "float_val": _NUMBER,
                    "non_ascii_val": _header("NonAscii"),
                    "whitespace_val": _header("Whitespace"),
                    "leading_space_val": _header("LeadingSpace"),
                    "trailing_space_val": _header("TrailingSpace"),
                    "internal_space_val": _header("InternalSpace"),
                    "control_char_val": _header("ControlChar"),
                    "crlf_val": _header("CrLf"),
                    "tab_val": _header("Tab"),
                },
            ),
            "region",
            "priority",
            "query",
        ),
        _needs(tool("test_custom_headers_null", _MIRRORED), "region", "priority", "query"),
    ],
    "http-invalid-tool-headers": [_needs(tool("valid_tool", {"region": _header("Region")}), "region")],
    "json-schema-ref-no-deref": [_needs(tool("lookup_user", {"id": _TEXT}), "id")],
    "json-schema-2020-12-preservation": [_needs(tool("json_schema_echo", {"schema": {"type": "object"}}), "schema")],
    "sep-2322-client-request-state": [
        tool(f"test_mrtr_{name}") for name in ("echo_state", "no_state", "unrelated", "no_result_type")
    ],
    "elicitation-sep1034-client-defaults": [tool("test_client_elicitation_defaults")],
    "sse-retry": [tool("test_reconnection")],
    "sep-2640-client-no-prefetch": [tool("ping")],
    **{f"sep-2640-client-verify-{what}": [tool("ping")] for what in ("digest", "size", "frontmatter")},
}

IN_TYPESCRIPT: Final = {
    **{scenario: tools for scenario, tools in TOOLS.items() if "sep-2640" not in scenario},  # skills
    "initialize": [tool("add_numbers")],
    "auth/client-credentials-basic": [tool("test-tool")],
}
"""The scenarios of clients in TypeScript, which have no methods for skills."""

BOTH_ERAS: Final = ("tools_call", "json-schema-2020-12-preservation")
"""Scenarios that the suite plays with a handshake unless it is told the newest revision; the rest have one era each."""


def _played(
    suite: Sequence[str], folder: Path, scenario: str, command: Sequence[object], *options: str
) -> list[Mapping[str, Any]]:
    """Run the client in the suite, and return the checks."""
    results = folder / "results"
    done = subprocess.run(
        [
            *(*suite, "client", "--command", " ".join(map(str, command)), "--scenario", scenario),
            *("--output-dir", str(results), *options),
        ],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = results.glob("**/checks.json")
    checks: list[Mapping[str, Any]] = json.loads(report.read_text())
    return checks


@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        *(amounts.mark_long((scenario, ())) for scenario in TOOLS),
        *(
            case if case[0] == "tools_call" else amounts.mark_long(case)
            for case in ((scenario, ("--spec-version", "2026-07-28")) for scenario in BOTH_ERAS)
        ),
    ],
)
def test_scenario(scenario: str, options: tuple[str, ...], suite: list[str], tmp_path: Path) -> None:
    features = {"features": ["elicitation", "sampling"]}
    more = {"emit": ["client"], "python": features, "prompts": [{"name": "any"}]}  # so that clients read and prompt
    generate(tmp_path, manifest(TOOLS[scenario], name="scenario", **more))
    command = [*forked.interpreter(), HERE / "conformance_client.py"]
    _judge(_played(suite, tmp_path, scenario, command, *options))


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The npm packages of clients in TypeScript."""
    folder = tmp_path_factory.mktemp("sdk")
    shutil.copy(HERE / "typescript" / "package.json", folder)
    npm.install(folder)
    return folder / "node_modules"


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        *((scenario, ()) for scenario in IN_TYPESCRIPT),
        *((scenario, ("--spec-version", "2026-07-28")) for scenario in BOTH_ERAS),
    ],
)
def test_scenario_in_typescript(
    scenario: str, options: tuple[str, ...], suite: list[str], sdk: Path, tmp_path: Path
) -> None:
    generate(tmp_path, manifest(IN_TYPESCRIPT[scenario], name="scenario", emit=["typescript"]))
    program = shutil.copy(HERE / "conformance_client.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(sdk)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    _judge(_played(suite, tmp_path, scenario, [suite[0], program], *options))


def _judge(checks: Sequence[Mapping[str, Any]]) -> None:
    assert [check for check in checks if check["status"] not in conformance.FINE] == []
    assert [check for check in checks if check["status"] == "SUCCESS"] != []
