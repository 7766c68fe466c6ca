"""Links a distribution's dependencies into a folder, offline, so that undeclared dependencies are detected."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def site(folder: Path, *names: str) -> Path:
    """Create a folder for `sys.path` with all dependencies of the distributions, but without these and stubwright.

    Args:
        folder: The folder, which must not exist yet.
        names: Distributions of this environment, optionally with extras: `stubwright-runtime[redis]`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, here in closure(*names).items():
        for part in () if name in ("stubwright", "stubwright-runtime") else _parts(here):
            source, target = Path(str(here.locate_file(part))), folder / part
            if source.exists() and not target.is_symlink():
                target.symlink_to(source)
    return folder


def closure(*names: str) -> dict[str, Distribution]:
    """Return the names of some distributions, optionally with extras, and of all their dependencies."""
    needed: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(name) for name in names]
    for wanted in waiting:  # grows during the loop
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key not in seen:
            seen.add(key)
            here = distribution(wanted.name)
            needed[key[0]] = here
            waiting += _requirements(here, key[1])
    return needed


def _requirements(here: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for line in here.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield wanted


def _parts(here: Distribution) -> set[str]:
    """Return the files and folders of a distribution in its `site-packages`."""
    firsts = {path.parts[0] for path in here.files or ()}
    return firsts - {"..", "__pycache__"}
