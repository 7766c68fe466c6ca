"""What each tool adds to its package: its module of models, and its method of the client.

Takes tools and gives a unit for each, made anew, or taken from the package as it was generated before where the lock
proves that it was made from the same. Units do not depend on each other, so that many are made on all processors.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from toolwright import ir, naming

_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)
_METHOD = re.compile(r"^(?:    @deprecated\((?:.|\n)*?\n)?    async def (\w+)\(", re.MULTILINE)
_TOKEN = re.compile(r"""\"{3}|(["'])(?:\\.|(?!\1)[^\\])*\1|(?P<name>\b[^\W\d_]\w*\b)(?!\s*:)""")
_BUILTIN = naming.ANNOTATION_NAMES | {"False", "None", "OMIT", "True", "self"}

BATCH = 24
"""How many tools one processor takes at a time. Fewer than two batches are not worth starting another."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one tool or offer adds: the text of its module with its classes, and its methods of the client, formatted.

    `home` is where the module of an offer stands below `models`; an offer without models has no text there.
    """

    module: str
    classes: tuple[str, ...]
    method: str
    home: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names that the methods' signatures need, but for builtins."""
        return frozenset(name for method in _methods(self.method).values() for name in _names(method)) - _BUILTIN


def _names(method: str) -> list[str]:
    end = next(token.start() for token in _TOKEN.finditer(method) if token[0] == '"""')
    signature = method[:end].rstrip().removesuffix(":")  # so that the name before it is none of a parameter
    found = [token["name"] for token in _TOKEN.finditer(signature) if token["name"]]
    return found[found.index("def") + 2 :]


class Generated(Protocol):
    """A package as it was generated before."""

    @property
    def tools(self) -> Mapping[str, str]:
        """The digest of all that each tool's unit was made from, by the tool's name on the wire."""
        ...

    def text(self, path: str) -> str | None:
        """A file of the package as it was generated; None where it is gone or was edited."""
        ...


def digest(tool: ir.Tool, manifest: ir.Manifest, generator: str) -> str:
    """A digest of all that the unit of `tool` is made from; `generator` is one of toolwright itself."""
    shared = [made.schema.wire for made in manifest.shared] if tool.input.shared or _output_shared(tool) else []
    parts = [
        generator,
        manifest.source,
        manifest.command,
        manifest.formats,
        tool.definition,
        [tool.names.method, tool.names.stem, tool.names.module],
        tool.deprecated,
        [[one.name, one.message, one.schema.wire if one.schema else None] for one in tool.questions],
        tool.input.shared,
        _output_shared(tool),
        shared,
    ]
    text = json.dumps(parts, separators=(",", ":"), default=dict)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _output_shared(tool: ir.Tool) -> Mapping[str, str]:
    return tool.output.shared if tool.output is not None else {}


def units(manifest: ir.Manifest, digests: Mapping[str, str], before: Generated | None) -> dict[str, Unit]:
    """The unit of each tool, in the manifest's order.

    Args:
        manifest: The lowered manifest.
        digests: For each tool, the digest of what its unit is made from.
        before: The package as it was generated before, if it was.
    """
    found = dict(_kept(manifest, digests, before)) if before is not None else {}
    todo = [tool for tool in manifest.tools if tool.name not in found]
    batches = [todo[start : start + BATCH] for start in range(0, len(todo), BATCH)]
    make = partial(_batch, manifest.shared, manifest.source, manifest.command)
    if len(batches) > 1 and (processors := os.cpu_count() or 1) > 1:
        with ProcessPoolExecutor(min(processors, len(batches))) as pool:
            made = [unit for units in pool.map(make, batches) for unit in units]
    else:
        made = [unit for batch in batches for unit in make(batch)]
    found |= {tool.name: unit for tool, unit in zip(todo, made, strict=True)}
    return {tool.name: found[tool.name] for tool in manifest.tools}


def offer_units(manifest: ir.Manifest) -> list[Unit]:
    """The unit of each resource, resource template and prompt, in the manifest's order."""
    from toolwright import models, plan, render

    head = render.header(manifest.source, manifest.command)
    modelled = plan.modelled(manifest) if "server" in manifest.emit else ()
    made = dict(zip((offer.key for offer in modelled), models.offer_modules(modelled), strict=True))
    return [
        Unit(
            module=render.page(head, plan.Page("", "module.py", {"source": module.source})) if module else "",
            classes=module.classes if module else (),
            method="\n".join(render.method(method) for method in plan.offer_methods(offer)),
            home=plan.offer_module(offer),
        )
        for offer in (*manifest.resources, *manifest.templates, *manifest.prompts)
        for module in [made.get(offer.key)]
    ]


def _batch(shared: Sequence[ir.SharedSchema], source: str, command: str, tools: Sequence[ir.Tool]) -> list[Unit]:
    from toolwright import models, plan, render

    head = render.header(source, command)
    made = zip(tools, models.modules(tools, shared), strict=True)
    return [
        Unit(
            module=render.page(head, plan.Page("", "module.py", {"source": module.source})),
            classes=module.classes,
            method=render.method(plan.client_method(tool, module)),
        )
        for tool, module in made
    ]


def _kept(manifest: ir.Manifest, digests: Mapping[str, str], before: Generated) -> Iterator[tuple[str, Unit]]:
    """The units that can be taken from the package as it was."""
    same = [tool for tool in manifest.tools if before.tools.get(tool.name) == digests[tool.name]]
    has_client = "client" in manifest.emit
    methods = _methods(before.text("client.py") or "") if same and has_client else {}
    for tool in same:
        module = before.text(f"models/{tool.names.module}.py")
        method = methods.get(tool.names.method) if has_client else ""
        if module is not None and method is not None and tool.name.isprintable():
            yield tool.name, Unit(module, tuple(_CLASS.findall(module)), method)


def _methods(client: str) -> dict[str, str]:
    """The methods of a client by name, cut out of its text."""
    starts = [(found.start(), found[1]) for found in _METHOD.finditer(client)]
    ends = [start for start, _ in starts[1:]] + [len(client)]
    return {name: client[start:end].rstrip("\n") + "\n" for (start, name), end in zip(starts, ends, strict=True)}
