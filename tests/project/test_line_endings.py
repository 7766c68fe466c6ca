"""Checkouts with CRLF, as git writes them on Windows with `core.autocrlf`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stubwright import cli

ENV = {
    **os.environ,
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.com"),
    "GIT_CONFIG_GLOBAL": os.devnull,
}
MANIFEST = """\
stubwright: 1
server:
  name: lines
  version: "1"
  instructions: |
    First,
    second.
tools:
  - name: greet
    description: |
      Greets somebody.

      At length.
    inputSchema: {type: object, properties: {name: {type: string}}}
    outputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
    stubwright: {examples: [{input: {name: Ada}, output: {text: Hello Ada}}]}
resources:
  - {uri: "file:///plain.txt", name: plain, description: A text., mimeType: text/plain, stubwright: {file: plain.txt}}
  - {uri: "file:///dos.txt", name: dos, description: A text., mimeType: text/plain, stubwright: {file: dos.txt}}
  - {uri: "file:///dot.png", name: dot, description: A dot., mimeType: image/png, stubwright: {file: dot.png}}
"""
FILES = {"plain.txt": b"one\ntwo\n", "dos.txt": b"one\r\ntwo\r\n", "dot.png": b"\x89PNG\r\n\x1a\n\0\0\n"}
PACKAGE = Path("generated/lines_mcp")
TEST = Path("generated/test_lines_mcp.py")
LOCK = Path("generated/stubwright.lock.json")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a generated project."""
    folder = tmp_path_factory.mktemp("origin")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        Path("specs").mkdir()
        Path("specs/lines.yaml").write_bytes(MANIFEST.encode())
        for name, data in FILES.items():
            Path("specs", name).write_bytes(data)
        Path("pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["specs/*.yaml"]\n')
        Path(".gitignore").write_text("__pycache__/\n")
        assert cli.run(["generate", "-q"]) == 0
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "x")
    return folder


def generated() -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in Path("generated").rglob("*") if path.is_file()}


def check_out(origin: Path, monkeypatch: pytest.MonkeyPatch, to: Path, attributes: str = "") -> None:
    """Clone as on Windows; `attributes` are the user's, which override the repository's."""
    git(to.parent, "-c", "core.autocrlf=true", "clone", "-q", "--no-checkout", str(origin), str(to))
    (to / ".git/info").mkdir(exist_ok=True)
    (to / ".git/info/attributes").write_text(attributes)
    git(to, "-c", "core.autocrlf=true", "checkout", "-q", "HEAD")
    monkeypatch.chdir(to)


def is_settled(capsys: pytest.CaptureFixture[str]) -> bool:
    """Return whether there are no changes to make, for a run that does not write and a run that does."""
    before = generated()
    for command in (["generate", "--check"], ["generate"], ["generate"]):
        capsys.readouterr()
        status = cli.run(command)
        told = capsys.readouterr()
        assert (status, told.err) == (0, ""), command
        assert "written" not in told.out, command
    return generated() == before


def test_a_package_has_the_same_bytes_in_each_checkout(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_out(origin, monkeypatch, tmp_path / "clone")
    assert b"\r\n" in Path("specs/lines.yaml").read_bytes()
    assert b"\r\n" in Path("specs/plain.txt").read_bytes()
    for path in (path for path in (origin / PACKAGE).rglob("*") if path.is_file() and path.suffix != ".pyc"):
        assert (tmp_path / "clone" / path.relative_to(origin)).read_bytes() == path.read_bytes()
    assert b"\r\n" in TEST.read_bytes(), "which stands beside the package, and has no `.gitattributes`"
    assert is_settled(capsys)
    assert git(Path(), "-c", "core.autocrlf=true", "status", "--porcelain") == ""


def test_a_checkout_with_crlf_throughout_is_not_edited_by_hand(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_out(origin, monkeypatch, tmp_path / "clone", "* text=auto eol=crlf\n*.png -text\n")
    for path in (LOCK, TEST, PACKAGE / ".gitattributes", PACKAGE / "client.py", PACKAGE / "manifest.json"):
        assert b"\r\n" in path.read_bytes(), path
    assert is_settled(capsys)
    (PACKAGE / ".gitattributes").unlink()
    assert cli.run(["generate", "--check"]) == 1
    assert capsys.readouterr().err.count("error[") == 1, "of the file that is missing"
    assert cli.run(["generate"]) == 0
    assert "1 file written" in capsys.readouterr().out
    assert is_settled(capsys)


@pytest.mark.long
def test_an_edit_and_a_change_in_a_checkout_with_crlf(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_out(origin, monkeypatch, tmp_path / "clone", "* text=auto eol=crlf\n*.png -text\n")
    client, manifest = PACKAGE / "client.py", Path("specs/lines.yaml")
    whole = client.read_bytes()
    client.write_bytes(whole + b"X = 1\r\n")
    manifest.write_bytes(manifest.read_bytes().replace(b"name: greet", b"name: hail"))
    before = generated()
    assert cli.run(["generate"]) == 1
    assert capsys.readouterr().err.count("error[SW402]") == 1
    assert generated() == before
    client.write_bytes(whole)
    assert cli.run(["generate"]) == 0
    assert b"def hail(" in client.read_bytes()
    assert not (PACKAGE / "models/greet.py").exists()
    assert is_settled(capsys)
    manifest.write_bytes(manifest.read_bytes().replace(b"name: hail", b"name: greet"))
    assert cli.run(["generate"]) == 0
    assert LOCK.read_bytes().splitlines() == (origin / LOCK).read_bytes().splitlines()
