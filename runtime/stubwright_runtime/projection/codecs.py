"""Codecs between values under a contract's schema and values under an API's schema.

`decode` gets its input from a model and passes invalid parts through to the contract's validator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from ..values.json import refuse_constant

Json: TypeAlias = Any


class ProjectionError(ValueError):
    """A model's arguments cannot be decoded. The message has the path and the expected value."""


class NotExpressibleError(ValueError):
    """A contract value has no equivalent in the API's schema."""


@dataclass(frozen=True)
class Codec:
    """The codec for a value that is equal on both sides.

    Attributes:
        schema: The API's schema.
        types: The possible JSON types. Empty if unknown.
    """

    schema: dict[str, Any]
    types: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """True if values are equal on both sides."""
        return type(self) is Codec

    def encode(self, value: Json) -> Json:
        """Return the API's value. Raises NotExpressibleError if there is no equivalent."""
        if self.types and name_type(value) not in self.types and not ("number" in self.types and _is_number(value)):
            raise NotExpressibleError(f"expected {' or '.join(sorted(self.types))}, got {name_type(value)}")
        return value

    def decode(self, value: Json, at: str) -> Json:
        """Return the contract's value. Raises ProjectionError if the value at the path `at` is invalid."""
        del at
        return value


@dataclass(frozen=True)
class Text(Codec):
    """Any value as JSON text."""

    def encode(self, value: Json) -> Json:
        """Return the value as JSON text."""
        return json.dumps(value, ensure_ascii=False)

    def decode(self, value: Json, at: str) -> Json:
        """Parse the text."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ProjectionError(f"{at or 'the arguments'} must be JSON text: {error}") from None


@dataclass(frozen=True)
class Values(Codec):
    """An enum whose values are represented by strings."""

    texts: Mapping[str, Json] = field(default_factory=dict)

    def encode(self, value: Json) -> Json:
        """Return the string for a value."""
        for text, meant in self.texts.items():
            if is_same(meant, value):
                return text
        raise NotExpressibleError("the value is not in the enum")

    def decode(self, value: Json, at: str) -> Json:
        """Return the value for a string."""
        del at
        return self.texts.get(value, value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Array(Codec):
    """A list with items that differ between the sides."""

    items: Codec = field(default_factory=lambda: Codec({}))

    def encode(self, value: Json) -> Json:
        """Encode each item."""
        return [self.items.encode(item) for item in super().encode(value)]

    def decode(self, value: Json, at: str) -> Json:
        """Decode each item."""
        if not isinstance(value, list):
            return value
        return [self.items.decode(item, f"{at}[{index}]") for index, item in enumerate(value)]


@dataclass(frozen=True)
class Member:
    """A property of an object.

    Attributes:
        name: The property's name in the contract.
        codec: The codec for the property's value.
        null_is_absent: Whether null means that the property is absent.
        is_wrapped: Whether the value is wrapped in an object with `value`, because null means absence.
        is_required: Whether the contract requires the property.
    """

    name: str
    codec: Codec
    null_is_absent: bool = False
    is_wrapped: bool = False
    is_required: bool = False


@dataclass(frozen=True)
class Object(Codec):
    """An object.

    Attributes:
        members: The properties, by name in the API's schema.
        more: The name of the list of additional properties, and the codec for their values.
    """

    members: Mapping[str, Member] = field(default_factory=dict)
    more: tuple[str, Codec] | None = None

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {member.name: name for name, member in self.members.items()}

    def encode(self, value: Json) -> Json:
        """Encode each property."""
        given = super().encode(value)
        encoded: dict[str, Json] = {}
        pairs = []
        for key, below in given.items():
            name = self._names.get(key)
            if name is None:
                pairs.append((key, below))
                continue
            member = self.members[name]
            if below is None and member.null_is_absent and not (member.is_wrapped or isinstance(member.codec, Text)):
                raise NotExpressibleError(f"`{key}` cannot be null, because null represents absence")
            inner = member.codec.encode(below)
            encoded[name] = {"value": inner} if member.is_wrapped else inner
        for name, member in self.members.items():
            if member.null_is_absent and name not in encoded:
                encoded[name] = None
        if self.more is not None:
            name, codec = self.more
            encoded[name] = [{"key": key, "value": codec.encode(below)} for key, below in pairs]
        elif pairs:
            raise NotExpressibleError(f"the schema does not declare the property `{pairs[0][0]}`")
        return encoded

    def decode(self, value: Json, at: str) -> Json:
        """Decode each property. Unknown properties stay unchanged."""
        if not isinstance(value, dict):
            return value
        decoded: dict[str, Json] = {}
        for name, below in value.items():
            member = self.members.get(name)
            where = f"{at}.{name}" if at else name
            if self.more is not None and name == self.more[0]:
                for key, inner in _read_pairs(below, self.more[1], where).items():
                    if key in decoded:
                        raise ProjectionError(f"{where} has the key {key!r} twice")
                    decoded[key] = inner
                continue
            if member is None:
                _put(decoded, name, below, where)
                continue
            if below is None and member.null_is_absent:
                continue
            if member.is_wrapped and isinstance(below, dict) and below.keys() == {"value"}:
                below = below["value"]
            _put(decoded, member.name, member.codec.decode(below, where), where)
        return decoded


@dataclass(frozen=True)
class Pairs(Codec):
    """An object with arbitrary keys, encoded as a list of keys and values."""

    values: Codec = field(default_factory=lambda: Codec({}))

    def encode(self, value: Json) -> Json:
        """Return a pair for each property."""
        if not isinstance(value, dict):
            raise NotExpressibleError(f"expected object, got {name_type(value)}")
        return [{"key": key, "value": self.values.encode(below)} for key, below in value.items()]

    def decode(self, value: Json, at: str) -> Json:
        """Build an object from the pairs. Raises ProjectionError for a duplicate key."""
        return _read_pairs(value, self.values, at) if isinstance(value, list) else value


@dataclass(frozen=True)
class Union(Codec):
    """Several codecs. A value uses the first codec whose schema accepts it."""

    branches: Sequence[Codec] = ()

    @cached_property
    def _validators(self) -> Sequence[Any]:
        from ..schema.validation import compile_schema

        return [compile_schema(branch.schema, formats=False) for branch in self.branches]

    def encode(self, value: Json) -> Json:
        """Encode with the first branch that decodes to the same value."""
        for branch, validator in zip(self.branches, self._validators, strict=True):
            try:
                encoded = branch.encode(value)
                if validator.is_valid(encoded) and is_same(self.decode(encoded, ""), value):
                    return encoded
            except (NotExpressibleError, ProjectionError):
                continue
        raise NotExpressibleError("no alternative can express the value")

    def decode(self, value: Json, at: str) -> Json:
        """Decode with the first branch whose schema accepts the value."""
        failure = None
        for branch, validator in zip(self.branches, self._validators, strict=True):
            if validator.is_valid(value):
                try:
                    return branch.decode(value, at)
                except ProjectionError as error:
                    failure = error
        if failure is not None:
            raise failure
        return value


def _read_pairs(value: Json, codec: Codec, at: str) -> Mapping[str, Json]:
    if not isinstance(value, list):
        raise ProjectionError(f"{at} must be a list of objects with `key` and `value`")
    decoded: dict[str, Json] = {}
    for index, pair in enumerate(value):
        if not isinstance(pair, dict) or pair.keys() != {"key", "value"} or not isinstance(pair["key"], str):
            raise ProjectionError(f"{at}[{index}] must be an object with `key`, a string, and `value`")
        _put(decoded, pair["key"], codec.decode(pair["value"], f"{at}[{index}].value"), at)
    return decoded


def _put(decoded: dict[str, Json], key: str, value: Json, at: str) -> None:
    if key in decoded:
        raise ProjectionError(f"{at} has the key {key!r} twice")
    decoded[key] = value


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_same(left: Json, right: Json) -> bool:
    """Return whether two JSON values are equal. `true` differs from 1."""
    return left == right and json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def name_type(value: Json) -> str:
    """Return a JSON value's type, which is `integer` for a number without a fraction."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
