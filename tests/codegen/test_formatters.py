"""Generated files are formatted like Black's output, and formatters with other settings ignore them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import amounts
from command_line import stubwright
from packages import without_formatter_off

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path) -> None:
    """Run a program of Python's that must succeed."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_what_is_committed_is_as_black_has_it(tmp_path: Path) -> None:
    folders = [ROOT / "generated", *sorted(ROOT.glob("tests/cases/*/expected"))]
    for folder in folders:
        without_formatter_off(folder, tmp_path / folder.relative_to(ROOT))
    assert len([*tmp_path.rglob("*.py")]) > 200
    run("black", "--check", "--line-length=120", "--target-version=py311", ".", cwd=tmp_path)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as `stubwright new` makes it, with a file that every formatter changes."""
    folder = tmp_path_factory.mktemp("formatted")
    assert stubwright("new", "calendar", cwd=folder).returncode == 0
    return folder / "calendar"


FORMATTERS = [
    ("black", "--line-length=88"),
    ("black", "--line-length=100"),
    ("black", "--line-length=60", "--skip-magic-trailing-comma", "--preview"),
    ("ruff", "format"),
    ("ruff", "format", "--line-length=60", "--config=format.quote-style='single'"),
]


@pytest.mark.parametrize(
    "formatter", amounts.sample([pytest.param(words, id=" ".join(words)) for words in FORMATTERS], 1)
)
def test_a_formatter_edits_no_generated_file(formatter: tuple[str, ...], project: Path) -> None:
    files = sorted(str(path) for path in project.glob("generated/**/*.py"))
    assert len(files) > 8
    own = project / "calendar_server" / "own.py"
    for named in (["."], files):  # files that are named, as pre-commit does it, are not excluded
        own.write_text("x = { 'a':1 }\n", "utf-8")
        run(*formatter, *named, str(own), cwd=project)
        assert own.read_text("utf-8") != "x = { 'a':1 }\n"
        checked = stubwright("generate", "--check", cwd=project)
        assert checked.returncode == 0, checked.stderr


def test_a_linter_edits_no_generated_file(project: Path) -> None:
    run("ruff", "check", "--fix", "--exit-zero", "--unsafe-fixes", "--select=ALL", ".", cwd=project)
    assert stubwright("generate", "--check", cwd=project).returncode == 0
