"""A second run reuses unchanged results of the first, with the same output as a clean run."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import amounts
from packages import manifest, tool
from stubwright import cli, ir
from stubwright.codegen.models import reserved_names
from stubwright.codegen.pages import modules
from stubwright.compile import pipeline, rules
from stubwright.incremental import cache, worker
from stubwright.project.files import disk, user_cache

Files = dict[str, Any]
Edit = Callable[[Files], None]

LOCK = "stubwright.lock.json"
TOOLS = [
    tool("first", {"n": {"type": "integer", "default": 1}}),
    tool(
        "second", {"place": {"$ref": "#/schemas/Place"}}, stubwright={"examples": [{"input": {"place": {"city": "X"}}}]}
    ),
    tool("third", stubwright={"deprecated": {"use": "first"}}),
]
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}}


def files() -> Files:
    more = {"tools": [tool("fourth"), tool("fifth", title="Fifth")], "lint": {"ignore": ["SW312"]}}
    own = manifest(copy.deepcopy(TOOLS), schemas={"Place": copy.deepcopy(PLACE)}, include=["more.json", "other.json"])
    return {"manifest.json": own, "more.json": more, "other.json": {"schemas": {"Area": {"type": "string"}}}}


def generated(folder: Path, what: Files, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, bytes], str]:
    """Return the output folder's contents after a run, and the run's report on the manifest."""
    for name, value in what.items():
        (folder / name).write_text(json.dumps(value))
    cli.run(["generate", "--strict", "manifest.json"])  # which says each warning
    output = folder / "generated"
    tree = {str(path.relative_to(output)): path.read_bytes() for path in output.rglob("*") if path.is_file()}
    return tree, capsys.readouterr().err


def made_of(tree: dict[str, bytes]) -> dict[str, Any]:
    """Return the lock's entries for files; its other entries may be older if no generated file changed."""
    kept = json.loads(tree[LOCK])["manifests"]["manifest.json"]
    return {key: kept[key] for key in ("hash", "files")}


def both(
    edit: Edit,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    before: Edit | None = None,
) -> str:
    """Run, edit and run again, and compare the output with a clean run's. Return the report."""
    start = files()
    if before is not None:
        before(start)
    generated(tmp_path, start, capsys)
    edit(start)
    again, said = generated(tmp_path, start, capsys)
    if ": error[" in said:
        return said
    shutil.rmtree(tmp_path / "generated")
    shutil.rmtree(user_cache.locate())
    cold, first = generated(tmp_path, start, capsys)
    assert first == said
    assert cold.keys() == again.keys()
    assert {path for path in again if cold[path] != again[path]} <= {LOCK}
    assert made_of(again) == made_of(cold)
    return said


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "cache"))


def in_the_middle(what: Files) -> None:
    what["manifest.json"]["tools"][1]["inputSchema"]["properties"]["more"] = {"type": "string"}


def moved(what: Files) -> None:
    what["manifest.json"]["tools"].reverse()


def moved_to_a_file(what: Files) -> None:
    what["other.json"]["tools"] = [what["manifest.json"]["tools"].pop(0)]


def prefixed(what: Files) -> None:
    what["manifest.json"]["include"][0] = {"path": "more.json", "prefix": "p_"}


def overlaid(what: Files) -> None:
    what["manifest.json"]["overlay"] = {"tools": {"fourth": {"examples": [{"input": {}}]}}}


def of_an_example(what: Files) -> None:
    what["manifest.json"]["tools"][0]["stubwright"] = {"examples": [{"input": {"n": 2}}]}


def of_a_shared_schema(what: Files) -> None:
    what["manifest.json"]["schemas"]["Place"]["properties"]["zip"] = {"type": "string"}


def of_the_server(what: Files) -> None:
    what["manifest.json"]["server"]["version"] = "2"


EDITS = [in_the_middle, moved, moved_to_a_file, prefixed, overlaid, of_an_example, of_a_shared_schema, of_the_server]


@pytest.mark.parametrize("edit", amounts.sample(EDITS, 2))
def test_an_edit_gives_what_a_run_from_nothing_gives(
    edit: Edit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert both(edit, tmp_path, capsys) == ""


def wandering(chance: random.Random) -> Iterator[Files]:
    """One edit after another, and now and then back to the start."""
    start = what = files()
    while True:
        yield what
        what = copy.deepcopy(what)
        own = what["manifest.json"]
        match chance.randrange(9):
            case 0 if own["tools"]:
                own["tools"].pop(chance.randrange(len(own["tools"])))
            case 1:
                own["tools"].insert(
                    0, tool(chance.choice(["first", "sixth", "se-venth"]), stubwright=chance.choice(OURS))
                )
            case 2:
                own["policy"] = {"confirm": chance.random() < 0.5}
            case 3:
                own["emit"] = chance.choice([["server"], ["client"], ["server", "client"]])
            case 4:
                own["formats"] = chance.choice(["annotate", "assert"])
            case 5:
                own["prompts"] = [{"name": chance.choice(["plan", "ask"]), "arguments": [{"name": "a"}]}]
            case 6:
                own["resources"] = [{"uri": "x://a", "name": "about", "stubwright": {"text": chance.choice("ab")}}]
            case 7:
                own["python"] = {"package": chance.choice(["sample_mcp", "other_mcp"])}
            case _:
                chance.choice(EDITS)(what)
        if chance.random() < 0.1:
            what = start


OURS = [
    {},
    {"deprecated": {"use": "third"}},
    {"policy": {"confirm": False}},
    {"pythonName": "eighth"},
    {"ask": {"sure": {"message": "Sure?", "schema": {"type": "object", "properties": {"yes": {"type": "boolean"}}}}}},
]


@pytest.mark.long
@pytest.mark.parametrize(("seed", "edits"), [(0, 4), *map(amounts.mark_long, [(0, 10), (1, 10)])])
def test_any_way_to_a_manifest_gives_what_a_run_from_nothing_gives(
    seed: int, edits: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = tmp_path / "cold"
    steps = wandering(random.Random(seed))
    for _ in range(edits):
        what = next(steps)
        again, said = generated(tmp_path, what, capsys)
        shutil.rmtree(cold, ignore_errors=True)
        cold.mkdir()
        monkeypatch.chdir(cold)
        monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "empty"))
        first, told = generated(cold, what, capsys)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "cache"))
        shutil.rmtree(tmp_path / "empty", ignore_errors=True)
        assert said == told
        if ": error[" in said:
            steps = wandering(random.Random(f"{seed} {len(said)}"))
        else:
            assert {path: data for path, data in again.items() if path != LOCK} == {
                path: data for path, data in first.items() if path != LOCK
            }
            assert made_of(again) == made_of(first)


@pytest.mark.long
def test_what_surrounds_a_tool_can_break_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shared(what: Files) -> None:
        what["manifest.json"]["schemas"]["Place"]["required"] = ["zip"]

    def revision(what: Files) -> None:
        what["manifest.json"]["protocol"] = {"min": "2024-11-05"}

    def successor(what: Files) -> None:
        del what["manifest.json"]["tools"][0]

    def overlay(what: Files) -> None:
        what["manifest.json"]["overlay"] = {"tools": {"first": {"examples": [{"input": {"n": "one"}}]}}}

    def file(what: Files) -> None:
        what["other.json"]["tools"] = [what["manifest.json"]["tools"].pop(1)]

    assert "error[SW220]" in both(file, tmp_path, capsys)
    assert "error[SW240]" in both(shared, tmp_path, capsys)
    assert "warning[SW340]" in both(revision, tmp_path, capsys)
    assert "error[SW251]" in both(successor, tmp_path, capsys)
    assert "error[SW240]" in both(overlay, tmp_path, capsys)


@pytest.mark.long
def test_a_tool_leaves_the_file_that_ignores_its_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ignored(what: Files) -> None:
        del what["more.json"]["tools"][0]["description"]

    def move(what: Files) -> None:
        what["manifest.json"]["tools"].append(what["more.json"]["tools"].pop(0))

    assert "warning[SW312]" in both(move, tmp_path, capsys, before=ignored)


def test_a_warning_is_said_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def wordless(what: Files) -> None:
        del what["manifest.json"]["tools"][0]["description"]

    assert "warning[SW312]: `first` has no description" in both(in_the_middle, tmp_path, capsys, before=wordless)


def test_a_schema_that_breaks_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(what: Files) -> None:
        what["manifest.json"]["tools"][0]["inputSchema"]["properties"]["n"]["type"] = "intger"

    assert "error[SW203]: `intger` is not a JSON Schema type" in both(broken, tmp_path, capsys)


UNUSABLE = [b"", b"{", b"[]", b'{"format": 0}', b'{"format": 1, "units": {"a": [1]}}', b"\xff"]


@pytest.mark.parametrize("data", UNUSABLE)
def test_a_cache_that_cannot_be_read_has_no_units(data: bytes) -> None:
    assert not cache.load(data).units


@pytest.mark.parametrize("data", amounts.sample(UNUSABLE, 1))
def test_a_cache_that_cannot_be_used_is_as_good_as_none(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what = files()
    generated(tmp_path, what, capsys)
    units = user_cache.name(tmp_path / "generated", "manifest.json", "units")
    user_cache.write(units, data)
    in_the_middle(what)
    again, _ = generated(tmp_path, what, capsys)
    shutil.rmtree(tmp_path / "generated")
    shutil.rmtree(user_cache.locate())
    cold, _ = generated(tmp_path, what, capsys)
    assert {path: data for path, data in again.items() if path != LOCK} == {
        path: data for path, data in cold.items() if path != LOCK
    }
    assert cache.load(user_cache.read(units)).units


def test_what_is_clean_is_not_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[list[str]] = []
    check = rules.check

    def noting(resolved: Any, part: Any = None, **more: Any) -> Any:
        judged.append([tool.name for tool in part.tools])
        return check(resolved, part, **more)

    monkeypatch.setattr(rules, "check", noting)
    both(in_the_middle, tmp_path, capsys)
    everything = ["first", "second", "third", "fourth", "fifth"]
    assert judged == [everything, ["second"], everything]


def lowered(folder: Path) -> ir.Manifest:
    (folder / "m.json").write_text(json.dumps(files()["manifest.json"] | {"include": []}))
    checked = pipeline.compile_manifest("m.json", disk.Disk())
    assert checked.manifest is not None, checked.diagnostics
    return checked.manifest


def test_workers_make_what_would_be_made_here(tmp_path: Path) -> None:
    made = lowered(tmp_path)
    taken = reserved_names.reserve(made)
    parts = (made.tools, modules.find_homes_for(made.tools, made.shared, taken), made.source, made.command, taken)
    workers = worker.Workers()
    results = workers.begin([(modules.make, parts)] * 3, 2)
    assert results() == [modules.make(*parts)] * 3
    workers.stop()


def test_what_a_worker_cannot_do_is_done_here(tmp_path: Path) -> None:
    made = lowered(tmp_path)
    taken = reserved_names.reserve(made)
    parts = (made.tools, modules.find_homes_for(made.tools, made.shared, taken), made.source, made.command, taken)
    workers = worker.Workers()
    for each in workers._workers:
        each._process.kill()
        each._process.join()
    assert workers.begin([(modules.make, parts)], 1)() == [modules.make(*parts)]
    workers.stop()


def test_a_mistake_in_a_worker_is_met_here() -> None:
    workers = worker.Workers()
    with pytest.raises(ZeroDivisionError):
        workers.begin([(divmod, (1, 0))], 1)()
    workers.stop()


@pytest.mark.long
def test_a_run_with_workers_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(files()["manifest.json"] | {"include": []}))
    code = "import multiprocessing, sys\nfrom stubwright import cli\nassert cli.run(['generate', 'm.json']) == 0\n"
    code += "assert multiprocessing.active_children() == []\nassert 'datamodel_code_generator' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, timeout=60)


@pytest.mark.long
@pytest.mark.parametrize("lost", amounts.sample(["models/first.py", "client.py", "manifest.json"], 1))
def test_a_file_that_was_lost_is_made_again(
    lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    what = files()
    generated(tmp_path, what, capsys)
    what["manifest.json"]["tools"][0]["description"] = "Another."
    whole, _ = generated(tmp_path, what, capsys)
    what["manifest.json"]["tools"][0]["description"] = "The tool first."
    generated(tmp_path, what, capsys)
    (tmp_path / "generated" / "sample_mcp" / lost).unlink()
    what["manifest.json"]["tools"][0]["description"] = "Another."
    again, said = generated(tmp_path, what, capsys)
    assert {path: data for path, data in again.items() if path != LOCK} == {
        path: data for path, data in whole.items() if path != LOCK
    }
    assert said == ""
