"""Classes of a package never collide with other imports of the modules that import them."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from packages import check, generate, imported, manifest, tool
from stubwright import naming
from stubwright.codegen.pages import exports

PAGES = ("client.py", "handlers.py", "contexts.py", "tasks.py", "responses.py")
"""The pages that import models."""


def imports() -> Iterator[str]:
    """Yield what these pages, and modules of models, import of others, over all packages that are committed."""
    folders = [*(ROOT / "generated").glob("*_mcp"), *(ROOT / "tests" / "cases").glob("*/expected/*_mcp")]
    assert len(folders) > 10
    for folder in folders:
        for path in [*(folder / page for page in PAGES), *folder.glob("models/**/*.py")]:
            for node in ast.walk(ast.parse(path.read_text("utf-8") if path.exists() else "")):
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    yield from (alias.asname or alias.name for alias in node.names)


@cache
def names_of_classes() -> Sequence[str]:
    """Return the names that look like classes, except names that a schema's class cannot have."""
    return sorted({name for name in imports() if name[0].isupper()} - {"TYPE_CHECKING", "NewType"})


def test_all_that_pages_import_is_listed() -> None:
    assert len(names_of_classes()) > 20
    known = naming.MODEL_NAMES | naming.PAGE_NAMES | exports.ALWAYS | exports.OF_HANDLES | exports.OF_PAGES | {"OMIT"}
    assert [name for name in names_of_classes() if name not in known] == []


@pytest.mark.long
def test_a_schema_and_a_tool_of_each_name_are_typed(mypy: list[str], tmp_path: Path) -> None:
    listed = {*names_of_classes()} | naming.PAGE_NAMES | naming.PRINTER_NAMES
    names = sorted(listed - exports.ALWAYS - exports.OF_HANDLES)
    part = {"type": "object", "properties": {"a": {"type": "string"}}}
    value = manifest(
        [
            *(tool(f"use_{name.lower()}", {"one": {"$ref": f"#/schemas/{name}"}}) for name in names),
            *(tool(name, {"contents": part, "handles": part}) for name in names),
            tool("call", {"bag": {"type": "string", "x-handle": "bag"}}),
        ],
        schemas=dict.fromkeys(names, part),
        handles={"bag": {"state": {"type": "object"}, "ttl": "1h"}},
        resources=[{"uri": "note://a", "name": "a"}],
        prompts=[{"name": "p", "arguments": [{"name": "code"}]}],
    )
    assert [str(found) for found in check(tmp_path, value) if found.severity == "error"] == []
    package = generate(tmp_path, value)
    use = tmp_path / "use.py"
    use.write_text(_USE)
    env = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run(
        [*mypy, package, str(use)], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    with imported(tmp_path, package) as module:
        for entry in module.TOOLS.values():
            assert entry.Input is not None


_USE = """
from sample_mcp import MappingModel, SampleClient

async def use(sample: SampleClient) -> None:
    await sample.use_mapping(one=MappingModel(a="x"))
"""


@pytest.mark.parametrize("name", ["BaseModel", "Base-Model", "baseModel"])
def test_a_schema_that_the_printer_renames(name: str, tmp_path: Path) -> None:
    part: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    package = generate(tmp_path, manifest([tool("t", {"one": {"$ref": f"#/schemas/{name}"}})], schemas={name: part}))
    with imported(tmp_path, package) as module:
        made = module.TInput.model_validate({"one": {"a": "x"}})
        assert type(made.one) is module.BaseModelModel
        assert made.model_dump(mode="json") == {"one": {"a": "x"}}
