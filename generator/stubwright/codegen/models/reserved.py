"""Names of classes that a package has for something else, so that no class below another may take them.

The classes of arguments, results, answers and shared schemas are called as they are whatever else there is, and so is
what every package exports. A class below one of them is called by it and by its place, which may be the name of
another: a schema `User` whose property `type` is an object, and a schema `UserType`. Then the one below takes a digest
of its place. Where two classes below others meet, both do.
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
    """Names that are taken, sorted."""

    names: tuple[str, ...] = ()

    def list_under(self, stem: str, own: Iterable[str]) -> frozenset[str]:
        """Return the names that a class below a module's classes may meet; `stem` begins all of these, `own` are they.

        What is made with them depends on nothing else here.
        """
        # No name is behind the greatest character, so that it ends the names with this start.
        start, end = (bisect_left(self.names, f"{stem}{last}") for last in ("", "\U0010ffff"))
        return frozenset(self.names[start:end]).difference(own)

    def with_met(self, defined: Iterable[str]) -> ReservedNames:
        """Add the names that are defined more than once; `defined` has the names of each module's classes."""
        met = {name for name, times in Counter(defined).items() if times > 1}
        return self if met <= {*self.names} else ReservedNames(tuple(sorted(met.union(self.names))))


NOTHING = ReservedNames()


def reserve(manifest: ir.Manifest) -> ReservedNames:
    """Return the names that are taken in the package of a manifest before its models are made."""
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
    """Return the classes of a tool that are called as they are whatever else there is."""
    output = [naming.name_output_class(tool.names)] if tool.output is not None else []
    return frozenset([naming.name_input_class(tool.names), *output, *_asking(tool)])


def reserve_of_shared(manifest: ir.Manifest, taken: ReservedNames) -> frozenset[str]:
    """Return the names that classes below those of the manifest's shared schemas may meet."""
    own = {naming.name_shared_class(schema.names) for schema in manifest.shared}
    return frozenset(name for schema in manifest.shared for name in taken.list_under(schema.names.stem, own))


def reserve_of_primitive(primitive: ir.Primitive) -> frozenset[str]:
    """Return the classes of a resource, a template or a prompt that are called as they are whatever else there is."""
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


def settle(
    first: ReservedNames, make: Callable[[ReservedNames], _Models], names: Callable[[_Models], Iterable[str]]
) -> tuple[_Models, ReservedNames]:
    """Call `make` with the names that met in its result until no new ones do; return that and the names taken."""
    models = make(first)
    # Names are only added, so that this ends.
    while (more := first.with_met(names(models))) is not first:
        first = more
        models = make(first)
    return models, first
