"""Paths in manifests cannot leave their folder undetected."""

from __future__ import annotations

import pytest

from stubwright import paths


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("a", "", False),
        ("a/../b", "", False),
        (".", "", False),
        ("..a", "", False),
        ("..", "", True),
        ("../a", "", True),
        ("a/../../b", "", True),
        ("/a", "", True),
        ("specs/a", "specs", False),
        ("specs/../a", "specs", True),
        ("specs2/a", "specs", True),
        ("specs", "specs", True),
        ("/specs/a", "/specs", False),
        ("/a", "/", False),
        ("../a/b", "../a", False),
        ("../b", "../a", True),
    ],
)
def test_what_leaves_a_folder(path: str, folder: str, expected: bool) -> None:
    assert paths.leaves(path, folder) is expected


@pytest.mark.parametrize(
    ("folder", "base", "relative", "expected"),
    [
        ("specs", "specs/m.yaml", "tools/a.yaml", "specs/tools/a.yaml"),
        ("specs", "specs/tools/a.yaml", "../b.yaml", "specs/b.yaml"),
        ("specs", "specs/tools/a.yaml", "../../b.yaml", None),
        ("specs", "specs/m.yaml", "/etc/passwd", None),
        ("", "m.yaml", "a.yaml", "a.yaml"),
        ("", "m.yaml", "../a.yaml", None),
        ("../other", "../other/m.yaml", "a.yaml", "../other/a.yaml"),
    ],
)
def test_a_path_relative_to_a_file(folder: str, base: str, relative: str, expected: str | None) -> None:
    assert paths.resolve(folder, base, relative) == expected


@pytest.mark.parametrize(("path", "expected"), [("a", False), ("ä\udc80", False), ("a\0b", True), ("\ud800", True)])
def test_what_no_file_can_be_called(path: str, expected: bool) -> None:
    assert paths.is_impossible(path) is expected
