"""Reads the project's settings and dependencies from `pyproject.toml`.

Searches the working folder and the folders above it. All paths are relative to the working folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stubwright.diagnostics import Diagnostic, Span

FILE = "pyproject.toml"
_KEYS = {"manifests", "output", "handlers", "runtime", "publish"}
RUNTIMES = ("installed", "vendored")
"""The values of `runtime`; the first is the default."""

HANDLERS = (".", "src")
"""The default folders for handwritten modules."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project's settings.

    Attributes:
        file: The path of its `pyproject.toml`.
        folder: The folder of that file.
        manifests: The paths of its manifests.
        output: The folder for packages; None for the default.
        requirements: The project's dependencies; None if it does not list any.
        listed: The span of the dependency list.
        handlers: The folders with handwritten modules.
        patterns: The globs for manifests, relative to `folder`.
        is_vendored: True if packages use a vendored runtime.
        version: The project's version; None if it is not a literal.
        optional: The requirements in its extras (`[project.optional-dependencies]`) and groups
            (`[dependency-groups]`, PEP 735).
    """

    file: str
    folder: Path
    manifests: tuple[str, ...]
    output: str | None
    requirements: tuple[object, ...] | None
    listed: Span
    handlers: tuple[str, ...] = HANDLERS
    patterns: tuple[str, ...] = ()
    is_vendored: bool = False
    version: str | None = None
    optional: tuple[object, ...] = ()


def find() -> tuple[Project | None, list[Diagnostic]]:
    """Return the working folder's project; None if it does not exist or its table is invalid.

    The search continues in parent folders within the repository.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        config, problems = _read(Path(os.path.relpath(folder, here)))
        if config is not None or problems or (folder / ".git").exists():
            return config, problems
    return None, []


def _read(folder: Path) -> tuple[Project | None, list[Diagnostic]]:
    """Return the project in `folder`.

    Return None if `pyproject.toml` is missing or invalid, or lacks the project's table.
    """
    file = (folder / FILE).as_posix()
    try:
        text = Path(file).read_text("utf-8")
    except FileNotFoundError:
        return None, []
    except (OSError, UnicodeDecodeError) as error:
        return None, [Diagnostic("SW410", f"`{file}` cannot be read: {error}", _line(file, 1))]
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = map(int, match.groups()) if match else (1, 1)
        at = Span(file, line, column, line, column + 1)
        return None, [Diagnostic("SW410", f"`{file}` is not valid TOML: {error}", at)]
    tool = value.get("tool")
    table = tool.get("stubwright") if isinstance(tool, dict) else None
    if table is None:
        return None, []
    keys = Keys(file, text, "tool.stubwright")
    problems = list(_problems(table, keys))
    if problems:
        return None, problems
    manifests: list[str] = []
    for pattern in table.get("manifests", []):
        found_paths = sorted(_relative(path) for path in folder.glob(pattern) if path.is_file())
        if not found_paths:
            problems.append(
                Diagnostic(
                    "SW410",
                    f"`{pattern}` in `[tool.stubwright] manifests` matches no file",
                    keys.find_span("manifests"),
                    help="list manifests by path relative to pyproject.toml, such as `specs/*.yaml`",
                )
            )
        manifests += [path for path in found_paths if path not in manifests]
    if problems:
        return None, problems
    output = _relative(folder / table["output"]) if "output" in table else None
    listed = Keys(file, text, "project").find_span("dependencies")
    folders = tuple(_relative(folder / path) for path in table.get("handlers", HANDLERS))
    patterns = tuple(table.get("manifests", ()))
    is_vendored = table.get("runtime") == "vendored"
    project = Project(
        *(file, folder, tuple(manifests), output, _requirements(value), listed, folders, patterns, is_vendored),
        version=_version(value),
        optional=_optional(value),
    )
    return project, []


def find_missing(project: Project, requirements: Iterable[str]) -> Iterator[str]:
    """Yield the requirements that the project does not declare; nothing if it lists no dependencies.

    Requirements in extras and groups count as declared, because users who run the server also install those.
    """
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    needed = tuple(requirements)
    if project.requirements is None or not needed:
        return
    declared = set[str]()
    for item in (*project.requirements, *project.optional):
        with suppress(InvalidRequirement, TypeError):  # a group's item may include another group
            declared.add(canonicalize_name(Requirement(item).name))  # type: ignore[arg-type]  # `is_url` checks it
    yield from (wanted for wanted in needed if canonicalize_name(Requirement(wanted).name) not in declared)


@dataclass(frozen=True, slots=True)
class Keys:
    """Finds the positions of a table's keys, which `tomllib` does not report."""

    file: str
    text: str
    table: str

    def find_span(self, key: str | None = None) -> Span:
        """Return the span of a key, or of the table's header if the key is missing."""
        inside = False
        header = _line(self.file, 1)
        for number, row in enumerate(self.text.splitlines(), 1):
            if row.lstrip().startswith("["):
                inside = row.split("#")[0].strip() == f"[{self.table}]"
                if inside:
                    header = Span(self.file, number, 1, number, 1 + len(row.rstrip()))
            elif inside and key is not None and (match := re.match(rf"\s*(\"?{re.escape(key)}\"?)\s*=", row)):
                return Span(self.file, number, match.start(1) + 1, number, match.end(1) + 1)
        return header


def _problems(table: object, keys: Keys) -> Iterable[Diagnostic]:
    if not isinstance(table, dict):
        yield Diagnostic("SW410", "`tool.stubwright` must be a table", keys.find_span())
        return
    for key in sorted(set(table) - _KEYS):
        yield Diagnostic(
            "SW410",
            f"unknown key `{key}` in `[tool.stubwright]`",
            keys.find_span(key),
            help="the valid keys are `manifests`, `output`, `handlers`, `runtime` and `publish`",
        )
    manifests = table.get("manifests", [])
    if not isinstance(manifests, list) or not all(isinstance(item, str) and item for item in manifests):
        yield Diagnostic(
            "SW410",
            "`manifests` in `[tool.stubwright]` must be a list of paths",
            keys.find_span("manifests"),
            help='write `manifests = ["specs/*.yaml"]`',
        )
    else:
        for item in manifests:
            if item.startswith("/"):
                message = f"`{item}` in `[tool.stubwright] manifests` must be relative to pyproject.toml"
                yield Diagnostic("SW410", message, keys.find_span("manifests"))
    folders = table.get("handlers", [])
    if not isinstance(folders, list) or not all(isinstance(item, str) for item in folders):
        yield Diagnostic(
            "SW410",
            "`handlers` in `[tool.stubwright]` must be a list of folders",
            keys.find_span("handlers"),
            help='write `handlers = ["src"]`',
        )
    if table.get("runtime", RUNTIMES[0]) not in RUNTIMES:
        yield Diagnostic(
            "SW410",
            '`runtime` in `[tool.stubwright]` must be "installed" or "vendored"',
            keys.find_span("runtime"),
            help='write `runtime = "vendored"` to copy the runtime to the output folder, next to the packages',
        )
    output = table.get("output", "generated")
    if not isinstance(output, str) or not output.strip():
        yield Diagnostic(
            "SW410",
            "`output` in `[tool.stubwright]` must be a path",
            keys.find_span("output"),
            help='write `output = "generated"`',
        )


def _requirements(value: Mapping[str, Any]) -> tuple[object, ...] | None:
    project = value.get("project")
    listed = project.get("dependencies") if isinstance(project, dict) else None
    return tuple(listed) if isinstance(listed, list) else None


def _optional(value: Mapping[str, Any]) -> tuple[object, ...]:
    project = value.get("project")
    extras = project.get("optional-dependencies") if isinstance(project, dict) else None
    tables = [table for table in (extras, value.get("dependency-groups")) if isinstance(table, dict)]
    return tuple(item for table in tables for items in table.values() if isinstance(items, list) for item in items)


def _version(value: Mapping[str, Any]) -> str | None:
    project = value.get("project")
    version = project.get("version") if isinstance(project, dict) else None
    return version if isinstance(version, str) else None


def _line(file: str, line: int) -> Span:
    return Span(file, line, 1, line, 2)


def _relative(path: Path) -> str:
    return path.as_posix() if path.is_absolute() else Path(os.path.relpath(path)).as_posix()
