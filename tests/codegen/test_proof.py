"""Packages with broken models are never written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import amounts
import packages
from packages import tool
from stubwright import cli
from stubwright.codegen.pages import modules
from stubwright.codegen.pages.primitive_code import PrimitiveCode
from stubwright.incremental import proof, proofs
from stubwright.pycode import trust

TICKET = {"type": "object", "properties": {"id": {"type": "integer"}, "next": {"$ref": "#/schemas/Ticket"}}}
RING = {
    "A": {"type": "object", "properties": {"b": {"$ref": "#/schemas/B"}}},
    "B": {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/schemas/A"}}}},
}
TOOLS = [
    tool("first", {"n": {"type": "integer", "default": 3}}, outputSchema={"$ref": "#/schemas/Ticket"}),
    tool("second", {"ring": {"$ref": "#/schemas/A"}, "place": {"type": "object", "properties": {"x": {}}}}),
    tool("third", {"t": {"type": "string"}}),
]
MODEL = "from __future__ import annotations\nfrom stubwright_runtime.generated import Model\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    manifest = packages.manifest(TOOLS, name="desk", schemas={"Ticket": TICKET, **RING})
    (tmp_path / "desk.json").write_text(json.dumps(manifest, indent=1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sources(folder: Path) -> dict[str, bytes]:
    root = folder / "generated" / "desk_mcp"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.py")}


def test_what_works_is_not_refused(desk: Path) -> None:
    assert cli.run(["generate", "-q", "desk.json"]) == 0
    names = ["shared._a_circle", "shared.a", "shared.b", "shared.ticket", "first", "second", "third"]
    assert proof.build("desk_mcp", sources(desk), names) == []


@pytest.mark.parametrize(
    ("body", "name", "why"),
    amounts.sample(
        [
            ("class X(Model):\n    y: Missing | None = None\n", "X", "name 'Missing' is not defined"),
            ("class X(Model):\n    y = 1\n", "", "A non-annotated attribute was detected"),
            ("class X(Model):\n    y: int = Field(default_factory=lambda: Y(1))\n", "", "name 'Field' is not defined"),
            ("class X(Model)\n", "", "SyntaxError"),
            ("from .shared.nothing import Y\n", "", "No module named 'desk_mcp.models.shared.nothing'"),
            (
                "from pydantic import Field\nclass X(Model):\n    y: int = Field(default_factory=lambda: int('y'))\n",
                "X",
                "the default of `y`: ValueError",
            ),
        ],
        1,
    ),
)
def test_what_does_not_work_is_named(desk: Path, body: str, name: str, why: str) -> None:
    assert cli.run(["generate", "-q", "desk.json"]) == 0
    broken = {**sources(desk), "models/second.py": (MODEL + body).encode()}
    (refused,) = proof.build("desk_mcp", broken, ["first", "second", "third"])
    assert (refused.module, refused.name) == ("second", name)
    assert why in refused.why


_MAKE = modules.make


def broken(*given: Any) -> list[PrimitiveCode]:
    """Return the units; the second tool's unit references a missing class."""
    return [
        (
            replace(unit, module=trust(unit.module.replace("| None", "| Lost | None")))
            if "SecondInput" in unit.classes
            else unit
        )
        for unit in _MAKE(*given)
    ]


@pytest.mark.parametrize("before", amounts.sample([False, True], 1))
def test_nothing_is_written_that_does_not_work(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, before: bool
) -> None:
    if before:
        assert cli.run(["generate", "-q", "desk.json"]) == 0
        text = (desk / "desk.json").read_text()
        (desk / "desk.json").write_text(text.replace('"place"', '"room"'))
    there = {path: path.read_bytes() for path in desk.rglob("*") if path.is_file()}
    monkeypatch.setattr(modules, "make", broken)
    capsys.readouterr()
    assert cli.run(["generate", "desk.json"]) == 1
    said = capsys.readouterr().err
    assert "error[SW409]: the class `SecondInput` for the tool `second` cannot be built:" in said
    assert "name 'Lost' is not defined" in said
    text = (desk / "desk.json").read_text()
    line = text[: text.index('"inputSchema"', text.index('"second"'))].count("\n") + 1
    assert f"desk.json:{line}:" in said
    assert {path: path.read_bytes() for path in desk.rglob("*") if path.is_file()} == there
    monkeypatch.undo()
    monkeypatch.chdir(desk)
    assert cli.run(["generate", "-q", "desk.json"]) == 0


def test_only_what_changed_is_proven(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    prove = proofs.prove

    def noting(manifest: Any, todo: Sequence[proofs.Module], *rest: Any) -> Any:
        asked.append([module.name for module in todo])
        return prove(manifest, todo, *rest)

    monkeypatch.setattr(proofs, "prove", noting)
    assert cli.run(["generate", "-q", "desk.json"]) == 0
    every = {"shared._a_circle", "shared.a", "shared.b", "shared.ticket", "first", "second", "third"}
    assert set(asked.pop()) == every
    text = (desk / "desk.json").read_text().replace('"t"', '"u"')
    (desk / "desk.json").write_text(text)
    assert cli.run(["generate", "-q", "desk.json"]) == 0
    assert asked.pop() == ["third"]
    (desk / "desk.json").write_text(text.replace('"id"', '"number"'))
    assert cli.run(["generate", "-q", "desk.json"]) == 0
    assert set(asked.pop()) == every - {"third"}
    assert cli.run(["generate", "-q", "desk.json"]) == 0
    assert not asked
