"""Commands report mistakes in any manifest, document or lock, and never crash."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

import amounts
import corpus
import mutations
from amounts import choose
from stubwright import cli
from stubwright.project.files import lock

pytestmark = pytest.mark.corpus

MANY = choose(corpus.VARIABLE, 7, 30, 60)
"""Documents of each kind; each takes as long as a command. Thousands passed in the past."""


def written(folder: Path) -> Path:
    """The manifest, what it refers to, and the other documents."""
    (folder / "more").mkdir()
    for name, value in (
        ("m.json", mutations.MANIFEST),
        ("list.json", mutations.TOOLS),
        ("other.json", {"schemas": {"Other": {"type": "string"}}}),
        ("more/a.json", {"tools": []}),
        ("api.json", mutations.OPENAPI),
    ):
        (folder / name).write_text(json.dumps(value))
    (folder / "readme.md").write_text("# Hi")
    (folder / "skills" / "plain").mkdir(parents=True)
    (folder / "skills" / "plain" / "SKILL.md").write_text("---\nname: plain\ndescription: d\n---\n")
    (folder / "i.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(tmp_path)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the manifest gives, with its lock."""
    folder = written(tmp_path_factory.mktemp("generated"))
    with contextlib.chdir(folder):
        assert run("generate", "m.json", "-q") == 0
    return folder / "generated"


def run(*argv: str) -> int:
    """The exit status of a command; what it raises is not caught."""
    status = cli.run(argv)
    assert status in (0, 1)
    return status


@pytest.mark.long
def test_the_documents_themselves_are_fine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", "m.json") == 0, capsys.readouterr().err
    assert run("diff", "m.json", "m.json") == 0
    for kind, file in (("openapi", "api.json"), ("tools", "list.json")):
        assert run("import", kind, file, "-o", "i.yaml") == 0
        assert run("check", "i.yaml") == 0
        Path("i.yaml").unlink()


@pytest.mark.parametrize("seed", amounts.sample(range(MANY), 3))
def test_any_manifest(seed: int, folder: Path) -> None:
    chance = Random(f"manifest/{seed}")
    Path("new.json").write_text(json.dumps(mutations.mutate(mutations.MANIFEST, chance, times=1 + seed % 3)))
    if run("check", "new.json") == 0 and seed % 4 == 0:
        run("generate", "new.json")
    run("diff", "m.json", "new.json")


@pytest.mark.parametrize("seed", range(MANY))
def test_any_included_list_of_tools(seed: int, folder: Path) -> None:
    chance = Random(f"tools/{seed}")
    Path("list.json").write_text(json.dumps(mutations.mutate(mutations.TOOLS, chance, times=1 + seed % 3)))
    run("import", "tools", "list.json")
    run("check", "m.json")


@pytest.mark.parametrize("seed", amounts.sample(range(MANY), 3))
def test_any_openapi_document(seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = Random(f"openapi/{seed}")
    Path("api.json").write_text(json.dumps(mutations.mutate(mutations.OPENAPI, chance, times=1 + seed % 3)))
    if run("import", "openapi", "api.json", "-o", "i.yaml") == 0:
        assert run("check", "i.yaml") == 0, capsys.readouterr().err


@pytest.mark.parametrize("seed", amounts.sample(range(MANY), 1))
def test_any_lock(seed: int, folder: Path, generated: Path) -> None:
    shutil.copytree(generated, folder / "generated")
    path = folder / "generated" / lock.NAME
    outside = {
        each: each.read_bytes() for each in folder.rglob("*") if each.is_file() and "generated" not in each.parts
    }
    chance = Random(f"lock/{seed}")
    text = json.dumps(mutations.mutate(json.loads(path.read_text()), chance, times=1 + seed % 3), indent=2)
    if seed % 3 == 0:  # as after a merge, or half of it
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        text = "\n".join([*lines[:at], "<<<<<<< HEAD", *lines[at:], "=======", *lines[at:], ">>>>>>> b"])
    path.write_text(text)
    for options in (["--check"], [], ["--force"]):
        run("generate", "m.json", "-q", *options)
    assert {each: each.read_bytes() for each in outside} == outside


@pytest.mark.parametrize(
    "reference", ["a\0b", "a%00b", "\ud800.json", "%ff%00#/x", "a\0b#/components", "x" * 300, ".."]
)
def test_a_reference_to_what_no_file_can_be_called(
    reference: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema: Any = {"$ref": reference}
    content = {"application/json": {"schema": schema}}
    paths = {"/a": {"post": {"requestBody": {"content": content}, "responses": {"200": {"content": content}}}}}
    document = {"openapi": "3.1.0", "info": {"title": "A"}, "servers": [{"url": "https://h.example"}], "paths": paths}
    Path("api.json").write_text(json.dumps(document))
    status = run("import", "openapi", "api.json")
    told = capsys.readouterr().err
    assert "`POST /a` was omitted: the reference" in told or (status == 1 and "error[SW010]" in told)


URLS = [
    "https://[",
    "https://[{}]",
    "http://[::1",
    "https://h:99999/x",
    "https://h:x/",
    "https://\u2100/x",
    "https://a@[/",
]


@pytest.mark.parametrize("url", amounts.sample(URLS, 1))
def test_an_url_that_is_none(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a base URL, a call's, a website's, an icon's, an issuer's, a resource's, and in a document's servers."""
    tool = {"name": "t", "description": "T.", "inputSchema": {"type": "object"}}
    manifest = {"stubwright": 1, "server": {"name": "a", "version": "1", "websiteUrl": url}}
    auth = {"issuer": url, "audience": url}
    icons = [{"src": url}]
    resources = [{"uri": url, "name": "r", "stubwright": {"text": "R."}}]
    identified = {"type": "object", "$id": url, "properties": {"a": {"$ref": url}}}
    parts: list[dict[str, Any]] = [
        {"apis": {"a": {"baseUrl": url}}},
        {"tools": [{**tool, "stubwright": {"http": {"url": url}}}]},
        {"tools": [{**tool, "icons": icons, "inputSchema": identified}], "auth": auth, "resources": resources},
        {"tools": [tool]},
    ]
    for more in parts:
        Path("new.json").write_text(json.dumps({**manifest, **more}))
        status = run("check", "new.json")
        is_called = "apis" in more or "stubwright" in more["tools"][0]
        assert status == 1 or not is_called
        run("docs", "new.json", "-o", "pages")
        run("diff", "m.json", "new.json")
    document = {**mutations.OPENAPI, "servers": [{"url": url}]}
    Path("api.json").write_text(json.dumps(document))
    assert run("import", "openapi", "api.json", "-o", "i.yaml") == 0
    assert run("check", "i.yaml") == 0
