"""Selection of a document's operations as tools, its cost, and sources of documents."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import RedirectResponse, Response

import forked
from command_line import stubwright
from fake_api import Answer, Asked, api
from openapi_documents import HERE, imported, query
from stubwright.importers.document_reader import DocumentError
from stubwright.importers.openapi import descriptions, sources
from stubwright.importers.openapi.naming import Selection, SelectionError
from stubwright.importers.openapi.options import Options

HOST = {"servers": [{"url": "https://api.example.com"}]}
LONG = "One sentence stands here. Another one follows it, which is a good deal longer than the first one was. " * 5
OBJECT = {"type": "object", "properties": {"description": {"type": "string", "description": LONG}}}


def document(**more: Any) -> dict[str, Any]:
    answered = {"200": {"description": "x", "content": {"application/json": {"schema": OBJECT}}}}
    item = {
        "get": {"operationId": "listPets", "tags": ["Pet Store", "all"], "description": LONG, "responses": answered},
        "post": {"operationId": "addPet", "tags": ["Pet Store"], "parameters": [query("q", {}, description=LONG)]},
    }
    other = {
        "get": {"operationId": "getOrder", "tags": ["orders"]},
        "put": {"operationId": "orders_put", "tags": ["orders"]},
    }
    paths = {"/ping": {"get": {"operationId": "ping"}}, "/orders/all": other, "/pets": item}
    return {"openapi": "3.0.0", "info": {"title": "Shop", "version": "1"}, **HOST, "paths": paths, **more}


@pytest.mark.parametrize(
    ("include", "exclude", "names"),
    [
        (["GET"], [], ["ping", "getOrder", "listPets"]),
        (["GET /pets*"], [], ["listPets"]),
        (["get /orders/*"], [], ["getOrder"]),
        (["* /orders/*"], [], ["getOrder", "orders_put"]),
        (["P* /*"], [], ["orders_put", "addPet"]),
        (["*"], ["PUT", "POST"], ["ping", "getOrder", "listPets"]),
        (["P*"], [], ["listPets", "addPet"]),  # a tag: methods alone are no globs
        ([], ["GET", "Pet Store"], ["orders_put"]),
        (["/p*"], ["GET /ping"], ["listPets", "addPet"]),
    ],
)
def test_operations_are_chosen_by_method_and_path(
    include: list[str], exclude: list[str], names: list[str], tmp_path: Path
) -> None:
    made = imported(tmp_path, document(), Selection(include=include, exclude=exclude))
    assert [tool["name"] for tool in made.manifest["tools"]] == names


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("DELETE", "`DELETE` does not match any `operationId`, tag, path or method"),
        ("get", "`get` does not match any `operationId`, tag, path or method; write a method in capitals: `GET`"),
        ("GET /none", "`GET /none` does not match any `operationId`, tag, path or method"),
    ],
)
def test_a_glob_that_fits_nothing_is_an_error(pattern: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SelectionError) as refused:
        imported(tmp_path, document(), Selection(exclude=[pattern]))
    assert str(refused.value) == why


def test_tools_are_grouped_by_tag(tmp_path: Path) -> None:
    tags = [{"name": "orders"}, {"name": "Pet Store"}]
    chosen = Selection(by_tag=True, rename={"addPet": "buy"}, prefix="x_")
    made = imported(tmp_path, document(tags=tags), chosen)
    names = [tool["name"] for tool in made.manifest["tools"]]
    assert names == ["x_orders_getOrder", "x_orders_put", "x_pet_store_listPets", "x_buy", "x_ping"]
    made = imported(tmp_path, document(), Selection(by_tag=True))
    names = [tool["name"] for tool in made.manifest["tools"]]
    assert names == ["orders_getOrder", "orders_put", "pet_store_listPets", "pet_store_addPet", "ping"]


def test_descriptions_are_cut_and_nothing_else_is(tmp_path: Path) -> None:
    plain = imported(tmp_path, document()).manifest
    made = imported(tmp_path, document(), options=Options(longest=60)).manifest
    tools = {tool["name"]: tool for tool in made["tools"]}
    assert tools["listPets"]["description"] == "One sentence stands here. Another one follows it, which is…"
    short = {"type": "string", "description": tools["listPets"]["description"]}
    assert tools["listPets"]["outputSchema"] == {"type": "object", "properties": {"description": short}}
    assert tools["addPet"]["inputSchema"]["properties"]["q"] == {"description": short["description"]}
    assert [tool["stubwright"] for tool in made["tools"]] == [tool["stubwright"] for tool in plain["tools"]]


@given(st.text(alphabet=st.sampled_from("ab .,!?\n。é"), max_size=80), st.integers(20, 70))
def test_a_cut_text_is_a_beginning_and_short_enough(text: str, most: int) -> None:
    made = descriptions.truncate(text, most)
    assert len(made) <= most or made == text
    if made != text:
        assert made.endswith("…")
        assert text.startswith(made[:-1].rstrip())


def test_the_end_of_a_sentence_is_taken_where_most_stays() -> None:
    assert descriptions.truncate("A first sentence. A second one.", 24) == "A first sentence. …"
    assert descriptions.truncate("A. Much of the text stands after it.", 24) == "A. Much of the text…"
    assert descriptions.truncate("x" * 50, 24) == "x" * 23 + "…"


def test_output_schemas_are_left_out(tmp_path: Path) -> None:
    made = imported(tmp_path, document(), options=Options(output_schemas=False))
    assert not [tool for tool in made.manifest["tools"] if "outputSchema" in tool]
    assert made.cost == (f"`tools/list` has {listed(made.manifest['tools']):,} bytes",)


def listed(tools: list[dict[str, Any]]) -> int:
    """The bytes of tools on the wire."""
    wire = [{key: value for key, value in tool.items() if key != "stubwright"} for tool in tools]
    return sum(len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")).encode()) for tool in wire)


def test_what_a_list_costs_and_what_would_save_most_is_told(tmp_path: Path) -> None:
    shared = {
        "Big": {"type": "object", "properties": {f"p{n}": {"type": "string", "description": LONG} for n in range(90)}}
    }
    big = {"$ref": "#/components/schemas/Big"}
    asked = {"content": {"application/json": {"schema": big}}}
    answered = {"200": {"description": "x", **asked}}
    whole = document(components={"schemas": shared})
    operation = {"operationId": "big", "tags": ["big"], "requestBody": asked, "responses": answered}
    whole["paths"]["/big"] = {"post": operation}
    whole["paths"]["/bigger"] = {"post": {**operation, "operationId": "bigger", "description": "é" * 50}}
    made = imported(tmp_path, whole)
    total, largest, tags, saving = made.cost
    lean = imported(tmp_path, whole, options=Options(output_schemas=False))
    short = imported(tmp_path, whole, options=Options(longest=200))

    def bytes_(text: str) -> int:
        return int(text.partition(" has ")[2].partition(" ")[0].replace(",", ""))

    assert bytes_(total) == bytes_(lean.cost[0])
    outputs = sum(_wire(tmp_path, whole)) - bytes_(total)
    assert total.endswith(f"; output schemas ({outputs:,} bytes more) are only listed with `output: strict`")
    assert "output schemas" not in lean.cost[0]
    assert largest.startswith("the largest tools: `bigger` ")
    assert tags.startswith("the largest tags, which `--exclude` can omit: `big` ")
    cut = bytes_(total) - bytes_(short.cost[0])
    assert saving.startswith("options that save the most: `--trim-descriptions 200` ")
    told = int(saving.removesuffix(" bytes").rpartition(" ")[2].replace(",", ""))
    assert abs(told - cut) < cut / 50  # `…` is three bytes and one character


def _wire(folder: Path, whole: dict[str, Any]) -> list[int]:
    """The bytes of each tool as the compiler puts it on the wire."""
    from stubwright.compile import pipeline
    from stubwright.project.files import disk

    imported(folder, whole)
    compiled = pipeline.compile_manifest(str(folder / "manifest.yaml"), disk.Disk()).manifest
    assert compiled is not None
    sent = [json.dumps(tool.definition, ensure_ascii=False, separators=(",", ":")) for tool in compiled.tools]
    return [len(text.encode()) for text in sent]


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_the_head_of_the_file_names_the_command_which_makes_the_same_again(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "the api.json").write_text(json.dumps(document()))
    output = f"made.{suffix}"
    given_ = ["--include", "GET", "--exclude", "GET /ping", "--rename", "listPets=list pets", "--name", "it's a shop"]
    given_ += ["--prefix", "p_", "--media-type", "text/csv", "--no-output-schema", "--trim-descriptions", "40"]
    given_ += ["--group-by-tag", "--fragment"]
    done = stubwright("import", "openapi", "the api.json", *given_, "-o", output, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / output).read_text()
    line = text.splitlines()[1].removeprefix("# ") if suffix == "yaml" else json.loads(text)["x-command"]
    words = shlex.split(line)
    assert words[:3] == ["stubwright", "import", "openapi"]
    (tmp_path / output).unlink()
    assert stubwright(*words[1:], cwd=tmp_path).returncode == 0
    assert (tmp_path / output).read_text() == text
    assert [tool["name"] for tool in yaml.safe_load(text)["tools"]] == ["p_orders_getOrder", "p_list pets"]


@pytest.mark.parametrize("number", ["19", "-1", "x", "1e3", "٣٣"])
def test_a_length_that_is_none_is_a_wrong_command_line(number: str, tmp_path: Path) -> None:
    done = stubwright("import", "openapi", "x.yaml", "--trim-descriptions", number, cwd=tmp_path)
    assert done.returncode == 2
    assert "character limit" in done.stderr or "expected one argument" in done.stderr


# --- sources -------------------------------------------------------------------------------------------------------


def test_standard_input_is_a_source(tmp_path: Path) -> None:
    command = [*forked.interpreter(), "-m", "stubwright", "import", "openapi", "-"]
    text = (HERE / "library.yaml").read_text()
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "# stubwright import openapi -"
    assert "listReaders" not in done.stdout  # it is in another file
    assert "is not a relative path" in done.stderr


def test_a_url_is_fetched_once_and_nothing_that_the_document_refers_to(tmp_path: Path) -> None:
    whole = document()
    whole["paths"]["/pets"]["get"]["parameters"] = [{"$ref": "other.json#/x"}]
    whole["paths"]["/ping"]["get"]["parameters"] = [{"$ref": "spec.json#/x-limit"}]

    def answer(asked: Asked) -> Answer:
        if asked.path == "/moved":
            return RedirectResponse("/v1/spec.json?key=hidden")
        return {**whole, "x-limit": query("limit", {"type": "integer"})}

    with api(answer) as fake:
        host = fake.url.removeprefix("http://")
        for url, shown, count in (
            (f"http://me:hidden@{host}/v1/spec.json?key=hidden", f"http://{host}/v1/spec.json?…", 1),
            (f"{fake.url}/moved", f"{fake.url}/moved", 2),
        ):
            before = len(fake.asked)
            done = stubwright("import", "openapi", url, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert [asked.method for asked in fake.asked[before:]] == ["GET"] * count
            assert done.stdout.splitlines()[1] == f"# stubwright import openapi {shlex.quote(shown)}"
            names = [tool["name"] for tool in yaml.safe_load(done.stdout)["tools"]]
            assert "listPets" not in names
            assert ("ping" in names) == (count == 1)  # the document's name is the requested name
            assert "the reference `other.json#/x` is to another file" in done.stderr
            assert "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/none", "it responded with HTTP 404 Not Found"),
        ("/circle", "its redirects are circular"),
        ("/file", "it redirects to another scheme, which is not followed"),
        ("/odd", "it redirects to an invalid URL"),
        ("/large", "it is larger than 0 MiB"),
        ("/slow", "fetching it took longer than 0 s"),
        ("/page", "it is not an OpenAPI document"),
    ],
)
def test_a_url_that_gives_no_document(
    path: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from stubwright import cli

    def answer(asked: Asked) -> Answer:
        if asked.path == "/none":
            return 404, "no"
        targets = {"/circle": "/circle?key=hidden", "/file": "file:///etc/passwd", "/odd": "http://[x"}
        if asked.path in targets:
            return Response(status_code=302, headers={"Location": targets[asked.path]})
        return "x" * 2_000 if asked.path == "/large" else "hello"

    if path == "/large":
        monkeypatch.setattr(sources, "MAX_BYTES", 1_000)
    if path == "/slow":
        monkeypatch.setattr(sources, "TIMEOUT", 0)
    monkeypatch.chdir(tmp_path)
    with api(answer) as fake:
        assert cli.run(["import", "openapi", f"{fake.url}{path}?token=hidden"]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert f"{fake.url}{path}?…" in told or path == "/page"
    assert "hidden" not in told


def test_a_url_that_is_not_valid() -> None:
    with pytest.raises(DocumentError, match=r"^it cannot be fetched: the URL is invalid$"):
        sources.read_documents("http://[::1/x")


def test_a_url_that_nobody_answers(tmp_path: Path) -> None:
    done = stubwright("import", "openapi", "http://me:hidden@127.0.0.1:1/x.json", cwd=tmp_path)
    said = "cannot be fetched: connection refused; check the URL"
    assert done.returncode == 1
    assert done.stderr == f"stubwright: `http://127.0.0.1:1/x.json` cannot be imported: it {said}\n"


def test_a_project_keeps_what_was_chosen(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(document()))
    done = stubwright(
        "new", "shop", "--from", "openapi", "api.json", "--group-by-tag", "--include", "GET", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "shop" / "specs" / "imported" / "shop.yaml").read_text()
    assert "stubwright import openapi ../api.json --include GET --group-by-tag --name shop --fragment -o" in text
    made = yaml.safe_load(text)
    assert [tool["name"] for tool in made["tools"]] == ["orders_getOrder", "pet_store_listPets", "ping"]
