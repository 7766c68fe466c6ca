"""State handles from the manifest to Python: wire format, package contents, and models."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from jsonschema_rs import validator_for

from packages import check, generate, imported, manifest, tool
from stubwright.compile.handles import describe_duration, describe_retention
from stubwright.mock.package import _remove_policies

HANDLE: Any = {"type": "string", "x-handle": "basket"}
BASKET: Any = {"state": {"type": "object"}, "ttl": "7d"}


def shop(*tools: Any, **more: Any) -> dict[str, Any]:
    return manifest(tools, name="shop", **{"handles": {"basket": BASKET}, **more})


def kept(folder: Path, value: dict[str, Any]) -> dict[str, Any]:
    """Return the package's data on the first tool of a manifest."""
    made = folder / generate(folder, value) / "manifest.json"
    found: dict[str, Any] = json.loads(made.read_text())["tools"][0]
    return found


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"ttl": "7d", "idle": "24h"}, "A basket lives for 7 days, and expires after 24 hours without use."),
        ({"ttl": "1m"}, "A basket lives for 1 minute."),
        ({"idle": "1500ms"}, "A basket expires after 1,500 milliseconds without use."),
        ({}, "A basket lives until it is ended."),
    ],
)
def test_how_long_one_lives_in_words(said: dict[str, Any], sentence: str) -> None:
    assert describe_retention("basket", said) == sentence


def test_kinds_in_words() -> None:
    assert describe_retention("open_order", {"ttl": "1h"}) == "An open order lives for 1 hour."
    assert describe_duration("90s") == "90 seconds"


@pytest.mark.parametrize("refs", ["bundled", "inlined"])
def test_a_package_knows_where_ids_stand_and_the_wire_does_not(tmp_path: Path, refs: str) -> None:
    schemas = {"Id": HANDLE, "Line": {"type": "object", "properties": {"a/b": {"$ref": "#/schemas/Id"}}}}
    one = tool("get", {"id": HANDLE, "line": {"$ref": "#/schemas/Line"}}, outputSchema={"type": "object"})
    found = kept(tmp_path, shop(one, schemas=schemas, wire={"refs": refs}))
    assert "x-handle" not in json.dumps(found["inputSchema"])
    marks = found["stubwright"]["handles"]["input"]
    inlined = {"/properties/id": "basket", "/properties/line/properties/a~1b": "basket"}
    assert marks == (inlined if refs == "inlined" else {"/properties/id": "basket", "/$defs/Id": "basket"})


def test_marks_of_large_schemas_that_are_kept_once_lead_to_their_places(tmp_path: Path) -> None:
    words = {"type": "string", "description": "word " * 4000}
    schemas = {"Big": {"type": "object", "properties": {"words": words, "id": {"$ref": "#/schemas/Id"}}}, "Id": HANDLE}
    tools = [tool(name, {"big": {"$ref": "#/schemas/Big"}}) for name in ("one", "two")]
    with imported(tmp_path, generate(tmp_path, shop(*tools, schemas=schemas))) as package:
        shown = package.TOOLS["two"].redact({"big": {"words": "w", "id": "b"}})
    assert shown == {"big": {"words": "w", "id": "[redacted]"}}


def test_a_tool_that_gives_what_it_takes_makes_none(tmp_path: Path) -> None:
    given = {"type": "object", "properties": {"id": HANDLE}}
    takes = tool("renew", {"id": HANDLE}, outputSchema=given)
    assert kept(tmp_path, shop(takes))["description"] == "The tool renew."
    bare = {"name": "make", "inputSchema": {"type": "object"}, "outputSchema": given}
    assert kept(tmp_path, shop(bare))["description"] == "A basket lives for 7 days."


def test_a_mock_takes_any_text_for_an_id(tmp_path: Path) -> None:
    given = {"type": "object", "properties": {"id": HANDLE}}
    path = tmp_path / "m.json"
    path.write_text(json.dumps(shop(tool("make", {"id": HANDLE}, outputSchema=given))))
    from stubwright.compile import pipeline
    from stubwright.project.files import disk

    compiled = pipeline.compile_manifest(str(path), disk.Disk(), "m.json").manifest
    assert compiled is not None
    mocked = _remove_policies(compiled.document)
    assert "handles" in compiled.document
    assert "handles" not in mocked
    assert [each["name"] for each in mocked["tools"]] == ["make"]


def test_a_client_alone_has_ids_and_no_states(tmp_path: Path) -> None:
    state = {"type": "object", "properties": {"a": {"type": "string"}}}
    value = shop(tool("get", {"id": HANDLE}), emit=["client"], handles={"basket": {"state": state, "ttl": "1d"}})
    package = tmp_path / generate(tmp_path, value)
    assert (package / "models" / "handles.py").exists()
    assert not (package / "models" / "shared").exists()
    with imported(tmp_path, package.name) as made:
        assert made.BasketId("b") == "b"
        assert not hasattr(made, "Basket")


def test_the_cache_knows_that_how_long_one_lives_is_in_descriptions(tmp_path: Path) -> None:
    from stubwright import cli

    given = {"type": "object", "properties": {"id": HANDLE}}
    value = shop(tool("make", outputSchema=given), lint={"ignore": ["SW338"]})
    path = tmp_path / "shop.json"
    (tmp_path / "pyproject.toml").touch()
    for ttl, words in (("7d", "7 days"), ("2h", "2 hours")):
        path.write_text(json.dumps({**value, "handles": {"basket": {**BASKET, "ttl": ttl}}}))
        assert cli.run(["generate", "-q", str(path), "-o", str(tmp_path / "out")]) == 0
        assert f"A basket lives for {words}." in (tmp_path / "out" / "shop_mcp" / "client.py").read_text()


CASE = ROOT / "tests" / "cases" / "package-of-handles"


@pytest.mark.long
def test_models_with_ids_take_what_their_schemas_take(tmp_path: Path, mypy: list[str]) -> None:
    from stubwright import cli

    assert cli.run(["generate", "-q", str(CASE / "manifest.yaml"), "-o", str(tmp_path)]) == 0
    with imported(tmp_path, "stall_mcp") as package:
        make = package.TOOLS["make"]
        given = {
            "line": {"basket": "x", "BasketId": "y"}, "either": "q", "mixed": 3, "pair": ["a", "b"],
            "when": "no uuid", "named": {"a": "b"}, "odd name": None, "lines": [{"basket": ""}],
        }  # fmt: skip
        assert validator_for(make.definition["inputSchema"]).is_valid(given)
        assert make.Input.model_validate(given).model_dump(mode="json") == given
        assert make.Output.model_validate(["a"]).root == ["a"]
        assert package.HandlesOutput.model_validate("c").root == "c"
    done = subprocess.run(
        [*mypy, "-p", "stall_mcp.models", "-m", "stall_mcp.contexts", "-m", "stall_mcp.client"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_one_kind_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("stubwright: 1\nhandles: {basket: {state: {type: object}, ttl: 1d}}\n")
    [found] = [one for one in check(tmp_path, shop(include=["more.yaml"])) if one.severity == "error"]
    assert found.code == "SW212"
    message = found.message
    assert message.startswith("the ID type of the handle `basket` would be `BasketId`, which is the ID type of")
