"""Writes down what `stubwright-runtime` needs: run `python tests/support/dependencies.py` after a change of it.

The requirements of the distributions that are installed are followed, whatever platform or Python they are for. Where
one is not installed, its module is taken to be called like it. What only the oldest supported versions need is added,
so that the file is the same whichever supported versions are installed.
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
"""Needed by the oldest opentelemetry-api and anyio that we support, and no longer by those that are locked."""


def needed() -> dict[str, list[str]]:
    """The modules of each distribution that the runtime needs with all its extras, both in the alphabet's order."""
    modules = defaultdict(set)
    for module, distributions in metadata.packages_distributions().items():
        for distribution in distributions if module.isidentifier() else ():
            modules[_normalized(distribution)].add(module)
    modules[RUNTIME] = {"stubwright_runtime"}  # an editable one has no list of its modules
    modules["stubwright"] = {"stubwright"}
    names = sorted({*_closure(RUNTIME, frozenset({"all", "oauth", "skills"})), *OLDER, "stubwright"})
    return {name: sorted(modules.get(name) or {name.replace("-", "_")}) for name in names}


def _closure(name: str, extras: frozenset[str]) -> set[str]:
    """A distribution and all that it needs."""
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
    dependencies.FILE.write_text(json.dumps(needed(), indent=2) + "\n")
