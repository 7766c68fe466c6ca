"""Generates each primitive's code: its models module and its client methods.

A primitive's code does not depend on other primitives, so worker processes can generate it in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stubwright import ir, naming
from stubwright.codegen.models import reserved_names
from stubwright.codegen.pages.primitive_code import PackageCode, PrimitiveCode
from stubwright.codegen.source.render import Page
from stubwright.pycode import Name, fill, join

if TYPE_CHECKING:
    from stubwright.codegen.models.classes import ImportedType
    from stubwright.codegen.models.datamodel import ModelModule
    from stubwright.codegen.models.reserved_names import ReservedNames


def make_all(manifest: ir.Manifest) -> PackageCode:
    """Generate the code for all of a manifest's primitives in this process."""

    def generate(taken: ReservedNames) -> PackageCode:
        rest = make_rest(*select_arguments_of_rest(manifest, taken))
        homes = find_homes_for(manifest.tools, manifest.shared, taken) if manifest.tools else {}
        units = make(manifest.tools, homes, manifest.source, manifest.command, taken)
        return PackageCode({tool.name: unit for tool, unit in zip(manifest.tools, units, strict=True)}, *rest)

    return reserved_names.resolve_collisions(reserved_names.reserve(manifest), generate, PackageCode.find_defined)[0]


def select_arguments_of_rest(
    manifest: ir.Manifest, taken: ReservedNames
) -> tuple[Sequence[ir.Primitive], frozenset[str], Sequence[ir.SharedSchema], str, str, ReservedNames]:
    """Return the arguments of `make_rest` for a manifest. `taken` has the names that its package reserves."""
    primitives = (*manifest.resources, *manifest.templates, *manifest.prompts)
    modelled = {primitive.key for primitive in primitives if primitive.has_model} if "server" in manifest.emit else ()
    return primitives, frozenset(modelled), mark_shared(manifest), manifest.source, manifest.command, taken


def make_rest(
    primitives: Sequence[ir.Primitive],
    modelled: frozenset[str],
    shared: Sequence[ir.SharedSchema],
    source: str,
    command: str,
    taken: ReservedNames,
) -> tuple[list[PrimitiveCode], Mapping[str, ModelModule], Mapping[Name, ModelModule]]:
    """Generate the code for resources, templates and prompts, and the models of shared schemas.

    Args:
        primitives: The resources, templates and prompts.
        modelled: The keys of the primitives with models.
        source: The manifest's path in headers.
        command: The command in headers that regenerates the package.
        taken: Names that the package reserves.
    """
    from stubwright.codegen import surface
    from stubwright.codegen.source import render

    modules: dict[str, ModelModule] = {}
    of_shared: Mapping[str, ModelModule] = {}
    circles: Mapping[Name, ModelModule] = {}
    if modelled or shared:
        from stubwright.codegen.models import datamodel

        served = [primitive for primitive in primitives if primitive.key in modelled]
        modules = dict(
            zip((primitive.key for primitive in served), datamodel.make_primitive_modules(served, taken), strict=True)
        )
        shared_modules = datamodel.make_shared_modules(shared, taken=taken)
        of_shared, circles = shared_modules.of, shared_modules.circles
    head = render.render_header(source, command)
    units = []
    for primitive in primitives:
        methods = surface.describe_primitive_methods(primitive)
        module = modules.get(primitive.key)
        units.append(
            PrimitiveCode(
                module=(
                    render.render_page(head, Page("", "module.py", {"source": module.source})) if module else fill("")
                ),
                classes=module.names if module else (),
                method=join("\n", map(render.render_method, methods)),
                names=frozenset(name for method in methods for name in method.names),
                home=naming.name_model_module(primitive.names, primitive.kind),
            )
        )
    return units, of_shared, circles


def mark_shared(manifest: ir.Manifest) -> Sequence[ir.SharedSchema]:
    """Return the shared schemas with the paths to redact in them."""
    if not manifest.shared or not any(tool.policy.get("redact") for tool in manifest.tools):
        return manifest.shared
    from stubwright.codegen.models import datamodel

    return datamodel.mark_redacted(manifest.tools, manifest.shared)


def find_homes_for(
    tools: Sequence[ir.Tool], shared: Sequence[ir.SharedSchema], taken: ReservedNames
) -> Mapping[str, ImportedType]:
    """Return the shared schemas' classes that the models of these tools use, keyed by name under `schemas`."""
    if not shared:
        return {}
    from stubwright.codegen.models import datamodel

    return datamodel.find_homes(shared, tools, taken)


def make(
    tools: Sequence[ir.Tool], homes: Mapping[str, ImportedType], source: str, command: str, taken: ReservedNames
) -> list[PrimitiveCode]:
    """Generate the code for some tools in this process.

    Args:
        homes: The shared schemas' classes, with their modules.
        source: The manifest's path in headers.
        command: The command in headers that regenerates the package.
        taken: Names that the package reserves.
    """
    from stubwright.codegen import surface
    from stubwright.codegen.models import datamodel
    from stubwright.codegen.source import render

    head = render.render_header(source, command)
    models = zip(tools, datamodel.make_modules(tools, homes, taken), strict=True)
    return [
        PrimitiveCode(
            module=render.render_page(head, Page("", "module.py", {"source": module.source})),
            classes=module.names,
            method=render.render_method(
                method := surface.describe_tool_method(tool, module.parameters, module.extra, module.classes)
            ),
            response=render.render_response(method) if method.deprecated else None,
            task=render.render_task(method) if method.deprecated and tool.task_support != "forbidden" else None,
            names=method.names,
        )
        for tool, module in models
    ]
