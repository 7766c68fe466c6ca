"""The next run after a killed run distinguishes its leftovers from users' files, and removes them."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stubwright import cli
from stubwright.compile import pipeline
from stubwright.incremental import digests, proofs
from stubwright.project.files import disk, journal, lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it forks")

CHANGING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"}
STATUS = 137
MOST = 400


class Halved:
    """A file that is written by halves: between them the process may end."""

    def __init__(self, file: Any, step: Callable[[], None]) -> None:
        self.file = file
        self.step = step

    def __enter__(self) -> Halved:
        return self

    def __exit__(self, *why: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> None:
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        self.step()
        self.file.write(data[len(data) // 2 :])

    def flush(self) -> None:
        self.file.flush()

    def fileno(self) -> int:
        found: int = self.file.fileno()
        return found


def killed(number: int, work: Callable[[], object]) -> bool:
    """Run work in a process that is killed before its disk change of this number; return False if there is none."""
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, STATUS)
        return status == STATUS
    status = 1
    gc.disable()  # it would copy all that was loaded before the fork
    try:
        left = number

        def step() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os._exit(STATUS)

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event in CHANGING or (event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT):
                step()

        opened, synced = os.fdopen, os.fsync

        def fsync(handle: int) -> None:
            step()
            synced(handle)

        for name, made in (("fdopen", lambda handle, mode: Halved(opened(handle, mode), step)), ("fsync", fsync)):
            setattr(os, name, made)
        sys.addaudithook(audit)
        work()
        status = 0
    finally:
        os._exit(status)


def each_kill(work: Callable[[], object]) -> Iterator[int]:
    """Kill some work before each change of the disk that it makes, and give the numbers of those kills."""
    for number in range(1, MOST):
        if not killed(number, work):
            assert number > 1
            return
        yield number
    raise AssertionError("it never ends")


TOOL = "  - {{name: {}, description: {}, inputSchema: {{type: object, properties: {{x: {{type: {}}}}}}}}}\n"
HEAD = 'stubwright: 1\nserver: {name: killed, version: "1"}\ntools:\n'
BEFORE = HEAD + TOOL.format("a", "Ah.", "string") + TOOL.format("b", "Be.", "string")
MEANT = HEAD + TOOL.format("a", "Ah!", "string") + TOOL.format("c", "Ce.", "string")
AFTER = HEAD + TOOL.format("a", "Oh.", "integer") + TOOL.format("d", "De.", "string")


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return all files and folders below a folder, except bytecode."""
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in found}


def restored(folder: Path, files: dict[str, bytes | None]) -> None:
    """Make a folder what it was."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.mkdir(exist_ok=True)
    for name, data in sorted(files.items()):
        if data is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(data)


def generate(*options: str) -> int:
    return cli.run(["generate", "m.yaml", "-q", *options])


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, bytes | None]]:
    """Return the clean output of each manifest; the first output is on disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(proofs, "prove", lambda *_: [])  # in a separate process, which does not change the disk
    artifacts: dict[str, Any] = {}
    make = pipeline.generate

    def generate_once(*arguments: Any) -> Any:  # what is in the files is the same in each of some thousand runs
        text = Path("m.yaml").read_text()
        artifacts[text] = artifacts.get(text) or make(*arguments)
        return artifacts[text]

    monkeypatch.setattr(pipeline, "generate", generate_once)
    made = {}
    for text in (AFTER, MEANT, BEFORE):
        Path("m.yaml").write_text(text)
        restored(Path("generated"), {})
        assert generate() == 0
        made[text] = tree(Path("generated"))
    return made


@pytest.mark.long
@pytest.mark.parametrize("then", [BEFORE, AFTER], ids=["taken-back", "edited"])
def test_after_a_kill_the_next_run_makes_what_a_first_run_makes(
    then: str, states: dict[str, dict[str, bytes | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        Path("m.yaml").write_bytes(MEANT.encode())
        generate()

    began = 0
    for number in each_kill(work):
        Path("m.yaml").write_text(then)
        left = tree(Path("generated"))
        capsys.readouterr()
        status = generate("--check")
        told = capsys.readouterr().err
        assert tree(Path("generated")) == left  # it only looks
        assert (status, "SW402" in told) == (0 if left == states[then] else status, False), (number, told)
        if journal.was_interrupted(Path("generated")):
            began += 1
            assert "error[SW407]: a run that was writing here was killed before it finished" in told
        assert generate() == 0, (number, capsys.readouterr().err)
        assert tree(Path("generated")) == states[then], number
        restored(Path("generated"), states[BEFORE])
    assert began > 10


@pytest.mark.long
def test_after_a_kill_in_the_first_run_of_all_the_next_one_makes_the_same(
    states: dict[str, dict[str, bytes | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    restored(Path("generated"), {})
    Path("m.yaml").write_text(MEANT)
    for number in [*range(1, 9), *range(9, 1000, 31)]:
        if not killed(number, generate):
            break
        Path("m.yaml").write_text(AFTER)
        assert generate() == 0, (number, capsys.readouterr().err)
        assert tree(Path("generated")) == states[AFTER], number
        Path("m.yaml").write_text(MEANT)
        restored(Path("generated"), {})
    else:
        raise AssertionError("it never ends")


@pytest.mark.long
def test_a_kill_while_a_killed_run_is_mended_changes_nothing_of_that(
    states: dict[str, dict[str, bytes | None]],
) -> None:
    Path("m.yaml").write_text(MEANT)
    half: dict[str, bytes | None] = {}
    for _ in each_kill(generate):  # until one file is replaced, and others have only temporary files
        half = tree(Path("generated"))
        is_new = half.get("killed_mcp/__init__.py") == states[MEANT]["killed_mcp/__init__.py"]
        if is_new and len([name for name in half if name.endswith(".tmp")]) > 1:
            break
        restored(Path("generated"), states[BEFORE])
    else:
        raise AssertionError("it is never half done")
    assert journal.was_interrupted(Path("generated"))
    Path("m.yaml").write_text(AFTER)
    for number in each_kill(generate):
        assert generate() == 0
        assert tree(Path("generated")) == states[AFTER], number
        restored(Path("generated"), half)


@pytest.mark.long
def test_a_file_that_was_edited_is_known_after_a_kill_too(
    states: dict[str, dict[str, bytes | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    edited = Path("generated/killed_mcp/models/a.py")
    for number in each_kill(lambda: (Path("m.yaml").write_bytes(MEANT.encode()), generate())):
        edited.write_bytes(edited.read_bytes() + b"# mine\n")
        Path("m.yaml").write_text(AFTER)
        assert generate() == 1
        assert "models/a.py:1:1: error[SW402]" in capsys.readouterr().err, number
        assert edited.read_bytes().endswith(b"# mine\n")
        assert list(Path("generated").rglob("*.tmp")) == []
        restored(Path("generated"), states[BEFORE])


def test_what_one_command_writes_replaces_what_its_killed_run_left(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for _ in each_kill(lambda: disk.create(page, "new")):
        disk.create(page, "after")
        assert tree(tmp_path) == {"page.html": b"after"}
        page.unlink()


def test_a_lock_keeps_each_digest_that_a_file_may_have() -> None:
    both = frozenset({digests.compute_digest(b"1"), digests.compute_digest(b"2")})
    known = lock.load(lock.dump(lock.Lock("1", {"m": lock.Entry("", {"a.py": both, "b.py": both})})))
    assert known.manifests["m"].files == {"a.py": both, "b.py": both}
