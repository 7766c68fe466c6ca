"""What each tool, and each offer, adds to its package: its module of models, and its methods of the client.

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
    from toolwright.helper import Helper
    from toolwright.modelling.classes import Imported
    from toolwright.models import SharedModules

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
    """What one tool or offer adds: the text of its module with its classes, and its methods of the client, formatted.

    `names` are those that the methods' signatures need, but for builtins. `home` is where the module of an offer stands
    below `models`; one without models has no text there.
    """

    module: Code
    classes: tuple[Name, ...]
    method: Code
    names: frozenset[str]
    home: Name | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """The unit of each tool and of each offer, in the manifest's order, and the models of shared schemas."""

    units: Mapping[str, Unit]
    offers: Sequence[Unit]
    shared: SharedModules


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
    offers = (*manifest.resources, *manifest.templates, *manifest.prompts)
    modelled = frozenset(offer.key for offer in offers if offer.has_model) if "server" in manifest.emit else frozenset()
    begun = (
        helper.start(_few, few, offers, modelled, *rest)
        if helper is not None and (few or manifest.shared or modelled)
        else None
    )

    def made() -> Made:
        units, others, shared = begun() if begun is not None else _few(few, offers, modelled, *rest)
        if few is not todo:
            units = _many(todo, *rest)
        each = found | {tool.name: unit for tool, unit in zip(todo, units, strict=True)}
        return Made({tool.name: each[tool.name] for tool in manifest.tools}, others, shared)

    return made


def _shared(manifest: ir.Manifest) -> Sequence[ir.SharedSchema]:
    """The shared schemas, with what is redacted in them."""
    if not manifest.shared or not any(tool.policy.get("redact") for tool in manifest.tools):
        return manifest.shared
    from toolwright import models

    return models.redacting(manifest.tools, manifest.shared)


def _few(
    tools: Sequence[ir.Tool],
    offers: Sequence[ir.Offer],
    modelled: frozenset[str],
    shared: Sequence[ir.SharedSchema],
    source: str,
    command: str,
) -> tuple[list[Unit], list[Unit], SharedModules]:
    from toolwright import models

    if not (tools or offers or shared):
        return [], [], models.SharedModules()
    homes = models.homes(shared)
    units = make(tools, homes, source, command) if tools else []
    return units, _offers(offers, modelled, source, command), models.shared_modules(shared, homes)


def _offers(offers: Sequence[ir.Offer], modelled: frozenset[str], source: str, command: str) -> list[Unit]:
    """The units of offers; those of `modelled` have models."""
    from toolwright import models, plan, render
    from toolwright.plan import clients, parts

    head = render.header(source, command)
    served = [offer for offer in offers if offer.key in modelled]
    made = dict(zip((offer.key for offer in served), models.offer_modules(served), strict=True))
    units = []
    for offer in offers:
        methods = [render.method(method) for method in clients.offer_methods(offer)]
        module = made.get(offer.key)
        units.append(
            Unit(
                module=render.page(head, plan.Page("", "module.py", {"source": module.source})) if module else code(""),
                classes=module.classes if module else (),
                method=join("\n", methods),
                names=frozenset(name for method in methods for name in _names(method)),
                home=parts.offer_module(offer),
            )
        )
    return units


def _many(tools: Sequence[ir.Tool], shared: Sequence[ir.SharedSchema], source: str, command: str) -> list[Unit]:
    """The units of any number of tools, made on all processors."""
    from toolwright import models

    homes = models.homes(shared)
    batches = [tools[start : start + BATCH] for start in range(0, len(tools), BATCH)]
    if len(batches) < 2 or (processors := os.cpu_count() or 1) < 2:
        return [unit for batch in batches for unit in make(batch, homes, source, command)]
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(processors, len(batches))) as pool:
        jobs = [pool.submit(make, batch, homes, source, command) for batch in batches]
        return [unit for job in jobs for unit in job.result()]


def make(tools: Sequence[ir.Tool], homes: Mapping[str, Imported], source: str, command: str) -> list[Unit]:
    """The units of some tools, made here and now.

    Args:
        tools: The tools.
        homes: Where the classes of the manifest's shared schemas are.
        source: The manifest's path, as headers show it.
        command: What generates its package, as headers show it.
    """
    from toolwright import models, plan, render
    from toolwright.plan import clients

    head = render.header(source, command)
    made = zip(tools, models.modules(tools, homes), strict=True)
    return [
        Unit(
            module=render.page(head, plan.Page("", "module.py", {"source": module.source})),
            classes=module.classes,
            method=(method := render.method(clients.client_method(tool, module))),
            names=_names(method),
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
