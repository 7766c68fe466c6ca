"""Writing a tree: our files, other files, and failures to write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import amounts
from stubwright import __version__
from stubwright.codegen.pages.artifacts import Artifact
from stubwright.diagnostics import Place
from stubwright.incremental import digests
from stubwright.project import freshness
from stubwright.project.files import disk, inside, journal, layout, lock, tree
from stubwright.project.files.tree import Changes
from stubwright.project.saved_findings import SavedFindings

MANIFEST = "specs/weather.yaml"


def write(output: Path, files: dict[str, str], *, manifest: str = MANIFEST, force: bool = False) -> Changes:
    artifacts = [Artifact(path, text.encode()) for path, text in files.items()]
    changes = tree.compare(
        tree.Tree(output), journal.read_lock(output), manifest, lock.Entry("sha256:1"), artifacts, force=force
    )
    tree.apply(output, changes)
    if not changes.diagnostics:
        note = freshness.make_note(disk.Disk(), output, "", changes.lock.manifests[manifest], SavedFindings("", ""))
        freshness.remember(output, manifest, note)
    return changes


def is_fresh(output: Path, *, manifest: str = MANIFEST, option: str = "") -> bool:
    path = str(layout.find_above(output) / manifest)
    return freshness.find_untouched(disk.Disk(), output, journal.read_lock(output), path, option) is not None


def entry(hash_: str, files: list[tuple[str, bytes]]) -> lock.Entry:
    return lock.Entry(hash_, {path: frozenset({digests.compute_digest(data)}) for path, data in files})


def contents(output: Path) -> dict[str, str]:
    files = (path for path in output.rglob("*") if path.is_file() and path.name != lock.NAME)
    return {path.relative_to(output).as_posix(): path.read_text() for path in files}


def crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def codes(changes: Changes) -> list[str]:
    return [diagnostic.code for diagnostic in changes.diagnostics]


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    write(tmp_path, {"p/a.py": "1", "p/b.py": "2"})
    before = (tmp_path / "p/a.py").stat().st_mtime_ns
    changes = write(tmp_path, {"p/a.py": "1", "p/b.py": "3"})
    assert [change.path for change in changes.changes] == ["p/b.py"]
    assert changes.kept == 1
    assert (tmp_path / "p/a.py").stat().st_mtime_ns == before
    assert contents(tmp_path) == {"p/a.py": "1", "p/b.py": "3"}


def test_files_that_are_no_longer_made_go_and_their_folders_too(tmp_path: Path) -> None:
    write(tmp_path, {"p/a.py": "1", "p/models/b.py": "2"})
    write(tmp_path, {"p/a.py": "1"})
    assert contents(tmp_path) == {"p/a.py": "1"}
    assert not (tmp_path / "p/models").exists()


def test_a_folder_with_a_file_of_somebody_else_stays(tmp_path: Path) -> None:
    write(tmp_path, {"p/models/b.py": "2"})
    (tmp_path / "p/models/notes.txt").write_text("mine")
    write(tmp_path, {"p/a.py": "1"})
    assert contents(tmp_path) == {"p/a.py": "1", "p/models/notes.txt": "mine"}


def test_a_foreign_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/a.py").write_text("mine")
    for force in (False, True):
        changes = write(tmp_path, {"p/a.py": "1", "p/b.py": "2"}, force=force)
        assert codes(changes) == ["SW403"]
        assert contents(tmp_path) == {"p/a.py": "mine"}
    assert not (tmp_path / lock.NAME).exists()


def test_a_foreign_file_with_the_same_content_is_adopted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    assert codes(write(tmp_path, {"a.py": "1"})) == []
    assert journal.read_lock(tmp_path).find_owner("a.py") == MANIFEST


def test_an_edited_file_is_left_alone_until_forced(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "1"})
    (tmp_path / "a.py").write_text("edited")
    changes = write(tmp_path, {"a.py": "2", "b.py": "3"})
    assert codes(changes) == ["SW402"]
    assert contents(tmp_path) == {"a.py": "edited"}
    assert codes(write(tmp_path, {"a.py": "2", "b.py": "3"})) == ["SW402"]
    assert codes(write(tmp_path, {"a.py": "2", "b.py": "3"}, force=True)) == []
    assert contents(tmp_path) == {"a.py": "2", "b.py": "3"}


def test_what_is_refused_leaves_the_lock_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "1", "b.py": "1"})
    before = (tmp_path / lock.NAME).read_bytes()
    (tmp_path / "a.py").write_text("edited")
    assert codes(write(tmp_path, {"a.py": "2", "c.py": "3"})) == ["SW402"]
    assert (tmp_path / lock.NAME).read_bytes() == before
    assert contents(tmp_path) == {"a.py": "edited", "b.py": "1"}


def test_other_ends_of_lines_are_no_edit_but_are_mended_by_force(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "1\n", "b.py": "2\r\n", "c.py": "3\n"})
    before = (tmp_path / lock.NAME).read_bytes()
    for path, data in (("a.py", b"1\r\n"), ("b.py", b"2\n"), ("c.py", b"3\r\n"), (lock.NAME, crlf(before))):
        (tmp_path / path).write_bytes(data)
    changes = write(tmp_path, {"a.py": "1\n", "b.py": "2\r\n", "c.py": "3\n"})
    assert (changes.changes, changes.diagnostics, changes.kept) == ((), (), 3)
    assert (tmp_path / lock.NAME).read_bytes() == crlf(before)
    changes = write(tmp_path, {"a.py": "4\n", "b.py": "2\r\n"})
    assert codes(changes) == []
    assert (tmp_path / "a.py").read_bytes() == b"4\n"
    assert not (tmp_path / "c.py").exists()
    write(tmp_path, {"a.py": "4\n", "b.py": "2\r\n"}, force=True)
    assert (tmp_path / "b.py").read_bytes() == b"2\r\n"


def test_a_file_that_is_not_text_has_no_ends_of_lines(tmp_path: Path) -> None:
    write(tmp_path, {"a.bin": "\0\n"})
    (tmp_path / "a.bin").write_bytes(b"\0\r\n")
    assert codes(write(tmp_path, {"a.bin": "\0\n"})) == ["SW402"]


def test_an_edited_file_that_is_no_longer_made_stays(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "1", "b.py": "2"})
    (tmp_path / "b.py").write_text("edited")
    assert codes(write(tmp_path, {"a.py": "1"})) == ["SW404"]
    assert contents(tmp_path) == {"a.py": "1", "b.py": "edited"}


def test_a_generated_file_without_a_lock_is_only_overwritten_when_forced(tmp_path: Path) -> None:
    text = "# Generated by stubwright from specs/weather.yaml. DO NOT EDIT.\n"
    (tmp_path / "a.py").write_text(text)
    assert codes(write(tmp_path, {"a.py": text + "2"})) == ["SW402"]
    assert codes(write(tmp_path, {"a.py": text + "2"}, force=True)) == []
    assert contents(tmp_path) == {"a.py": text + "2"}


def test_two_manifests_do_not_touch_each_other(tmp_path: Path) -> None:
    output = tmp_path / "generated"
    (tmp_path / MANIFEST).parent.mkdir(parents=True)
    (tmp_path / MANIFEST).touch()
    write(output, {"p/a.py": "1"})
    write(output, {"q/a.py": "2"}, manifest="specs/other.yaml")
    write(output, {"p/b.py": "3"})
    assert contents(output) == {"p/b.py": "3", "q/a.py": "2"}
    assert codes(write(output, {"p/b.py": "4"}, manifest="specs/other.yaml")) == ["SW401"]
    assert contents(output)["p/b.py"] == "3"
    (tmp_path / MANIFEST).unlink()
    assert codes(write(output, {"p/c.py": "4"}, manifest="specs/other.yaml")) == []
    assert codes(write(output, {"p/b.py": "4"}, manifest="specs/other.yaml")) == []
    assert contents(output) == {"p/b.py": "4"}


def test_a_file_and_a_folder_take_the_place_of_each_other(tmp_path: Path) -> None:
    for files in ({"p/a": "1", "b": "1"}, {"p/a/x/y": "2", "b": "2"}, {"p": "3"}, {"p/a": "4", "p/c": "4"}):
        assert codes(write(tmp_path, files)) == []
        assert contents(tmp_path) == files
    (tmp_path / "p/mine").touch()
    with pytest.raises(IsADirectoryError):
        write(tmp_path, {"p": "5"})
    assert contents(tmp_path) == {"p/a": "4", "p/c": "4", "p/mine": ""}


def test_pruning_removes_manifests_that_are_gone(tmp_path: Path) -> None:
    write(tmp_path, {"p/a.py": "1"})
    write(tmp_path, {"q/a.py": "2"}, manifest="specs/other.yaml")
    changes = tree.prune(tmp_path, journal.read_lock(tmp_path), [MANIFEST])
    tree.apply(tmp_path, changes)
    assert contents(tmp_path) == {"p/a.py": "1"}
    assert list(journal.read_lock(tmp_path).manifests) == [MANIFEST]


def fail_staging(number: int, why: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let staging fail at one file: the lock is the first, and then they come in their order."""
    opened = os.fdopen
    calls = 0

    def full(handle: int, mode: str) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            os.close(handle)
            raise why
        return opened(handle, mode)

    monkeypatch.setattr(os, "fdopen", full)


@pytest.mark.parametrize("why", [OSError(28, "No space left on device"), KeyboardInterrupt("No space left")])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_changes_when_the_disk_is_full_or_a_person_interrupts(
    number: int, why: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"p/a.py": "1"})
    before = {**contents(tmp_path), lock.NAME: (tmp_path / lock.NAME).read_text()}
    fail_staging(number, why, monkeypatch)
    with pytest.raises(type(why), match="No space left"):
        write(tmp_path, {"p/a.py": "2", "p/new/deep/b.py": "3"})
    monkeypatch.undo()
    assert {**contents(tmp_path), lock.NAME: (tmp_path / lock.NAME).read_text()} == before
    assert not (tmp_path / "p/new").exists()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_output_folder_that_cannot_be_filled_is_not_left_there(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_staging(number, OSError(28, "No space left on device"), monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "new/out", {"p/a.py": "1", "q/b.py": "2"})
    assert [*tmp_path.iterdir()] == []


def test_fresh_means_the_same_options_and_untouched_files(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "1"})
    assert is_fresh(tmp_path)
    assert not is_fresh(tmp_path, option=" -o b")
    assert not is_fresh(tmp_path, manifest="specs/other.yaml")
    (tmp_path / "a.py").write_text("edited")
    assert not is_fresh(tmp_path)
    (tmp_path / "a.py").unlink()
    assert not is_fresh(tmp_path)


def test_a_lock_does_not_say_what_is_fresh(tmp_path: Path) -> None:
    """One that fits what is on disk is not believed: what was written is noted elsewhere."""
    write(tmp_path, {"a.py": "1"})
    (tmp_path / "a.py").write_text("forged")
    forged = lock.Lock(__version__, {MANIFEST: entry("sha256:1", [("a.py", b"forged")])})
    (tmp_path / lock.NAME).write_text(lock.dump(forged))
    assert not is_fresh(tmp_path)


def test_a_lock_reads_back() -> None:
    made = lock.Lock("1", {"b": entry("sha256:1", [("x/y.py", b"1")]), "a": entry("sha256:2", [])})
    assert lock.load(lock.dump(made)) == made
    assert lock.dump(lock.load(lock.dump(made))) == lock.dump(made)


def test_a_lock_in_conflict_is_read_as_both_sides() -> None:
    ours = lock.Lock("1", {"m": entry("sha256:" + "1" * 64, [("a.py", b"1"), ("b.py", b"2")])})
    theirs = lock.Lock("1", {"m": entry("sha256:" + "2" * 64, [("a.py", b"3"), ("c.py", b"4")])})
    left, right = lock.dump(ours).splitlines(), lock.dump(theirs).splitlines()
    start, end = 4, -4  # from the digest of the whole to the last file
    text = "\n".join(
        [*left[:start], "<<<<<<< HEAD", *left[start:end], "=======", *right[start:end], ">>>>>>> theirs", *left[end:]]
    )
    merged = lock.load(text).manifests["m"]
    assert merged.hash == ""
    assert merged.files == {
        "a.py": {digests.compute_digest(b"1"), digests.compute_digest(b"3")},
        "b.py": {digests.compute_digest(b"2")},
        "c.py": {digests.compute_digest(b"4")},
    }


@pytest.mark.parametrize("section", ["inputs", "tools"])
def test_an_older_lock_in_conflict_owns_its_files_alone(section: str) -> None:
    """Such a lock has more sections, with entries like the entries of files."""
    made = lock.dump(lock.Lock("1", {"m": entry("sha256:" + "1" * 64, [("a.py", b"1")])}))
    more = f'"{section}": {{\n        "other": "{digests.compute_digest(b"2")}"\n      }}'
    before = made.replace('"files": {', f'{more},\n      "files": {{')
    after = made.replace("\n      }\n    }", f"\n      }},\n      {more}\n    }}")
    for text in (before, after):
        assert text != made
        conflicting = text.replace('  "generator": "1",', '<<<<<<< HEAD\n  "generator": "1",\n=======\n>>>>>>> theirs')
        assert lock.load(conflicting).manifests == {
            "m": lock.Entry("", {"a.py": frozenset({digests.compute_digest(b"1")})})
        }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"generator": "1", "manifests": []}', "\0", "[" * 100_000])
def test_what_is_not_a_lock_is_refused(text: str) -> None:
    with pytest.raises(lock.LockError):
        lock.load(text)


def test_a_lock_may_not_list_files_outside_the_output_folder() -> None:
    made = lock.Lock("1", {"m": entry("sha256:1", [("../victim.py", b"1")])})
    with pytest.raises(lock.LockError, match=r"`\.\./victim\.py`, which is outside"):
        lock.load(lock.dump(made))


def link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def replaced(path: Path, to: Path) -> None:
    """Put a link where a file or a folder is, which moves to where it leads."""
    path.rename(to)
    link(path, to)


@pytest.mark.parametrize("files", [{"p/m/a.py": "1"}, {"p/m/a.py": "2"}, {"p/c.py": "3"}, {}], ids=str)
@pytest.mark.parametrize("where", ["p", "p/m", "p/m/a.py"])
@pytest.mark.parametrize(
    ("leads", "force"),
    [
        ("outside", False),
        ("outside", True),
        ("inside", True),
        ("nowhere", False),
        amounts.mark_long(("inside", False)),
        amounts.mark_long(("nowhere", True)),
    ],
)
def test_nothing_is_done_through_a_link(
    files: dict[str, str], where: str, leads: str, force: bool, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    write(output, {"p/m/a.py": "1"})
    away = {"outside": tmp_path / "there", "inside": output / "there", "nowhere": tmp_path / "there"}[leads]
    replaced(output / where, away)
    if leads == "nowhere":
        away.rename(tmp_path / "elsewhere")
    before, listed = contents(tmp_path), (output / lock.NAME).read_text()
    changes = write(output, files, force=force)
    assert codes(changes) == ["SW408"]
    assert [one.at.file for one in changes.diagnostics if isinstance(one.at, Place)] == [str(output / where)]
    assert not is_fresh(output)
    pruned = tree.prune(output, journal.read_lock(output), [])
    tree.apply(output, pruned)
    assert codes(pruned) == ["SW408"]
    assert (contents(tmp_path), (output / lock.NAME).read_text()) == (before, listed)
    assert (output / where).is_symlink()


@pytest.mark.parametrize("leads", ["outside", "nowhere"])
def test_new_files_are_not_made_through_a_link(leads: str, tmp_path: Path) -> None:
    output, away = tmp_path / "out", tmp_path / "away"
    if leads == "outside":
        away.mkdir()
    link(output / "p/models", away)
    assert codes(write(output, {"p/a.py": "1", "p/models/x.py": "2"}, force=True)) == ["SW408"]
    assert contents(tmp_path) == {}


def test_applying_follows_no_link_that_came_late(tmp_path: Path) -> None:
    output, away = tmp_path / "out", tmp_path / "away"
    away.mkdir()
    (away / "a.py").write_text("mine")
    link(output / "p", away)
    for new in (b"1", None):
        with pytest.raises(inside.NotWritableError, match="it is a link"):
            tree.apply(output, Changes((tree.Change("p/a.py", b"mine", new),), 0, lock.Lock("1"), ()))
    assert contents(tmp_path) == {"away/a.py": "mine"}


def test_the_output_folder_may_be_reached_through_links(tmp_path: Path) -> None:
    (tmp_path / "real/inner").mkdir(parents=True)
    link(tmp_path / "way", tmp_path / "real")
    link(tmp_path / "real/out", tmp_path / "real/inner")
    output = tmp_path / "way/out"
    for files in ({"p/a.py": "1", "p/m/b.py": "1"}, {"p/a.py": "2"}):
        assert codes(write(output, files)) == []
        assert is_fresh(output)
        assert contents(tmp_path / "real/inner") == files


def test_a_lock_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "out", {"a.py": "1"})
    path = tmp_path / "out" / lock.NAME
    path.rename(tmp_path / "lock")
    makes: list[tuple[Callable[[], None], str]] = [
        (lambda: path.symlink_to(tmp_path / "lock"), "a link"),
        (lambda: os.mkfifo(path), "a pipe"),
        (lambda: path.mkdir(), "a folder"),
    ]
    for make, what in makes:
        make()
        with pytest.raises(lock.LockError, match=f"it is {what}"):
            journal.read_lock(tmp_path / "out")
        path.rmdir() if path.is_dir() else path.unlink()


def test_files_with_other_names_elsewhere_stay_as_they_are(tmp_path: Path) -> None:
    write(tmp_path / "out", {"p/a.py": "1", "p/b.py": "1", "c.py": "1"})
    for name in ("p/a.py", "p/b.py", lock.NAME):
        (tmp_path / Path(name).name).hardlink_to(tmp_path / "out" / name)
    listed = (tmp_path / lock.NAME).read_text()
    assert codes(write(tmp_path / "out", {"p/a.py": "2", "c.py": "1"})) == []
    assert contents(tmp_path) == {"out/p/a.py": "2", "out/c.py": "1", "a.py": "1", "b.py": "1"}
    assert (tmp_path / lock.NAME).read_text() == listed


def test_what_is_no_file_is_neither_opened_nor_replaced(tmp_path: Path) -> None:
    output = tmp_path / "out"
    write(output, {"p/a.py": "1", "p/b.py": "1"})
    (output / "p/a.py").unlink()
    os.mkfifo(output / "p/a.py")
    for force in (False, True):
        assert not is_fresh(output)
        changes = write(output, {"p/a.py": "2", "p/b.py": "2"}, force=force)
        assert codes(changes) == ["SW403"]
        assert changes.diagnostics[0].message == "this pipe cannot be replaced: stubwright did not write it"
        assert (output / "p/b.py").read_text() == "1"
    assert codes(write(output, {"p/b.py": "2"})) == ["SW404"]
    assert (output / "p/a.py").is_fifo()
    with pytest.raises(inside.NotWritableError, match="it is a pipe"):
        disk.read_text(output / "p/a.py")


def test_a_cache_that_is_a_link_keeps_what_it_leads_to(tmp_path: Path) -> None:
    output, away = tmp_path / "out", tmp_path / "away"
    write(output, {"p/a.py": "1"})
    away.mkdir()
    (away / "x.pyc").write_text("mine")
    link(output / "p/__pycache__", away)
    assert codes(write(output, {"b.py": "1"})) == []
    assert contents(tmp_path) == {"away/x.pyc": "mine", "out/b.py": "1"}


ODD_PATHS = [
    "\0",
    "a\0b",
    "\ud800",
    "a/\udfff",
    "/etc/passwd",
    "../victim.py",
    "p/../../victim.py",
    "..",
    "",
    ".",
    "a//b",
]


@pytest.mark.parametrize("path", [*ODD_PATHS, "a/", "./a", lock.NAME, r"..\victim.py", r"p\a.py", "C:x"], ids=ascii)
def test_a_lock_lists_only_what_stubwright_can_have_made(path: str) -> None:
    made = lock.Lock("1", {"m": entry("sha256:1", [(path, b"1")])})
    with pytest.raises(lock.LockError, match="it lists "):
        lock.load(json.dumps(json.loads(lock.dump(made))))
