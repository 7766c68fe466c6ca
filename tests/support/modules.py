"""Model modules from bare schemas, loaded without a package on disk."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from stubwright import ir, naming
from stubwright.codegen.models import datamodel
from stubwright.codegen.surface import ClassRole
from stubwright.diagnostics import Place

LATEST = "https://json-schema.org/draft/2020-12/schema"
PLACE = Place("tools.yaml")


def schema(
    wire: Mapping[str, Any], shared: Mapping[str, str] | None = None, *, rich: bool = False, exact: bool = False
) -> ir.Schema:
    return ir.Schema(wire, wire.get("$schema", LATEST), PLACE, shared or {}, rich=rich, exact=exact)


def tool(
    name: str,
    arguments: Mapping[str, Any],
    result: Mapping[str, Any] | None = None,
    shared: Mapping[str, str] | None = None,
    *,
    rich: bool = False,
    exact: bool = False,
) -> ir.Tool:
    return ir.Tool(
        name=name,
        names=naming.name_tool(name),
        description=None,
        definition={},
        input=schema(arguments, shared, rich=rich, exact=exact),
        output=None if result is None else schema(result, shared, rich=rich, exact=exact),
        annotations={},
        examples=(),
        deprecated=None,
        questions=(),
        place=PLACE,
    )


def root(made: datamodel.ModelModule, role: ClassRole = "input") -> str:
    """Return the class name for a whole input, output or other role."""
    return next(each.name for each in made.classes if each.is_root and role in each.roles)


def load(made: datamodel.ModelModule, name: str = "tool") -> ModuleType:
    """Run a module as `loaded.models.NAME` on the runtime."""
    for package in ("loaded", "loaded.models", "loaded.models.shared"):
        parent = sys.modules.setdefault(package, ModuleType(package))
        parent.__path__ = []
    module = ModuleType(f"loaded.models.{name}")
    module.__package__ = module.__name__.rpartition(".")[0]
    sys.modules[module.__name__] = module
    exec(compile(made.source, module.__name__, "exec"), module.__dict__)
    return module


def made(
    arguments: Mapping[str, Any],
    result: Mapping[str, Any] | None = None,
    name: str = "do_it",
    *,
    rich: bool = False,
    exact: bool = False,
) -> tuple[datamodel.ModelModule, ModuleType]:
    """Load the module for one tool. `rich` is `python: {formats: rich}`, and `exact` is `strict`."""
    module = datamodel.make_modules([tool(name, arguments, result, rich=rich or exact, exact=exact)])[0]
    return module, load(module, name)


def make_modules(tools: Iterable[ir.Tool]) -> Iterator[tuple[datamodel.ModelModule, ModuleType]]:
    """Return the modules for many tools. Some are rendered together, like a package's tools."""
    waiting = iter(tools)
    while some := [*itertools.islice(waiting, _TOGETHER)]:
        for each, module in zip(some, datamodel.make_modules(some), strict=True):
            yield module, load(module, each.name)


_TOGETHER = 40
"""Larger batches are hardly faster, and use more memory."""
