"""What MCP says is stated once: whoever needs it elsewhere, such as the runtime that is copied, says the same."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS

from toolwright import mcp, package_data
from toolwright_runtime import package
from toolwright_runtime.client.core.confirmation import is_dangerous
from toolwright_runtime.client.features import drift
from toolwright_runtime.mcp import revisions
from toolwright_runtime.server import server
from toolwright_runtime.server.core import lists
from toolwright_runtime.server.features import elicitation


def test_the_revisions_are_those_of_the_sdk() -> None:
    assert list(mcp.REVISIONS) == list(SUPPORTED_PROTOCOL_VERSIONS)


def test_the_manifests_schema_has_the_same_facts() -> None:
    schema = json.loads(package_data.MANIFEST_SCHEMA.read_bytes())
    properties = schema["properties"]
    assert properties["protocol"]["properties"]["min"]["enum"] == list(mcp.REVISIONS)
    for section in mcp.SECTIONS:
        assert section.name in properties
        entry = schema["$defs"][{mcp.TEMPLATES: "resourceTemplate"}.get(section, section.noun)]
        assert section.key in entry["required"]
        assert entry["title"] == f"a {section.noun}"


def test_the_runtime_has_the_same_lists() -> None:
    assert {section.method: section.name for section in mcp.SECTIONS} == server._LISTS
    assert {section.name: section.capability for section in mcp.SECTIONS} == lists._KINDS
    assert {section.name: section.key for section in mcp.SECTIONS} == package._KEYS
    assert {section.capability for section in mcp.SECTIONS} == set(get_args(lists.Kind))


def test_the_runtime_has_the_same_revisions() -> None:
    since = mcp.SINCE["tools"]
    assert {field: since.get(field, "") for field in drift._FIELDS} == drift._FIELDS
    assert revisions.FIRST_STATELESS == mcp.SINCE_ANY_ROOT == mcp.SINCE_HEADER == mcp.REVISIONS[-1]
    assert {revisions.FIRST_AUDIO, revisions.FIRST_LINKS, elicitation._FIRST_CHOICES} <= set(mcp.REVISIONS)


@pytest.mark.parametrize("destructive", [True, False, None])
@pytest.mark.parametrize("read_only", [True, False, None])
def test_the_runtime_takes_the_same_defaults_of_hints(read_only: bool | None, destructive: bool | None) -> None:
    given = {"readOnlyHint": read_only, "destructiveHint": destructive}
    meant = {hint.name: hint.default for hint in mcp.HINTS} | {k: v for k, v in given.items() if v is not None}
    tool = SimpleNamespace(policy={}, definition={"annotations": given}, package=SimpleNamespace(manifest={}))
    assert is_dangerous(cast("Any", tool)) == (not meant["readOnlyHint"] and meant["destructiveHint"])
