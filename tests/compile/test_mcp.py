"""MCP's vocabulary and revisions are defined once, and match the SDK and the manifest's schema."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS

from stubwright import package_data
from stubwright_runtime.client.core.confirmation import is_dangerous
from stubwright_runtime.mcp import revisions, vocabulary
from stubwright_runtime.server.protocol import client_subscriptions


def test_the_revisions_are_those_of_the_sdk() -> None:
    assert list(revisions.REVISIONS) == list(SUPPORTED_PROTOCOL_VERSIONS)


def test_the_manifests_schema_has_the_same_facts() -> None:
    schema = json.loads(package_data.MANIFEST_SCHEMA.read_bytes())
    properties = schema["properties"]
    assert properties["protocol"]["properties"]["min"]["enum"] == list(revisions.REVISIONS)
    for section in vocabulary.SECTIONS:
        assert section.name in properties
        entry = schema["$defs"][{vocabulary.TEMPLATES: "resourceTemplate"}.get(section, section.noun)]
        assert section.key in entry["required"]
        assert entry["title"] == f"a {section.noun}"


def test_a_list_has_the_capability_that_changes_are_told_by() -> None:
    assert {section.capability for section in vocabulary.SECTIONS} == set(get_args(client_subscriptions.Kind))


FEATURES = {
    "2024-11-05": {"handshake"},
    "2025-03-26": {"handshake", "annotations", "audio", "batches"},
    "2025-06-18": {"handshake", "annotations", "audio", "elicitation", "resource_links"},
    "2025-11-25": {
        *("handshake", "annotations", "audio", "resource_links"),
        *("choices", "elicitation", "handshake_tasks", "resumable_streams", "unnamed_errors", "url_elicitation"),
    },
    "2026-07-28": {
        *("annotations", "audio", "elicitation", "resource_links", "choices", "url_elicitation"),
        *("any_output", "cache_hints", "parameter_headers", "stateless", "task_extension", "unnamed_errors"),
    },
}


def test_each_revision_has_its_features() -> None:
    assert {date: set(revisions.Revision.from_date(date).features) for date in revisions.REVISIONS} == FEATURES
    assert {feature for date in FEATURES for feature in FEATURES[date]} == set(get_args(revisions.Feature))


@pytest.mark.parametrize(
    ("date", "known"),
    [("2023-01-01", "2024-11-05"), ("", "2024-11-05"), ("2025-07-01", "2025-06-18"), ("2030-01-01", "2026-07-28")],
)
def test_a_date_without_a_revision_is_the_one_before(date: str, known: str) -> None:
    assert revisions.Revision.from_date(date).date == known


def test_no_other_module_compares_dates() -> None:
    """Dates of revisions are literals only in the table."""
    modules = [path for root in (package_data.ROOT, package_data.RUNTIME) for path in root.rglob("*.py")]
    texts = [
        (path.name, node.value)
        for path in modules
        if any(date in (text := path.read_text("utf-8")) for date in revisions.REVISIONS)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in revisions.REVISIONS
    ]
    assert {name for name, _ in texts} == {"revisions.py"}


def test_a_revision_of_tomorrow_is_a_row_of_the_table() -> None:
    """In a separate process: a revision that restores a feature, removes another, and adds a field."""
    program = """
from stubwright_runtime.mcp import revisions as r
future = ("2027-01-01", frozenset({"handshake_tasks"}), frozenset({"stateless"}), {"tools": frozenset({"price"})})
r._CHANGES = (*r._CHANGES, future)
r._TABLE = r._table()
new, old = r.Revision.from_date("2027-01-01"), r.Revision.from_date("2026-07-28")
assert new.date == "2027-01-01" and new.has("handshake_tasks") and not new.has("stateless") and new.has("audio")
assert old.has("stateless") and not old.has("handshake_tasks")
assert new.fields["tools"] == {"price"}
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("destructive", [True, False, None])
@pytest.mark.parametrize("read_only", [True, False, None])
def test_the_runtime_takes_the_same_defaults_of_hints(read_only: bool | None, destructive: bool | None) -> None:
    given = {"readOnlyHint": read_only, "destructiveHint": destructive}
    meant = {hint.name: hint.default for hint in vocabulary.HINTS} | {k: v for k, v in given.items() if v is not None}
    tool = SimpleNamespace(policy={}, definition={"annotations": given}, package=SimpleNamespace(manifest={}))
    assert is_dangerous(cast("Any", tool)) == (not meant["readOnlyHint"] and meant["destructiveHint"])
