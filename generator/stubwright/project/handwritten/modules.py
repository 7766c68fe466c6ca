"""The modules of the project that handwritten modules import, by their syntax.

Other imports, such as installed packages, are ignored.
"""

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
    """Return the files of a module, of its imports, and so on; also the paths that missing ones would have.

    Args:
        module: The module's name.
        folders: The folders of handwritten modules.
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
        left += _imported(file, name)
    return frozenset(files)


def _is_near(module: str, folders: Sequence[str]) -> bool:
    """Return whether a module that is missing would be a file next to others of the project, not an attribute of
    one.
    """
    above, _, _ = module.rpartition(".")
    return not above or any(Path(folder, *above.split(".")).is_dir() for folder in folders)


def _imported(file: Path, module: str) -> Iterator[str]:
    """Yield the modules, and the names that could be modules, that a file imports; none if it is broken."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # the last of a null byte, in some releases of Python
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
