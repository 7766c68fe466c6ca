"""Every required case of the official JSON-Schema-Test-Suite, through a running generated server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from packages import check, generate, imported, manifest
from suite import DRAFTS, VALUE, Group, groups
from test_generated import Echo

# The groups that `check` refuses, because they need a document that would have to be fetched.
NEED_A_FETCH = {
    "draft2020-12": {
        "dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first",
        "dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first",
        "dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor",
        "dynamicRef: strict-tree schema, guards against misspelled properties",
        "dynamicRef: tests for implementation dynamic anchor and reference link",
        "vocabulary: schema that uses custom metaschema with with no validation vocabulary",
        "vocabulary: ignore unrecognized optional vocabulary",
        "refRemote: *",
    },
    "draft7": {"refRemote: *"},
}


def decided(package: Any, made: Sequence[Group]) -> list[str]:
    """Call each tool with each of its cases, and list those that were decided or given back wrongly."""
    wrong: list[str] = []

    async def go() -> None:
        async with Client(package.build_server(Echo())) as client:
            for group in made:
                for test in group.tests:
                    arguments = {VALUE: test["data"]}
                    result = await client.session.call_tool(group.tool["name"], arguments)
                    text = result.content[0].text  # type: ignore[union-attr]
                    if result.is_error is test["valid"]:
                        wrong.append(f"{group.name}: {test['description']}: {text}")
                    elif test["valid"] and not same(json.loads(text), arguments):
                        wrong.append(f"{group.name}: {test['description']}: {test['data']!r} came back as {text}")

    asyncio.run(go())
    return wrong


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: booleans are no numbers, and 1 and 1.0 are one number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@pytest.mark.parametrize("draft", DRAFTS)
def test_required_cases_are_decided_right(draft: str, corpus: Path, tmp_path: Path) -> None:
    served = []
    refused = set()
    for group in groups(corpus / "json-schema-test-suite", draft):
        errors = [found.code for found in check(tmp_path, manifest([group.tool])) if found.severity == "error"]
        if not errors:
            served.append(group)
            continue
        assert set(errors) <= {"TW222", "TW224"}, group
        refused.add("refRemote: *" if group.name.startswith("refRemote: ") else group.name)
    assert refused == NEED_A_FETCH[draft]
    package = generate(tmp_path, manifest([group.tool for group in served], name="suite"))
    with imported(tmp_path, package) as module:
        assert decided(module, served) == []
