"""The user's cache folder: foreign files in it or in a checkout are not read, and commands work without it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packages import manifest, tool
from stubwright import cli
from stubwright.codegen.models import inspection
from stubwright.incremental import cache
from stubwright.project.files import lock, user_cache

STATEMENT = "import pathlib; pathlib.Path('ran').touch()\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test's own."""
    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def checkout(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a generated package, and with its units in the cache."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_manifest("string")
    assert cli.run(["generate", "m.json", "-q"]) == 0
    return folder


def write_manifest(kind: str, *others: str, **more: Any) -> None:
    tools = [tool("one", {"a": {"type": kind}}), tool("two"), *map(tool, others)]
    Path("m.json").write_text(json.dumps(manifest(tools, **more)))


def model() -> str:
    return Path("generated/sample_mcp/models/one.py").read_text()


def units() -> str:
    """Return the name of the cached units of a checkout in the working folder."""
    return user_cache.name(Path("generated"), "m.json", "units")


def test_what_was_kept_is_read_again(kept: Path) -> None:
    user_cache.write("a", b"1")
    user_cache.write("b", b"2")
    assert (user_cache.read("a"), user_cache.read("b"), user_cache.read("c")) == (b"1", b"2", None)


def test_nobody_else_can_read_what_is_kept(kept: Path) -> None:
    user_cache.write("a", b"1")
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}
    assert kept.stat().st_mode & 0o777 == 0o700


def test_checkouts_and_output_folders_do_not_share_entries(tmp_path: Path) -> None:
    places = [(tmp_path / "a/out", "m"), (tmp_path / "b/out", "m"), (tmp_path / "a/o", "m"), (tmp_path / "a/out", "n")]
    assert len({user_cache.name(*place, what) for place in places for what in ("note", "units")}) == 8


def flipped(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def of_another_name(path: Path) -> None:
    user_cache.write("b", b"2")
    (other,) = {*path.parent.iterdir()} - {path, path.parent / "key"}
    path.write_bytes(other.read_bytes())


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


ALTERED = [flipped, of_another_name, a_link, a_pipe, lambda path: path.write_bytes(b""), Path.unlink]


@pytest.mark.parametrize("alter", ALTERED)
def test_an_altered_entry_is_not_there(alter: Callable[[Path], None], kept: Path) -> None:
    user_cache.write("a", b"1")
    (path,) = (path for path in kept.iterdir() if path.name != "key")
    alter(path)
    assert user_cache.read("a") is None
    user_cache.write("a", b"3")
    assert user_cache.read("a") == b"3"


def with_key_of_others(folder: Path) -> None:
    (folder / "key").write_bytes(b"k" * 32)  # with its own mode


KEYS: list[Callable[[Path], object]] = [
    with_key_of_others,
    lambda folder: (folder / "key").chmod(0o644),
    lambda folder: (folder / "key").write_bytes(b"short"),
    lambda folder: (folder / "key").unlink(),
    lambda folder: a_link(folder / "key"),
]


@pytest.mark.parametrize("change", KEYS)
def test_a_key_that_another_may_know_is_replaced(change: Callable[[Path], object], kept: Path) -> None:
    user_cache.write("a", b"1")
    first = (kept / "key").read_bytes()
    change(kept)
    assert user_cache.read("a") is None
    user_cache.write("a", b"2")
    assert user_cache.read("a") == b"2"
    assert change is with_key_of_others or (kept / "key").read_bytes() != first
    assert (kept / "key").lstat().st_mode == 0o100600


FOLDERS: list[Callable[[Path], object]] = [
    lambda folder: folder.chmod(0o777),
    lambda folder: folder.chmod(0o720),
    lambda folder: os.chown(folder, 4242, -1),
    lambda folder: a_link(folder),
    lambda folder: (folder.rename(folder.with_name("x")), folder.write_text("a file")),
]


@pytest.mark.parametrize("change", FOLDERS)
def test_a_folder_that_others_can_write_to_is_not_used(change: Callable[[Path], object], kept: Path) -> None:
    user_cache.write("a", b"1")
    try:
        change(kept)
    except PermissionError:
        pytest.skip("only root gives folders away")
    user_cache.write("b", b"2")
    assert (user_cache.read("a"), user_cache.read("b")) == (None, None)


def test_without_a_folder_for_a_cache_all_is_made(
    checkout: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "file" / "below"))
    write_manifest("integer")
    assert cli.run(["generate", "m.json"]) == 0
    assert cli.run(["generate", "m.json"]) == 0
    assert "m.json: up to date" in capsys.readouterr().out
    assert "a: int" in model()


def test_processes_that_start_at_once_agree_on_a_key(kept: Path) -> None:
    program = "import sys; from stubwright.project.files import user_cache as c; c.write(sys.argv[1], b'1')"
    processes = [subprocess.Popen([sys.executable, "-c", program, str(number)]) for number in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert [user_cache.read(str(number)) for number in range(4)] == [b"1"] * 4


def test_what_was_read_longest_ago_goes(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_cache, "_MOST_FILES", 2)
    monkeypatch.setattr(user_cache, "_MOST_BYTES", 500)
    for name in ("a", "b"):
        user_cache.write(name, b"1" * 100)
    for name, age in (("a", 100), ("b", 50)):
        os.utime(kept / user_cache._file(name), (1e9 - age, 1e9 - age))
    assert user_cache.read("a") is not None
    user_cache.write("c", b"1" * 100)
    assert [user_cache.read(name) is not None for name in "abc"] == [True, False, True]
    user_cache.write("d", b"1" * 450)
    assert [user_cache.read(name) is not None for name in "acd"] == [False, False, True]
    staged = kept / ".x.0.1.tmp"
    staged.touch()
    user_cache.write("e", b"1")
    assert staged.exists()
    os.utime(staged, (0, 0))
    user_cache.write("e", b"1")
    assert not staged.exists()


@pytest.mark.parametrize("place", [Path(), Path("generated")])
def test_a_cache_in_a_checkout_is_not_read(place: Path, checkout: Path, kept: Path) -> None:
    """Neither the folder of older versions, nor a copy of the user's folder with its key."""
    data = user_cache.read(units())
    assert data is not None
    value = json.loads(data)
    value["proven"] = []
    for unit in value["units"].values():
        unit[0] += STATEMENT
    old = place / ".stubwright_cache"
    old.mkdir()
    for name in ("m.json.0123456789abcdef.json", *(path.name for path in kept.iterdir())):
        (old / name).write_text(json.dumps(value))
    (old / "key").write_bytes((kept / "key").read_bytes())
    for path in kept.iterdir():
        path.unlink()
    write_manifest("string", "three")
    assert cli.run(["generate", "m.json", "-q"]) == 0
    assert "pathlib" not in model()
    assert not Path("ran").exists()


@pytest.mark.parametrize("column", [0, 2])
def test_code_in_the_cache_is_not_taken(column: int, checkout: Path) -> None:
    """Code is rejected even with a valid key: classes declare fields, and methods call the client."""
    data = user_cache.read(units())
    assert data is not None
    value = json.loads(data)
    value["proven"] = []
    for unit in value["units"].values():
        unit[column] += STATEMENT if column == 0 else f"\n    {STATEMENT}"
    user_cache.write(units(), json.dumps(value).encode())
    assert cache.load(json.dumps(value).encode()).units == {}
    write_manifest("string", "three")
    assert cli.run(["generate", "m.json", "-q"]) == 0
    assert not any("pathlib" in path.read_text() for path in Path("generated/sample_mcp").glob("[mc]*/*.py"))
    assert not Path("ran").exists()


def test_a_forged_lock_hides_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("generated/sample_mcp/models/one.py")
    right = path.read_text()
    path.write_text(right.replace("a: str", "a: int") + STATEMENT)
    forged = json.loads(Path("generated", lock.NAME).read_text())
    forged["manifests"]["m.json"]["files"]["sample_mcp/models/one.py"] = user_digest(path)
    Path("generated", lock.NAME).write_text(json.dumps(forged))
    assert cli.run(["generate", "m.json", "--check"]) == 1
    assert "this file is stale" in capsys.readouterr().err
    assert cli.run(["generate", "m.json"]) == 0
    assert path.read_text() == right
    assert cli.run(["generate", "m.json", "--check"]) == 0


def test_a_forged_journal_hides_nothing_and_writes_nothing(checkout: Path) -> None:
    path = Path("generated/sample_mcp/models/one.py")
    right = path.read_text()
    path.write_text(right + STATEMENT)
    run = "0123456789abcdef"
    made = lock.load(Path("generated", lock.NAME).read_text())
    entry = made.manifests["m.json"]
    forged = lock.Entry(entry.hash, {**entry.files, "sample_mcp/models/one.py": frozenset({user_digest(path)})})
    Path("generated", f".{lock.NAME}.0.{run}.tmp").write_text(lock.dump(lock.Lock(made.generator, {"m.json": forged})))
    Path("generated/sample_mcp/models", f".one.py.1.{run}.tmp").write_text(STATEMENT)
    assert cli.run(["generate", "m.json", "--check"]) == 1
    assert cli.run(["generate", "m.json", "-q"]) == 0
    assert path.read_text() == right
    assert not [*Path("generated").rglob("*.tmp")]


@pytest.mark.parametrize("text", ["{", "[]", '{"tools": 1}', '{"tools": [{"name": 1}]}', "[" * 9999])
def test_a_forged_document_of_a_package_is_as_good_as_none(text: str, checkout: Path) -> None:
    Path("handlers.py").write_text("class Own:\n    pass\n")
    write_manifest("string", python={"handlers": "handlers:Own"})
    cli.run(["generate", "m.json", "-q"])
    path = Path("generated/sample_mcp/manifest.json")
    path.write_text(text)
    forged = json.loads(Path("generated", lock.NAME).read_text())
    forged["manifests"]["m.json"]["files"]["sample_mcp/manifest.json"] = user_digest(path)
    Path("generated", lock.NAME).write_text(json.dumps(forged))
    assert cli.run(["check", "m.json"]) == 0
    assert cli.run(["generate", "m.json", "-q"]) == 0
    assert json.loads(path.read_text())["tools"]


def user_digest(path: Path) -> str:
    from stubwright.incremental import digests

    return digests.compute_digest(path.read_bytes())


MODULE = '''"""A."""

from __future__ import annotations

from typing import TypeAlias

from stubwright_runtime.generated import Model


class A(Model):
    """A."""

    x: int = 1


B: TypeAlias = A
'''
METHOD = '''    @deprecated("x")
    async def one(self, *, a: str | Omit = OMIT, **extra: "int") -> _models.A:
        """A."""
        return await self._call("one", {"a": a}, _models.A, extra)
'''


@pytest.mark.parametrize(
    "line",
    [
        "print(1)",
        "import os",
        "from os import system",
        "from ..x import y as Field",
        "from ..x import *",
        "from stubwright_runtime.generated import main as Field",
        "from stubwright_runtime.generated import main",
        "from stubwright_runtime import Model",
        "from typing import cast as Field",
        "from datetime import datetime as Field",
        "x = 1",
        "B: TypeAlias = print(1)",
        "B: print(1) = A",
        "def f(): ...",
        "@print\nclass C(Model):\n    pass",
    ],
)
def test_a_kept_module_only_declares(line: str) -> None:
    inspection.parse_module(MODULE)
    ast.parse(MODULE + line)
    with pytest.raises(ValueError, match=r"unexpected code|code that no model needs"):
        inspection.parse_module(MODULE + line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('@deprecated("x")', "@print"),
        ('@deprecated("x")', '@deprecated(print("x"))'),
        ('@deprecated("x")', "@_runtime.main"),
        ('@deprecated("x")', "@_runtime.paged()"),
        ('@deprecated("x")', '@_cast("_runtime.PagedBy[print()]", _runtime.PagedBy("a"))'),
        ('@deprecated("x")', '@_cast("_runtime.PagedBy[A]", _runtime.PagedBy(print()))'),
        ('@deprecated("x")', '@_cast("_runtime.PagedBy[A]", print("a"))'),
        ("= OMIT", "= print()"),
        ("a: str", "a: print()"),
        ("a: str", "a: 'print()'"),
        ("_models.A:", "print():"),
        ("await self._call", "await other"),
        ("await self._call", "await self.x._call"),
        ('"one"', "print()"),
        ('{"a": a}', "[x for x in y]"),
        ("return", "print(); return"),
        ("async def", "def"),
        ("        return", "        pass\n        return"),
    ],
)
def test_a_kept_method_only_calls_the_client(old: str, new: str) -> None:
    inspection.parse_method(METHOD)
    inspection.parse_method(METHOD.replace('@deprecated("x")', "@_runtime.paged"))
    inspection.parse_method(METHOD.replace('@deprecated("x")', "@_runtime.started"))
    paged = """@_cast("_runtime.PagedBy[A | Literal['a b'] | None]", _runtime.PagedBy("a"))"""
    inspection.parse_method(METHOD.replace('@deprecated("x")', paged))
    with pytest.raises(ValueError, match=r"code|call the client|not a method"):
        inspection.parse_method(METHOD.replace(old, new, 1))
