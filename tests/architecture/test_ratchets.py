"""Numbers that may only fall; `tests/support/ratchets.py` measures them and writes the tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import call_traces
import ratchets

_LOWER = "`python tests/support/ratchets.py NAME` accepts a higher number; say why in the commit"
_MEASURED = (3, 11)


@pytest.mark.parametrize("package", ratchets.PACKAGES, ids=lambda package: package.name)
def test_no_room_gains_lines(package: Path) -> None:
    assert ratchets.list_risen(ratchets.load_table("weight"), ratchets.count_weight(package)) == [], _LOWER


def test_no_more_imports_of_the_server_point_up() -> None:
    assert ratchets.list_risen(ratchets.load_table("arrows"), ratchets.count_upward_imports()) == [], _LOWER


@pytest.mark.skipif(sys.version_info[:2] != _MEASURED, reason="other versions of Python enter other functions")
@pytest.mark.parametrize("kind", call_traces.KINDS)
def test_no_call_enters_more_functions(kind: str) -> None:
    assert ratchets.list_risen(ratchets.load_table("calls"), call_traces.count_calls(kind)) == [], _LOWER


@pytest.mark.parametrize(
    ("table", "counts", "risen"),
    [
        ({"a": 2}, {"a": 2}, []),
        ({"a": 2}, {"a": 1}, []),
        ({"a": 2}, {}, []),
        ({"a": 2}, {"a": 3}, ["a: 3, which was 2"]),
        ({"a": 2}, {"a": 2, "b": 1}, ["b: 1, which was 0"]),
    ],
)
def test_what_has_risen(table: Mapping[str, int], counts: Mapping[str, int], risen: list[str]) -> None:
    assert ratchets.list_risen(table, counts) == risen


def test_a_line_of_code_is_no_comment_and_no_docstring(tmp_path: Path) -> None:
    module = tmp_path / "room" / "module.py"
    module.parent.mkdir()
    module.write_text('"""A module.\n\nIt has more."""\n\nimport os  # why\n\n# more\nvalue = """\ntext\n"""\n')
    assert ratchets.count_weight(tmp_path) == {f"{tmp_path.name}/room": 4}


def test_an_import_that_points_up_is_found_wherever_it_is(tmp_path: Path) -> None:
    for room in ("app", "core", "methods"):
        (tmp_path / "server" / room).mkdir(parents=True)
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy/rates.py").touch()
    (tmp_path / "server/methods/tools.py").write_text("from ..core import core\n")
    program = "if TYPE_CHECKING:\n    from ..methods import tools\ndef f():\n    from ...policy.rates import Rates\n"
    (tmp_path / "server/core/hub.py").write_text(program)
    assert ratchets.count_upward_imports(tmp_path / "server") == {"core -> methods": 1, "core -> ../policy": 1}
