"""Converts large numbers for jsonschema-rs.

The JSON number `1e23` is exactly 10**23 (RFC 8259, section 6; JSON Schema 2020-12, Core, 4.2.2). Since 0.61,
jsonschema-rs uses the binary value of Python's float, 99999999999999991611392. So large floats are converted from their
decimal text. Passing the schema as text would limit its depth to 127.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import jsonschema_rs

_EXACT: Final = 2.0**53
"""Below this value, no keyword distinguishes a float from its shortest decimal text."""

_COMPARING: Final = frozenset({"multipleOf", "uniqueItems"})
"""Keywords that can distinguish a large float from its decimal text, whatever numbers the schema has."""


def may_compare_large_numbers(schema: Any) -> bool:
    """Return whether validation might depend on a large number's last digits."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            if not _COMPARING.isdisjoint(here):
                return True
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
        elif isinstance(here, int | float) and abs(here) >= _EXACT:
            return True
    return False


def make_exact_schema(schema: Any) -> Any:
    """Return a copy of a schema in which floats from 2**53 up are integers with the same decimal text."""
    return _replace_large_floats(schema, lambda text: int(Decimal(text)))


def make_exact_instance(value: Any) -> Any:
    """Return a copy of a JSON value in which floats from 2**53 up are `Decimal`s.

    They are not integers in draft-04 (Validation, section 3.5).
    """
    return _replace_large_floats(value, Decimal)


def _replace_large_floats(value: Any, convert: Callable[[str], int | Decimal]) -> Any:
    root = [value]
    waiting: list[Any] = [root]
    while waiting:
        here = waiting.pop()
        for key, each in here.items() if isinstance(here, dict) else enumerate(here):
            if isinstance(each, float):
                if _EXACT <= abs(each) < float("inf"):
                    here[key] = convert(repr(each))
            elif isinstance(each, dict | list):
                here[key] = each.copy()
                waiting.append(here[key])
    return root[0]


class CompiledSchema(Protocol):
    """A schema compiled by jsonschema-rs."""

    def is_valid(self, instance: Any) -> bool:
        """Return whether the schema accepts the instance."""
        ...

    def validate(self, instance: Any) -> None:
        """Raise `jsonschema_rs.ValidationError` unless the schema accepts the instance."""
        ...

    def iter_errors(self, instance: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Return the errors in the instance."""
        ...

    def evaluate(self, instance: Any) -> jsonschema_rs.Evaluation:
        """Return the annotations and errors for the instance."""
        ...


class ExactSchema:
    """A compiled schema that converts large floats in instances."""

    def __init__(self, compiled: CompiledSchema) -> None:
        self._compiled = compiled

    def is_valid(self, instance: Any) -> bool:
        """Return whether the schema accepts the instance."""
        return self._compiled.is_valid(make_exact_instance(instance))

    def validate(self, instance: Any) -> None:
        """Raise `jsonschema_rs.ValidationError` unless the schema accepts the instance."""
        self._compiled.validate(make_exact_instance(instance))

    def iter_errors(self, instance: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Return the errors in the instance."""
        return self._compiled.iter_errors(make_exact_instance(instance))

    def evaluate(self, instance: Any) -> jsonschema_rs.Evaluation:
        """Return the annotations and errors for the instance."""
        return self._compiled.evaluate(make_exact_instance(instance))
