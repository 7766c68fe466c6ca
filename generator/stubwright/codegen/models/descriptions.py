"""Describes a schema in prose: its description, then the keywords that its Python type cannot express."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from stubwright.codegen.models.types import AnyOf, AnyScalar, Const, FixedTuple, Items, Leaf, make_constant

if TYPE_CHECKING:
    from stubwright.codegen.models.types import Document, Expression
    from stubwright.ir import Json

_DASH = "\u2013"  # an en dash
_LONGEST = 200
_CONDITIONS = ("if", "not", "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems", "contains")


def describe(
    document: Document, expression: Expression, is_described: Callable[[Expression], bool] = lambda _: False
) -> str:
    """Return a schema's description, and a sentence for each keyword that the schema's type cannot express.

    If `is_described` returns true for the type, the type is described elsewhere, and the sentences are omitted. The
    result can be empty.
    """
    leaves = [*document.find_leaves(expression)]
    text = next((text for leaf in leaves if (text := _text(document.get_value(leaf), "description"))), "")
    if not leaves and isinstance(expression, AnyOf):
        text = next((text for part in expression.parts if (text := describe(document, part))), "")
    own = leaves
    if is_described(expression):
        settled = document.resolve(expression)
        own = [*takewhile(lambda leaf: leaf != settled, leaves)]
    added = [*dict.fromkeys(sentence for leaf in own for sentence in _sentences(document, leaf, is_described))]
    return append_sentences(text, added)


def append_sentences(text: str, sentences: Sequence[str]) -> str:
    """Append sentences to `text`, as a separate paragraph if the text has several lines."""
    text = text.strip()
    if not text or not sentences:
        return text or " ".join(sentences)
    if "\n" in text:
        return f"{text}\n\n{' '.join(sentences)}"
    return f"{text}{'' if text[-1] in '.!?:;。！？' else '.'} {' '.join(sentences)}"  # noqa: RUF001 - Chinese


def summarize(document: Document, leaf: Leaf) -> str:
    """Return a subschema's description or, without one, its title."""
    value = document.get_value(leaf)
    return _text(value, "description") or _text(value, "title")


def format_value(value: Json) -> str:
    """Format a JSON value for a sentence, truncated if it is long."""
    return _shorten(json.dumps(value, ensure_ascii=False))


def _text(value: Json, keyword: str) -> str:
    text = value.get(keyword) if isinstance(value, dict) else None
    return text.strip() if isinstance(text, str) else ""


def _sentences(document: Document, leaf: Leaf, is_described: Callable[[Expression], bool]) -> Iterator[str]:
    keywords = _keywords(document, leaf)
    if document.get_value(leaf) is False:
        yield "Never allowed."
    shape = document.shape(leaf)
    fixed = ("minItems", "maxItems") if any(isinstance(each, FixedTuple) for each in shape) else ()
    yield from _describe_bounds({name: value for name, value in keywords.items() if name not in fixed})
    yield from _members(document, leaf, keywords)
    if keywords.get("uniqueItems") is True:
        yield "Items are unique."
    yield from _keys(keywords)
    if any(keyword in keywords for keyword in _CONDITIONS):
        yield "The schema has additional constraints."
    if keywords.get("deprecated") is True:
        yield "Deprecated."
    for alternative in shape:
        if isinstance(alternative, Items) and not is_described(alternative.item):
            yield from _items(document, alternative.item)


def _keywords(document: Document, leaf: Leaf) -> Mapping[str, Json]:
    known = document.dialect.keywords | {"deprecated"}
    return {keyword: value for keyword, value in document.get_keywords(leaf).items() if keyword in known}


def _items(document: Document, item: Expression) -> Iterator[str]:
    if all(isinstance(each, AnyScalar) for each in document.shape(item)):
        added = [text for leaf in document.find_leaves(item) for text in _describe_bounds(_keywords(document, leaf))]
        if added:
            yield f"Each item: {' '.join(text[:1].lower() + text[1:] for text in added)}"


def _describe_bounds(keywords: Mapping[str, Json]) -> Iterator[str]:
    for least, most, unit in (
        ("minLength", "maxLength", "character"),
        ("minItems", "maxItems", "item"),
        ("minProperties", "maxProperties", "key"),
    ):
        yield from _counts(_number(keywords.get(least)), _number(keywords.get(most)), unit)
    yield from _range(keywords)
    multiple = _number(keywords.get("multipleOf"))
    if multiple is not None:
        yield f"Multiple of {_format_number(multiple)}."
    for keyword, sentence in (
        ("pattern", "Pattern: `{}`."),
        ("format", "Format: {}."),
        ("contentEncoding", "Encoded as {}."),
        ("contentMediaType", "Media type: {}."),
    ):
        if isinstance(text := keywords.get(keyword), str) and text:
            yield sentence.format(_shorten(text))


def _counts(low: int | float | None, high: int | float | None, unit: str) -> Iterator[str]:
    if low is not None and low == high:
        yield f"Exactly {_format_count(low, unit)}."
    elif low is not None and low > 0 and high is not None:
        yield f"{_span(low, high)} {unit}s."
    elif low is not None and low > 0:
        yield f"At least {_format_count(low, unit)}."
    elif high is not None:
        yield f"At most {_format_count(high, unit)}."


def _range(keywords: Mapping[str, Json]) -> Iterator[str]:
    low, high = _number(keywords.get("minimum")), _number(keywords.get("maximum"))
    above, below = _number(keywords.get("exclusiveMinimum")), _number(keywords.get("exclusiveMaximum"))
    if keywords.get("exclusiveMinimum") is True:  # draft-04
        low, above = None, low
    if keywords.get("exclusiveMaximum") is True:
        high, below = None, high
    if low is not None and high is not None:
        yield f"Range: {_span(low, high)}."
    elif low is not None:
        yield f"Minimum: {_format_number(low)}."
    elif high is not None:
        yield f"Maximum: {_format_number(high)}."
    if above is not None:
        yield f"Greater than {_format_number(above)}."
    if below is not None:
        yield f"Less than {_format_number(below)}."


def _members(document: Document, leaf: Leaf, keywords: Mapping[str, Json]) -> Iterator[str]:
    """Yield a sentence that lists an enumeration's members if a `Literal` cannot contain all of them."""
    members: Json = keywords.get("enum")
    if members is None and "const" in keywords:
        members = [keywords["const"]]
    if not isinstance(members, list) or all(
        isinstance(each, Const) or each == AnyScalar("null") for each in document.shape(leaf)
    ):
        return
    if any(member is not None and not isinstance(make_constant(member), Const) for member in members):
        yield f"{'One of' if len(members) > 1 else 'Always'} {_shorten(', '.join(map(format_value, members)))}."


def _keys(keywords: Mapping[str, Json]) -> Iterator[str]:
    """Yield sentences about undeclared keys, and about keys that require other keys."""
    properties, required = keywords.get("properties") or {}, keywords.get("required")
    if isinstance(required, list) and (unnamed := [name for name in required if name not in properties]):
        yield f"Requires {_join_names(unnamed)}."
    for keyword in ("anyOf", "oneOf"):
        choices = keywords.get(keyword)
        if isinstance(choices, list) and all(
            isinstance(each, dict) and each.keys() == {"required"} for each in choices
        ):
            yield f"Requires {', or '.join(_join_names(each['required']) for each in choices)}."
    if "patternProperties" in keywords or "propertyNames" in keywords:
        yield "The schema restricts its keys."
    together = keywords.get("dependentRequired")
    for name, names in together.items() if isinstance(together, dict) else ():
        yield f"`{name}` requires {_join_names(names)}."


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _number(value: Json) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _format_number(value: int | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)


def _span(low: int | float, high: int | float) -> str:
    return f"{_format_number(low)}{' to ' if low < 0 or high < 0 else _DASH}{_format_number(high)}"


def _format_count(count: int | float, noun: str) -> str:
    return f"{_format_number(count)} {noun}{'' if count == 1 else 's'}"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
