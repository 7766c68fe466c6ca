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
    """The code for one primitive: its models module and its formatted client methods.

    `response` is a deprecated tool's method in the responses class, which refers to other tools' methods by name.
    `task` is the same for the tasks class, if the tool can run as a task. `names` are the names in method signatures,
    except builtins. `home` is a prompt's or resource's module below `models`, which is empty if there are no models.
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
    """The code for all primitives, in manifest order: `units` for tools, keyed by name, and `primitives` for the rest.

    `shared` contains the models of each shared schema that has a class. `circles` contains the modules with the classes
    of shared schemas that reference each other, keyed by name below `models.shared`.
    """

    units: Mapping[str, PrimitiveCode]
    primitives: Sequence[PrimitiveCode]
    shared: Mapping[str, ModelModule]
    circles: Mapping[Name, ModelModule]

    def find_defined(self) -> Iterator[Name]:
        """Yield the names that each module defines, once per module."""
        for unit in (*self.units.values(), *self.primitives):
            yield from unit.classes
        for module in self.shared.values():
            yield from module.names
