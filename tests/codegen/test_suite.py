"""The required cases of the official JSON-Schema-Test-Suite, through a running generated server.

Drafts that the corpus lacks are skipped, but groups of newer drafts with the same meaning are run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import amounts
import corpus as public
from amounts import choose
from echo import Echo
from packages import check, generate, imported, manifest
from suite import DRAFTS, NEWER, VALUE, Group, borrow_groups, groups

pytestmark = pytest.mark.corpus

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
    "draft2019-09": {
        "vocabulary: schema that uses custom metaschema with with no validation vocabulary",
        "vocabulary: ignore unrecognized optional vocabulary",
        "refRemote: *",
    },
    "draft7": {"refRemote: *"},
    "draft6": {"refRemote: *"},
    "draft4": {"refRemote: *"},
}


@pytest.mark.parametrize("draft", amounts.sample(DRAFTS, 1))
def test_required_cases_are_decided_right(draft: str, corpus: Path, tmp_path: Path) -> None:
    every = [*groups(corpus, draft)]
    assert kinds(group.name for group in every) >= NEED_A_FETCH[draft]
    made = every[:: choose(public.VARIABLE, 10, 1, 1)]
    refused = refused_by_check(tmp_path, made)
    assert kinds(refused) == NEED_A_FETCH[draft] & kinds(group.name for group in made)
    assert decided(tmp_path, [group for group in made if group.name not in refused]) == []


@pytest.mark.long
@pytest.mark.parametrize(("draft", "least"), [("draft2019-09", 1_000), ("draft6", 750), ("draft4", 500)])
def test_cases_of_newer_drafts_that_say_the_same_are_decided_right(
    draft: str, least: int, corpus: Path, tmp_path: Path
) -> None:
    """So these dialects are tried in part where the suite has no files for them."""
    made = [group for group in borrow_groups(corpus, draft) if group.name not in NEED_A_FETCH[NEWER[draft]]]
    assert refused_by_check(tmp_path, made) == set()
    assert decided(tmp_path, made) == []
    assert sum(len(group.tests) for group in made) > least


def kinds(names: Iterable[str]) -> set[str]:
    """The names of groups as `NEED_A_FETCH` has them."""
    return {"refRemote: *" if name.startswith("refRemote: ") else name for name in names}


def refused_by_check(folder: Path, made: Sequence[Group]) -> set[str]:
    """The names of the groups that `check` refuses, all because of what would have to be fetched."""
    refused = set()
    for group in made:
        errors = {found.code for found in check(folder, manifest([group.tool])) if found.severity == "error"}
        assert errors <= {"SW222", "SW224"}, group
        if errors:
            refused.add(group.name)
    return refused


def decided(folder: Path, made: Sequence[Group]) -> list[str]:
    """Return the wrong verdicts and results of a server with these groups."""
    package = generate(folder, manifest([group.tool for group in made], name="suite"))
    with imported(folder, package) as module:
        return asyncio.run(answered(module, made))


async def answered(package: Any, made: Sequence[Group]) -> list[str]:
    """Call each tool with each of its cases, and return the wrong verdicts and results."""
    wrong: list[str] = []
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
