"""What the validator finds wrong with a value, as plain data.

Takes errors of jsonschema-rs; gives faults, whose paths have keys as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jsonschema_rs import ValidationErrorKind

from ..values.json import is_object
from ..values.locations import located

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

Path = tuple[str | int, ...]
Branches = Sequence[Sequence["Fault"]]

_OF_KEYS: Final = frozenset({"additionalProperties", "propertyNames", "unevaluatedProperties"})
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


@dataclass(frozen=True, slots=True)
class Surplus:
    """The keys of an object that may have none, for which the validator only says that `false` accepts nothing."""

    keys: Sequence[str]


Kind: TypeAlias = ValidationErrorKind | Surplus


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        kind: What the validator says of it; nothing where that would take too long to find out.
        path: Where it is in the value.
        instance: What stands there.
        schema_path: The keyword that failed, from the root of its schema.
        schema: That root, where it is not the schema that everybody knows.
        branches: For a choice of which no alternative fits, looks for the faults of each; one without a fault fits.
    """

    kind: Kind | None
    path: Path
    instance: Any
    schema_path: Sequence[str | int] = ()
    branches: Callable[[], Branches] | None = None
    schema: Any = None


def told(error: ValidationError, value: Any, above: Path = ()) -> Fault:
    """An error of the validator as a fault; `above` is where `value` is."""
    below, here = located(error, value)
    path = (*above, *below)
    match error.kind:
        case ValidationErrorKind.AnyOf(branches) | ValidationErrorKind.OneOfNotValid(branches):
            return Fault(
                error.kind,
                path,
                error.instance,
                error.schema_path,
                lambda: [[told(one, value, above) for one in branch] for branch in branches],
            )
        case ValidationErrorKind.FalseSchema() if is_object(here) and _refuses_keys(error.schema_path):
            return Fault(Surplus([*here]), path, here, error.schema_path)
        case kind:
            return Fault(kind, path, error.instance, error.schema_path)


def _refuses_keys(schema_path: Sequence[str | int]) -> bool:
    """Whether a path in a schema ends with a keyword that is `false` for all keys, and not with a name of one."""
    last: str | int = ""
    is_name = False
    for step in schema_path:
        last, is_name = ("", False) if is_name else (step, step in _NAMED)
    return last in _OF_KEYS
