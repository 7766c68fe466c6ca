"""A tree of validation errors with branches that are computed on demand.

The validator collects the errors from all nested alternatives, which multiply with each level. This module validates
against an equivalent schema with a double `not` around each reference and choice, because the validator reports a
failed `not` without its inner errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from jsonschema_rs import ValidationErrorKind

from ..values.json import Json
from ..values.text import split_pointer
from .complexity import Compile, find_id_keyword, is_old
from .errors import Branches, ErrorNode, Path, to_error_node

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

    from .numbers import CompiledSchema

Pointer = tuple[str, ...]

_MARK: Final = "stubwright:cut "
_ROOT: Final = "stubwright:cuts"  # not a real schema's `$id`
_CHOICES: Final = ("anyOf", "oneOf")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_FREE_LOOKS: Final = 30
_FREE_PARTS: Final = 300_000  # value parts in the first expansions
_PARTS: Final = 100_000  # value parts; the validator takes up to 10 µs for each
_LOOKS_AT_ONE: Final = 3  # expansions of one choice for one value, since a schema can be its own alternative


@dataclass(frozen=True, slots=True)
class _LazyNode:
    """A place in the schema that is expanded on demand: a choice of `size` alternatives, or a reference."""

    keyword: str
    pointer: Pointer
    size: int = 0
    target: str = ""


class ShallowSchema:
    """An equivalent schema that reports no nested errors."""

    def __init__(self, schema: Any, compile_: Compile) -> None:
        """Build the schema.

        Args:
            schema: The original schema, in the dialect of its `$schema`.
            compile_: Compiles a schema.
        """
        self._compile = compile_
        self._old = is_old(schema)
        self._identifier = find_id_keyword(schema)
        self._cuts: list[_LazyNode] = []
        self._moved: dict[Pointer, Pointer] = {}
        self._references: list[tuple[dict[str, Any], str, Pointer]] = []
        self.schema = self._schema(schema, (), (), ())
        for holder, keyword, base in self._references:
            holder[keyword] = self._rebase_reference(holder[keyword], base)
        self._validators: dict[int, CompiledSchema] = {}

    def find_errors(self, number: int, value: Any) -> list[list[ValidationError]]:
        """Return the validator's errors for a value at a cut, by alternative. Cut -1 is the root."""
        cut = self._cuts[number] if number >= 0 else _LazyNode("", ())
        if number not in self._validators:
            self._validators[number] = self._compile(self._part(cut))
        by_alternative: list[list[ValidationError]] = [[] for _ in range(cut.size or 1)]
        for error in self._validators[number].iter_errors(value):
            by_alternative[int(error.evaluation_path[1])].append(error)
        return by_alternative

    def cut(self, number: int) -> _LazyNode:
        """Return the cut with this number."""
        return self._cuts[number]

    def _part(self, cut: _LazyNode) -> dict[str, Any]:
        """Return a schema that references the alternatives or the target at a cut."""
        dialect = {"$schema": self.schema["$schema"]} if "$schema" in self.schema else {}
        keyword = self._identifier
        name = str(self.schema.get(keyword, _ROOT)).rstrip("#")
        places = [(*cut.pointer, cut.keyword, str(index)) for index in range(cut.size)] or [cut.pointer]
        return {
            **dialect,
            "definitions" if self._old else "$defs": {"root": {**self.schema, keyword: name}},
            "allOf": [{"$ref": name + _fragment(place)} for place in places],
        }

    def _schema(self, schema: Json, was: Pointer, now: Pointer, base: Pointer) -> Any:
        """Copy a schema from pointer `was` to pointer `now`. `base` is the pointer of the schema's `$id`."""
        if isinstance(schema, list):
            return [self._schema(subschema, (*was, str(n)), (*now, str(n)), base) for n, subschema in enumerate(schema)]
        if not isinstance(schema, dict):
            return schema
        hides = self._old and isinstance(schema.get("$ref"), str)
        if isinstance(schema.get(self._identifier), str) and not hides:
            base = was
        copied: dict[str, Any] = {}
        wrapped: list[Any] = []
        all_of: Json = schema.get("allOf")
        there = len(all_of) if not hides and isinstance(all_of, list) else 0
        value: Json
        for keyword, value in schema.items():
            inner = (*now, "allOf", str(there + len(wrapped)), "not", "not")
            if keyword in _CHOICES and isinstance(value, list) and not hides:
                self._moved[*was, keyword] = (*inner, keyword)
                self._cuts.append(_LazyNode(keyword, inner, len(value)))
                mark = f"{_MARK}{len(self._cuts) - 1}"
                alternatives = self._schema(value, (*was, keyword), (*inner, keyword), base)
                # A double negation is equivalent, and its only error is the mark.
                wrapped.append({"not": {"$comment": mark, "not": {keyword: alternatives}}})
            elif keyword in _REFERENCES and isinstance(value, str) and (keyword == "$ref" or not hides):
                self._cuts.append(_LazyNode(keyword, inner, target=f"{_fragment(base)} {value}"))
                holder = {keyword: value}
                self._references.append((holder, keyword, base))
                wrapped.append({"not": {"$comment": f"{_MARK}{len(self._cuts) - 1}", "not": holder}})
            # `not` drops annotations, so unevaluated keywords would reject values that a cut has evaluated.
            elif keyword in _UNEVALUATED or (hides and keyword not in ("$schema", "definitions", "$defs")):
                pass
            elif keyword in _DATA:
                copied[keyword] = value
            elif keyword in _NAMED and isinstance(value, dict):
                copied[keyword] = {
                    name: self._schema(subschema, (*was, keyword, name), (*now, keyword, name), base)
                    for name, subschema in value.items()
                }
            else:
                copied[keyword] = self._schema(value, (*was, keyword), (*now, keyword), base)
        if wrapped:
            copied["allOf"] = [*copied.get("allOf", ()), *wrapped]
        return copied

    def _rebase_reference(self, reference: str, base: Pointer) -> str:
        """Rewrite a reference to its target's new location. The reference's pointer is relative to `base`."""
        if not reference.startswith("#/"):
            return reference
        target = self._place((*base, *split_pointer(unquote(reference[1:]))))
        return _fragment(target[len(self._place(base)) :])

    def _place(self, was: Pointer) -> Pointer:
        now: Pointer = ()
        for length in range(1, len(was) + 1):
            now = self._moved.get(was[:length], (*now, was[length - 1]))
        return now


class ErrorTree:
    """The errors in one invalid value, computed on demand."""

    def __init__(self, cuts: ShallowSchema, value: Any) -> None:
        """Create a tree for a value that the schema rejects."""
        self._cuts = cuts
        self._value = value
        self._looks = 0
        self._parts = 0
        self._known: dict[tuple[str, Path], list[ErrorNode]] = {}
        self._chosen: Counter[tuple[int, Path]] = Counter()

    def find_errors(self) -> Iterator[ErrorNode]:
        """Yield the errors in the value."""
        for branch in self._cuts.find_errors(-1, self._value):
            yield from self._convert_errors(branch, self._value, ())

    def _convert_errors(self, errors: Iterable[ValidationError], value: Any, above: Path) -> Iterator[ErrorNode]:
        for error in errors:
            node = to_error_node(error, value, above)
            number = _number(error.kind)
            if number is None:
                yield replace(node, schema=self._cuts.schema)
            elif self._cuts.cut(number).size:
                yield self._choice(number, node)
            else:
                yield from self._follow_reference(number, node)

    def _follow_reference(self, number: int, node: ErrorNode) -> Sequence[ErrorNode]:
        key = self._cuts.cut(number).target, node.path
        if key not in self._known:
            self._known[key] = []  # for self-references
            if self._may_look(node.instance):
                (errors,) = self._cuts.find_errors(number, node.instance)
                self._known[key] = [*self._convert_errors(errors, node.instance, node.path)]
            self._known[key] = self._known[key] or [replace(node, kind=None)]
        return self._known[key]

    def _choice(self, number: int, node: ErrorNode) -> ErrorNode:
        def find_branches() -> Branches:
            self._chosen[number, node.path] += 1
            if self._chosen[number, node.path] > _LOOKS_AT_ONE or not self._may_look(node.instance):
                return ()
            return [
                [*self._convert_errors(errors, node.instance, node.path)]
                for errors in self._cuts.find_errors(number, node.instance)
            ]

        return replace(node, kind=None, branches=find_branches)

    def _may_look(self, value: Any) -> bool:
        self._looks += 1
        self._parts += _parts(value, _FREE_PARTS)
        return self._parts <= (_FREE_PARTS if self._looks <= _FREE_LOOKS else _PARTS)


def _parts(value: Any, most: int) -> int:
    """Count a value and its nested values, and stop at `most`."""
    waiting, count = [value], 0
    while waiting and count < most:
        here = waiting.pop()
        count += 1
        if isinstance(here, dict):
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return count


def _number(kind: ValidationErrorKind) -> int | None:
    match kind:
        case ValidationErrorKind.Not({"$comment": str(mark)}) if mark.startswith(_MARK):
            return int(mark.removeprefix(_MARK))
        case _:
            return None


def _fragment(pointer: Pointer) -> str:
    escaped = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in pointer)
    return "#" + quote(escaped, safe="/~!$&'()*+,;=:@?")
