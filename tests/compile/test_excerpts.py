"""Messages quote at most one line of the user's text, of any size and in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import amounts
from packages import manifest, tool
from stubwright import cli
from stubwright.compile import pipeline
from stubwright.diagnostics import Diagnostic
from stubwright.project.files import disk
from stubwright_runtime.schema import patterns, validation

BIG = "y" * 300_000


def a(schema: Any, **more: Any) -> dict[str, Any]:
    return manifest([tool("t", {"a": schema}, **more)])


CASES: dict[str, dict[str, Any]] = {
    "pattern": a({"pattern": BIG}),
    "unbalanced": a({"pattern": "(" * 300_000}),
    "type": a({"type": BIG}),
    "reference": a({"$ref": f"#/$defs/{BIG}"}),
    "dialect": a({"$schema": BIG}),
    "bound": a({"minimum": BIG}),
    "default": a({"type": "integer", "default": BIG}),
    "defaults": a({"type": "string", "default": [BIG, BIG]}),
    "backticks": a({"type": "a`" * 150_000}),
    "required": a({"type": "object", "required": [BIG], "additionalProperties": False}),
    "example": a({"type": "integer"}, stubwright={"examples": [{"input": {"a": BIG}}]}),
    "key": {**a({}), BIG: 1},
    "name": manifest([tool(BIG)]),
    "include": {**a({}), "include": [BIG]},
}


@pytest.mark.parametrize("name", amounts.sample(CASES, 3))
def test_a_message_is_no_larger_than_a_screen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.json").write_text(json.dumps(CASES[name]))
    for style in ("text", "json", "github"):
        cli.run(["check", "m.json", "--format", style])
        printed = capsys.readouterr()
        assert 0 < len(printed.out + printed.err) < 3000
        assert "yyyyy" * 50 not in printed.out + printed.err


def test_what_a_user_can_read_stays_whole() -> None:
    short = Diagnostic("SW203", f"`{'a' * 120}` and `{'b' * 120}`", help=f"write `{'c' * 400}`")
    assert (short.message, short.help) == (f"`{'a' * 120}` and `{'b' * 120}`", f"write `{'c' * 400}`")
    long = Diagnostic("SW203", f"`{'a' * 121}` is no type")
    assert long.message == f"`{'a' * 89}…{'a' * 30}` is no type"
    assert len(Diagnostic("SW203", "a" * 9999).message) == 1000


@pytest.mark.parametrize("pattern", [BIG, "(" * 300_000])
def test_a_pattern_that_is_too_long_is_not_tried(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The validator is slow to refuse it, and slower with each way to write it that is tried."""
    tried: list[str] = []
    monkeypatch.setattr(patterns, "translate_pattern", lambda text: tried.append(text))
    monkeypatch.setattr(validation, "compile_schema", lambda schema, **_: tried.append(str(schema)))
    (tmp_path / "m.json").write_text(json.dumps(a({"pattern": pattern})))
    (found,) = pipeline.compile_manifest(str(tmp_path / "m.json"), disk.Disk(), "m.json").diagnostics
    assert "is too large for the validator" in found.message
    assert not [text for text in tried if len(text) > 1000]
