"""Chooses a union alternative for a value without fully validating each alternative.

Only models whose constants, required keys and forbidden keys allow the value are tried. The model with the most set
fields is chosen. The choice is cached during validation, so that the work does not multiply with each level. Unlike in
pydantic's smart mode, models have precedence over plain mappings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from pydantic import BaseModel, RootModel
from pydantic_core import ValidationError, core_schema

from ..values.json import Json, is_list

CLASSES: Final[WeakValueDictionary[str, type[BaseModel]]] = WeakValueDictionary()
"""Model classes by reference."""

OUTLINE: Final = "_stubwright_outline"
"""The attribute that stores a class's outline."""

_ALL: Final = -1
_ANY: Final = "any of them"
"""The label for all alternatives."""

_SCALARS: Final = frozenset({"str", "int", "float", "bool", "none", "literal", "function-plain"})
_LISTS: Final = frozenset({"list", "set", "frozenset", "tuple"})


@dataclass(frozen=True, slots=True)
class Outline:
    """The constraints on the keys in a model's JSON object.

    Attributes:
        required: The required keys.
        known: The permitted keys. `None` for any.
        constants: The permitted values for keys with constants.
    """

    required: frozenset[str]
    known: frozenset[str] | None
    constants: Mapping[str, frozenset[object]]

    def fits(self, value: Mapping[str, object]) -> bool:
        """Return whether an object could match this model."""
        if not self.required <= value.keys() or not (self.known is None or value.keys() <= self.known):
            return False
        return all(_is_allowed(value[key], allowed) for key, allowed in self.constants.items() if key in value)


def refer(cls: type[BaseModel], reference: str) -> None:
    """Register a reference to a model."""
    CLASSES[reference] = cls


def register(cls: type[BaseModel], reference: str, fields: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    """Register a model.

    Args:
        cls: The model.
        reference: Pydantic's reference to it.
        fields: The core schemas of its fields.
        keys: The wire names of its fields.
    """
    constants = {keys[name]: values for name, part in fields.items() if (values := _find_constants(part["schema"]))}
    required = frozenset(keys[name] for name in fields if cls.__pydantic_fields__[name].is_required())
    known = frozenset(keys.values()) if cls.model_config.get("extra") == "forbid" else None
    setattr(cls, OUTLINE, Outline(required, known, constants))
    refer(cls, reference)


def _find_constants(schema: Any) -> frozenset[object]:
    """Return a field's permitted constants, or an empty set if other values are permitted."""
    while schema["type"] == "default" or (schema["type"] == "function-wrap" and "schema" in schema):
        schema = schema["schema"]
    return frozenset(schema["expected"]) if schema["type"] == "literal" else frozenset()


def _is_allowed(value: object, allowed: frozenset[object]) -> bool:
    return isinstance(value, str | int | float) and value in allowed


class _State(threading.local):
    """The state of the current validation.

    Attributes:
        only: The alternative that the innermost union tries, or all alternatives.
        depth: The number of nested unions.
        choices: The cached choices, by union and value.
        remembers: Whether no object or list occurs twice in the value, so that results can be reused.
    """

    only: int = _ALL
    depth: int = 0
    remembers: bool = False

    def __init__(self) -> None:
        self.choices: dict[tuple[object, int], _Choice] = {}


@dataclass(frozen=True, slots=True)
class _Choice:
    """The chosen alternative, with its result or its error."""

    number: int
    value: object
    error: ValidationError | None = None


_STATE: Final = _State()


def choose(union: Any, exact: Callable[[Any], Any]) -> Any:
    """Return a union schema that chooses among its alternatives, which `exact` converts."""
    choices = [_strip_label(choice) for choice in union["choices"]]
    fits = [_make_test(choice) for choice in choices]  # before pydantic changes the schemas in place
    # Pydantic itself distinguishes scalars.
    if sum(test is not _is_scalar for test in fits) < 2:
        return {**union, "choices": [exact(choice) for choice in choices]}
    labels = _make_labels(choices)
    parts = [exact(choice) for choice in choices]
    whole: Any = {**union, "choices": [*zip(parts, labels, strict=True)]}

    # JSON Schema has no discriminator tags, so use the plain union.
    def merge_schema(_: object, handler: Callable[[Any], Any]) -> Any:
        return handler(whole)

    tagged = core_schema.tagged_union_schema(
        {_ANY: whole, **dict(zip(labels, parts, strict=True))},
        lambda _: _ANY if _STATE.only == _ALL else labels[_STATE.only],
        metadata={"pydantic_js_functions": [merge_schema]},
    )
    return core_schema.no_info_wrap_validator_function(_make_chooser(_identify(union), fits), tagged)


def _make_labels(choices: Iterable[Any]) -> list[str]:
    labels: list[str] = []
    for choice in choices:
        label = _make_label(choice)
        labels.append(label if label not in labels else f"{label} {len(labels) + 1}")
    return labels


def _strip_label(choice: Any) -> Any:
    return choice[0] if is_list(choice) else choice


def _make_label(schema: Any) -> str:
    match schema["type"]:
        case "definition-ref":
            return str(schema["schema_ref"]).partition(":")[0].rpartition(".")[2]
        case "model":
            return str(schema["cls"].__name__)
        case kind:
            return str(kind)


def _make_chooser(union: object, fits: Sequence[Callable[[Any], bool]]) -> Callable[..., Any]:
    """Return a validator that parses a value with the best alternative. `union` is the union's cache key."""

    def read(value: Json, handler: Callable[[object], Any]) -> Any:
        if not isinstance(value, dict | list):
            return _read(value, handler, _ALL)
        possible = [number for number, test in enumerate(fits) if test(value)]
        if len(possible) == 1:
            return _read(value, handler, possible[0])
        if not possible:
            return _read(value, handler, 0 if _STATE.depth else _ALL)
        if not _STATE.depth:
            _STATE.remembers = not _repeats(value)
        key = union, id(value)
        known = _STATE.choices.get(key)
        if known is None:
            known = _choose_best(value, handler, possible)
            if _STATE.depth:
                _STATE.choices[key] = known
        # An object that occurs twice becomes two models, so reuse only the choice.
        elif known.error is None and not _STATE.remembers:
            return _read(value, handler, known.number)
        if known.error is not None:
            raise known.error
        return known.value

    return read


def _read(value: object, handler: Callable[[object], Any], only: int) -> Any:
    before, _STATE.only = _STATE.only, only
    _STATE.depth += 1
    try:
        return handler(value)
    finally:
        _STATE.only = before
        _STATE.depth -= 1
        if not _STATE.depth:
            _STATE.choices.clear()


def _choose_best(value: object, handler: Callable[[object], Any], possible: Iterable[int]) -> _Choice:
    """Parse a value with each possible alternative. Return the first alternative that sets the most fields."""
    best, most = _Choice(-1, None), -1
    _STATE.depth += 1
    try:
        for number in possible:
            try:
                result = _read(value, handler, number)
            except ValidationError as error:
                best = _Choice(-1, None, error) if most < 0 else best
                continue
            if (count := _count_fields_set(result)) > most:
                best, most = _Choice(number, result), count
    finally:
        _STATE.depth -= 1
        if not _STATE.depth:
            _STATE.choices.clear()
    return best


def _repeats(value: Json) -> bool:
    """Return whether an object or list occurs twice in a value."""
    seen: set[int] = set()
    waiting: list[Json] = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict | list):
            if id(here) in seen:
                return True
            seen.add(id(here))
            waiting += here.values() if isinstance(here, dict) else here
    return False


def _count_fields_set(value: object) -> int:
    count, waiting = 0, [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, BaseModel):
            if not isinstance(here, RootModel):  # a wrapper
                count += len(here.model_fields_set & type(here).model_fields.keys())
            waiting += here.__dict__.values()
        elif isinstance(here, dict):
            waiting += here.values()
        elif isinstance(here, list | tuple):
            waiting += here
    return count


def _identify(schema: Any) -> object:
    """Return a key that is equal for schemas that parse values identically."""
    match schema["type"]:
        case "definition-ref":
            return schema["schema_ref"]
        case "model":
            return schema["ref"]
        case "list" if "items_schema" in schema:
            return "list", _identify(schema["items_schema"])
        case "union":
            return tuple(_identify(_strip_label(choice)) for choice in schema["choices"])
        case "str" | "int" | "float" | "bool" | "none" | "any" as kind:
            return kind
        case _:
            return object()


def _make_test(schema: Any) -> Callable[[Any], bool]:
    """Return a predicate that is true for the objects and lists that could match an alternative."""
    while schema["type"] in ("nullable", "default"):
        schema = schema["schema"]
    match schema["type"]:
        case "definition-ref":
            return partial(_may_be_model, str(schema["schema_ref"]))
        case "model":
            return partial(_may_be_model, str(schema["ref"]))
        case kind if kind in _LISTS:
            return _is_list
        case "dict":
            return _is_object
        case kind if kind in _SCALARS:
            return _is_scalar
        case _:
            return _may_be


def _may_be_model(reference: str, value: Json) -> bool:
    shape: Outline | None = getattr(CLASSES.get(reference), OUTLINE, None)
    return shape is None or (isinstance(value, dict) and shape.fits(value))


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_scalar(_: object) -> bool:
    return False


def _may_be(_: object) -> bool:
    return True
