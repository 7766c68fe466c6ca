"""Finds the project modules that handwritten modules import, without importing them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from stubwright.project.files import disk


def list_candidates(module: str, folders: Sequence[str]) -> Iterator[Path]:
    """Yield the files that could be a module."""
    for folder in folders:
        path = Path(folder, *module.split("."))
        yield path.with_name(f"{path.name}.py")
        yield path / "__init__.py"


def find_reached(module: str, folders: Sequence[str]) -> frozenset[Path]:
    """Return the files for a module and its transitive imports in the project, including paths of missing files.

    Args:
        module: The module's name.
        folders: The folders with handwritten modules.
    """
    files: set[Path] = set()
    seen: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name in seen or name.partition(".")[0] in sys.stdlib_module_names:
            continue
        seen.add(name)
        left += [name.rpartition(".")[0]] if "." in name else []
        file = disk.find_module(name, folders)
        if file is None:
            files.update(list_candidates(name, folders) if _is_near(name, folders) else ())
            continue
        files.add(file)
        left += _list_imports(file, name)
    return frozenset(files)


def _is_near(module: str, folders: Sequence[str]) -> bool:
    """Return whether a missing module could be a project file instead of a module attribute."""
    above, _, _ = module.rpartition(".")
    return not above or any(Path(folder, *above.split(".")).is_dir() for folder in folders)


def _list_imports(file: Path, module: str) -> Iterator[str]:
    """Yield the modules that a file imports, and imported names that might be modules.

    Yield nothing for an invalid file.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # some Python releases raise ValueError for a null byte
        return
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            steps = package.split(".")
            above = steps[: len(steps) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")
