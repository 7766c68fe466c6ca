"""Records `stubwright-runtime`'s dependencies: run `python tests/support/dependencies.py` after changing them.

Follows the requirements of the installed distributions for all platforms and Python versions. A distribution that is
not installed is assumed to have a module of the same name. Adds dependencies of only the oldest supported versions, so
that the file does not depend on the installed versions.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from packaging.requirements import Requirement

from stubwright import dependencies

RUNTIME = "stubwright-runtime"
OLDER: Final = frozenset({"deprecated", "importlib-metadata", "inspect2", "sniffio", "wrapt", "zipp"})
"""Dependencies of the oldest supported opentelemetry-api and anyio, but not of the locked versions."""


def list_modules() -> dict[str, list[str]]:
    """Return the sorted modules of each distribution that the runtime and its extras require."""
    modules = defaultdict(set)
    for module, distributions in metadata.packages_distributions().items():
        for distribution in distributions if module.isidentifier() else ():
            modules[_normalized(distribution)].add(module)
    modules[RUNTIME] = {"stubwright_runtime"}  # an editable distribution has no list of its modules
    modules["stubwright"] = {"stubwright"}
    names = sorted({*_closure(RUNTIME, frozenset({"all", "oauth", "skills"})), *OLDER, "stubwright"})
    return {name: sorted(modules.get(name) or {name.replace("-", "_")}) for name in names}


def _closure(name: str, extras: frozenset[str]) -> set[str]:
    """Return a distribution and all its dependencies."""
    seen: dict[str, frozenset[str]] = {}
    waiting = [(name, extras)]
    while waiting:
        name, extras = waiting.pop()
        if extras <= seen.get(name, frozenset()) and name in seen:
            continue
        seen[name] = seen.get(name, frozenset()) | extras
        waiting += [(_normalized(each.name), frozenset(each.extras)) for each in _requirements(name, seen[name])]
    return {*seen}


def _requirements(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    try:
        requirements = [Requirement(text) for text in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return
    for each in requirements:
        wanted = set(re.findall(r"extra == \"([^\"]+)\"", str(each.marker or "")))
        if not wanted or not wanted.isdisjoint(extras):
            yield each


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    dependencies.FILE.write_text(json.dumps(list_modules(), indent=2) + "\n")
