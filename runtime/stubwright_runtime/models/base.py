"""Base classes for generated models, which accept exactly what the schema accepts, without coercion."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    TypeAlias,
    TypeVar,
    cast,
)

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, RootModel
from pydantic_core import PydanticSerializationUnexpectedValue, core_schema

from . import formats, unions

if TYPE_CHECKING:
    from typing import Self, Unpack

    from pydantic_core import CoreSchema

T = TypeVar("T")


_NULL_ALLOWED = "null allowed"


@dataclass(frozen=True, slots=True)
class _NullMarker:
    """Marks an optional field whose schema allows `null`, so that `None` can be a value.

    The marker is in pydantic's core schema, because `FieldInfo` is incomplete until later classes are defined.
    """

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return cast("CoreSchema", {**schema, "metadata": {**schema.get("metadata", {}), _NULL_ALLOWED: True}})


Nullable: TypeAlias = Annotated[T | None, _NullMarker()]
"""The type of an optional field whose schema allows `null`.

`x: Nullable[T] = None` is `None` when the key is absent and when it is `null`. `"x" in model.model_fields_set`
distinguishes the two, and an explicitly set `None` is sent as `null`. `x: T | None = None`, without `Nullable`, is
`None` only when the key is absent, and is never sent.
"""


@dataclass(frozen=True, slots=True)
class _Wire:
    """Wire information about a class's fields.

    Attributes:
        aliases: The wire names that differ from Python names.
        absent: The optional fields that use `None` for absence.
        fixed: The optional fields with an immutable default, and their wire names.
        growing: The optional fields with a mutable default, with their wire names and a factory.
    """

    aliases: Mapping[str, str]
    absent: frozenset[str]
    fixed: Mapping[str, str]
    growing: tuple[tuple[str, str, Callable[[], object]], ...]

    def find_defaulted(self) -> Iterator[tuple[str, str]]:
        yield from self.fixed.items()
        yield from ((name, key) for name, key, _ in self.growing)


def _wire(cls: type[Model]) -> _Wire:
    # The attribute is set along with the core schema, which pydantic defers.
    if not cls.__pydantic_complete__:
        cls.model_rebuild()
    return cls.__stubwright_wire__


def _to_wire(wire: _Wire, values: Mapping[str, object]) -> dict[str, object]:
    return {
        wire.aliases.get(name, name): value
        for name, value in values.items()
        if value is not None or name not in wire.absent
    }


def _make_serializer(cls: type[Model]) -> Callable[..., Any]:
    def serialize(
        model: Model, handler: core_schema.SerializerFunctionWrapHandler, info: core_schema.SerializationInfo
    ) -> Any:
        if not isinstance(model, cls):
            raise PydanticSerializationUnexpectedValue(f"Expected `{cls.__name__}`")
        wire = cls.__stubwright_wire__
        data = handler(model)
        given = model.__pydantic_fields_set__
        values = model.__dict__
        by_wire = info.by_alias is not False
        for name in wire.fixed.keys() - given:
            data.pop(wire.fixed[name] if by_wire else name, None)
        for name, key, make in wire.growing:
            if name not in given and _are_equal(values.get(name), make()):
                data.pop(key if by_wire else name, None)
        return data

    return serialize


def _separate_extra(hidden: Mapping[str, str]) -> Callable[..., Any]:
    """Return a validator that distinguishes an extra key from a field whose wire name differs.

    Pydantic records both in one set of names. `hidden` maps the affected fields to their wire names.
    """

    def validate(value: Mapping[str, object], handler: Callable[[object], Any]) -> Any:
        fields, extra, given = handler(value)
        for name in hidden.keys() & extra.keys() if extra else ():
            if hidden[name] not in value:
                given.discard(name)
        return fields, extra, given

    return validate


def _are_equal(value: object, default: object) -> bool:
    """Return whether two values are equal as JSON. With `==`, `True` equals `1`."""
    return value == default and repr(value) == repr(default)


def _find_part(schema: Any, kind: str = "model") -> Any:
    """Return the part of a core schema that has the type `kind`, below the validators of subclasses, or `None`."""
    while schema["type"] != kind:
        if not schema["type"].startswith("function-") or "schema" not in schema:
            return None
        schema = schema["schema"]
    return schema


def _is_none(value: object) -> bool:
    return value is None


def _remove_null(schema: Any) -> Any:
    """Return the schema for an optional field that cannot be `null` when its key is present."""
    if schema["type"] == "nullable":
        return schema["schema"]
    if schema["type"] == "default":
        return {**schema, "schema": _remove_null(schema["schema"])}
    return schema


def _read_integer(value: object) -> int | float:
    """Convert a float such as `1.0` to an integer.

    `1e23` is 10**23 in JSON, but a different number as a float and therefore as an `int`. Such a float is not
    converted.
    """
    if isinstance(value, float) and value.is_integer():
        whole = int(value)
        return whole if whole == _read_decimal(value) else value
    raise ValueError("not an integer")


def _read_decimal(value: float) -> int:
    """Return an integer with the decimal digits of an integral float."""
    return int(value) if abs(value) < _EXACT else int(Decimal(repr(value)))


_EXACT = 2**53


_INT = core_schema.union_schema(
    [
        core_schema.int_schema(strict=True),
        core_schema.no_info_plain_validator_function(_read_integer, json_schema_input_schema=core_schema.int_schema()),
    ],
    mode="left_to_right",
    custom_error_type="int_type",
)
_FLOAT = core_schema.union_schema(
    [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True)],
    mode="left_to_right",
    custom_error_type="float_type",
)
_BOOL = core_schema.bool_schema(strict=True)


def _make_exact(schema: Any) -> Any:
    """Change a core schema so that it accepts a JSON value unchanged or rejects the value.

    An integer can be written `1.0`. A number stays an `int` or a `float` (2**53 + 1 has no `float`). `1` and `true` are
    different values, which pydantic's own literals do not distinguish.
    """
    match schema["type"]:
        case "int":
            return _INT
        case "float":
            return _FLOAT
        case "bool":
            return _BOOL
        case "literal":
            return _make_literal_exact(schema)
        case "nullable" | "default":
            return {**schema, "schema": _make_exact(schema["schema"])}
        case "list" | "set" | "frozenset" if "items_schema" in schema:
            return {**schema, "items_schema": _make_exact(schema["items_schema"])}
        case "tuple":
            return {**schema, "items_schema": [_make_exact(item) for item in schema["items_schema"]]}
        case "dict" if "values_schema" in schema:
            return {**schema, "values_schema": _make_exact(schema["values_schema"])}
        case "union":
            schema = formats.with_texts(schema)
            return unions.choose(schema, _make_exact) if schema["type"] == "union" else schema
        case _:
            return formats.read_exactly(schema)


def _make_literal_exact(schema: Any) -> Any:
    if not any(isinstance(value, int) for value in schema["expected"]):
        return schema
    # `True` and `1` are the same dict key.
    members = {(isinstance(value, bool), value): value for value in schema["expected"]}
    expected = ", ".join(repr(value) for value in schema["expected"])

    def choose(value: object, _: object) -> object:
        if isinstance(value, str | int | float):
            written = _read_decimal(value) if isinstance(value, float) and value.is_integer() else value
            if (isinstance(value, bool), written) in members:
                member = members[isinstance(value, bool), written]
                return member if member == value else value
        raise ValueError(f"expected one of {expected}")

    as_it_is = core_schema.simple_ser_schema("any")
    return core_schema.no_info_wrap_validator_function(choose, schema, serialization=as_it_is)


def _is_marked(schema: Any) -> bool:
    """Return whether a field is marked with `Nullable`."""
    while schema["type"] == "default":
        schema = schema["schema"]
    return bool(schema.get("metadata", {}).get(_NULL_ALLOWED))


class _BuildState(threading.local):
    """State that exists only while core schemas are built.

    Attributes:
        now: The class whose fields pydantic is processing.
        met: The classes found so far, with the references to each class.
    """

    now: type[BaseModel] | None = None
    met: dict[type[BaseModel], list[Any]] | None = None


_BUILDING: Final = _BuildState()


def _build_one_by_one(
    cls: type[BaseModel], handler: GetCoreSchemaHandler, make: Callable[[], CoreSchema]
) -> CoreSchema:
    """Build the core schema for a class with `make`, or return a reference if the class is the type of a field.

    Pydantic's recursion overflows the stack for a hundred classes that reference each other. Therefore, the referenced
    classes are built afterwards, and the references are then updated to pydantic's names.
    """
    met = _BUILDING.met
    if met is not None and cls is not _BUILDING.now:
        name = f"{cls.__module__}.{cls.__qualname__}:{id(cls)}"
        reference = core_schema.definition_reference_schema(name)
        met.setdefault(cls, []).append(reference)
        unions.refer(cls, name)
        return reference
    if met is not None:
        return make()
    met = _BUILDING.met = {cls: []}
    _BUILDING.now = cls
    try:
        schemas: dict[type[BaseModel], CoreSchema] = {cls: make()}
        while waiting := [other for other in met if other not in schemas]:
            for other in waiting:
                _BUILDING.now = other
                schemas[other] = handler.generate_schema(other)
    finally:
        _BUILDING.met = _BUILDING.now = None
    for other, references in met.items():
        for reference in references:
            reference["schema_ref"] = _read_reference(schemas[other])
    return schemas[cls]


def _read_reference(schema: Any) -> str:
    """Return pydantic's name for the class in a core schema."""
    return str(schema["schema_ref"] if schema["type"] == "definition-ref" else _find_part(schema)["ref"])


class Model(BaseModel):
    """Base class for models of JSON objects.

    The constructor uses Python names, and `model_validate` uses wire names. Unknown keys are in `model_extra`, unless
    the schema forbids them. A field is serialized if it was set or differs from its default. So a received instance is
    sent unchanged, and a default list that was extended is sent, too.
    """

    __test__: ClassVar[bool] = False  # keeps pytest from collecting it

    model_config = ConfigDict(
        defer_build=True,  # referenced classes can be defined later
        extra="allow",
        protected_namespaces=(),
        ser_json_inf_nan="constants",  # otherwise serialized as `null`
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=False,
    )

    __stubwright_wire__: ClassVar[_Wire]
    _stubwright_redacted: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, *, redacted: Collection[str] = (), **kwargs: Unpack[ConfigDict]) -> None:
        """Set the wire names of fields that `policy.redact` hides in `repr`, `str` and logs."""
        super().__init_subclass__(**kwargs)
        cls._stubwright_redacted |= {*redacted}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the fields for `repr`, omitting redacted fields, and all additional keys if any field is redacted."""
        hidden, fields = self._stubwright_redacted, type(self).__pydantic_fields__
        for name, value in super().__repr_args__():
            known = fields.get(name or "")
            if not hidden or (known is not None and (known.alias or name) not in hidden):
                yield name, value

    if not TYPE_CHECKING:  # type checkers derive the parameters from the fields

        def __init__(self, /, **values: object) -> None:
            wire = _wire(type(self))
            super().__init__(**_to_wire(wire, values))

        # set on pydantic's own method, too, so that validation may skip it
        __init__.__pydantic_base_init__ = True

        @classmethod
        def model_construct(cls, _fields_set: set[str] | None = None, **values: object) -> Self:
            """Create an instance from trusted Python values without validation, using Python names."""
            return super().model_construct(_fields_set, **_to_wire(_wire(cls), values))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return pydantic's schema for the fields, without coercion and with our serializer."""
        return _build_one_by_one(cls, handler, lambda: cls._stubwright_schema(source, handler))

    @classmethod
    def _stubwright_schema(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        model = _find_part(handler.resolve_ref_schema(schema))
        if model is None or model["cls"] is not cls or "serialization" in model:
            return schema
        fields = _find_part(model["schema"], "model-fields")
        if fields is None:
            return schema
        absent: set[str] = set()
        fixed: dict[str, str] = {}
        growing: list[tuple[str, str, Callable[[], object]]] = []
        keys = {name: str(part.get("serialization_alias", name)) for name, part in fields["fields"].items()}
        for name, part in fields["fields"].items():
            info = cls.__pydantic_fields__[name]
            key = keys[name]
            marked = _is_marked(part["schema"])
            part["schema"] = _make_exact(part["schema"])
            if info.is_required():
                continue
            part["schema"] = formats.with_default(part["schema"])
            if info.default_factory is not None:
                growing.append((name, key, partial(info.get_default, call_default_factory=True)))
            elif isinstance(info.default, list | dict | tuple):
                growing.append((name, key, partial(copy.deepcopy, part["schema"]["default"])))
            elif info.default is None and not marked:
                absent.add(name)
                part["schema"] = _remove_null(part["schema"])
                part["serialization_exclude_if"] = _is_none
            else:
                fixed[name] = key
        cls.__stubwright_wire__ = _Wire(
            aliases={name: key for name, key in keys.items() if key != name},
            absent=frozenset(absent),
            fixed=fixed,
            growing=tuple(growing),
        )
        unions.register(cls, str(model["ref"]), fields["fields"], keys)
        if "extras_schema" in fields:
            fields["extras_schema"] = _make_exact(fields["extras_schema"])
        hidden = {name: key for name, key in cls.__stubwright_wire__.find_defaulted() if name != key}
        if hidden:
            model["schema"] = core_schema.no_info_wrap_validator_function(_separate_extra(hidden), model["schema"])
        model["serialization"] = core_schema.wrap_serializer_function_ser_schema(_make_serializer(cls), info_arg=True)
        return schema


class Root(RootModel[T], Generic[T]):
    """Base class for models of JSON values other than objects. `root` is the value."""

    __test__: ClassVar[bool] = False

    model_config = ConfigDict(defer_build=True, ser_json_inf_nan="constants")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return pydantic's schema for the root's type, without coercion."""

        def make() -> CoreSchema:
            schema = handler(source)
            model = _find_part(handler.resolve_ref_schema(schema))
            if model is not None and model["cls"] is cls:
                model["schema"] = _make_exact(model["schema"])
            return schema

        return _build_one_by_one(cls, handler, make)
