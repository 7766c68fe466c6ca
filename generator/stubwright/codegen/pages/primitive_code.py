"""The code that each primitive adds to its package, as values: its module of models, and its methods of the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stubwright.codegen.models.datamodel import ModelModule
    from stubwright.pycode import Code, Name


@dataclass(frozen=True, slots=True)
class PrimitiveCode:
    """The code of one primitive: the text of its module with its classes, and its methods of the client, formatted.

    `response` is the method of a deprecated tool in the class of responses, which has the others by their names, and
    `task` the same in the class of tasks, if the tool may run as one.
    `names` are those that the methods' signatures need, except builtins. `home` is the module of a prompt or resource
    below `models`; one without models has no text there.
    """

    module: Code
    classes: tuple[Name, ...]
    method: Code
    names: frozenset[str]
    home: Name | None = None
    response: Code | None = None
    task: Code | None = None


@dataclass(frozen=True, slots=True)
class PackageCode:
    """The units of a manifest, in its order: of tools by their names, and of resources, templates and prompts.

    `shared` has the models of each shared schema that has a class, and `circles` those modules, by their names below
    `models.shared`, that hold the classes of shared schemas that refer to each other.
    """

    units: Mapping[str, PrimitiveCode]
    primitives: Sequence[PrimitiveCode]
    shared: Mapping[str, ModelModule]
    circles: Mapping[Name, ModelModule]

    def find_defined(self) -> Iterator[Name]:
        """Yield the names that its modules define, once for each of these."""
        for unit in (*self.units.values(), *self.primitives):
            yield from unit.classes
        for module in self.shared.values():
            yield from module.names
