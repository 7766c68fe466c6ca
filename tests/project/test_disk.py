"""Single files that commands read and write, and modules that they look up."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest

from stubwright.project.files import disk, inside

MOST = 64 * 1024 * 1024


@pytest.mark.parametrize("size", [0, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, MOST])
def test_a_file_of_64_mib_and_less_is_read_whole(size: int, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", size)
    assert len(disk.Disk().read(str(tmp_path / "a"))) == size


def test_a_file_of_more_than_64_mib_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", MOST + 1)
    with pytest.raises(OSError, match=r"^it is larger than 64 MiB$"):
        disk.Disk().read(str(tmp_path / "a"))


def test_a_staged_file_that_somebody_removed_fails_by_the_name_of_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed(path: Path, target: Path) -> Path:
        path.unlink()
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "replace", removed)
    with pytest.raises(FileNotFoundError) as raised:
        disk.write(tmp_path / "a", b"new")
    assert raised.value.filename == str(tmp_path / "a")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="open files have no names here")
def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """A file moved to `/dev/stdout` or `/dev/full`, as root can, would take it from all programs."""
    source, sink = os.pipe()
    disk.write(Path(f"/dev/fd/{sink}"), b"new")
    assert os.read(source, 10) == b"new"
    with (tmp_path / "open").open("w") as file:
        file.write("old, ")
        file.flush()
        disk.write(Path(f"/dev/fd/{file.fileno()}"), b"new")
    assert (tmp_path / "open").read_bytes() == b"old, new"
    disk.write(Path(os.devnull), b"new")
    assert not Path(os.devnull).is_file()
    (tmp_path / "link").symlink_to(f"/dev/fd/{sink}")  # a checkout may hold one to any device
    disk.write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_file()
    assert not (tmp_path / "link").is_symlink()
    os.close(source)
    os.close(sink)


def test_windows_is_asked_again_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    pauses = runpy.run_path(disk.__file__)["_PAUSES"]
    assert list(pauses) == sorted(pauses)
    assert pauses[0] > 0
    assert 1.8 < sum(pauses) < 2.2


@pytest.mark.parametrize(
    ("name", "is_there"),
    [
        ("json", True),
        ("json.decoder", True),
        ("json.no_such_module", True),  # its package is installed, which is the question
        ("no_such_package", False),
        ("no_such_package.json", False),
        ("own", False),
        ("own.json", False),
    ],
)
def test_a_module_is_importable_if_its_package_is_installed_elsewhere(
    name: str, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert disk.is_importable(name, [str(tmp_path)]) == is_there
    assert disk.is_importable("own", [])


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [
        ("in", True),
        ("in/", True),
        ("in/a", True),
        ("in/no/such/file", True),
        ("in/../in/a", True),
        ("in/back", True),
        ("in/to-itself", True),
        ("inside", False),
        ("in/..", False),
        ("in/../a", False),
        ("a", False),
        ("in/out", False),
        ("in/out/a", False),
        ("in/a\0", False),  # no file has such a path
        ("in/\ud800", False),
    ],
    ids=ascii,
)
def test_a_path_is_inside_where_it_really_is(
    path: str, is_inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("in/folder", "inside"):
        Path(folder).mkdir(parents=True)
    for file in ("a", "in/a", "inside/a"):
        Path(file).touch()
    Path("in/back").symlink_to(tmp_path / "in/a")
    Path("in/to-itself").symlink_to(tmp_path / "in")
    Path("in/out").symlink_to(tmp_path / "inside")
    assert inside.ContainedFolder("in").holds(path) == is_inside
    assert disk.Disk().is_within(path, "in") == is_inside


def test_a_text_is_that_of_a_file_and_of_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xc3\xa9\xff\r\n")
    assert disk.read_text(tmp_path / "a") == "é\ufffd\r\n"
    assert disk.read_text(tmp_path / "b") is None
    assert disk.read_text(tmp_path / "a/b") is None
    with pytest.raises(IsADirectoryError) as raised:
        disk.read_text(tmp_path)
    assert raised.value.filename == str(tmp_path)
