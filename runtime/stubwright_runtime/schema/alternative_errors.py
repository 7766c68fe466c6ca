"""Explains why a value does not match any alternative of a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jsonschema_rs import ValidationErrorKind

from .errors import Path, UnknownKeys
from .validation import describe_expected, list_values

if TYPE_CHECKING:
    from .errors import Branches, ErrorNode, Kind
    from .validation import Validator

_DEEPEST_REASONS: Final = 2
_SHOWN: Final = 10


def explain_alternatives(
    validator: Validator, node: ErrorNode, branches: Branches, root: str, depth: int
) -> Iterator[str]:
    """Explain the intended alternative if it is clear, or all alternatives briefly."""
    path, level = node.path, len(node.path)
    if fitting := [number for number, branch in enumerate(branches, 1) if not branch]:
        if len(fitting) > 1:
            yield validator.explain_several(node, fitting, root)
        else:
            yield f"{validator.format_path(path, root)}: does not match the schema"
        return
    if not branches:
        yield f"{validator.format_path(path, root)}: matches none of the alternatives"
        return
    if all(len(branch) == 1 and len(branch[0].path) == level for branch in branches):
        simple = [branch[0] for branch in branches]
        if not any(_is_nested(inner) for inner in simple):
            wanted = " or ".join(dict.fromkeys(describe_expected(inner.kind) for inner in simple))
            actual = validator.describe_actual(node, kinds=[inner.kind for inner in simple])
            yield f"{validator.format_path(path, root)}: expected {wanted}{actual}"
            return
    right_type = [b for b in branches if not any(_is(e, level, ValidationErrorKind.Type) for e in b)]
    right_tag = [b for b in right_type if not any(_is(e, level + 1, _TAGS) for e in b)]
    meant = right_tag or right_type or branches
    tags = [] if right_tag else _find_wrong_tags(right_type, level)
    options = {json.dumps(option): option for inner in tags for option in _options(inner.kind)}
    # If all alternatives have the same values, another keyword distinguishes them, such as `required`.
    is_tag = any(len(_options(inner.kind)) < len(options) for inner in tags)
    right_keys = [b for b in meant if not any(_is(e, level, ValidationErrorKind.Required) for e in b)]
    if len(right_keys) == 1 and not is_tag:
        meant = right_keys
    if len(meant) == 1:
        for inner in meant[0]:
            yield from validator.explain(inner, root, depth)
        return
    if tags:
        allowed = [*options.values()]
        place = validator.format_path(tags[0].path, root)
        yield f"{place}: expected one of {list_values(allowed)}{validator.describe_actual(tags[0], allowed)}"
        return
    known = validator.list_alternatives(node)
    ids = {id(one) for one in meant}
    of_meant = [each for each, branch in zip(known, branches, strict=False) if id(branch) in ids]
    if line := validator.explain_missing_tag(node, of_meant, root):
        yield line
        return
    lines_of = [
        [line for inner in branch[:_SHOWN] if inner.branches is None for line in validator.explain(inner, root)]
        for branch in meant
    ]
    every = [line for line in dict.fromkeys(lines_of[0]) if all(line in lines for lines in lines_of)]
    common = set[_Place].intersection(*({_place_of(inner) for inner in branch} for branch in meant))
    below = [inner for inner in meant[0] if inner.branches is not None and _place_of(inner) in common]
    if every or below:
        yield from every
        for inner in below:
            yield from validator.explain(inner, root, depth)
        lines_of = [[line for line in lines if line not in every] for lines in lines_of]
        if below or not all(lines_of):
            return
    place = f"{validator.format_path(path, root)}: matches none of the {len(branches)} alternatives"
    if depth >= _DEEPEST_REASONS:
        yield place
        return
    examples = (
        [lines[0] for lines in lines_of[:3]]
        if every
        else [next(validator.explain(branch[0], root, depth + 1), "") for branch in meant[:3] if branch]
    )
    listing = "; ".join(f"({number}) {line}" for number, line in enumerate(examples, 1))
    yield f"{place}: {listing}"


_NESTED: Final = (
    ValidationErrorKind.Required,
    ValidationErrorKind.AdditionalProperties,
    ValidationErrorKind.UnevaluatedProperties,
    ValidationErrorKind.UnevaluatedItems,
    ValidationErrorKind.OneOfMultipleValid,
    ValidationErrorKind.PropertyNames,
    UnknownKeys,
)
_TAGS: Final = (ValidationErrorKind.Constant, ValidationErrorKind.Enum)


def _is(node: ErrorNode, level: int, kinds: type[ValidationErrorKind] | tuple[type, ...]) -> bool:
    return len(node.path) == level and isinstance(node.kind, kinds)


def _is_nested(node: ErrorNode) -> bool:
    """Return whether the expectation is too complex to describe in a few words."""
    return node.kind is None or node.branches is not None or isinstance(node.kind, _NESTED)


_Place: TypeAlias = tuple[Path, tuple[str | int, ...]]


def _place_of(node: ErrorNode) -> _Place:
    """Return the path and the keyword of an error, which identify the error across alternatives."""
    return node.path, tuple(node.schema_path)


def _find_wrong_tags(branches: Branches, level: int) -> list[ErrorNode]:
    """Return the error of each alternative about the discriminating key, or an empty list without such a key."""
    by_key = [{node.path[-1]: node for node in branch if _is(node, level + 1, _TAGS)} for branch in branches]
    keys = [key for key in (by_key[0] if by_key else ()) if all(key in tag for tag in by_key)]
    return [tag[keys[0]] for tag in by_key] if keys else []


def _options(kind: Kind | None) -> Sequence[Any]:
    match kind:
        case ValidationErrorKind.Constant(value):
            return [value]
        case ValidationErrorKind.Enum(options):
            return list(options)
        case _:
            return []
