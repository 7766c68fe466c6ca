"""What each primitive adds to its package: its module of models, and its methods of the client.

Takes a manifest and gives a unit for each, made anew, or taken from the package as it was generated before where
the lock proves that it was made from the same. Units do not depend on each other, so that many are made on all
processors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from toolwright import ir, naming
from toolwright.pycode import Code, Name, code, join, trusted

if TYPE_CHECKING:
    from toolwright.codegen.datamodel import ModelModule
    from toolwright.incremental.worker import Helper

_CLASS = "\nclass "
_DECORATOR = "\n    @deprecated("
_DEFINITION = "\n    async def "
_DOCSTRING = '\n        """'
_STRING = re.compile(r"""(["'])(?:\\.|(?!\1)[^\\])*\1""")
_NAME = re.compile(r"(?<![^\s,|=*()[\]>-])[^\W\d_][^\s,|=*()[\]:>-]*+(?!:)")  # `\w` lacks some marks of identifiers
_BUILTIN = naming.ANNOTATION_NAMES | {"False", "None", "OMIT", "True", "self"}

BATCH = 24
"""How many tools one processor takes at a time. Fewer than two batches are not worth starting another."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one primitive adds: the text of its module with its classes, and its methods of the client, formatted.

    `names` are those that the methods' signatures need, but for builtins. `home` is where the module of a prompt or
    resource stands below `models`; one without models has no text there.
    """

    module: Code
    classes: tuple[Name, ...]
    method: Code
    names: frozenset[str]
    home: Name | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """The unit of each primitive, in the manifest's order, and the models of each shared schema that has a
    class.
    """

    units: Mapping[str, Unit]
    primitives: Sequence[Unit]
    shared: Mapping[str, ModelModule]


class Generated(Protocol):
    """A package as it was generated before."""

    @property
    def tools(self) -> Mapping[str, str]:
        """The digest of all that each tool's unit was made from, by the tool's name on the wire."""
        ...

    def text(self, path: str) -> Code | None:
        """A file of the package as it was generated; None where it is gone or was edited."""
        ...


def begin(
    manifest: ir.Manifest, digests: Mapping[str, str], before: Generated | None, helper: Helper | None = None
) -> Callable[[], Made]:
    """Begin to make what the models of a manifest take; what is given waits for it.

    Args:
        manifest: The lowered manifest.
        digests: For each tool, the digest of what its unit is made from.
        before: The package as it was generated before, if it was.
        helper: Does what is little enough for one processor, if there is one.
    """
    found = dict(_kept(manifest, digests, before)) if before is not None else {}
    todo = [tool for tool in manifest.tools if tool.name not in found]
    rest = (_shared(manifest), manifest.source, manifest.command)
    few = todo if len(todo) <= BATCH else []
    primitives = (*manifest.resources, *manifest.templates, *manifest.prompts)
    modelled = (
        frozenset(primitive.key for primitive in primitives if primitive.has_model)
        if "server" in manifest.emit
        else frozenset()
    )
    begun = (
        helper.start(_few, few, primitives, modelled, *rest)
        if helper is not None and (few or manifest.shared or modelled)
        else None
    )

    def made() -> Made:
        units, others, shared = begun() if begun is not None else _few(few, primitives, modelled, *rest)
        if few is not todo:
            units = _many(todo, *rest)
        each = found | {tool.name: unit for tool, unit in zip(todo, units, strict=True)}
        return Made({tool.name: each[tool.name] for tool in manifest.tools}, others, shared)

    return made


def _shared(manifest: ir.Manifest) -> Sequence[ir.SharedSchema]:
    """The shared schemas, with what is redacted in them."""
    if not manifest.shared or not any(tool.policy.get("redact") for tool in manifest.tools):
        return manifest.shared
    from toolwright.codegen import datamodel

    return datamodel.redacting(manifest.tools, manifest.shared)


def _few(
    tools: Sequence[ir.Tool],
    primitives: Sequence[ir.Primitive],
    modelled: frozenset[str],
    shared: Sequence[ir.SharedSchema],
    source: str,
    command: str,
) -> tuple[list[Unit], list[Unit], dict[str, ModelModule]]:
    if not (tools or primitives or shared):
        return [], [], {}
    from toolwright.codegen import datamodel

    units = make(tools, shared, source, command) if tools else []
    return units, _primitives(primitives, modelled, source, command), datamodel.shared_modules(shared)


def _primitives(primitives: Sequence[ir.Primitive], modelled: frozenset[str], source: str, command: str) -> list[Unit]:
    """The units of resources and prompts; those of `modelled` have models."""
    from toolwright.codegen import datamodel, package, render, surface
    from toolwright.codegen import features as parts

    head = render.header(source, command)
    served = [primitive for primitive in primitives if primitive.key in modelled]
    made = dict(zip((primitive.key for primitive in served), datamodel.primitive_modules(served), strict=True))
    units = []
    for primitive in primitives:
        methods = surface.primitive_methods(primitive)
        module = made.get(primitive.key)
        units.append(
            Unit(
                module=(
                    render.page(head, package.Page("", "module.py", {"source": module.source})) if module else code("")
                ),
                classes=module.names if module else (),
                method=join("\n", map(render.method, methods)),
                names=frozenset(name for method in methods for name in method.names),
                home=parts.primitive_module(primitive),
            )
        )
    return units


def _many(tools: Sequence[ir.Tool], shared: Sequence[ir.SharedSchema], source: str, command: str) -> list[Unit]:
    """The units of any number of tools, made on all processors."""
    batches = [tools[start : start + BATCH] for start in range(0, len(tools), BATCH)]
    if len(batches) < 2 or (processors := os.cpu_count() or 1) < 2:
        return [unit for batch in batches for unit in make(batch, shared, source, command)]
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(processors, len(batches))) as pool:
        jobs = [pool.submit(make, batch, shared, source, command) for batch in batches]
        return [unit for job in jobs for unit in job.result()]


def make(tools: Sequence[ir.Tool], shared: Sequence[ir.SharedSchema], source: str, command: str) -> list[Unit]:
    """The units of some tools, made here and now.

    Args:
        tools: The tools.
        shared: The manifest's shared schemas.
        source: The manifest's path, as headers show it.
        command: What generates its package, as headers show it.
    """
    from toolwright.codegen import datamodel, package, render, surface

    head = render.header(source, command)
    made = zip(tools, datamodel.modules(tools, shared), strict=True)
    return [
        Unit(
            module=render.page(head, package.Page("", "module.py", {"source": module.source})),
            classes=module.names,
            method=render.method(method := surface.tool_method(tool, module.parameters)),
            names=method.names,
        )
        for tool, module in made
    ]


def _kept(manifest: ir.Manifest, digests: Mapping[str, str], before: Generated) -> Iterator[tuple[str, Unit]]:
    """The units that can be taken from the package as it was."""
    same = [tool for tool in manifest.tools if before.tools.get(tool.name) == digests[tool.name]]
    has_client = "client" in manifest.emit
    methods = _methods(before.text("client.py") or code("")) if same and has_client else {}
    for tool in same:
        module = before.text(f"models/{tool.names.module}.py")
        method = methods.get(tool.names.method) if has_client else code("")
        if module is not None and method is not None and tool.name.isprintable():
            yield tool.name, Unit(module, _classes(module), method, _names(method))


def _classes(module: Code) -> tuple[Name, ...]:
    """The names of the classes that a module defines."""
    return tuple(Name(part[: part.index("(")]) for part in module.split(_CLASS)[1:])


def _names(method: str) -> frozenset[str]:
    """The names in the signature of a method, but for those of parameters and builtins."""
    head, _, _ = method.partition(_DOCSTRING)
    _, _, definition = f"\n{head}".partition(_DEFINITION)
    _, _, signature = definition.partition("(")
    return frozenset().union(*map(_names_in, signature.removesuffix(":").split("\n"))) - _BUILTIN


@cache
def _names_in(line: str) -> frozenset[str]:
    return frozenset(_NAME.findall(_STRING.sub("", line)))


def _methods(client: Code) -> dict[str, Code]:
    """The methods of a client by name, cut out of its text."""
    before, *parts = client.split(_DEFINITION)
    found = {}
    for part in parts:
        text, _, _ = part.partition(_DECORATOR)  # what follows belongs to the next one
        _, decorator, lead = before.rpartition(_DECORATOR)
        whole = f"{decorator}{lead if decorator else ''}{_DEFINITION}{text}"
        found[part[: part.index("(")]] = trusted(whole.strip("\n") + "\n")
        before = part
    return found
