"""The page `handlers.py`: the handler interface, with a method for each primitive that needs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stubwright import naming
from stubwright.codegen import surface
from stubwright.codegen.pages.parts import list_all
from stubwright.codegen.source.imports import RUNTIME, make_groups

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.pycode import Name

_HOMES = {
    "collections.abc": frozenset({"Sequence"}),
    RUNTIME: frozenset(
        {"Completing", "Content", "Context", "MaybeAwaitable", "Messages", "ResourceContents", "Returns"}
    ),
}
"""The modules that the page imports names from, other than models."""


_DOC = """Inherit from this class and implement its methods with `async def`, or with `def` to run in a worker thread.

`raise ToolError(text)` reports an error to the caller. The text of other exceptions only appears in the log. If the
object is an async context manager, the server enters it on startup and exits it on shutdown."""

_CALLS = """Tools that are HTTP calls need no method, and are not listed here. A method with the tool's name and the
parameters `args` and `ctx` replaces the call."""


def make_handlers_page(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    """Return the template variables for `handlers.py`."""
    methods = [method for method in surface.list_handler_methods(manifest) if not method.is_optional]
    used: frozenset[Name] = frozenset().union(*(_list_names(method) for method in methods))
    contexts = frozenset(name for method in methods for name in method.context.type.names)
    known = frozenset().union(*_HOMES.values())
    sections: list[dict[str, frozenset[str]]] = [{module: used & names} for module, names in _HOMES.items()]
    sections.append({".contexts": contexts - known, ".models": used - contexts - known})
    return {
        "doc": f"Handlers for {title}: {_needs(manifest)}.",
        "interface": naming.name_handlers_class(manifest.stem),
        "class_doc": f"{_DOC}\n\n{_CALLS}" if manifest.calls else _DOC,
        "imports": [block for section in sections if (block := make_groups(section))],
        "methods": methods,
    }


def _list_names(method: surface.HandlerMethod) -> frozenset[Name]:
    return method.result.names.union({method.wrapper}, *(parameter.type.names for parameter in method.parameters))


def _needs(manifest: ir.Manifest) -> str:
    called = "tool that is not an HTTP call" if manifest.calls else "tool"
    kinds = [called] if any(tool.call is None for tool in manifest.tools) else []
    kinds += dict.fromkeys(primitive.kind for primitive in list_all(manifest) if primitive.handled)
    if kinds:
        return f"implement one method for each {_join_words(kinds)}"
    return "no methods are required, since its tools are HTTP calls" if manifest.calls else "no methods are required"


def _join_words(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
