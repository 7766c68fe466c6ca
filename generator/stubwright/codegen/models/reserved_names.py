"""Finds the class names that a package reserves, so that nested classes can avoid them.

Classes for arguments, results, answers and shared schemas have fixed names, as do all exports. A nested class is named
after its parent and its location, and can collide with a fixed name: for example, the object property `type` of a
schema `User` with a schema `UserType`. The nested class's name then ends in a digest of the location. If two nested
classes collide, both names end in a digest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from stubwright import ir, naming
from stubwright.codegen.pages.exports import ALWAYS, OF_HANDLES, OF_PAGES

if TYPE_CHECKING:
    from stubwright.pycode import Name

_Models = TypeVar("_Models")


@dataclass(frozen=True, slots=True)
class ReservedNames:
    """The names that a package reserves, sorted."""

    names: tuple[str, ...] = ()

    def list_under(self, stem: str, own: Iterable[str]) -> frozenset[str]:
        """Return the reserved names that start with `stem`, except `own`, the module's own class names.

        A module's models do not depend on any other reserved names.
        """
        # The largest character sorts after all names with this prefix.
        start, end = (bisect_left(self.names, f"{stem}{last}") for last in ("", "\U0010ffff"))
        return frozenset(self.names[start:end]).difference(own)

    def with_met(self, defined: Iterable[str]) -> ReservedNames:
        """Add the names that more than one module defines. `defined` has each module's class names."""
        met = {name for name, times in Counter(defined).items() if times > 1}
        return self if met <= {*self.names} else ReservedNames(tuple(sorted(met.union(self.names))))


NOTHING = ReservedNames()


def reserve(manifest: ir.Manifest) -> ReservedNames:
    """Return the names that a manifest's package reserves, as known before models are generated."""
    names: set[str] = {*ALWAYS, *naming.PAGE_NAMES, *(OF_HANDLES if manifest.handles else ())}
    names |= OF_PAGES if any(tool.paginate for tool in manifest.tools) else set()
    names |= {handle.id for handle in manifest.handles}
    names |= {naming.name_handlers_class(manifest.stem), naming.name_client_class(manifest.stem)}
    names |= {naming.name_toolset_client(manifest.stem, name) for name in manifest.toolsets}
    names |= {name for tool in manifest.tools for name in reserve_of_tool(tool)}
    names |= {
        name
        for listed in manifest.primitives.values()
        for primitive in listed
        for name in reserve_of_primitive(primitive)
    }
    names |= {naming.name_shared_class(schema.names) for schema in manifest.shared}
    return ReservedNames(tuple(sorted(names)))


def reserve_of_tool(tool: ir.Tool) -> frozenset[str]:
    """Return the fixed names of a tool's classes."""
    output = [naming.name_output_class(tool.names)] if tool.output is not None else []
    return frozenset([naming.name_input_class(tool.names), *output, *_list_context_names(tool)])


def reserve_of_shared(manifest: ir.Manifest, taken: ReservedNames) -> frozenset[str]:
    """Return the names that nested classes of the manifest's shared schemas could collide with."""
    own = {naming.name_shared_class(schema.names) for schema in manifest.shared}
    return frozenset(name for schema in manifest.shared for name in taken.list_under(schema.names.stem, own))


def reserve_of_primitive(primitive: ir.Primitive) -> frozenset[str]:
    """Return the fixed names of a resource's, a template's or a prompt's classes."""
    arguments = [naming.name_arguments(primitive.names, primitive.kind)] if primitive.has_model else []
    return frozenset([*arguments, *_list_context_names(primitive)])


def _list_context_names(primitive: ir.Tool | ir.Primitive) -> Iterator[Name]:
    if primitive.has_context:
        yield naming.name_context_class(primitive.names)
    if isinstance(primitive, ir.Tool) and primitive.has_handles:
        yield naming.name_own_handles_class(primitive.names)
    if primitive.questions:
        yield naming.ask_class(primitive.names)
        yield from (question.answer for question in primitive.questions)


def resolve_collisions(
    first: ReservedNames, make: Callable[[ReservedNames], _Models], names: Callable[[_Models], Iterable[str]]
) -> tuple[_Models, ReservedNames]:
    """Call `make` with more and more reserved names until no classes collide; return the result and the names."""
    models = make(first)
    # This terminates, since names are only added.
    while (more := first.with_met(names(models))) is not first:
        first = more
        models = make(first)
    return models, first
