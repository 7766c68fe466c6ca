"""Golden cases: a manifest, with the resulting package or diagnostics.

`tests/cases/NAME/` has the user's files: manifests and, if required, a `pyproject.toml` or existing files in
`generated/`. `command` has the command line (default: `check manifest.yaml`). The expected output is in `stderr.txt`
and, for `generate`, in the tree `expected/`. `pytest --update` rewrites both.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from stubwright import cli
from stubwright.diagnostics import CODES

CASES = Path(__file__).parents[1] / "cases"
NAMES = sorted(path.name for path in CASES.iterdir() if path.is_dir())
OUT = {"command", "stderr.txt", "expected"}


def run(case: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a case in `folder`, and return its exit status and its output on standard error."""
    shutil.copytree(
        case,
        folder,
        symlinks=True,
        dirs_exist_ok=True,
        ignore=lambda at, names: OUT & set(names) if Path(at) == case else [],
    )
    monkeypatch.chdir(folder)
    command = case / "command"
    argv = shlex.split(command.read_text()) if command.exists() else ["check", "manifest.yaml"]
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        status = cli.run(argv)
    return status, printed.getvalue()


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.suffix not in {".pyc", ".lock"}
    }


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: bool) -> None:
    case = CASES / name
    status, printed = run(case, tmp_path, monkeypatch)
    expected = case / "stderr.txt"
    text = f"{printed}exit {status}\n"
    if update:
        expected.write_text(text)
    assert text == expected.read_text()
    tree = case / "expected"
    if not tree.exists() and not (update and status == 0 and (tmp_path / "generated").exists()):
        return
    made = files(tmp_path / "generated")
    made.pop("stubwright.lock.json", None)  # holds digests of the runtime, which has tests of its own
    if update:
        shutil.rmtree(tree, ignore_errors=True)
        for path, data in made.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(data)
    assert made == files(tree)


OWN = {"SW409"}
"""Codes of mistakes that are stubwright's own, so that no manifest shows them."""


def test_every_code_has_a_case() -> None:
    shown = {
        code
        for case in NAMES
        for code in re.findall(r"\[(SW\d{3})\]", (CASES / case / "stderr.txt").read_text("utf-8"))
    }
    assert sorted(set(CODES) - shown) == sorted(OWN)
