"""Makes packages for tests: compiles a manifest into a folder, and imports what came out."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from stubwright.compile import pipeline
from stubwright.diagnostics import Diagnostic
from stubwright.project.files import disk, lock, tree


def manifest(tools: Sequence[Mapping[str, Any]], *, name: str = "sample", **more: Any) -> dict[str, Any]:
    """A manifest with these tools."""
    return {"stubwright": 1, "server": {"name": name, "version": "1"}, "tools": list(tools), **more}


def tool(name: str, properties: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A tool whose input has these properties."""
    schema = {"type": "object", "properties": dict(properties or {})}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema, **more}


def check(folder: Path, value: Mapping[str, Any]) -> list[Diagnostic]:
    """What checking a manifest says."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(value))
    return list(pipeline.compile_manifest(str(path), disk.Disk(), "manifest.json").diagnostics)


def generate(folder: Path, value: Mapping[str, Any]) -> str:
    """Compile a manifest into `folder`, and give the package's name."""
    path = folder / f"{value['server']['name']}.json"
    path.write_text(json.dumps(value))
    checked = pipeline.compile_manifest(str(path), disk.Disk(), path.name)
    assert checked.manifest is not None, checked.diagnostics
    artifacts = pipeline.generate(checked.manifest)
    tree.apply(folder, tree.compare(tree.Tree(folder), lock.Lock(""), path.name, lock.Entry(""), artifacts, force=True))
    return checked.manifest.package


@contextmanager
def imported(folder: Path, package: str) -> Iterator[ModuleType]:
    """Import a package from `folder`, and forget it afterwards."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(package)
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
