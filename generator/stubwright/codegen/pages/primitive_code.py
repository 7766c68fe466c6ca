"""The code of each primitive as values: its module of models, and its methods of the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stubwright.codegen.models.datamodel import ModelModule
    from stubwright.pycode import Code, Name


@dataclass(frozen=True, slots=True)
class PrimitiveCode:
    """The code of one primitive: its module of models, and its formatted methods of the client.

    `response` is the method of a deprecated tool in the class of responses, which refers to all others by name, and
    `task` likewise in the class of tasks, if the tool can run as one. `names` are the names in the methods' signatures,
    except builtins. `home` is the module of a prompt or resource below `models`; without models, it has no text.
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
    """The code of all primitives, in the manifest's order: of tools by name, and of resources, templates and prompts.

    `shared` has the models of each shared schema that has a class, and `circles` the modules with the classes of shared
    schemas that reference each other, by their names below `models.shared`.
    """

    units: Mapping[str, PrimitiveCode]
    primitives: Sequence[PrimitiveCode]
    shared: Mapping[str, ModelModule]
    circles: Mapping[Name, ModelModule]

    def find_defined(self) -> Iterator[Name]:
        """Yield the names that its modules define, once per module."""
        for unit in (*self.units.values(), *self.primitives):
            yield from unit.classes
        for module in self.shared.values():
            yield from module.names
