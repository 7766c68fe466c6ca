"""Base classes for models with `additionalProperties` or `patternProperties`: `Map`, and `OpenModel` with fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..values.json import is_mapping
from .base import Model, Root

V = TypeVar("V")


class Map(Root[dict[str, V]], MutableMapping[str, V], Generic[V]):
    """Base class for models of objects without fields. `root` is the dictionary."""

    def __getitem__(self, key: str) -> V:
        """Return the value for a key."""
        return self.root[key]

    def __setitem__(self, key: str, value: V) -> None:
        """Set the value for a key."""
        self.root[key] = value

    def __delitem__(self, key: str) -> None:
        """Remove a key."""
        del self.root[key]

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # a mapping iterates over its keys, models do not
        """Iterate over the keys, in order."""
        return iter(self.root)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.root)

    def __eq__(self, other: object) -> bool:
        """Return whether `other`, an instance of the same class or a mapping but not a model, has the same entries."""
        return _equals(self.root, other) if _is_plain(other) else super().__eq__(other)


class OpenModel(Model, MutableMapping[str, V]):
    """Base class for models of objects with fields, and a mapping of all keys that are not fields."""

    if not TYPE_CHECKING:

        @classmethod
        def __class_getitem__(cls, values: Any) -> GenericAlias:
            """Return the base class for a value type, which can be a forward reference."""
            return GenericAlias(cls, (values,))

        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            for base in cls.__dict__.get("__orig_bases__", ()):
                if isinstance(base, GenericAlias) and issubclass(base.__origin__, OpenModel):
                    cls.__annotations__["__pydantic_extra__"] = dict[str, base.__args__[0]]

    @property
    def _others(self) -> dict[str, V]:
        others: dict[str, V] | None = self.__pydantic_extra__
        if others is None:
            raise TypeError(f"{type(self).__name__} accepts no keys other than its fields")
        return others

    def __getitem__(self, key: str) -> V:
        """Return the value for a key that is not a field."""
        return self._others[key]

    def __setitem__(self, key: str, value: V) -> None:
        """Set the value for a key that is not a field.

        Raises:
            KeyError: The key is a field. Set the attribute instead.
        """
        for name, field in type(self).__pydantic_fields__.items():
            if key == (field.alias or name):
                raise KeyError(f"{key!r} is a field; set the attribute {name!r} instead")
        self._others[key] = value

    def __delitem__(self, key: str) -> None:
        """Remove a key that is not a field."""
        del self._others[key]

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # a mapping iterates over its keys, models do not
        """Iterate over the keys that are not fields, in order."""
        return iter(self._others)

    def __len__(self) -> int:
        """Return the number of keys that are not fields."""
        return len(self._others)

    def __bool__(self) -> bool:
        """Return True, even without keys other than fields."""
        return True

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is an instance of the same class with the same fields and entries."""
        return Model.__eq__(self, other)


def _is_plain(value: object) -> bool:
    return isinstance(value, Mapping) and not isinstance(value, Model | Root)


def _equals(own: Mapping[str, object], other: object) -> bool:
    return is_mapping(other) and dict(own) == dict(other)
