"""The typed client: its methods, and the page that they stand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright import naming
from toolwright.codegen.docstrings import deprecation, indented, parameter_doc, primitive_doc, tool_doc
from toolwright.codegen.features import every, output_class
from toolwright.codegen.imports import as_homes
from toolwright.codegen.literals import literal
from toolwright.pycode import Code, Name, code, join

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.codegen.datamodel import ModelModule, Parameter
    from toolwright.codegen.modules import Unit

_PROTOCOL_TYPES = frozenset(
    {"BlobResourceContents", "Completion", "ContentBlock", "PromptMessage", "TextResourceContents"}
)


@dataclass(frozen=True, slots=True)
class ClientMethod:
    """One method of the client: its `signature`, and the method of the base that it calls with `arguments`.

    An argument that is a list itself has the entries of a dictionary.
    """

    name: Name
    signature: tuple[Code, ...]
    returns: Code
    call: Name
    arguments: tuple[Code | tuple[Code, ...], ...]
    deprecated: str | None
    doc: str
    gives_model: bool = False

    @property
    def annotation(self) -> Code:
        """The type of what it gives, as the module writes it, which imports no model."""
        return code("_models.{}", self.returns) if self.gives_model else self.returns


def client_method(tool: ir.Tool, module: ModelModule) -> ClientMethod:
    """A tool as a method of the client."""
    notes = [(parameter.name, parameter_doc(parameter)) for parameter in module.parameters]
    described = [f"    {name}: {indented(note)}" for name, note in notes if note]
    doc = "\n".join([tool_doc(tool), "", "Args:", *described]) if described else tool_doc(tool)
    output = output_class(tool)
    sent = tuple(code("{}: {}", literal(parameter.wire), parameter.name) for parameter in module.parameters)
    return ClientMethod(
        name=tool.names.method,
        signature=(*_BEFORE[: 2 if module.parameters else 1], *map(_parameter, module.parameters)),
        returns=output or code("list[ContentBlock]"),
        call=Name("_call" if output else "_call_content"),
        arguments=(literal(tool.name), sent, *([Name(f"_models.{output}")] if output else [])),
        deprecated=deprecation(tool.deprecated),
        doc=doc,
        gives_model=output is not None,
    )


def primitive_methods(primitive: ir.Primitive) -> tuple[ClientMethod, ...]:
    """What the client has for a resource, a resource template or a prompt: its own method, and one that completes."""
    arguments = primitive.arguments or ()
    names = naming.fields(argument.name for argument in arguments)
    ordered = sorted(arguments, key=lambda argument: not argument.required)
    described = [f"    {names[one.name]}: {indented(one.description)}" for one in ordered if one.description]
    doc = "\n".join([primitive_doc(primitive), "", "Args:", *described]) if described else primitive_doc(primitive)
    is_prompt = primitive.kind == "prompt"
    sent = tuple(code("{}: {}", literal(argument.name), names[argument.name]) for argument in ordered)
    call = Name("_prompt" if is_prompt else "_read" if primitive.arguments is None else "_read_from")
    own = ClientMethod(
        name=primitive.names.method,
        signature=(*_BEFORE[: 2 if ordered else 1], *(_primitive_parameter(one, names[one.name]) for one in ordered)),
        returns=code("list[PromptMessage]" if is_prompt else "list[TextResourceContents | BlobResourceContents]"),
        call=call,
        arguments=(literal(primitive.key), *([] if call == "_read" else [sent])),
        deprecated=deprecation(primitive.deprecated),
        doc=doc,
    )
    if not primitive.completed:
        return (own,)
    kind = literal("prompt" if is_prompt else "template")
    completing = ClientMethod(
        name=naming.completion(primitive.names),
        signature=(
            code("self"),
            code("argument: Literal[{}]", join(", ", map(literal, primitive.completed))),
            code("value: str"),
            code("given: Mapping[str, str] | None = None"),
        ),
        returns=Name("Completion"),
        call=Name("_complete"),
        arguments=(kind, literal(primitive.key), Name("argument"), Name("value"), Name("given")),
        deprecated=None,
        doc=f"What may stand for an argument of the {primitive.kind} ``{primitive.key}``.\n\nArgs:\n"
        "    argument: Which one.\n    value: What stands there so far.\n"
        "    given: The other arguments, as far as they are known.",
    )
    return own, completing


_BEFORE = (code("self"), code("*"))
"""What stands before the parameters; the latter only where there are some."""


def _primitive_parameter(argument: ir.Argument, name: Name) -> Code:
    kind = code("Sequence[str]" if argument.many else "str")
    return code("{}: {}" if argument.required else "{}: {} | Omit = OMIT", name, kind)


def _parameter(parameter: Parameter) -> Code:
    return code("{}: {}" if parameter.required else "{}: {} | Omit = OMIT", parameter.name, parameter.annotation)


def client_page(
    title: str, manifest: ir.Manifest, units: Mapping[str, Unit], primitive_modules: Sequence[Unit]
) -> Mapping[str, Any]:
    """What the template of `client.py` is given."""
    names = {name for unit in (*units.values(), *primitive_modules) for name in unit.names}
    has_outputs = any(output_class(tool) for tool in manifest.tools)
    typing = names & {"Any", "Literal"}
    abc = names & {"Mapping", "Sequence"}
    protocol = names & _PROTOCOL_TYPES
    homes: dict[str, Sequence[str]] = {
        "collections.abc": sorted(abc),
        "mcp_types": sorted(protocol),
        ".models": sorted(names - typing - abc - protocol - {"Omit"}),
    }
    primitives = ", resource and prompt" if primitive_modules else ""
    base = Name("PrimitivesBinding" if primitive_modules else "Binding")
    runtime: dict[str, Sequence[str]] = {
        f"._runtime.client.{'primitives' if primitive_modules else 'binding'}": [base],
        "._runtime.client.options": ["OMIT", "Omit"] if "Omit" in names else [],
    }
    return {
        "doc": f"A typed client of {title}.",
        "stem": manifest.stem,
        "class_doc": f"""Calls {title}: one method for each tool{primitives}.

    async with {manifest.stem}Client.connect(target) as {manifest.package.removesuffix("_mcp")}:
        ...

The target is a URL, a command as a list of strings, or a server object in the same process. What a call leaves out
is left out of the request. Results are checked against the tool's output schema.""",
        "typing": as_homes({"typing": [*typing, *(["TYPE_CHECKING"] if any(homes.values()) else [])]}),
        "deprecates": any(
            deprecated is not None
            for deprecated in [one.deprecated for one in manifest.tools] + [one.deprecated for one in every(manifest)]
        ),
        "outputs": has_outputs,
        "base": base,
        "runtime": as_homes(dict(sorted(runtime.items()))),
        "imports": as_homes(homes),
    }
