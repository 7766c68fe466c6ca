"""Numbers that may only fall, each with its table in `tests/architecture/ratchets/`.

`python tests/support/ratchets.py`, or `make ratchets`, writes each table again if none of its numbers rises.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import call_traces
import sources
import voice

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = (ROOT / "generator/stubwright", ROOT / "runtime/stubwright_runtime")

_DATA: Final = {"cases", "releases", "transcripts", "upgrades"}
"""Folders in tests/ with inputs and expected output in Python."""

WRITTEN: Final = (
    *PACKAGES,
    ROOT / "bench",
    *sorted(each for each in (ROOT / "tests").iterdir() if each.name not in _DATA and any(each.rglob("*.py"))),
)
"""Folders whose texts must be plain English."""

_QUOTING: Final = {"voice.py", "test_voice.py"}
"""Modules that quote the patterns of `voice`."""

Counts: TypeAlias = Mapping[str, int]

_TABLES: Final = ROOT / "tests/architecture/ratchets"
_SERVER: Final = PACKAGES[1] / "server"


def list_risen(table: Counts, counts: Counts) -> dict[str, str]:
    """Return a line for each number that is higher than in its table, by name; a missing number was zero."""
    return {
        name: f"{name}: {before} → {count} (+{count - before})"
        for name, count in sorted(counts.items())
        if count > (before := table.get(name, 0))
    }


def explain_rise(name: str, counts: Counts) -> str:
    """Return how to correct numbers that rise, then these numbers, or an empty string if none does."""
    risen = list_risen(load_table(name), counts)
    if not risen:
        return ""
    command = f"python tests/support/ratchets.py {name}"
    lines = [f"Lower these numbers again, or give the reason in the commit and run `{command}`:"]
    lines += [f"  {rise}" for rise in risen.values()]
    if name == "voice":
        lines.append(f"`python tests/support/voice.py {' '.join(risen)}` lists the texts:")
        lines += [f"  {each}:{hit}" for each in risen for hit in voice.list_hits(ROOT / each)]
    return "\n".join(lines)


def load_table(name: str) -> Counts:
    """Return the numbers that a ratchet must not exceed."""
    table: Counts = json.loads((_TABLES / f"{name}.json").read_text("utf-8"))
    return table


def count_voice(folder: Path) -> Counts:
    """Count the occurrences of `voice` patterns, by file."""
    counts = {
        _name(path): voice.count_patterns(path)
        for path in folder.rglob("*.py")
        if path.name not in _QUOTING and ".venv" not in path.relative_to(folder).parts  # the environment of peers
    }
    return {name: count for name, count in counts.items() if count}


def count_weight(package: Path) -> Counts:
    """Return the lines of code without blank lines, comments and docstrings, by folder or module of a package."""
    counts: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0]
        counts[f"{package.name}/{room}"] += _count_code_lines(path)
    return counts


def _count_code_lines(path: Path) -> int:
    docstrings = {
        line
        for node in sources.walk(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        number not in docstrings and not line.lstrip().startswith("#") and bool(line.strip())
        for number, line in enumerate(sources.read(path).splitlines(), 1)
    )


ORDER: Final = (
    "protocol",
    "execution",
    "core",
    "handlers",
    "observability",
    "options",
    "middlewares",
    "features",
    "calls",
    "methods",
    "../http",
    "../policy",
    "../tasks",
    "app",
    "debugger",
    "transports",
    "package_server",
    "example_tests",
    "worker",
    "main",
)
"""The folders and modules of the server from the lowest to the highest, and the packages above its features."""


def count_upward_imports(server: Path = _SERVER) -> Counts:
    """Count the server modules that import a module from a higher room, anywhere in the module, by pair of rooms."""
    counts: Counter[str] = Counter()
    for path in server.rglob("*.py"):
        room = _find_room(path, server)
        targets = {target: _find_room(target, server) for target in _list_imports(path, server.parent)} if room else {}
        counts.update(f"{room} -> {other}" for other in targets.values() if other and _is_higher(other, room))
    return counts


def _is_higher(room: str, other: str) -> bool:
    return ORDER.index(room) > ORDER.index(other)


def _find_room(path: Path, server: Path) -> str:
    """Return the room that a module belongs to, or an empty string for `__init__` and modules outside the order."""
    if path.is_relative_to(server):
        room = path.relative_to(server).with_suffix("").parts[0].removeprefix("__init__")
        if room and room not in ORDER:
            raise ValueError(
                f"`{room}` is not in the order of the server's folders (`ORDER` in tests/support/ratchets.py); add it"
            )
        return room
    outside = f"../{path.relative_to(server.parent).parts[0]}"
    return outside if outside in ORDER else ""


def _list_imports(path: Path, package: Path) -> Iterator[Path]:
    """Yield the modules of a package that a module imports, also with `import_module` and a constant."""
    parent = ".".join((package.name, *path.relative_to(package).parent.parts))
    for node in sources.walk(path):
        match node:
            case ast.ImportFrom():
                name, members = "." * node.level + (node.module or ""), [alias.name for alias in node.names]
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str() as name), *_],
            ):
                members = ["__init__"]
            case _:
                continue
        top, *rest = importlib.util.resolve_name(name, parent).split(".")
        base = package.joinpath(*rest)
        if top != package.name:
            continue
        if (module := base.with_suffix(".py")).is_file():
            yield module
        else:
            yield from (base / f"{member}.py" for member in members)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _count_all(count: Callable[[Path], Counts], folders: Iterable[Path]) -> Counts:
    return {name: number for folder in folders for name, number in count(folder).items()}


RATCHETS: Final[Mapping[str, Callable[[], Counts]]] = {
    "voice": lambda: _count_all(count_voice, WRITTEN),
    "weight": lambda: _count_all(count_weight, PACKAGES),
    "arrows": count_upward_imports,
    "calls": call_traces.count_all,
}


def main() -> int:
    """Update the tables."""
    status = 0
    for name, count in RATCHETS.items():
        path = _TABLES / f"{name}.json"
        counts = count()
        risen = list_risen(load_table(name), counts) if path.is_file() else {}
        if risen and name not in sys.argv[1:]:
            print(explain_rise(name, counts), file=sys.stderr)
            status = 1
            continue
        path.write_text(json.dumps(counts, indent=2, sort_keys=True) + "\n", "utf-8")
        print(f"{name}: {sum(counts.values())}", *risen.values(), sep="\n  ")
    return status


if __name__ == "__main__":
    sys.exit(main())
