"""A package's state handles: their ID types, and the handles in a handler's context.

The handles' state models are models of shared schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stubwright import naming
from stubwright.codegen.models.types import AnyScalar, Document, FixedTuple, Items, Object
from stubwright.codegen.source.literals import format_docstring, format_literal
from stubwright.pycode import Code, Name, fill, join

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.codegen.models.types import Alternative, Expression

_ANY: Final = Name("Any")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of handle, as seen in a context.

    Attributes:
        name: The kind's name in the manifest.
        attribute: The context's attribute.
        id: The ID type.
        model: The state class, if any.
    """

    name: str
    attribute: Name
    id: Name
    model: Name | None
    doc: str

    @property
    def handle(self) -> Code:
        """The type of one handle."""
        return fill("Handle[{}, {}]", self.model or _ANY, self.id)

    @property
    def handles(self) -> Code:
        """The type of the context's attribute, which creates and finds handles."""
        return fill("Handles[{}, {}]", self.model or _ANY, self.id)


@dataclass(frozen=True, slots=True)
class HandleArguments:
    """A tool's arguments that are IDs of one kind.

    Attributes:
        names: The `Literal` type of the arguments' names.
        handle: The type of their handles.
    """

    names: Code
    handle: Code


@dataclass(frozen=True, slots=True)
class ContextHandles:
    """The handles that a tool's handler receives. `nested` is true if an ID may be nested inside an argument."""

    named: tuple[HandleArguments, ...]
    nested: bool

    @property
    def is_overloaded(self) -> bool:
        """True if the handle's type depends on the argument's name, so that it needs a separate class."""
        return len(self.named) + self.nested > 1

    @property
    def type(self) -> Code:
        """The type `_Handles`, with the argument names and their handles' type as parameters."""
        given = [fill("{}, {}", each.names, each.handle) for each in self.named]
        given += [fill("str, Handle[Any, Any]")] if self.nested else []
        return fill("_Handles[{}]", given[0] if given else fill("Never, Never"))


def list_kinds(manifest: ir.Manifest) -> tuple[Kind, ...]:
    """Return a manifest's kinds of handles, in the manifest's order."""
    if not manifest.handles:
        return ()
    from stubwright.codegen.models.datamodel import find_homes

    shared = {schema.name: schema for schema in manifest.shared}
    kinds_of_handles = []
    for handle in manifest.handles:
        schema = shared.get(handle.state)
        state_class = find_homes([schema]).get(handle.state) if schema is not None else None
        model = state_class.name if state_class is not None and not state_class.is_type else None
        kinds_of_handles.append(
            Kind(handle.name, naming.handle_attribute(handle.name), handle.id, model, handle.retention)
        )
    return tuple(kinds_of_handles)


def format_modelled_kinds(known: Sequence[Kind]) -> Code | None:
    """Format a dictionary of the state classes, keyed by kind. Return None if no kind has a state class."""
    entries = [
        fill("{}: _models.{}", format_literal(kind.name), kind.model) for kind in known if kind.model is not None
    ]
    return fill("{{{}}}", join(", ", entries)) if entries else None


def find_held(tool: ir.Tool, known: tuple[Kind, ...]) -> ContextHandles:
    """Return the handles whose IDs a tool's arguments can contain."""
    if not tool.input.handles:
        return ContextHandles((), nested=False)
    document = Document("input", tool.input, merged=True)
    by_name = {kind.name: kind for kind in known}
    named: dict[tuple[str, ...], list[str]] = {}
    inside: list[Expression] = []
    for alternative in document.shape(document.root):
        for each in alternative.properties if isinstance(alternative, Object) else ():
            kinds_used = dict.fromkeys(map(_kind, document.shape(each.expression)))
            if ids := tuple(kind for kind in kinds_used if kind is not None):
                named.setdefault(ids, []).append(each.name)
            inside.append(each.expression)
        if isinstance(alternative, Object) and alternative.values is not None:
            inside.append(alternative.values)
    return ContextHandles(
        tuple(
            HandleArguments(
                fill("Literal[{}]", join(", ", map(format_literal, names))),
                join(" | ", [by_name[kind].handle for kind in ids]),
            )
            for ids, names in named.items()
        ),
        nested=_is_inside(document, inside),
    )


def _kind(alternative: Alternative) -> str | None:
    return alternative.handle if isinstance(alternative, AnyScalar) else None


def _is_inside(document: Document, expressions: list[Expression]) -> bool:
    """Return whether the value of any expression contains an ID below its top level."""
    seen: set[Expression] = set()
    waiting = [inner for each in expressions for inner in _list_inner(document, each)]
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        if any(map(_kind, document.shape(here))):
            return True
        waiting += _list_inner(document, here)
    return False


def _list_inner(document: Document, expression: Expression) -> Iterator[Expression]:
    for alternative in document.shape(expression):
        match alternative:
            case Object(properties=properties, values=values):
                yield from (each.expression for each in properties)
                if values is not None:
                    yield values
            case Items(item):
                yield item
            case FixedTuple(items):
                yield from items
            case _:
                pass


def format_ids_module(title: str, manifest: ir.Manifest) -> Code:
    """Return the source of the module that defines the ID types."""
    types = [
        fill(
            "{} = NewType({}, str)\n{}",
            handle.id,
            format_literal(handle.id),
            format_docstring(f"The ID of a handle ``{handle.name}``. Only the server creates IDs."),
        )
        for handle in manifest.handles
    ]
    head = format_docstring(f"Handle ID types for {title}.")
    return fill(_IDS, head, join("\n\n", types))


_IDS: Final = """{}

from __future__ import annotations

from typing import NewType

{}"""
