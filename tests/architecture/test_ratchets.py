"""Numbers that may only fall; `tests/support/ratchets.py` measures them and writes the tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import call_traces
import ratchets

_MEASURED = (3, 11)


def _check(name: str, counts: ratchets.Counts) -> None:
    if reason := ratchets.explain_rise(name, counts):
        pytest.fail(reason, pytrace=False)


@pytest.mark.parametrize("package", ratchets.PACKAGES, ids=lambda package: package.name)
def test_no_room_gains_lines(package: Path) -> None:
    _check("weight", ratchets.count_weight(package))


def test_no_more_imports_of_the_server_point_up() -> None:
    _check("arrows", ratchets.count_upward_imports())


@pytest.mark.skipif(sys.version_info[:2] != _MEASURED, reason="other versions of Python enter other functions")
@pytest.mark.parametrize("kind", call_traces.KINDS)
def test_no_call_enters_more_functions(kind: str) -> None:
    _check("calls", call_traces.count_calls(kind))


@pytest.mark.parametrize("is_named", [False, True], ids=["", "named"])
@pytest.mark.parametrize(
    ("counts", "risen"),
    [
        ({"a": 2, "b": 5}, []),
        ({"a": 1, "b": 5}, []),
        ({"b": 5}, []),
        ({"a": 3, "b": 4}, ["  a: 2 → 3 (+1)"]),
        ({"a": 0, "b": 7, "c": 1}, ["  b: 5 → 7 (+2)", "  c: 0 → 1 (+1)"]),
    ],
)
def test_a_table_is_written_if_no_number_rises_or_its_name_is_given(
    counts: ratchets.Counts,
    risen: list[str],
    is_named: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = tmp_path / "weight.json"
    table.write_text('{"a": 2, "b": 5}')
    monkeypatch.setattr(ratchets, "_TABLES", tmp_path)
    monkeypatch.setattr(ratchets, "RATCHETS", {"weight": lambda: counts})
    monkeypatch.setattr(sys, "argv", ["ratchets.py", *(["weight"] if is_named else [])])
    is_refused = bool(risen) and not is_named
    assert ratchets.main() == is_refused
    assert json.loads(table.read_text()) == ({"a": 2, "b": 5} if is_refused else counts)
    first, *rest = (capsys.readouterr().err if is_refused else capsys.readouterr().out).splitlines()
    assert rest == risen
    todo = (
        "Lower these numbers again, or give the reason in the commit and run `python tests/support/ratchets.py weight`:"
    )
    assert first == (todo if is_refused else f"weight: {sum(counts.values())}")


def test_a_line_of_code_is_no_comment_and_no_docstring(tmp_path: Path) -> None:
    module = tmp_path / "room" / "module.py"
    module.parent.mkdir()
    module.write_text('"""A module.\n\nIt has more."""\n\nimport os  # why\n\n# more\nvalue = """\ntext\n"""\n')
    assert ratchets.count_weight(tmp_path) == {f"{tmp_path.name}/room": 4}


@pytest.mark.parametrize(
    ("statement", "pair"),
    [
        ("if TYPE_CHECKING:\n    from ..methods import tools", "core -> methods"),
        ("from ..methods.tools import call", "core -> methods"),
        ("def f():\n    from ...policy.rates import Rates", "core -> ../policy"),
        ("import_module('runtime.server.methods.tools')", "core -> methods"),
        ("importlib.import_module('runtime.server.methods')", "core -> methods"),
        ("importlib.import_module('..methods.tools', __package__)", "core -> methods"),
        ("importlib.import_module('runtime.server.protocol.requests')", None),
        ("importlib.import_module('server.methods.tools')", None),
        ("importlib.import_module(name)", None),
        ("from runtime import server", None),
    ],
)
def test_an_import_that_points_up_is_found_wherever_it_is(statement: str, pair: str | None, tmp_path: Path) -> None:
    server = tmp_path / "runtime/server"
    for module in ("core/hub.py", "methods/tools.py", "protocol/requests.py", "../policy/rates.py"):
        (server / module).parent.mkdir(parents=True, exist_ok=True)
        (server / module).touch()
    (server / "methods/tools.py").write_text("from ..core import hub\n")
    (server / "core/hub.py").write_text(statement)
    assert ratchets.count_upward_imports(server) == ({pair: 1} if pair else {})


def test_a_folder_that_the_order_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "server/queues").mkdir(parents=True)
    (tmp_path / "server/queues/queue.py").touch()
    with pytest.raises(
        ValueError, match=r"`queues` is not in the order of the server's folders .*ratchets\.py\); add it"
    ):
        ratchets.count_upward_imports(tmp_path / "server")
