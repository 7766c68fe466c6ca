"""Manifest to files: what a package consists of, and what each of its templates is given.

Takes the IR and what was made of each tool; gives one `Page` for each file, with its imports as data. Pages that need
no models can be written while these are made. It lays nothing out and writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright import naming
from toolwright.literals import docstring
from toolwright.plan.clients import client_page
from toolwright.plan.handlers import handlers_page
from toolwright.plan.homes import as_homes
from toolwright.plan.parts import (
    asking_contexts,
    every,
    folder_of,
    has_examples,
    input_class,
    modelled,
    needs_handlers,
    offer_module,
    offered,
    output_class,
)
from toolwright.plan.words import about, sentence
from toolwright.pycode import Code, Name

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.models import ModelModule, SharedModules
    from toolwright.units import Unit

_COMMON_EXPORTS = {
    "._runtime.answers": ("Accepted", "Cancelled", "Declined"),
    "._runtime.errors": ("ToolFailed",),
    ".tools": ("TOOLS",),
}


_SERVER_EXPORTS = {
    "._runtime.content": ("Content", "Gives", "Reply", "Returns", "audio", "embedded", "image", "link", "text"),
    "._runtime.context": ("Context",),
    "._runtime.errors": ("ToolError",),
    ".server": ("asgi_app", "build_server"),
}


OFFER_EXPORTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "completion": {"._runtime.completion": ("Completing",)},
    "prompts": {"._runtime.prompts": ("Messages", "assistant", "user")},
    "resources": {"._runtime.resources": ("Contents",)},
}


_CLIENT_EXPORTS = {
    "._runtime.binding": ("OMIT", "CallEvent", "Omit"),
    "._runtime.callbacks": ("Question",),
    "._runtime.errors": ("CallRefused", "DriftError", "DriftWarning", "InvalidResult"),
    "._runtime.live": (
        "ListChanged",
        "ResourceUpdated",
        "changes",
        "list_prompts",
        "list_resource_templates",
        "list_resources",
        "list_tools",
    ),
}


_PARTS = {
    "completion": (Name("._runtime.completion"), Name("Completions")),
    "prompts": (Name("._runtime.prompts"), Name("Prompts")),
    "resources": (Name("._runtime.resources"), Name("Resources")),
}
"""What a server can have beside its tools: the module and the class that serve it."""


@dataclass(frozen=True, slots=True)
class Page:
    """One file of a package: where it goes, its template, and what the template is given.

    `tail` has parts that are formatted already, which follow what the template gives with an empty line before each.
    """

    path: str
    template: str
    values: Mapping[str, Any]
    tail: tuple[Code, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One row of the package's table of tools."""

    name: str
    method: Name
    module: Name
    input: Name
    output: Name | None


def of_manifest(manifest: ir.Manifest) -> tuple[Page, ...]:
    """The pages that say what `manifest` says, whatever its models look like."""
    title = _title(manifest)
    pages = [Page("tools.py", "tools.py", _tools(title, manifest))]
    if "server" not in manifest.emit:
        return tuple(pages)
    offers = offered(manifest)
    pages += [
        Page(f"models/{folder}/__init__.py", "module.py", {"source": docstring(f"Models of the {folder} of {title}.")})
        for folder in sorted({folder_of(offer) for offer in modelled(manifest)})
    ]
    if contexts := asking_contexts(manifest):
        answers = sorted({one.answer for each in contexts for one in each.questions if not one.by_url})
        doc = f"What handlers of {title} that ask something get as `ctx`."
        pages.append(Page("contexts.py", "contexts.py", {"doc": doc, "contexts": contexts, "answers": answers}))
    if offers:
        pages.append(Page("offers.py", "offers.py", _offers(title, manifest)))
    pages += [
        Page("handlers.py", "handlers.py", handlers_page(title, manifest)),
        Page(
            "server.py",
            "server.py",
            {
                "doc": f"{sentence(title)}, as an object of the SDK and as an ASGI application.",
                "stem": manifest.stem,
                "offers": bool(offers),
                "calls": manifest.calls,
                "optional": not needs_handlers(manifest),
            },
        ),
        Page(
            "__main__.py",
            "__main__.py",
            {
                "doc": f"Run {title}: `python -m {manifest.package}`, on stdio, or over HTTP with `--http`.",
                "package": manifest.package,
                "handlers": manifest.handlers,
                "offers": bool(offers),
            },
        ),
    ]
    if has_examples(manifest):
        doc = f"The examples of {title} as tests of its handlers: `pytest --pyargs {manifest.package}`."
        values = {"doc": doc, "handlers": manifest.handlers, "offers": bool(offers)}
        pages.append(Page("test_examples.py", "test_examples.py", values))
    return tuple(pages)


def of_models(
    manifest: ir.Manifest,
    units: Mapping[str, Unit],
    offer_units: Sequence[Unit],
    shared: SharedModules,
) -> tuple[Page, ...]:
    """The other pages, but for the modules of single tools and offers, which their units have.

    Args:
        manifest: The lowered manifest.
        units: What was made of each tool, by its name on the wire.
        offer_units: What was made of each resource, resource template and prompt that the client has methods for.
        shared: The model modules of shared schemas.
    """
    title = _title(manifest)
    pages = [
        Page("__init__.py", "__init__.py", _package(manifest, title, units, offer_units, shared.of)),
        Page("models/__init__.py", "__init__.py", _models(title, manifest, units, offer_units, shared.of)),
    ]
    if shared.of:
        pages.append(
            Page(
                "models/shared/__init__.py",
                "module.py",
                {"source": docstring(f"Models of the schemas that several tools of {title} share.")},
            )
        )
        modules = {
            schema.names.module: shared.of[schema.name] for schema in manifest.shared if schema.name in shared.of
        }
        pages += [
            Page(f"models/shared/{name}.py", "module.py", {"source": module.source})
            for name, module in (*shared.circles.items(), *modules.items())
        ]
    if "client" in manifest.emit:
        methods = (*(units[tool.name].method for tool in manifest.tools), *(unit.method for unit in offer_units))
        pages.append(Page("client.py", "client.py", client_page(title, manifest, units, offer_units), methods))
    return tuple(pages)


def _title(manifest: ir.Manifest) -> str:
    return f"the MCP server `{manifest.server['name']}`"


def _package(
    manifest: ir.Manifest,
    title: str,
    units: Mapping[str, Unit],
    offer_units: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = defaultdict(list)
    tables: list[Mapping[str, Sequence[str]]] = [_COMMON_EXPORTS]
    if "server" in manifest.emit:
        tables += [_SERVER_EXPORTS, {".handlers": (f"{manifest.stem}Handlers",)}]
        tables += [OFFER_EXPORTS[part] for part in sorted(offered(manifest))]
        tables.append({".contexts": [f"{each.stem}Context" for each in asking_contexts(manifest)]})
    if "client" in manifest.emit:
        tables += [_CLIENT_EXPORTS, {".client": (f"{manifest.stem}Client",)}]
    made = [unit.classes for unit in (*units.values(), *offer_units)] + [module.classes for module in shared.values()]
    tables.append({".models": [name for classes in made for name in classes]})
    for table in tables:
        for module, names in table.items():
            homes[module] += names
    return {
        "doc": f"{sentence(title)}.{about(manifest)}",
        "lazy": Name("._runtime.lazy"),
        "homes": sorted(as_homes(homes), key=lambda home: home.module),
    }


def _models(
    title: str,
    manifest: ir.Manifest,
    units: Mapping[str, Unit],
    offer_units: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = {f".{tool.names.module}": list(units[tool.name].classes) for tool in manifest.tools}
    homes |= {
        f".shared.{schema.names.module}": list(shared[schema.name].classes)
        for schema in manifest.shared
        if schema.name in shared
    }
    homes |= {f".{unit.home}": list(unit.classes) for unit in offer_units if unit.classes}
    return {
        "doc": f"Models of {title}, each loaded when it is first used.",
        "lazy": Name(".._runtime.lazy"),
        "homes": as_homes(homes),
    }


def _tools(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    rows = tuple(
        ToolRow(tool.name, tool.names.method, tool.names.module, input_class(tool), output_class(tool))
        for tool in manifest.tools
    )
    return {"doc": f"The tools of {title}, by their names on the wire.", "package": manifest.package, "tools": rows}


def _offers(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    parts = offered(manifest)
    completing = [
        ("prompt" if offer in manifest.prompts else "template", offer.key, naming.completion(offer.names))
        for offer in every(manifest)
        if offer.completes
    ]
    return {
        "doc": f"What {title} offers beside its tools.",
        "parts": {name: _PARTS[name] for name in _PARTS if name in parts},
        "resources": [(offer.key, offer.names.method if offer.handled else None) for offer in manifest.resources],
        "templates": [
            (offer.key, offer.names.method, offer_module(offer), naming.arguments(offer.names, offer.kind))
            for offer in manifest.templates
        ],
        "prompts": [
            (
                (offer.key, offer.names.method, offer_module(offer), naming.arguments(offer.names, offer.kind))
                if offer.handled
                else (offer.key, None, None, None)
            )
            for offer in manifest.prompts
        ],
        "completing": completing,
    }
