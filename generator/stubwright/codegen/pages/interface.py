"""The interface of a package for handwritten code: its names, its modules, and the attributes of a handler's `ctx`.

Classes of models are planned and not written, and those of the runtime are read and not imported: all of it takes
milliseconds.
"""

from __future__ import annotations

import ast
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import stubwright_runtime
from stubwright import naming
from stubwright.codegen.models import datamodel
from stubwright.codegen.pages.parts import list_own_contexts, list_own_exports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir

RUNTIME = stubwright_runtime.__name__


class Interface:
    """The interface of a manifest's package for handwritten code. Each part is computed when it is first needed."""

    def __init__(self, manifest: ir.Manifest) -> None:
        self.package = manifest.package
        self._manifest = manifest

    @cached_property
    def _models(self) -> Mapping[str, tuple[str, ...]]:
        return datamodel.plan_names(self._manifest)

    @cached_property
    def exports(self) -> frozenset[str]:
        """The names that the package exports."""
        models = [name for names in self._models.values() for name in names]
        own = list_own_exports(self._manifest, models)
        return _runtime_exports().union(*own.values())

    @cached_property
    def models(self) -> frozenset[str]:
        """The names that its module `models` exports."""
        names = [name for names in self._models.values() for name in names]
        return frozenset((*names, *(handle.id for handle in self._manifest.handles)))

    def find_names(self, module: str) -> frozenset[str] | None:
        """Return the names in a module that is the package, its `models` or the runtime; None for any other."""
        if module == RUNTIME:
            return _runtime_exports()
        if module == self.package:
            return self.exports
        return self.models if module == f"{self.package}.models" else None

    def has(self, module: str, name: str) -> bool:
        """Return whether one of these modules has a name, or another module of its own. Most are found without a
        plan.
        """
        if module == RUNTIME:
            return name in _runtime_exports() or _has_module(name)
        if module == self.package and name in self._certain:
            return True
        return name in (self.find_names(module) or ()) or f"{module}.{name}" in self.modules

    @cached_property
    def _certain(self) -> frozenset[str]:
        """Names that the package exports whatever its models look like."""
        tools = self._manifest.tools
        models = [naming.name_input_class(tool.names) for tool in tools]
        models += [naming.name_output_class(tool.names) for tool in tools if tool.output is not None]
        return _runtime_exports().union(*list_own_exports(self._manifest, models).values())

    @cached_property
    def modules(self) -> frozenset[str]:
        """The names of its modules, and of folders of them, as imported."""
        from stubwright.codegen.pages import package

        pages = (page for page in package.make_manifest_pages(self._manifest) if not page.is_beside)
        paths = [Path(page.path).with_suffix("") for page in pages]
        names = [".".join(path.parts[:-1] if path.name == "__init__" else path.parts) for path in paths]
        names += ["models", *(f"models.{module}" for module in self._models)]
        names += ["client"] if "client" in self._manifest.emit else []
        above = {name.rpartition(".")[0] for name in names} - {""}
        return frozenset([self.package, *(f"{self.package}.{name}" for name in {*names, *above})])

    @cached_property
    def contexts(self) -> Mapping[str, frozenset[str]]:
        """The attributes of each class that `ctx` of a handler may have, by its name."""
        common = find_context_members()
        contexts: dict[str, frozenset[str]] = {naming.CONTEXT: common}
        contexts |= {each.name: common | each.members for each in list_own_contexts(self._manifest)}
        return contexts


def _runtime_exports() -> frozenset[str]:
    """Return the names that the runtime exports, as all packages do."""
    return frozenset(dir(stubwright_runtime))


def _has_module(name: str) -> bool:
    """Return whether the runtime has a module or package of this name."""
    (root,) = stubwright_runtime.__path__
    return Path(root, name).is_dir() or Path(root, f"{name}.py").is_file()


@cache
def find_context_members() -> frozenset[str]:
    """Return the attributes of the runtime's `Context` from its source: importing it would take too long."""
    (root,) = stubwright_runtime.__path__
    table = ast.parse(Path(root, "generated.py").read_bytes())
    home = next(
        node.module
        for node in ast.walk(table)
        if isinstance(node, ast.ImportFrom) and node.module and any(each.name == naming.CONTEXT for each in node.names)
    )
    module = ast.parse(Path(root, *home.split(".")).with_suffix(".py").read_bytes())
    [context] = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == naming.CONTEXT)
    return frozenset(_defined(context))


def _defined(context: ast.ClassDef) -> Iterator[str]:
    for node in context.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith("__"):
                yield name
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=slots):
                yield from ast.literal_eval(slots)
            case _:
                pass
