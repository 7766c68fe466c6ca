"""The requirements for a light installation, which can call servers but cannot compile manifests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from stubwright.project.files import disk
from stubwright.project.wheels import COMPILER, RUNTIME

FILE: Final = "light.txt"
"""The file of requirements for `pip install -r`."""

EXCLUDED: Final = frozenset(
    {
        "black",
        "datamodel-code-generator",
        "filelock",
        "jinja2",
        "jsonschema",
        "markdown-it-py",
        "markupsafe",
        "packaging",
        "shtab",
        "tomlkit",
        "watchfiles",
    }
)
"""The packages that `lock`, `verify`, `test`, `record` and `replay` need only to start a manifest's server."""

_DISTRIBUTIONS: Final = {"jwt": "pyjwt", "markdown_it": "markdown-it-py", "yaml": "pyyaml"}
"""The distributions for modules with different names."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def list_requirements() -> list[str]:
    """Return the sorted requirements for a light installation, without stubwright and its runtime.

    Raises:
        importlib.metadata.PackageNotFoundError: stubwright or its runtime is not installed as a distribution.
    """
    wanted = {*_read_requirements(COMPILER), *_read_requirements(RUNTIME)}
    return sorted(line for line in wanted if _find_name(line) not in {*EXCLUDED, RUNTIME})


def write_requirements(folder: Path) -> Path:
    """Write the requirements for a light installation to an existing folder and return the path.

    Raises:
        importlib.metadata.PackageNotFoundError: stubwright or its runtime is not installed as a distribution.
        OSError: The file cannot be written.
    """
    lines = ["# Requirements for `lock`, `verify`, `test`, `record` and `replay`, from `stubwright wheels --light`."]
    path = folder / FILE
    disk.write(path, "".join(f"{line}\n" for line in [*lines, *list_requirements()]).encode())
    return path


def explain_missing(error: ModuleNotFoundError) -> str | None:
    """Return one line of advice for a module that was not found; None if stubwright does not require it."""
    module = (error.name or "").partition(".")[0]
    distribution = _DISTRIBUTIONS.get(module, module.replace("_", "-"))
    try:
        wanted = sorted({*_read_requirements(COMPILER), *_read_requirements(RUNTIME)})
    except metadata.PackageNotFoundError:
        return None
    missing = [line for line in wanted if not _is_installed(_find_name(line))]
    if distribution not in map(_find_name, missing):
        return None
    return f"this requires the package {distribution}; run pip install {' '.join(map(shlex.quote, missing))}"


def _read_requirements(distribution: str) -> Iterator[str]:
    yield from (line for line in metadata.requires(distribution) or () if "extra ==" not in line)


def _find_name(requirement: str) -> str:
    match = _NAME.match(requirement)
    return match[0].lower() if match else ""


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
