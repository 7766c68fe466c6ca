"""Lists a package's pages, with the variables for their templates.

Pages without models can be rendered before the models are generated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stubwright import naming
from stubwright.codegen.pages.client import make_client_page
from stubwright.codegen.pages.client_classes import make_client_classes
from stubwright.codegen.pages.exports import list_exported
from stubwright.codegen.pages.handlers import make_handlers_page
from stubwright.codegen.pages.handles import format_ids_module, format_modelled_kinds, list_kinds
from stubwright.codegen.pages.parts import (
    has_examples,
    list_modelled,
    list_own_contexts,
    list_own_exports,
    list_primitive_features,
    needs_handlers,
)
from stubwright.codegen.pages.registry import make_registry_page
from stubwright.codegen.source.docstrings import capitalize, quote_instructions
from stubwright.codegen.source.imports import RUNTIME, make_groups
from stubwright.codegen.source.literals import format_docstring
from stubwright.codegen.source.render import Page
from stubwright_runtime.lazy import API

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.codegen.pages.handles import Kind
    from stubwright.codegen.pages.parts import OwnContext
    from stubwright.codegen.pages.primitive_code import PackageCode


def make_manifest_pages(manifest: ir.Manifest) -> tuple[Page, ...]:
    """Return the pages that do not use models."""
    title = _title(manifest)
    pages = [Page("registry.py", "registry.py", make_registry_page(title, manifest))]
    if manifest.handles:
        pages.append(Page("models/handles.py", "module.py", {"source": format_ids_module(title, manifest)}))
    if "server" not in manifest.emit:
        return tuple(pages)
    pages += [
        Page(
            f"models/{folder}/__init__.py",
            "module.py",
            {"source": format_docstring(f"Models for the {folder} of {title}.")},
        )
        for folder in sorted({naming.name_folder(primitive.kind) for primitive in list_modelled(manifest)})
    ]
    if contexts := list_own_contexts(manifest):
        pages.append(Page("contexts.py", "contexts.py", _contexts(title, contexts, list_kinds(manifest))))
    pages += [
        Page("handlers.py", "handlers.py", make_handlers_page(title, manifest)),
        Page(
            "server.py",
            "server.py",
            {
                "doc": f"{capitalize(title)}, as an SDK object and as an ASGI application.",
                "interface": naming.name_handlers_class(manifest.stem),
                "calls": manifest.calls,
                "optional": not needs_handlers(manifest),
            },
        ),
        Page(
            "__main__.py",
            "__main__.py",
            {
                "doc": f"Run {title}: `python -m {manifest.package}` serves on stdio or, with `--http`, over HTTP.",
            },
        ),
    ]
    if has_examples(manifest):
        name = f"{naming.name_examples_module(manifest.package)}.py"
        doc = f"Tests the handlers of {title} with its examples: `pytest {name}`."
        pages.append(Page(name, "test_examples.py", {"doc": doc, "package": manifest.package}, is_beside=True))
    return tuple(pages)


def make_model_pages(manifest: ir.Manifest, code: PackageCode) -> tuple[Page, ...]:
    """Return the pages that use models, except the primitives' own modules.

    Args:
        manifest: The lowered manifest.
        code: The primitives' code, and the models of shared schemas.
    """
    title = _title(manifest)
    pages = [
        Page("__init__.py", "__init__.py", _package(manifest, title, code)),
        Page("models/__init__.py", "__init__.py", _models(title, manifest, code)),
    ]
    if code.shared:
        pages.append(
            Page(
                "models/shared/__init__.py",
                "module.py",
                {"source": format_docstring(f"Models of the shared schemas of {title}.")},
            )
        )
        modules = {each.names.module: code.shared[each.name] for each in manifest.shared if each.name in code.shared}
        pages += [
            Page(f"models/shared/{name}.py", "module.py", {"source": module.source})
            for name, module in (*code.circles.items(), *modules.items())
        ]
    if "client" in manifest.emit:
        page = make_client_page(title, manifest, code.units, code.primitives)
        pages.append(Page("client.py", "client.py", page, tuple(make_client_classes(title, manifest, code))))
    return tuple(pages)


def _contexts(title: str, contexts: Sequence[OwnContext], known: Sequence[Kind]) -> Mapping[str, Any]:
    asked = [question for each in contexts for question in each.questions]
    answers = {question.answer for question in asked if not question.by_url}
    states = {kind.model for kind in known if kind.model is not None}
    outcomes: set[str] = {"Cancelled", "Declined"} if asked else set()
    outcomes |= {"Accepted"} if any(question.by_url for question in asked) else set()
    held = [each.held for each in contexts if each.held is not None]
    has_named, overloads = any(each.named for each in held), any(each.is_overloaded for each in held)
    typing = {"Any"} if known else set()
    typing |= {"Literal"} if has_named else set()
    typing |= {"Never"} if any(not (each.named or each.nested) for each in held) else set()
    has_pages = any(each.has_page for each in contexts)
    can = (("ask questions", asked), ("have handles", known), ("return pages", has_pages))
    does = [words for words, there in can if there]
    has = (("Ask", asked), ("CallHandles", known), ("HandleT", known), ("NameT", known), ("PageRequest", has_pages))
    parts = {name for name, is_present in has if is_present}
    of_handles = {"Handles"} | ({"Handle"} if has_named or any(each.nested for each in held) else set())
    used = {RUNTIME: outcomes | (of_handles if known else set())}
    used_models = {".models": answers | states | {kind.id for kind in known}}
    types = [block for section in (used, used_models) if (block := make_groups(section))]
    typing |= {"TYPE_CHECKING"} if types else set()
    return {
        "doc": f"Contexts for {title}: the `ctx` of handlers that {' or '.join(does)}.",
        "models": answers | states,
        "typing": make_groups({"typing": typing | ({"overload"} if overloads else set())}),
        "runtime": make_groups({RUNTIME: {"Context", "PerCall"} | parts}),
        "types": types,
        "kinds": known,
        "modelled": format_modelled_kinds(known),
        "contexts": contexts,
    }


def _title(manifest: ir.Manifest) -> str:
    return f"the MCP server `{manifest.server['name']}`"


def _package(
    manifest: ir.Manifest,
    title: str,
    code: PackageCode,
) -> Mapping[str, Any]:
    classes = [unit.classes for unit in (*code.units.values(), *code.primitives)]
    classes += [module.names for module in code.shared.values()]
    names = [name for names in classes for name in names]
    own = make_groups(list_own_exports(manifest, names))
    runtime = make_groups({RUNTIME: list_exported(manifest, list_primitive_features(manifest), frozenset(names))})
    return {
        "doc": f"{capitalize(title)}.{quote_instructions(manifest)}",
        "homes": own,
        "exported": [home for home in (runtime, own) if home],
        "api": API,
    }


def _models(
    title: str,
    manifest: ir.Manifest,
    code: PackageCode,
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = {
        f".{tool.names.module}": list(code.units[tool.name].classes) for tool in manifest.tools
    }
    homes |= {
        f".shared.{schema.names.module}": list(code.shared[schema.name].names)
        for schema in manifest.shared
        if schema.name in code.shared
    }
    homes |= {f".{unit.home}": list(unit.classes) for unit in code.primitives if unit.classes}
    homes |= {".handles": [handle.id for handle in manifest.handles]} if manifest.handles else {}
    own = make_groups(homes)
    return {
        "doc": f"Models for {title}, each loaded on first use.",
        "homes": own,
        "exported": [own],
        "api": None,
    }
