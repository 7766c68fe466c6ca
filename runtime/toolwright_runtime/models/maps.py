"""The bases of models of JSON objects whose keys are data: mappings of keys to values of one type.

`Map` is for objects that are nothing else, `OpenModel` for those that have fields beside. A schema's
`additionalProperties` and `patternProperties` say what the values are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..values.json import is_mapping
from .base import Model, Root

V = TypeVar("V")


class Map(Root[dict[str, V]], MutableMapping[str, V], Generic[V]):
    """Base of the models of objects that are mappings and nothing else; `root` is the dictionary itself."""

    def __getitem__(self, key: str) -> V:
        """The value of a key."""
        return self.root[key]

    def __setitem__(self, key: str, value: V) -> None:
        """Set the value of a key."""
        self.root[key] = value

    def __delitem__(self, key: str) -> None:
        """Remove a key."""
        del self.root[key]

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # a mapping iterates over its keys, no model does
        """The keys, in their order."""
        return iter(self.root)

    def __len__(self) -> int:
        """How many keys it has."""
        return len(self.root)

    def __eq__(self, other: object) -> bool:
        """Whether it is another of the same class, or any mapping but a model, with the same entries."""
        return _equals(self.root, other) if _is_plain(other) else super().__eq__(other)


class OpenModel(Model, MutableMapping[str, V]):
    """Base of the models of objects with fields, and a mapping of all keys that are no fields."""

    if not TYPE_CHECKING:

        @classmethod
        def __class_getitem__(cls, values: Any) -> GenericAlias:
            """The base for values of one type, which need not be there yet: it may be given by its name."""
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
            raise TypeError(f"{type(self).__name__} takes no keys but its fields")
        return others

    def __getitem__(self, key: str) -> V:
        """The value of a key that is no field."""
        return self._others[key]

    def __setitem__(self, key: str, value: V) -> None:
        """Set the value of a key.

        Raises:
            KeyError: It is a field, which is an attribute.
        """
        for name, field in type(self).__pydantic_fields__.items():
            if key == (field.alias or name):
                raise KeyError(f"{key!r} is the attribute {name!r}")
        self._others[key] = value

    def __delitem__(self, key: str) -> None:
        """Remove a key that is no field."""
        del self._others[key]

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # a mapping iterates over its keys, no model does
        """The keys that are no fields, in their order."""
        return iter(self._others)

    def __len__(self) -> int:
        """How many keys it has that are no fields."""
        return len(self._others)

    def __bool__(self) -> bool:
        """True: it has fields, whether there are other keys or not."""
        return True

    def __eq__(self, other: object) -> bool:
        """Whether it is another of the same class with the same fields and entries."""
        return Model.__eq__(self, other)


def _is_plain(value: object) -> bool:
    return isinstance(value, Mapping) and not isinstance(value, Model | Root)


def _equals(own: Mapping[str, object], other: object) -> bool:
    return is_mapping(other) and dict(own) == dict(other)
