"""`diff` of policies: each key of the manifest's schema, added and removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from packages import manifest, tool
from stubwright.compile import pipeline
from stubwright.diagnostics import Place
from stubwright.diff.changes import Impact, Subject
from stubwright.diff.compare import compare
from stubwright.diff.kinds.policies import DEFAULTS, compare_policies
from stubwright.project.files import disk

Json = Any

SCHEMA = Path(__file__).parents[2] / "generator" / "stubwright" / "compile" / "manifest.schema.json"
DEFINITIONS = json.loads(SCHEMA.read_text())["$defs"]
KEYS = {**DEFINITIONS["policy"]["properties"], **DEFINITIONS["defaultPolicy"]["properties"]}
SUBJECT = Subject("tool `t`", Place("old.yaml", ("policy",)), Place("new.yaml", ("policy",)))

ASK = {"message": "Sure?"}
ABSENT = None
ONCE: Json = {"key": ["a"], "for": "24h"}

CHANGES: list[tuple[str, Json, Json, Impact]] = [
    ("timeout", ABSENT, "10s", "may break"),
    ("timeout", "10s", ABSENT, "compatible"),
    ("timeout", "10s", "20s", "compatible"),
    ("timeout", "10s", "900ms", "may break"),
    ("timeout", "60s", "1m", "cosmetic"),
    ("rateLimit", ABSENT, "60/minute", "may break"),
    ("rateLimit", "60/minute", ABSENT, "compatible"),
    ("rateLimit", "60/minute", "61/minute", "compatible"),
    ("rateLimit", "60/minute", "59/minute", "may break"),
    ("rateLimit", "60/minute", "60/second", "compatible"),
    ("rateLimit", "1/second", "60/minute", "compatible"),
    ("rateLimit", "1/second", "59/minute", "may break"),
    ("rateLimit", "60/minute", "1/second", "may break"),
    ("concurrency", ABSENT, 8, "may break"),
    ("concurrency", 8, ABSENT, "compatible"),
    ("concurrency", 8, 9, "compatible"),
    ("concurrency", 8, 7, "may break"),
    ("maxResultBytes", ABSENT, "1MiB", "may break"),
    ("maxResultBytes", "1MiB", ABSENT, "compatible"),
    ("maxResultBytes", "1MiB", "1025KiB", "compatible"),
    ("maxResultBytes", "1MiB", 1024, "may break"),
    ("maxResultBytes", "1MiB", "1024KiB", "cosmetic"),
    ("maxArgumentBytes", "64KiB", "65KiB", "compatible"),
    ("maxArgumentBytes", "64KiB", "63KiB", "may break"),
    ("maxArgumentBytes", ABSENT, "1KiB", "may break"),
    ("maxArgumentBytes", ABSENT, "1MiB", "cosmetic"),
    ("maxArgumentBytes", ABSENT, "2MiB", "compatible"),
    ("maxArgumentBytes", "2MiB", ABSENT, "may break"),
    ("maxArgumentBytes", "1KiB", ABSENT, "compatible"),
    ("scopes", ABSENT, ["a"], "breaking"),
    ("scopes", ["a"], ABSENT, "compatible"),
    ("scopes", ["a"], ["b"], "breaking"),
    ("confirm", ABSENT, True, "may break"),
    ("confirm", ABSENT, False, "cosmetic"),
    ("confirm", True, ABSENT, "compatible"),
    ("confirm", True, ASK, "cosmetic"),
    ("confirm", ASK, {"fallback": "allow"}, "compatible"),
    ("confirm", {"fallback": "allow"}, ASK, "may break"),
    ("confirm", ABSENT, {"fallback": "allow"}, "may break"),
    ("trusted", ABSENT, True, "cosmetic"),
    ("trusted", True, ABSENT, "cosmetic"),
    ("redact", ABSENT, ["/a"], "cosmetic"),
    ("redact", ["/a"], ABSENT, "cosmetic"),
    ("sanitize", "none", "all", "may break"),
    ("sanitize", "none", ABSENT, "may break"),
    ("sanitize", ABSENT, "text", "cosmetic"),
    ("onStateLoss", "open", ABSENT, "breaking"),
    ("onStateLoss", "open", "closed", "breaking"),
    ("onStateLoss", "closed", "open", "compatible"),
    ("onStateLoss", ABSENT, "closed", "cosmetic"),
    ("once", ABSENT, ONCE, "may break"),
    ("once", ONCE, ABSENT, "breaking"),
    ("once", ONCE, {**ONCE, "for": "1h"}, "breaking"),
    ("once", ONCE, {**ONCE, "for": "48h"}, "compatible"),
    ("once", ONCE, {**ONCE, "key": "all"}, "breaking"),
]


def judged(key: str, was: Json, now: Json) -> list[tuple[str, str]]:
    sides = [{} if value is ABSENT else {key: value} for value in (was, now)]
    return [(change.impact, change.message) for change in compare_policies(SUBJECT, sides[0], sides[1])]


@pytest.mark.parametrize(("key", "was", "now", "impact"), CHANGES)
def test_a_change_of_a_policy(key: str, was: Json, now: Json, impact: Impact) -> None:
    assert impact in [found for found, _ in judged(key, was, now)]
    assert judged(key, was, was) == []


def test_each_key_that_a_manifest_may_have_is_judged_in_both_directions() -> None:
    assert {key for key, was, now, _ in CHANGES if was is ABSENT and now is not ABSENT} == KEYS.keys()
    gone = {key for key, was, now, _ in CHANGES if was is not ABSENT and now is ABSENT}
    assert gone == KEYS.keys()


def test_defaults_are_those_of_the_schema() -> None:
    assert {key: value["default"] for key, value in KEYS.items() if "default" in value} == DEFAULTS


def test_what_is_gone_is_told_with_what_it_means() -> None:
    [(_, message)] = judged("onStateLoss", "open", ABSENT)
    assert message == "`onStateLoss` was removed; it was `open`, and the default is `closed`"


BUDGETS: list[tuple[Json, Json, Json, Json, list[tuple[str, str, Impact]]]] = [
    (ABSENT, 500, ABSENT, ABSENT, [("all tools", "`budget.result` was added: `500`", "may break")]),
    (500, ABSENT, ABSENT, ABSENT, [("all tools", "`budget.result` was removed; it was `500`", "compatible")]),
    (500, 501, ABSENT, ABSENT, [("all tools", "`budget.result` changed from `500` to `501`", "compatible")]),
    (500, 499, ABSENT, ABSENT, [("all tools", "`budget.result` changed from `500` to `499`", "may break")]),
    (500, 500, ABSENT, 400, [("tool `a`", "`budget.result` changed from `500` to `400`", "may break")]),
    (500, 500, 400, ABSENT, [("tool `a`", "`budget.result` changed from `400` to `500`", "compatible")]),
    (500, 500, ABSENT, 500, []),
    (500, 500, 500, 500, []),
    (ABSENT, ABSENT, ABSENT, 400, [("tool `a`", "`budget.result` was added: `400`", "may break")]),
]


@pytest.mark.parametrize(("was", "now", "own_was", "own_now", "changes"), BUDGETS)
def test_what_results_may_cost(
    was: Json, now: Json, own_was: Json, own_now: Json, changes: list[tuple[str, str, Impact]], tmp_path: Path
) -> None:
    manifests = []
    for name, all_tools, own in (("old", was, own_was), ("new", now, own_now)):
        settings = {} if own is ABSENT else {"stubwright": {"budget": {"result": own}}}
        of_all: dict[str, Any] = {} if all_tools is ABSENT else {"budget": {"result": all_tools}}
        value = manifest([tool("a", **settings)], **of_all)
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
        compiled = pipeline.compile_manifest(str(tmp_path / f"{name}.json"), disk.Disk(), f"{name}.json").manifest
        assert compiled is not None
        manifests.append(compiled)
    found = compare(manifests[0], manifests[1])
    assert [(change.subject, change.message, change.impact) for change in found] == changes
    assert {change.code for change in found} <= {"SW520"}
