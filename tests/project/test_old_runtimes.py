"""`stubwright generate` over the output of stubwright 0.1: packages with copies of the runtime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from packages import manifest, tool
from stubwright import cli
from stubwright.incremental import digests
from stubwright.project.files import lock
from stubwright.project.files.tree import RUNTIME_MARK

COPY = Path("generated/sample_mcp/_runtime")


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sample.json").write_text(json.dumps(manifest([tool("one")])))
    assert cli.run(["generate", "sample.json", "-q"]) == 0
    listed = json.loads(Path("generated", lock.NAME).read_text())
    for name in ("__init__.py", "server/sdk.py", "README.md"):
        file = COPY / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(RUNTIME_MARK + b"x = 1\n")
        path = file.relative_to("generated").as_posix()
        listed["manifests"]["sample.json"]["files"][path] = digests.compute_digest(file.read_bytes())
    listed["generator"] = "0.1.0"
    Path("generated", lock.NAME).write_text(json.dumps(listed, indent=2))


def files() -> set[str]:
    return {path.relative_to("generated").as_posix() for path in Path("generated").rglob("*") if path.is_file()}


def test_the_copies_go_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    (COPY / "server" / "__pycache__").mkdir()
    (COPY / "server" / "__pycache__" / "sdk.cpython-311.pyc").touch()
    before = files()
    assert cli.run(["generate", "sample.json"]) == 0
    told = capsys.readouterr()
    assert {path for path in before - files() if "__pycache__" not in path} == {
        f"sample_mcp/_runtime/{name}" for name in ("__init__.py", "server/sdk.py", "README.md")
    }
    assert not COPY.exists()
    assert "3 files removed" in told.out
    assert "  it needs stubwright-runtime\n" in told.out
    assert told.err == ""
    assert cli.run(["generate", "--check", "sample.json"]) == 0


def test_what_a_person_wrote_there_stays_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    (COPY / "server" / "mine.py").write_text("x = 1\n")
    (COPY / "__init__.py").write_text("# edited\n")
    assert cli.run(["generate", "sample.json"]) == 0
    told = capsys.readouterr().err
    assert (
        "generated/sample_mcp/_runtime/server/mine.py:1:1: warning[SW404]: this folder no longer has generated files"
        in told
    )
    assert "generated/sample_mcp/_runtime/__init__.py:1:1: warning[SW404]: this file is no longer generated" in told
    assert told.count("warning[") == 2
    assert {path for path in files() if "_runtime" in path} == {
        "sample_mcp/_runtime/__init__.py",
        "sample_mcp/_runtime/server/mine.py",
    }
    assert cli.run(["generate", "sample.json"]) == 0
    assert "_runtime" not in capsys.readouterr().err, "what is not stubwright's any more is named once"
