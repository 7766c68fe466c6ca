"""Imports OpenAPI documents as manifests, and runs their servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
from command_line import stubwright
from packages import imported as package_of
from stubwright.compile import pipeline
from stubwright.compile.syntax import yamlwriter
from stubwright.importers.acceptance import ImportResult
from stubwright.importers.openapi import manifest
from stubwright.importers.openapi.documents import Documents
from stubwright.importers.openapi.naming import Selection
from stubwright.importers.openapi.options import Options
from stubwright.project.files import disk

HERE = Path(__file__).parents[1] / "openapi"


def imported(
    folder: Path, document: Mapping[str, Any], selection: Selection | None = None, options: Options | None = None
) -> ImportResult:
    """Import a document with a default title and version, without credentials."""
    whole = {"openapi": "3.1.0", "info": {"title": "Sample", "version": "1"}, "security": [], **document}
    path = folder / "document.json"
    path.write_text(json.dumps(whole))
    made = manifest.make_manifest(Documents(str(path), disk.Disk()), selection or Selection(), None, options)
    (folder / "manifest.yaml").write_text(yamlwriter.format_manifest(made.manifest))
    checked = pipeline.compile_manifest(str(folder / "manifest.yaml"), disk.Disk(), "manifest.yaml")
    assert [found for found in checked.diagnostics if found.severity == "error"] == []
    return made


def operation(folder: Path, told: Mapping[str, Any], path: str = "/x", method: str = "get", **document: Any) -> Any:
    """Return the tool of a single operation."""
    item = {method: {"operationId": "op", "responses": {}, **told}}
    made = imported(folder, {"servers": [{"url": "https://api.example.com"}], "paths": {path: item}, **document})
    assert made.notes == ()
    (tool,) = made.manifest["tools"]
    return tool


def query(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, **more}


def build(document: Path, folder: Path, *options: str) -> str:
    """Import, check and generate a document as a user would, and return the package's name."""
    done = stubwright("import", "openapi", str(document), "-o", "manifest.yaml", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    checked = stubwright("check", "manifest.yaml", "--format", "json", cwd=folder)
    assert checked.returncode == 0, checked.stdout
    made = stubwright("generate", "manifest.yaml", cwd=folder)
    assert made.returncode == 0, made.stderr
    (package,) = [path.name for path in (folder / "generated").iterdir() if path.is_dir()]
    return package


@contextmanager
def client(folder: Path, package: str, stem: str, **environment: str) -> Iterator[Any]:
    """Run `python -m PACKAGE` without handlers. Yield a function that calls a method on its typed client."""
    generated = folder / "generated"
    env = [f"{name}={value}" for name, value in {"PYTHONPATH": str(generated), **environment}.items()]
    command = ["env", *env, *forked.interpreter(), "-m", package]
    with package_of(generated, package) as module:

        def call(method: str, /, **arguments: Any) -> Any:
            async def go() -> Any:
                async with getattr(module, f"{stem}Client").connect(command) as connected:
                    return await getattr(connected, method)(**arguments)

            return asyncio.run(go())

        call.module = module  # type: ignore[attr-defined]
        yield call
