"""The project around the manifests: what `[tool.toolwright]` in `pyproject.toml` says, and what it depends on.

Looks in the working folder and above; gives a `Project`, or diagnostics with the place in `pyproject.toml`. All paths
that it gives are relative to the working folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolwright.diagnostics import Diagnostic, Span

FILE = "pyproject.toml"
_KEYS = {"manifests", "output", "handlers"}
HANDLERS = (".", "src")
"""Where handwritten modules are looked for, where nothing says otherwise."""

_NAME = re.compile(r"^\s*([A-Za-z0-9._-]+)")


@dataclass(frozen=True, slots=True)
class Project:
    """What a run without arguments compiles: manifest paths, and the folder that gets the packages.

    `file` is the project's `pyproject.toml`, in `folder`.
    `dependencies` are the names of the project's own dependencies, normalized as package indexes do it, or None where
    the file does not list any; `listed` is where it lists them. `handlers` are the folders of handwritten modules.
    `patterns` are what the manifests were found by, relative to `folder`.
    """

    file: str
    folder: Path
    manifests: tuple[str, ...]
    output: str | None
    dependencies: frozenset[str] | None
    listed: Span
    handlers: tuple[str, ...] = HANDLERS
    patterns: tuple[str, ...] = ()


def find() -> tuple[Project | None, list[Diagnostic]]:
    """The project around the working folder; None where there is none, or its table is wrong.

    It is looked for in each folder above, but not outside the repository.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        found, problems = _read(Path(os.path.relpath(folder, here)))
        if found is not None or problems or (folder / ".git").exists():
            return found, problems
    return None, []


def _read(folder: Path) -> tuple[Project | None, list[Diagnostic]]:
    """The project in `folder`; None where its `pyproject.toml` is not there, has no such table, or is wrong."""
    file = (folder / FILE).as_posix()
    try:
        text = Path(file).read_text("utf-8")
    except FileNotFoundError:
        return None, []
    except (OSError, UnicodeDecodeError) as error:
        return None, [Diagnostic("TW410", f"`{file}` cannot be read: {error}", _line(file, 1))]
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = map(int, found.groups()) if found else (1, 1)
        at = Span(file, line, column, line, column + 1)
        return None, [Diagnostic("TW410", f"`{file}` is not TOML: {error}", at)]
    tool = value.get("tool")
    table = tool.get("toolwright") if isinstance(tool, dict) else None
    if table is None:
        return None, []
    keys = _Keys(file, text, "tool.toolwright")
    problems = list(_problems(table, keys))
    if problems:
        return None, problems
    manifests: list[str] = []
    for pattern in table.get("manifests", []):
        found_paths = sorted(_relative(path) for path in folder.glob(pattern) if path.is_file())
        if not found_paths:
            problems.append(
                Diagnostic(
                    "TW410",
                    f"`{pattern}` in `[tool.toolwright] manifests` matches no file",
                    keys.span("manifests"),
                    help="name manifests by paths relative to pyproject.toml, such as `specs/*.yaml`",
                )
            )
        manifests += [path for path in found_paths if path not in manifests]
    if problems:
        return None, problems
    output = _relative(folder / table["output"]) if "output" in table else None
    listed = _Keys(file, text, "project").span("dependencies")
    folders = tuple(_relative(folder / path) for path in table.get("handlers", HANDLERS))
    patterns = tuple(table.get("manifests", ()))
    return Project(file, folder, tuple(manifests), output, _dependencies(value), listed, folders, patterns), []


def missing(project: Project, requirements: Iterable[str]) -> tuple[str, ...]:
    """Those of `requirements` that the project does not depend on; none where it lists no dependencies at all."""
    if project.dependencies is None:
        return ()
    return tuple(wanted for wanted in requirements if _normalized(wanted) not in project.dependencies)


@dataclass(frozen=True, slots=True)
class _Keys:
    """Where the keys of one table stand in the text; TOML's own reader does not tell."""

    file: str
    text: str
    table: str

    def span(self, key: str | None = None) -> Span:
        """The place of a key, or of the table's own header where the key is not found."""
        inside = False
        header = _line(self.file, 1)
        for number, row in enumerate(self.text.splitlines(), 1):
            if row.lstrip().startswith("["):
                inside = row.split("#")[0].strip() == f"[{self.table}]"
                if inside:
                    header = Span(self.file, number, 1, number, 1 + len(row.rstrip()))
            elif inside and key is not None and (found := re.match(rf"\s*(\"?{re.escape(key)}\"?)\s*=", row)):
                return Span(self.file, number, found.start(1) + 1, number, found.end(1) + 1)
        return header


def _problems(table: object, keys: _Keys) -> Iterable[Diagnostic]:
    if not isinstance(table, dict):
        yield Diagnostic("TW410", "`tool.toolwright` must be a table", keys.span())
        return
    for key in sorted(set(table) - _KEYS):
        yield Diagnostic(
            "TW410",
            f"unknown key `{key}` in `[tool.toolwright]`",
            keys.span(key),
            help="it knows `manifests`, `output` and `handlers`",
        )
    manifests = table.get("manifests", [])
    if not isinstance(manifests, list) or not all(isinstance(item, str) and item for item in manifests):
        yield Diagnostic(
            "TW410",
            "`manifests` in `[tool.toolwright]` must be a list of paths",
            keys.span("manifests"),
            help='write `manifests = ["specs/*.yaml"]`',
        )
    else:
        for item in manifests:
            if item.startswith("/"):
                message = f"`{item}` in `[tool.toolwright] manifests` must be relative to pyproject.toml"
                yield Diagnostic("TW410", message, keys.span("manifests"))
    folders = table.get("handlers", [])
    if not isinstance(folders, list) or not all(isinstance(item, str) for item in folders):
        yield Diagnostic(
            "TW410",
            "`handlers` in `[tool.toolwright]` must be a list of folders",
            keys.span("handlers"),
            help='write `handlers = ["src"]`',
        )
    output = table.get("output", "generated")
    if not isinstance(output, str) or not output.strip():
        yield Diagnostic(
            "TW410",
            "`output` in `[tool.toolwright]` must be a path",
            keys.span("output"),
            help='write `output = "generated"`',
        )


def _dependencies(value: Mapping[str, Any]) -> frozenset[str] | None:
    project = value.get("project")
    listed = project.get("dependencies") if isinstance(project, dict) else None
    if not isinstance(listed, list):
        return None
    return frozenset(_normalized(item) for item in listed if isinstance(item, str))


def _normalized(requirement: str) -> str:
    name = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[1]).lower() if name else ""


def _line(file: str, line: int) -> Span:
    return Span(file, line, 1, line, 2)


def _relative(path: Path) -> str:
    """A path from the working folder, but where it was absolute."""
    return path.as_posix() if path.is_absolute() else Path(os.path.relpath(path)).as_posix()
