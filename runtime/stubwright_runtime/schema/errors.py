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
    """The keys of an object that must be empty. The validator reports only that `false` rejects every value."""

    keys: Sequence[str]


Kind: TypeAlias = ValidationErrorKind | UnknownKeys


@dataclass(frozen=True, slots=True)
class ErrorNode:
    """A validation error.

    Attributes:
        kind: The validator's error kind. `None` if computing it would take too long.
        path: The path in the value.
        instance: The value at that path.
        schema_path: The path from the schema's root to the failed keyword.
        schema: The root schema; `None` for the validator's own schema.
        branches: For a choice, returns the errors for each alternative. An alternative without errors matches.
    """

    kind: Kind | None
    path: Path
    instance: Any
    schema_path: Sequence[str | int] = ()
    branches: Callable[[], Branches] | None = None
    schema: Any = None


def to_error_node(error: ValidationError, value: Any, above: Path = ()) -> ErrorNode:
    """Convert a validator error. `above` is the path to `value`."""
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
    """Return whether a schema path ends with a keyword that applies to all keys, not with a key of the same name."""
    last: str | int = ""
    is_name = False
    for step in schema_path:
        last, is_name = ("", False) if is_name else (step, step in _NAMED)
    return last in _OF_KEYS
