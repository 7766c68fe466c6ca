"""Validation errors as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jsonschema_rs import ValidationErrorKind

from ..values.json import is_object
from ..values.locations import locate

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

Path = tuple[str | int, ...]
Branches = Sequence[Sequence["ErrorNode"]]

_OF_KEYS: Final = frozenset({"additionalProperties", "propertyNames", "unevaluatedProperties"})
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


@dataclass(frozen=True, slots=True)
class UnknownKeys:
    """The keys of an object that must be empty; the validator only reports that `false` accepts nothing."""

    keys: Sequence[str]


Kind: TypeAlias = ValidationErrorKind | UnknownKeys


@dataclass(frozen=True, slots=True)
class ErrorNode:
    """One validation error.

    Attributes:
        kind: What the validator reports; `None` if finding out would take too long.
        path: Where it is in the value.
        instance: The value there.
        schema_path: The keyword that failed, from the root of its schema.
        schema: That root, if it is not the validator's own schema.
        branches: For a choice of which no alternative fits, finds the errors of each; one without errors fits.
    """

    kind: Kind | None
    path: Path
    instance: Any
    schema_path: Sequence[str | int] = ()
    branches: Callable[[], Branches] | None = None
    schema: Any = None


def to_error_node(error: ValidationError, value: Any, above: Path = ()) -> ErrorNode:
    """Convert an error of the validator; `above` is the path of `value`."""
    below, here = locate(error, value)
    path = (*above, *below)
    match error.kind:
        case ValidationErrorKind.AnyOf(branches) | ValidationErrorKind.OneOfNotValid(branches):
            return ErrorNode(
                error.kind,
                path,
                error.instance,
                error.schema_path,
                lambda: [[to_error_node(inner, value, above) for inner in branch] for branch in branches],
            )
        case ValidationErrorKind.FalseSchema() if is_object(here) and _refuses_keys(error.schema_path):
            return ErrorNode(UnknownKeys([*here]), path, here, error.schema_path)
        case kind:
            return ErrorNode(kind, path, error.instance, error.schema_path)


def _refuses_keys(schema_path: Sequence[str | int]) -> bool:
    """Return whether a schema path ends with a keyword that is `false` for all keys, and not with the name of a key."""
    last: str | int = ""
    is_name = False
    for step in schema_path:
        last, is_name = ("", False) if is_name else (step, step in _NAMED)
    return last in _OF_KEYS
