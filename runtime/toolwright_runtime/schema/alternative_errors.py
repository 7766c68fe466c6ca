"""What it takes to say why no alternative of a schema fits.

Takes the faults of each alternative; gives the lines for the one that was meant, where that is clear, else for all in
short.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jsonschema_rs import ValidationErrorKind

from .errors import Path, Surplus
from .validation import expected, listed, several

if TYPE_CHECKING:
    from .errors import Branches, Fault, Kind
    from .validation import Validator

_DEEPEST_REASONS: Final = 2
_SHOWN: Final = 10


def reasons(validator: Validator, fault: Fault, branches: Branches, root: str, depth: int) -> Iterator[str]:
    """Why no alternative fits: the one that was meant, where that is clear, else all in short."""
    path, level = fault.path, len(fault.path)
    if fitting := [number for number, branch in enumerate(branches, 1) if not branch]:
        wrong = several(fitting) if len(fitting) > 1 else "does not fit the schema"
        yield f"{validator.place(path, root)}: {wrong}"
        return
    if not branches:
        yield f"{validator.place(path, root)}: fits none of the alternatives"
        return
    if all(len(branch) == 1 and len(branch[0].path) == level for branch in branches):
        simple = [branch[0] for branch in branches]
        if not any(_is_nested(inner) for inner in simple):
            wanted = " or ".join(dict.fromkeys(expected(inner.kind) for inner in simple))
            yield f"{validator.place(path, root)}: expected {wanted}{validator.got(fault)}"
            return
    right_type = [b for b in branches if not any(_is(e, level, ValidationErrorKind.Type) for e in b)]
    right_tag = [b for b in right_type if not any(_is(e, level + 1, _TAGS) for e in b)]
    meant = right_tag or right_type or branches
    if len(right_keys := [b for b in meant if not any(_is(e, level, ValidationErrorKind.Required) for e in b)]) == 1:
        meant = right_keys
    if len(meant) == 1:
        for inner in meant[0]:
            yield from validator.lines(inner, root, depth)
        return
    if tags := None if right_tag else _wrong_tags(right_type, level):
        options = [*{json.dumps(one): one for inner in tags for one in _options(inner.kind)}.values()]
        place = validator.place(tags[0].path, root)
        yield f"{place}: expected one of {listed(options)}{validator.got(tags[0], options)}"
        return
    told_by = [
        [line for inner in branch[:_SHOWN] if inner.branches is None for line in validator.lines(inner, root)]
        for branch in meant
    ]
    every = [line for line in dict.fromkeys(told_by[0]) if all(line in lines for lines in told_by)]
    common = set[_Place].intersection(*({_place_of(inner) for inner in branch} for branch in meant))
    below = [inner for inner in meant[0] if inner.branches is not None and _place_of(inner) in common]
    if every or below:
        yield from every
        for inner in below:
            yield from validator.lines(inner, root, depth)
        return
    place = f"{validator.place(path, root)}: fits none of the {len(branches)} alternatives"
    if depth >= _DEEPEST_REASONS:
        yield place
        return
    examples = [next(validator.lines(branch[0], root, depth + 1), "") for branch in meant[:3] if branch]
    listing = "; ".join(f"({number}) {line}" for number, line in enumerate(examples, 1))
    yield f"{place}: {listing}"


_NESTED: Final = (
    ValidationErrorKind.Required,
    ValidationErrorKind.AdditionalProperties,
    ValidationErrorKind.UnevaluatedProperties,
    ValidationErrorKind.UnevaluatedItems,
    ValidationErrorKind.OneOfMultipleValid,
    ValidationErrorKind.PropertyNames,
    Surplus,
)
_TAGS: Final = (ValidationErrorKind.Constant, ValidationErrorKind.Enum)


def _is(fault: Fault, level: int, kinds: type[ValidationErrorKind] | tuple[type, ...]) -> bool:
    return len(fault.path) == level and isinstance(fault.kind, kinds)


def _is_nested(fault: Fault) -> bool:
    """Whether it takes more than a few words to say what is expected."""
    return fault.kind is None or fault.branches is not None or isinstance(fault.kind, _NESTED)


_Place: TypeAlias = tuple[Path, tuple[str | int, ...]]


def _place_of(fault: Fault) -> _Place:
    """What tells whether two alternatives find the same fault: where it is, and which keyword says so."""
    return fault.path, tuple(fault.schema_path)


def _wrong_tags(branches: Branches, level: int) -> list[Fault]:
    """The fault of each alternative about one key that tells them apart; none where there is no such key."""
    tags = [{fault.path[-1]: fault for fault in branch if _is(fault, level + 1, _TAGS)} for branch in branches]
    keys = [key for key in (tags[0] if tags else ()) if all(key in one for one in tags)]
    return [one[keys[0]] for one in tags] if keys else []


def _options(kind: Kind | None) -> Sequence[Any]:
    match kind:
        case ValidationErrorKind.Constant(value):
            return [value]
        case ValidationErrorKind.Enum(options):
            return list(options)
        case _:
            return []
