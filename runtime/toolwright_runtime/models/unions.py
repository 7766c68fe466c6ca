"""Which alternative of a union a value is, without trying each of them to the bottom.

Takes the core schema of a union; gives one that accepts the same values, and dumps each as it came. Of the alternatives
that are models, those are tried whose constants, required keys and forbidden keys allow the value; where several do,
the one with the most fields that were set counts, and is remembered for as long as the value is read, so that the work
does not multiply with each level. Where nothing tells a model from a plain mapping, pydantic's smart mode may take the
mapping; here it is the model.
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
"""The classes of models by the references to them."""

OUTLINE: Final = "_toolwright_outline"
"""The attribute of a class that has its outline."""

_ALL: Final = -1
_ANY: Final = "any of them"
"""What stands for all alternatives; none is called so, as one of `Any` is called `any`."""

_SCALARS: Final = frozenset({"str", "int", "float", "bool", "none", "literal", "function-plain"})
_LISTS: Final = frozenset({"list", "set", "frozenset", "tuple"})


@dataclass(frozen=True, slots=True)
class Outline:
    """What can be told of a model's JSON object without a look into its values.

    Attributes:
        required: The keys that it must have.
        known: The keys that it may have; nothing where it may have any.
        constants: The values that a key may have.
    """

    required: frozenset[str]
    known: frozenset[str] | None
    constants: Mapping[str, frozenset[object]]

    def fits(self, value: Mapping[str, object]) -> bool:
        """Whether the object may be of this model."""
        if not self.required <= value.keys() or not (self.known is None or value.keys() <= self.known):
            return False
        return all(_is_one(value[key], allowed) for key, allowed in self.constants.items() if key in value)


def refer(cls: type[BaseModel], reference: str) -> None:
    """Take note of a reference to a model, which may be looked at later."""
    CLASSES[reference] = cls


def note(cls: type[BaseModel], reference: str, fields: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    """Take note of a model.

    Args:
        cls: The model.
        reference: Pydantic's reference to it.
        fields: The core schemas of its fields.
        keys: The wire name of each field.
    """
    constants = {keys[name]: values for name, part in fields.items() if (values := _constants(part["schema"]))}
    required = frozenset(keys[name] for name in fields if cls.__pydantic_fields__[name].is_required())
    known = frozenset(keys.values()) if cls.model_config.get("extra") == "forbid" else None
    setattr(cls, OUTLINE, Outline(required, known, constants))
    refer(cls, reference)


def _constants(schema: Any) -> frozenset[object]:
    """What a field may be, where that is one of some constants."""
    while schema["type"] == "default" or (schema["type"] == "function-wrap" and "schema" in schema):
        schema = schema["schema"]
    return frozenset(schema["expected"]) if schema["type"] == "literal" else frozenset()


def _is_one(value: object, allowed: frozenset[object]) -> bool:
    return isinstance(value, str | int | float) and value in allowed


class _State(threading.local):
    """What the unions that are being read know of each other.

    Attributes:
        only: The alternative that the innermost union tries now, or all of them.
        depth: How many unions are being read.
        made: By union and value, what was made of it, or why nothing could be. Empty between values.
        remembers: Whether each object and list stands in one place of the value, so that what was made of it may.
    """

    only: int = _ALL
    depth: int = 0
    remembers: bool = False

    def __init__(self) -> None:
        self.made: dict[tuple[object, int], _Made] = {}


@dataclass(frozen=True, slots=True)
class _Made:
    """What was made of a value, with which alternative."""

    number: int
    value: object
    error: ValidationError | None = None


_STATE: Final = _State()


def choose(union: Any, exact: Callable[[Any], Any]) -> Any:
    """The schema of a union, with each alternative made `exact`."""
    choices = [_bare(choice) for choice in union["choices"]]
    fits = [_test(choice) for choice in choices]  # at once, since pydantic changes schemas in place
    if sum(test is not _is_scalar for test in fits) < 2:
        return {**union, "choices": [exact(choice) for choice in choices]}
    labels = _labels(choices)
    parts = [exact(choice) for choice in choices]
    whole: Any = {**union, "choices": [*zip(parts, labels, strict=True)]}

    def schema_of_whole(_: object, handler: Callable[[Any], Any]) -> Any:
        return handler(whole)

    tagged = core_schema.tagged_union_schema(
        {_ANY: whole, **dict(zip(labels, parts, strict=True))},
        lambda _: _ANY if _STATE.only == _ALL else labels[_STATE.only],
        metadata={"pydantic_js_functions": [schema_of_whole]},
    )
    return core_schema.no_info_wrap_validator_function(_chooser(_known_by(union), fits), tagged)


def _labels(choices: Iterable[Any]) -> list[str]:
    """What errors call the alternatives, each by another name."""
    labels: list[str] = []
    for choice in choices:
        label = _label(choice)
        labels.append(label if label not in labels else f"{label} {len(labels) + 1}")
    return labels


def _bare(choice: Any) -> Any:
    """An alternative without its label."""
    return choice[0] if is_list(choice) else choice


def _label(schema: Any) -> str:
    """What errors call an alternative."""
    match schema["type"]:
        case "definition-ref":
            return str(schema["schema_ref"]).partition(":")[0].rpartition(".")[2]
        case "model":
            return str(schema["cls"].__name__)
        case kind:
            return str(kind)


def _chooser(union: object, fits: Sequence[Callable[[Any], bool]]) -> Callable[..., Any]:
    """The function that reads a value with the alternative that it is of; `union` is what the union is known by."""

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
        known = _STATE.made.get(key)
        if known is None:
            known = _best(value, handler, possible)
            if _STATE.depth:
                _STATE.made[key] = known
        elif known.error is None and not _STATE.remembers:
            return _read(value, handler, known.number)
        if known.error is not None:
            raise known.error
        return known.value

    return read


def _read(value: object, handler: Callable[[object], Any], only: int) -> Any:
    """What one alternative makes of a value."""
    before, _STATE.only = _STATE.only, only
    _STATE.depth += 1
    try:
        return handler(value)
    finally:
        _STATE.only = before
        _STATE.depth -= 1
        if not _STATE.depth:
            _STATE.made.clear()


def _best(value: object, handler: Callable[[object], Any], possible: Iterable[int]) -> _Made:
    """What the alternative makes of a value with which the most fields are set; the first of several."""
    best, most = _Made(-1, None), -1
    _STATE.depth += 1
    try:
        for number in possible:
            try:
                made = _read(value, handler, number)
            except ValidationError as error:
                best = _Made(-1, None, error) if most < 0 else best
                continue
            if (count := _fields_set(made)) > most:
                best, most = _Made(number, made), count
    finally:
        _STATE.depth -= 1
        if not _STATE.depth:
            _STATE.made.clear()
    return best


def _repeats(value: Json) -> bool:
    """Whether an object or a list stands in two places of a value."""
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


def _fields_set(value: object) -> int:
    """How many fields were set in the models of a value."""
    count, waiting = 0, [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, BaseModel):
            if not isinstance(here, RootModel):  # which is what it holds, and no more
                count += len(here.model_fields_set & type(here).model_fields.keys())
            waiting += here.__dict__.values()
        elif isinstance(here, dict):
            waiting += here.values()
        elif isinstance(here, list | tuple):
            waiting += here
    return count


def _known_by(schema: Any) -> object:
    """What tells a schema from others that make something else of a value."""
    match schema["type"]:
        case "definition-ref":
            return schema["schema_ref"]
        case "model":
            return schema["ref"]
        case "list" if "items_schema" in schema:
            return "list", _known_by(schema["items_schema"])
        case "union":
            return tuple(_known_by(_bare(choice)) for choice in schema["choices"])
        case "str" | "int" | "float" | "bool" | "none" | "any" as kind:
            return kind
        case _:
            return object()


def _test(schema: Any) -> Callable[[Any], bool]:
    """What tells whether an object or a list may be of an alternative."""
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
