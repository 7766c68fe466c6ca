"""Generated clients under the official conformance suite, one test for each of its scenarios that concerns bindings.

Each manifest is small, and compiled into a temporary folder for the client alone. The suite needs Node.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import amounts
import conformance
import forked
from packages import generate, manifest, tool

PROGRAM: Final = Path(__file__).with_name("conformance_client.py")


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

BOTH_ERAS: Final = ("tools_call", "json-schema-2020-12-preservation")
"""Scenarios that the suite plays with a handshake unless it is told the newest revision; the rest have one era each."""


def _played(suite: Sequence[str], folder: Path, scenario: str, *options: str) -> list[Mapping[str, Any]]:
    """Compile the scenario's tools, let the suite run the client, and give what it checked."""
    features = {"features": ["elicitation", "sampling"]}
    more = {"emit": ["client"], "python": features, "prompts": [{"name": "any"}]}  # so that clients read and prompt
    generate(folder, manifest(TOOLS[scenario], name="scenario", **more))
    results = folder / "results"
    done = subprocess.run(
        [
            *(*suite, "client", "--command", " ".join([*forked.interpreter(), str(PROGRAM)]), "--scenario", scenario),
            *("--output-dir", str(results), *options),
        ],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = results.glob("*/checks.json")
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
    checks = _played(suite, tmp_path, scenario, *options)
    assert [check for check in checks if check["status"] not in conformance.FINE] == []
    assert [check for check in checks if check["status"] == "SUCCESS"] != []
