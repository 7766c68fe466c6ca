"""Manifest to files: what a package consists of, and what each of its templates is given.

Takes the IR and what was made of each tool; gives one `Page` for each file, with its imports as data. Pages that need
no models can be written while these are made. It lays nothing out and writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright.codegen.client import client_page
from toolwright.codegen.docstrings import about, sentence
from toolwright.codegen.features import (
    asking_contexts,
    context_module,
    folder_of,
    has_examples,
    modelled,
    needs_handlers,
)
from toolwright.codegen.handlers import handlers_page
from toolwright.codegen.imports import as_homes
from toolwright.codegen.literals import docstring
from toolwright.codegen.registry import registry_page
from toolwright.pycode import Code, Name

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.codegen.datamodel import ModelModule
    from toolwright.codegen.modules import Unit

EXPORTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "answers": {"._runtime.answers": ("Accepted", "Cancelled", "Declined")},
    "tools": {".registry": ("TOOLS",)},
    "server": {
        "._runtime.errors": ("ToolError",),
        "._runtime.server.returns": ("Content", "MaybeAwaitable", "Reply", "Returns"),
        ".server": ("asgi_app", "build_server"),
    },
    "content": {"._runtime.server.content": ("audio", "embedded", "image", "link", "text")},
    "completion": {"._runtime.server.completion": ("Completing",)},
    "prompts": {"._runtime.server.prompts": ("Messages", "assistant", "user")},
    "resources": {"._runtime.server.resources": ("ResourceContents",)},
    "client": {
        "._runtime.client.errors": ("CallRefused", "InvalidResult", "ToolFailed"),
        "._runtime.client.live": ("list_prompts", "list_resource_templates", "list_resources", "list_tools"),
        "._runtime.client.options": ("OMIT", "CallEvent", "Omit"),
    },
    "changes": {"._runtime.client.subscriptions": ("ListChanged", "ResourceUpdated", "changes")},
    "drift": {"._runtime.client.drift": ("DriftError", "DriftWarning")},
    "client_requests": {"._runtime.client.questions": ("Question",)},
}
"""What a package exports of each of its features, by the modules that define it."""


@dataclass(frozen=True, slots=True)
class Page:
    """One file: where it goes in its package, or beside it; its template, and what the template is given.

    `tail` has parts that are formatted already, which follow what the template gives with an empty line before each.
    One that `is_beside` stands beside the package, and is no part of what a wheel of it installs.
    """

    path: str
    template: str
    values: Mapping[str, Any]
    tail: tuple[Code, ...] = ()
    is_beside: bool = False


def of_manifest(manifest: ir.Manifest, used: Sequence[str]) -> tuple[Page, ...]:
    """The pages that say what `manifest` says, whatever its models look like."""
    title = _title(manifest)
    pages = [Page("registry.py", "registry.py", registry_page(title, manifest, used))]
    if "server" not in manifest.emit:
        return tuple(pages)
    pages += [
        Page(f"models/{folder}/__init__.py", "module.py", {"source": docstring(f"Models of the {folder} of {title}.")})
        for folder in sorted({folder_of(primitive) for primitive in modelled(manifest)})
    ]
    if contexts := asking_contexts(manifest):
        answers = sorted({one.answer for each in contexts for one in each.questions if not one.by_url})
        doc = f"What handlers of {title} that ask something get as `ctx`."
        pages.append(
            Page(
                "contexts.py",
                "contexts.py",
                {"doc": doc, "base": context_module(used), "contexts": contexts, "answers": answers},
            )
        )
    pages += [
        Page("handlers.py", "handlers.py", handlers_page(title, manifest, used)),
        Page(
            "server.py",
            "server.py",
            {
                "doc": f"{sentence(title)}, as an object of the SDK and as an ASGI application.",
                "stem": manifest.stem,
                "calls": manifest.calls,
                "optional": not needs_handlers(manifest),
            },
        ),
        Page(
            "__main__.py",
            "__main__.py",
            {
                "doc": f"Run {title}: `python -m {manifest.package}`, on stdio, or over HTTP with `--http`.",
            },
        ),
    ]
    if has_examples(manifest):
        name = f"test_{manifest.package}.py"
        doc = f"The examples of {title} as tests of its handlers: `pytest {name}`."
        pages.append(Page(name, "test_examples.py", {"doc": doc, "package": manifest.package}, is_beside=True))
    return tuple(pages)


def of_models(
    manifest: ir.Manifest,
    used: Sequence[str],
    units: Mapping[str, Unit],
    primitive_modules: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> tuple[Page, ...]:
    """The other pages, but for the modules of single primitives, which their units have.

    Args:
        manifest: The lowered manifest.
        used: The features of the runtime that the package uses.
        units: What was made of each tool, by its name on the wire.
        primitive_modules: What was made of each resource, resource template and prompt that the client has methods for.
        shared: The model module of each shared schema that has classes, by its name under `schemas`.
    """
    title = _title(manifest)
    pages = [
        Page("__init__.py", "__init__.py", _package(manifest, used, title, units, primitive_modules, shared)),
        Page("models/__init__.py", "__init__.py", _models(title, manifest, used, units, primitive_modules, shared)),
    ]
    if shared:
        pages.append(
            Page(
                "models/shared/__init__.py",
                "module.py",
                {"source": docstring(f"Models of the schemas that several tools of {title} share.")},
            )
        )
        pages += [
            Page(f"models/shared/{schema.names.module}.py", "module.py", {"source": shared[schema.name].source})
            for schema in manifest.shared
            if schema.name in shared
        ]
    if "client" in manifest.emit:
        methods = (*(units[tool.name].method for tool in manifest.tools), *(unit.method for unit in primitive_modules))
        pages.append(Page("client.py", "client.py", client_page(title, manifest, units, primitive_modules), methods))
    return tuple(pages)


def _title(manifest: ir.Manifest) -> str:
    return f"the MCP server `{manifest.server['name']}`"


def _package(
    manifest: ir.Manifest,
    used: Sequence[str],
    title: str,
    units: Mapping[str, Unit],
    primitive_modules: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = defaultdict(list)
    tables: list[Mapping[str, Sequence[str]]] = [EXPORTS[name] for name in used if name in EXPORTS]
    if "server" in manifest.emit:
        tables += [
            {f"._runtime.server.{context_module(used)}": ("Context",)},
            {".handlers": (f"{manifest.stem}Handlers",)},
            {".contexts": [f"{each.stem}Context" for each in asking_contexts(manifest)]},
        ]
    if "client" in manifest.emit:
        tables.append({".client": (f"{manifest.stem}Client",)})
    made = [unit.classes for unit in (*units.values(), *primitive_modules)] + [
        module.classes for module in shared.values()
    ]
    tables.append({".models": [name for classes in made for name in classes]})
    away = tuple(f"._runtime.{half}." for half in ("client", "server") if half not in manifest.emit)
    for table in tables:
        for module, names in table.items():
            if not module.startswith(away):
                homes[module] += names
    return {
        "doc": f"{sentence(title)}.{about(manifest)}",
        "runtime": Name("._runtime"),
        "unions": False,
        "homes": sorted(as_homes(homes), key=lambda home: home.module),
    }


def _models(
    title: str,
    manifest: ir.Manifest,
    used: Sequence[str],
    units: Mapping[str, Unit],
    primitive_modules: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = {f".{tool.names.module}": list(units[tool.name].classes) for tool in manifest.tools}
    homes |= {
        f".shared.{schema.names.module}": list(shared[schema.name].classes)
        for schema in manifest.shared
        if schema.name in shared
    }
    homes |= {f".{unit.home}": list(unit.classes) for unit in primitive_modules if unit.classes}
    return {
        "doc": f"Models of {title}, each loaded when it is first used.",
        "runtime": Name(".._runtime"),
        "unions": "unions" in used,
        "homes": as_homes(homes),
    }
