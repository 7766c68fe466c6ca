"""Finds the class names that a package already uses, which nested classes must avoid.

The classes of arguments, results, answers and shared schemas, and all exports, always have their own names. A nested
class is named after its parent and its place, and can collide with them: a schema `User` with an object as its property
`type`, and a schema `UserType`. The nested class then has a digest of its place. If two nested classes collide, both
have one.
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
    """Reserved names, sorted."""

    names: tuple[str, ...] = ()

    def list_under(self, stem: str, own: Iterable[str]) -> frozenset[str]:
        """Return the reserved names that begin with `stem`, except `own`, the names of the module's own classes.

        The models of a module depend on no other reserved names.
        """
        # The greatest character sorts after all names with this prefix.
        start, end = (bisect_left(self.names, f"{stem}{last}") for last in ("", "\U0010ffff"))
        return frozenset(self.names[start:end]).difference(own)

    def with_met(self, defined: Iterable[str]) -> ReservedNames:
        """Add the names with several definitions; `defined` has the names of each module's classes."""
        met = {name for name, times in Counter(defined).items() if times > 1}
        return self if met <= {*self.names} else ReservedNames(tuple(sorted(met.union(self.names))))


NOTHING = ReservedNames()


def reserve(manifest: ir.Manifest) -> ReservedNames:
    """Return the reserved names of a manifest's package before its models are made."""
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
    """Return the classes of a tool whose names are fixed."""
    output = [naming.name_output_class(tool.names)] if tool.output is not None else []
    return frozenset([naming.name_input_class(tool.names), *output, *_asking(tool)])


def reserve_of_shared(manifest: ir.Manifest, taken: ReservedNames) -> frozenset[str]:
    """Return the names that nested classes of the manifest's shared schemas may collide with."""
    own = {naming.name_shared_class(schema.names) for schema in manifest.shared}
    return frozenset(name for schema in manifest.shared for name in taken.list_under(schema.names.stem, own))


def reserve_of_primitive(primitive: ir.Primitive) -> frozenset[str]:
    """Return the classes of a resource, a template or a prompt whose names are fixed."""
    arguments = [naming.name_arguments(primitive.names, primitive.kind)] if primitive.has_model else []
    return frozenset([*arguments, *_asking(primitive)])


def _asking(primitive: ir.Tool | ir.Primitive) -> Iterator[Name]:
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
    """Call `make` with the colliding names of its result until there are no new ones; return that and all names."""
    models = make(first)
    # Names are only added, so this terminates.
    while (more := first.with_met(names(models))) is not first:
        first = more
        models = make(first)
    return models, first
