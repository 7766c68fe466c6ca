"""The interface of the handlers: one method for each primitive that needs one."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright import naming
from toolwright.codegen.docstrings import primitive_doc, tool_doc
from toolwright.codegen.features import asking_contexts, context_module, every, input_class, output_class
from toolwright.codegen.imports import as_homes
from toolwright.pycode import Code, Name, code, join

if TYPE_CHECKING:
    from toolwright import ir


@dataclass(frozen=True, slots=True)
class HandlerMethod:
    """One method of the handlers' interface.

    `parameters` are the names and types of its arguments beside `self`; `wrapper` is the type that its `result` stands
    in.
    """

    name: Name
    parameters: tuple[tuple[Name, Name], ...]
    wrapper: Name
    result: Code
    doc: str
    is_optional: bool = False

    @property
    def signature(self) -> Code:
        """The arguments with their types, `self` among them."""
        return join(", ", [code("self"), *(code("{}: {}", *each) for each in self.parameters)])

    @property
    def returns(self) -> Code:
        """The type of what it gives: its result, in the wrapper that allows for more."""
        return code("{}[{}]", self.wrapper, self.result)


_HANDLER_HOMES = {
    "collections.abc": ("Sequence",),
    "._runtime.server.completion": ("Completing",),
    "._runtime.server.returns": ("Content", "MaybeAwaitable", "Returns"),
    "._runtime.server.prompts": ("Messages",),
    "._runtime.server.resources": ("ResourceContents",),
}


_HANDLERS_DOC = """Inherit from this class and write its methods: `async def`, or `def` to run in a worker thread.

`raise ToolError(text)` tells the caller what went wrong; of any other exception the caller learns nothing. An
object that is an async context manager is entered when the server starts and left when it stops."""


def handler_methods(manifest: ir.Manifest) -> tuple[HandlerMethod, ...]:
    """The methods that the handlers must have."""
    methods = [
        HandlerMethod(
            name=tool.names.method,
            parameters=((Name("args"), input_class(tool)), (Name("ctx"), _context(tool))),
            wrapper=Name("Returns"),
            result=output_class(tool) or Name("Content"),
            doc=tool_doc(tool) + (f"\n\nNeed not be written: it is the HTTP call `{tool.call}`." if tool.call else ""),
            is_optional=tool.call is not None,
        )
        for tool in manifest.tools
    ]
    methods += [_primitive_method(primitive) for primitive in every(manifest) if primitive.handled]
    methods += [
        HandlerMethod(
            name=naming.completion(primitive.names),
            parameters=((Name("args"), Name("Completing")), (Name("ctx"), Name("Context"))),
            wrapper=Name("MaybeAwaitable"),
            result=code("Sequence[str]"),
            doc=f"What clients may offer for the arguments of the {primitive.kind} ``{primitive.key}``.",
        )
        for primitive in every(manifest)
        if primitive.completes
    ]
    return tuple(methods)


def _primitive_method(primitive: ir.Primitive) -> HandlerMethod:
    is_prompt = primitive.kind == "prompt"
    parameters = [(Name("ctx"), _context(primitive))]
    if primitive.arguments is not None:
        parameters.insert(0, (Name("args"), naming.arguments(primitive.names, primitive.kind)))
    return HandlerMethod(
        name=primitive.names.method,
        parameters=tuple(parameters),
        wrapper=Name("MaybeAwaitable"),
        result=Name("Messages" if is_prompt else "ResourceContents"),
        doc=primitive_doc(primitive),
    )


def _context(one: ir.Tool | ir.Primitive) -> Name:
    return one.names.stem + "Context" if one.questions else Name("Context")


def handlers_page(title: str, manifest: ir.Manifest, features: Container[str]) -> Mapping[str, Any]:
    """What the template of `handlers.py` is given."""
    methods = handler_methods(manifest)
    used = {
        name
        for method in methods
        for text in (*[kind for _, kind in method.parameters], method.returns)
        for name in text.replace("[", " ").replace("]", " ").split()
    } - {"str"}
    homes: dict[str, list[str]] = {module: sorted(used & set(names)) for module, names in _HANDLER_HOMES.items()}
    homes[f"._runtime.server.{context_module(features)}"] = ["Context"] if "Context" in used else []
    homes[".contexts"] = sorted(used & {f"{each.stem}Context" for each in asking_contexts(manifest)})
    homes[".models"] = sorted(used - {name for names in homes.values() for name in names})
    abc = as_homes({"collections.abc": homes.pop("collections.abc")})
    return {
        "doc": f"What {title} needs from you: {_needs(manifest)}.",
        "stem": manifest.stem,
        "class_doc": _HANDLERS_DOC,
        "abc": abc,
        "imports": as_homes(dict(sorted(homes.items()))),
        "methods": methods,
        "optional": any(method.is_optional for method in methods),
        "abstract": not all(method.is_optional for method in methods),
    }


def _needs(manifest: ir.Manifest) -> str:
    called = "tool that is no HTTP call" if manifest.calls else "tool"
    kinds = [called] if any(tool.call is None for tool in manifest.tools) else []
    kinds += dict.fromkeys(primitive.kind for primitive in every(manifest) if primitive.handled)
    if kinds:
        return f"one method for each {_listed(kinds)}"
    return "nothing, but what should go before an HTTP call" if manifest.calls else "nothing"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
