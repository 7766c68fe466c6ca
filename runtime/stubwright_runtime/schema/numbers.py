"""Large numbers as jsonschema-rs has to be given them.

A JSON number is its decimal text (RFC 8259, section 6; JSON Schema 2020-12, Core, 4.2.2), and `1e23` equals 10**23.
Since 0.61 jsonschema-rs takes a Python float for its binary value instead, 99999999999999991611392, in schemas and
instances alike. So it gets large floats by the text that they have; a schema as text would be exact, too,
but is read to a depth of 127 only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import jsonschema_rs

_EXACT: Final = 2.0**53
"""Below it a float differs from its shortest text by less than any keyword can tell."""

_COMPARING: Final = frozenset({"multipleOf", "uniqueItems"})
"""Keywords that can tell the two values apart whatever number is next to them."""


def may_compare_large_numbers(schema: Any) -> bool:
    """Return whether a verdict of the schema can depend on the last digits of a large number."""
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
    """Return a schema whose floats from 2**53 on are integers of the same decimal text; the given one is retained."""
    return _replace_large_floats(schema, lambda text: int(Decimal(text)))


def make_exact_instance(value: Any) -> Any:
    """Return a JSON value whose floats from 2**53 on are decimals; the given one is retained.

    Not integers, which they are not in draft-04 (Validation, section 3.5).
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
    """A schema that jsonschema-rs has compiled."""

    def is_valid(self, instance: Any) -> bool:
        """Return whether the schema accepts an instance."""
        ...

    def validate(self, instance: Any) -> None:
        """Raise `jsonschema_rs.ValidationError` unless the schema accepts an instance."""
        ...

    def iter_errors(self, instance: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Return the errors of an instance."""
        ...

    def evaluate(self, instance: Any) -> jsonschema_rs.Evaluation:
        """Return the annotations and errors of an instance."""
        ...


class ExactSchema:
    """A compiled schema that is given large floats as decimals."""

    def __init__(self, compiled: CompiledSchema) -> None:
        self._compiled = compiled

    def is_valid(self, instance: Any) -> bool:
        """Return whether the schema accepts an instance."""
        return self._compiled.is_valid(make_exact_instance(instance))

    def validate(self, instance: Any) -> None:
        """Raise `jsonschema_rs.ValidationError` unless the schema accepts an instance."""
        self._compiled.validate(make_exact_instance(instance))

    def iter_errors(self, instance: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Return the errors of an instance."""
        return self._compiled.iter_errors(make_exact_instance(instance))

    def evaluate(self, instance: Any) -> jsonschema_rs.Evaluation:
        """Return the annotations and errors of an instance."""
        return self._compiled.evaluate(make_exact_instance(instance))
