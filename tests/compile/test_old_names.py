"""Expiry of aliases by version, in the order of semver.org, 11."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages import check, manifest, tool

ORDER = (
    "0.9.10",
    "1.0.0-0",
    "1.0.0-2",
    "1.0.0-11",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "10.0.0",
)


def codes(folder: Path, version: str, last: str) -> list[str]:
    value = manifest([tool("new", stubwright={"aliases": [{"name": "old", "removeAfter": last}]})])
    return [found.code for found in check(folder, {**value, "server": {"name": "sample", "version": version}})]


def test_an_alias_is_over_after_its_last_version(tmp_path: Path) -> None:
    for index, version in enumerate(ORDER):
        for other, last in enumerate(ORDER):
            assert codes(tmp_path, version, last) == (["SW243"] if index > other else []), (version, last)


def test_metadata_of_builds_does_not_count(tmp_path: Path) -> None:
    assert codes(tmp_path, "1.0.0+b", "1.0.0+a") == []


@pytest.mark.parametrize(
    "version", ["1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "\u0661.0.0"]
)
def test_what_is_not_a_semantic_version_is_an_error(version: str, tmp_path: Path) -> None:
    assert codes(tmp_path, version, "1.0.0") == ["SW244"]
    assert codes(tmp_path, "1.0.0", version) == ["SW244"]
