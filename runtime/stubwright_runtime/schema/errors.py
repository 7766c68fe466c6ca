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
    """The keys of an object that must be empty. The validator only reports that `false` rejects every value."""

    keys: Sequence[str]


Kind: TypeAlias = ValidationErrorKind | UnknownKeys


@dataclass(frozen=True, slots=True)
class ErrorNode:
    """One validation error.

    Attributes:
        kind: The validator's kind of error; `None` if computing it would take too long.
        path: Its path in the value.
        instance: The value there.
        schema_path: The keyword that failed, from the root of its schema.
        schema: That root, unless it is the validator's own schema.
        branches: For a choice, returns the errors of each alternative; one without errors matches.
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
    """Return whether a schema path ends with a keyword that applies to all keys, and not with a key of that name."""
    last: str | int = ""
    is_name = False
    for step in schema_path:
        last, is_name = ("", False) if is_name else (step, step in _NAMED)
    return last in _OF_KEYS
