"""The generated code for each primitive: its models module and its client methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stubwright.codegen.models.datamodel import ModelModule
    from stubwright.pycode import Code, Name


@dataclass(frozen=True, slots=True)
class PrimitiveCode:
    """A primitive's code: its models module and its formatted client methods.

    Attributes:
        classes: The names that the models module defines.
        names: The names in method signatures, except builtins.
        home: A prompt's or resource's module below `models`, which is empty if the primitive has no models.
        response: A deprecated tool's method in the responses class, which reuses all other tools' methods.
        task: A deprecated tool's method in the tasks class, if the tool can run as a task.
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
    """The code for all primitives, in manifest order.

    Attributes:
        units: The tools' code, keyed by name.
        primitives: The code for resources, templates and prompts.
        shared: The models of each shared schema that has a class.
        circles: The modules for shared schemas that reference each other, keyed by name below `models.shared`.
    """

    units: Mapping[str, PrimitiveCode]
    primitives: Sequence[PrimitiveCode]
    shared: Mapping[str, ModelModule]
    circles: Mapping[Name, ModelModule]

    def find_defined(self) -> Iterator[Name]:
        """Yield the names that the package's modules define, once for each module that defines them."""
        for unit in (*self.units.values(), *self.primitives):
            yield from unit.classes
        for module in self.shared.values():
            yield from module.names
