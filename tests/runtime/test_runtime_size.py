"""How much runtime a package carries: that it grows is a decision, and stands here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from packages import generate, manifest, tool

ANSWER = {"outputSchema": {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}}
ONE = tool("get_weather", {"place": {"type": "string", "minLength": 1}, "units": {"enum": ["C", "F"]}}, **ANSWER)
ASKS = {"ask": {"sure": {"message": "Sure?", "schema": {"type": "object", "properties": {}}}}}
TASK = {"execution": {"taskSupport": "optional"}}
EITHER = tool("find", {"by": {"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "integer"}]}})
RESOURCES: dict[str, Any] = {"resources": [{"uri": "a://b", "name": "b", "toolwright": {"text": "B"}}]}

KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "a server with one tool": (11400, manifest([ONE], emit=["server"])),
    "one whose tools answer with blocks": (11400, manifest([tool("say")], emit=["server"])),
    "one that asks": (12250, manifest([{**ONE, "toolwright": ASKS}], emit=["server"])),
    "one with resources": (11700, manifest([ONE], emit=["server"], **RESOURCES)),
    "one whose tools run as tasks": (14250, manifest([{**ONE, **TASK}], emit=["server"])),
    "one with alternatives": (12050, manifest([EITHER], emit=["server"])),
    "a client of one tool": (7310, manifest([ONE], emit=["client"])),
    "one that answers questions": (8600, manifest([ONE], emit=["client"], python={"features": ["elicitation"]})),
    "both with one tool": (14950, manifest([ONE])),
}
"""The most lines of runtime that each kind of package may have, blank ones and docstrings included."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_carries_no_more_than_this(kind: str, tmp_path: Path) -> None:
    most, value = KINDS[kind]
    package = generate(tmp_path, value)
    assert lines(tmp_path / package) <= most


def lines(package: Path) -> int:
    """The lines of Python below `_runtime`."""
    return sum(len(path.read_text().splitlines()) for path in (package / "_runtime").rglob("*.py"))


if __name__ == "__main__":  # what to write above
    import tempfile

    for kind, (_, value) in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            print(kind, lines(Path(folder, generate(Path(folder), value))))
