"""A server provides all features of its manifest, or does not start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from packages import generate, imported, manifest, tool
from stubwright_runtime.server.app.required_features import EXTENSION, MANIFEST, POLICY, UnsupportedManifestError

SERVED: Mapping[str, tuple[Any, str]] = {
    "concurrency": (2, "tests/runtime/policy/test_policy_limits.py::test_a_thread_keeps_its_place_until_it_ends"),
    "confirm": (True, "tests/runtime/server/test_input_requests.py::test_the_server_asks_before_it_runs_a_tool"),
    "maxResultBytes": ("1KiB", "tests/runtime/policy/test_policy_limits.py::test_sizes_are_those_of_the_json_in_bytes"),
    "once": (
        {"key": "all"},
        "tests/runtime/policy/test_once.py::test_a_repeated_call_has_one_effect_and_the_first_result",
    ),
    "rateLimit": ("2/minute", "tests/runtime/policy/test_policy_limits.py::test_each_principal_has_its_own_window"),
    "redact": (["/a"], "tests/servers/test_secrets.py::test_no_secret_is_logged"),
    "scopes": (["read"], "tests/runtime/policy/test_policy_scopes.py::test_the_matrix"),
    "timeout": ("1s", "tests/runtime/policy/test_policy_limits.py::test_an_async_handler_is_stopped_in_time"),
}
"""For each part of a policy something that needs to be kept, and a test that it is."""


ALWAYS_KEPT = {
    "maxArgumentBytes": "tests/runtime/policy/test_policy_limits.py::test_sizes_are_those_of_the_json_in_bytes",
    "sanitize": "tests/runtime/server/test_server_sanitizing.py::test_results_are_cleaned_as_the_policy_has_it",
}
"""What each package can do, whatever its manifest says."""

NOT_FOR_SERVERS = {"onStateLoss", "trusted"}
"""`onStateLoss` configures other features during a loss; `trusted` is for clients."""


def _schema() -> Any:
    return json.loads((files("stubwright") / "compile" / "manifest.schema.json").read_text("utf-8"))


def test_each_part_of_a_policy_has_a_test_of_its_serving() -> None:
    """Whoever adds a part to the manifest's schema says here how it is known to be kept."""
    definitions = _schema()["$defs"]
    policies = {name: one for name, one in definitions.items() if name.lower().endswith("policy")}
    assert policies.keys() >= {"policy", "defaultPolicy"}
    keys = {key for one in policies.values() for key in one["properties"]}
    assert keys - NOT_FOR_SERVERS - ALWAYS_KEPT.keys() == SERVED.keys()
    assert keys == POLICY
    for name in (*(each for _, each in SERVED.values()), *ALWAYS_KEPT.values()):
        path, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), name


def test_all_that_the_manifest_can_say_is_known() -> None:
    """Some parts of a manifest's file are only for the compiler."""
    schema = _schema()
    compiler = {
        "defaults",
        "diff",
        "emit",
        "include",
        "lint",
        "overlay",
        "protocol",
        "python",
        "schemas",
        "shorthand",
        "targets",
        "wire",
    }
    assert {*schema["properties"]} - compiler <= MANIFEST
    extensions = {*schema["$defs"]["toolOptions"]["properties"]}
    for kind in ("resource", "resourceTemplate", "prompt"):
        extensions |= {*schema["$defs"][kind]["properties"]["stubwright"]["properties"]}
    assert extensions - {"lint", "reasons"} <= EXTENSION


class Handlers:
    """Has all methods."""

    async def a0(self, args: Any, ctx: Any) -> str:
        raise AssertionError


UNKNOWN = {"x-ours": 1, "quarantine": True}


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("tools", "policy.quarantine"),
        ("policy", "policy.quarantine"),
        ("tool", "quarantine"),
        ("root", "quarantine"),
        ("budget", "budget.quarantine"),
    ],
)
def test_what_nobody_knows_is_not_left_open(place: str, words: str, tmp_path: Path) -> None:
    """Entries of a newer compiler, or manual edits."""
    generate(tmp_path, manifest([tool("a0")], name="kept"))
    path = tmp_path / "kept_mcp" / "manifest.json"
    said = json.loads(path.read_text())
    if place == "root":
        said |= UNKNOWN
    elif place in ("policy", "budget"):
        said[place] = UNKNOWN
    else:
        said["tools"][0]["stubwright"] = UNKNOWN if place == "tool" else {"policy": UNKNOWN}
    path.write_text(json.dumps(said))
    with imported(tmp_path, "kept_mcp"):
        server = import_module("kept_mcp.server")
        for start in (server.build_server, server.asgi_app):
            with pytest.raises(
                UnsupportedManifestError,
                match=f"declares `{words}`, which this version of stubwright-runtime does not support",
            ):
                start(Handlers())
