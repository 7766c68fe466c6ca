"""Replaces the references of a schema by their targets.

Recursive references and references for the validator stay; the result explains why. Definitions that no reference uses
are dropped from `$defs`.

Many clients read `properties` only next to `type: object`, and look neither next to a `$ref` nor into `allOf`. So a
reference is merged with its siblings, and the parts of an `allOf` with each other. Each merge is a rule about keywords;
tests prove in both directions that it is equivalent, with the proof of `diff`, which this folder may not import.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from stubwright.jsonschema import dialects
from stubwright.jsonschema.bundling import edit
from stubwright.jsonschema.circles import find_circles
from stubwright.jsonschema.pointers import format_pointer
from stubwright.jsonschema.references import Folder, Local, Outline, name_id_keyword
from stubwright_runtime.values.nesting import DEEPEST, is_too_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from stubwright.diagnostics import Place, Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

LARGEST: Final = 1_000_000
"""The maximum number of characters of JSON; each level of schemas that use a lower one twice doubles the result."""

_DEFS: Final = ("$defs", "definitions")
_NOTES: Final = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}
)
"""Annotations; next to a reference, they describe its use better than its target."""

_OF_OBJECTS: Final = frozenset({"properties", "patternProperties", "additionalProperties"})
_TOGETHER: Final = (
    _OF_OBJECTS,
    frozenset({"prefixItems", "items", "additionalItems"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)
"""Keywords that depend on their siblings (JSON Schema 2020-12 Core, 10.2 and 10.3)."""

_META: Final = frozenset({"$schema", "$id", "id", *_DEFS})
_LOOKING: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_IN_PLACE: Final = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
    | {"dependentSchemas", "dependencies"}
)
"""Keywords whose schemas apply to the same object, so that `unevaluatedProperties` looks into them."""

_SWITCHES: Final = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
"""Keywords that are booleans in draft-04, and qualify the bound next to them."""

_BOUNDS: Final[Mapping[str, Callable[[float, float], float]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
"""Keywords for which the stricter of two values is enough, with the function that selects it."""

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class InlinedSchema:
    """`wire` is the schema. If it still has references, `kept` is the reason, and `help` explains how to avoid them."""

    wire: Json
    kept: str | None = None
    help: str | None = None


def inline(wire: Json, dialect: Dialect, place: Place) -> InlinedSchema:
    """Return a schema with its references replaced by their targets.

    Args:
        wire: The schema, whose references have targets in itself or are to a meta-schema.
        dialect: Its dialect.
        place: Its place.
    """
    outline = Outline(place, wire, dialect, Folder("", {}))
    if not isinstance(wire, dict) or not (outline.references or any(True for _ in outline.find_having("allOf"))):
        return InlinedSchema(wire)
    if (named := _named(outline)) is not None:
        if not outline.references:
            return InlinedSchema(wire)
        fix = f'remove `{named}`, and refer to places: "#/$defs/NAME"'
        return InlinedSchema(wire, f"it has `{named}`, which changes the targets of references", fix)
    inlining = _Inliner(outline)
    try:
        root = inlining.inline_root()
    except _TooDeepError:
        return _too_deep(wire)
    size = _Sizes().count(root)
    # Parts are shared, so a short schema can expand to gigabytes; check the size before walking it.
    if size <= LARGEST and is_too_deep(root):
        return _too_deep(wire)
    if size > LARGEST:
        return InlinedSchema(
            wire,
            f"without references it would have {size:,} characters of JSON, more than {LARGEST:,}",
            "use fewer shared schemas inside each other, or write `wire: {refs: bundled}`",
        )
    if inlining.recursive:
        shown = ", ".join(f"`{format_pointer(pointer)}`" for pointer in inlining.recursive[:_SHOWN])
        more = f" and {len(inlining.recursive) - _SHOWN} more" if len(inlining.recursive) > _SHOWN else ""
        verb = "contains itself" if len(inlining.recursive) == 1 else "contain themselves"
        fix = "refer to such values by an id, or write out each level, for clients that do not resolve references"
        return InlinedSchema(root, f"{shown}{more} {verb}", fix)
    if inlining.metas:
        fix = "write `type: [object, boolean]` instead, for clients that do not resolve references"
        return InlinedSchema(root, f"it refers to the meta-schema `{inlining.metas[0]}`", fix)
    return InlinedSchema(root)


def _too_deep(wire: Json) -> InlinedSchema:
    reason = f"without references it would be nested more than {DEEPEST} levels deep"
    return InlinedSchema(wire, reason, "nest less, or write `wire: {refs: bundled}`")


def _named(outline: Outline) -> str | None:
    """Return a keyword that makes the meaning of a schema depend on its place."""
    for reference in outline.references:
        if reference.keyword != "$ref":
            return reference.keyword
    if outline.anchors:
        return str(next(iter(outline.anchors.values()))[-1])
    keyword = name_id_keyword(outline.dialect)
    return (
        keyword
        if any(pointer and isinstance(schema[keyword], str) for pointer, schema in outline.find_having(keyword))
        else None
    )


class _TooDeepError(Exception):
    """The inlined schema would be nested more deeply than a message can be."""


class _Inliner:
    """One schema. `recursive` are the referenced places that contain themselves."""

    def __init__(self, outline: Outline) -> None:
        self._schema, self._dialect = outline.schema, outline.dialect
        hiding = {each.pointer for each in outline.references} if self._dialect.reference_hides_siblings else set()
        targets = {
            reference.pointer: reference.target.pointer
            for reference in outline.references
            if isinstance(reference.target, Local) and not _is_hidden(reference.pointer, hiding)
        }
        self.metas = [one.text for one in outline.references if not isinstance(one.target, Local)]
        following = _following(targets)
        reached = dict.fromkeys(target for pointer, target in targets.items() if not _is_in_definition(pointer))
        waiting = [*reached]
        for target in waiting:  # grows during the loop
            for other in following[target]:
                if other not in reached:
                    reached[other] = None
                    waiting.append(other)
        # `find_circles` does not distinguish a direct cycle from none.
        alone = {target for target in reached if target in following[target]}
        together = {one for members in find_circles(following) if len(members) > 1 for one in members}
        self.recursive = [target for target in reached if target in alone or target in together]
        kept = {*self.recursive}
        self._targets = {pointer: target for pointer, target in targets.items() if target not in kept}
        self._homes = {target[:end] for target in kept for end in range(len(target) + 1)}
        self._fixed = {pointer[:-1] for pointer in self._homes if pointer and pointer[-1] not in _DEFS}
        self._made: dict[tuple[Pointer, bool], tuple[Json, int]] = {}

    def inline_root(self) -> Json:
        """Return the whole schema."""
        whole, _ = self._of((), copied=False, depth=0)
        return whole if isinstance(whole, dict) else {} if whole else {"not": {}}

    def _of(self, pointer: Pointer, *, copied: bool, depth: int) -> tuple[Json, int]:
        """Return the schema at a place, and the depth of its nested schemas.

        Copies need no `$defs`, since they are not targets of references.
        """
        if (pointer, copied) not in self._made:
            if depth > DEEPEST:
                raise _TooDeepError
            self._made[pointer, copied] = self._make(pointer, copied, depth + 1)
        return self._made[pointer, copied]

    def _make(self, pointer: Pointer, copied: bool, depth: int) -> tuple[Json, int]:
        schema = self._schema
        for step in pointer:
            schema = schema[step]
        if not isinstance(schema, dict):
            return schema, 0
        if not schema.keys().isdisjoint(_DEFS):
            schema = self._without_unused(schema, pointer, copied)
        edits: dict[Pointer, Any] = {}
        deepest = 0
        for steps, child in dialects.iterate_children(schema, self._dialect):
            new, levels = self._of((*pointer, *steps), copied=copied, depth=depth)
            deepest = max(deepest, levels)
            if new is not child:
                edits[steps] = new
        edited: Json = edit(schema, edits)
        merges = copied or pointer not in self._fixed  # targets of remaining references must not move
        if (target := self._targets.get(pointer)) is not None:
            there, levels = self._of(target, copied=True, depth=depth)
            deepest = max(deepest, levels)
            edited = _joined(edited, there, self._dialect, merges)
        if merges and isinstance(edited, dict) and not schema.keys().isdisjoint(("$ref", "allOf")):
            edited = _plain(edited, self._dialect)
        if deepest >= DEEPEST:
            raise _TooDeepError
        return edited, deepest + 1

    def _without_unused(self, schema: dict[str, Json], pointer: Pointer, copied: bool) -> dict[str, Json]:
        """Return a schema without unused definitions."""
        used = dict(schema)
        for keyword in _DEFS:
            named = schema.get(keyword)
            if isinstance(named, dict):
                homes = () if copied else self._homes
                used[keyword] = {
                    name: definition for name, definition in named.items() if (*pointer, keyword, name) in homes
                }
                if not used[keyword]:
                    del used[keyword]
        return used


def _is_hidden(pointer: Pointer, hiding: Container[Pointer]) -> bool:
    """Return whether a schema is next to a reference that hides it, except in definitions."""
    return any(pointer[:end] in hiding and pointer[end] not in _DEFS for end in range(len(pointer)))


def _is_in_definition(steps: Pointer) -> bool:
    """Return whether steps lead into a definition, which applies only where a reference uses it."""
    return any(keyword in steps for keyword in _DEFS)


def _following(targets: Mapping[Pointer, Pointer]) -> Mapping[Pointer, Iterable[Pointer]]:
    """Map each target of a reference to the targets of the references at and below it, except in definitions."""
    following: dict[Pointer, dict[Pointer, None]] = {target: {} for target in targets.values()}
    for pointer, target in targets.items():
        for end in range(len(pointer) + 1):
            if pointer[:end] in following and not _is_in_definition(pointer[end:]):
                following[pointer[:end]][target] = None
    return following


def _joined(schema: dict[str, Json], target: Json, dialect: Dialect, merges: bool) -> Json:
    """Replace a schema's reference by its target.

    Before 2019-09, siblings of a reference are ignored (draft-07, 8.3), and only annotations are copied. Since then
    both apply: merged if no keyword depends on the other schema's keywords, otherwise in an `allOf`. An `allOf` is also
    needed if the siblings must not move; `merges` is false then.
    """
    hides = dialect.reference_hides_siblings
    beside = {
        key: value
        for key, value in schema.items()
        if key != "$ref" and (not hides or key in _NOTES or key in (*_DEFS, "$schema") or key not in dialects.KEYWORDS)
    }
    if isinstance(target, dict):
        target = {key: value for key, value in target.items() if key != "$schema"}
    if not beside:
        return target
    if target is True:
        return beside
    if merges and isinstance(target, dict) and (merged := _merged(beside, target, hides, outer=beside)) is not None:
        order = [key for each in schema for key in (target if each == "$ref" else [each])]
        return {key: merged[key] for key in dict.fromkeys(order) if key in merged}
    return {**beside, "allOf": [*beside.get("allOf", ()), target]}


def _plain(schema: dict[str, Json], dialect: Dialect) -> dict[str, Json]:
    """Return an equivalent schema with as few `allOf` and `unevaluatedProperties` as possible."""
    hides = dialect.reference_hides_siblings
    if hides and "$ref" in schema:
        return schema
    return _closed(_folded(schema, hides) if isinstance(schema.get("allOf"), list) else schema, dialect)


def _folded(schema: dict[str, Json], hides: bool) -> dict[str, Json]:
    """Return a schema with the parts of its `allOf` merged into it if that is equivalent."""
    parts = schema["allOf"]
    folded = {key: value for key, value in schema.items() if key != "allOf"}
    left: list[Json] = []
    for part in parts:
        # after a merge, `unevaluatedProperties` of a part would see the other parts
        apart = not isinstance(part, dict) or part.keys() & _META or (len(parts) > 1 and part.keys() & _LOOKING)
        merged = None if apart else _merged(part, folded, hides, outer=folded)
        if merged is None:
            left.append(part)
        else:
            folded = {**merged, **{key: value for key, value in folded.items() if key in _NOTES}}
    if left == parts:
        return schema
    return {**folded, "allOf": [*left, *folded.get("allOf", ())]} if left else folded


def _closed(schema: dict[str, Json], dialect: Dialect) -> dict[str, Json]:
    """Return a schema without `unevaluatedProperties` if `additionalProperties` is equivalent.

    Both apply to properties that no other keyword evaluates; only the former looks into schemas that apply in place
    (JSON Schema 2020-12 Core, 11.3). Next to `additionalProperties` it has no effect.
    """
    looking = "unevaluatedProperties"
    if looking not in schema or looking not in dialect.keywords or schema.keys() & _IN_PLACE:
        return schema
    if "additionalProperties" in schema:
        return {key: value for key, value in schema.items() if key != looking}
    return {"additionalProperties" if key == looking else key: value for key, value in schema.items()}


def _merged(
    beside: Mapping[str, Json], target: Mapping[str, Json], hides: bool, *, outer: Mapping[str, Json] | None = None
) -> dict[str, Json] | None:
    """Return two schemas as an equivalent one, with the first one's annotations; `None` if there is none.

    `hides` specifies whether a reference hides its siblings. `outer` is the schema that applies the other one, if any:
    it sees the properties that the other one evaluates.
    """
    left, right = ({key for key in each if key not in _NOTES and key not in _META} for each in (beside, target))
    inner = (set() if outer is beside else left) | (set() if outer is target else right)
    if left and right and (inner & _LOOKING or (hides and "$ref" in left | right)):
        return None
    if left and right and any(isinstance(each.get(key), bool) for key in _SWITCHES for each in (beside, target)):
        return None
    for group in _TOGETHER:
        if left & group and right & group and not (group is _OF_OBJECTS and _are_about_the_same(beside, target)):
            return None
    merged = {**target, **beside}
    for key in left & right & dialects.KEYWORDS:
        value = _both(key, beside[key], target[key], hides)
        if value is None:
            return None
        merged[key] = value
    return merged


def _are_about_the_same(left: Mapping[str, Json], right: Mapping[str, Json]) -> bool:
    """Return whether `additionalProperties` of each schema would apply to the same properties after a merge.

    That is true if it has no constraints, or if the other schema adds no properties or patterns.
    """
    for each, other in ((left, right), (right, left)):
        is_open = each.get("additionalProperties", True) in (True, {})
        names = ("properties", "patternProperties")
        if not is_open and not all(other.get(key, {}).keys() <= each.get(key, {}).keys() for key in names):
            return False
    return True


def _both(key: str, left: Json, right: Json, hides: bool) -> Json:
    """Return a value of a keyword that is equivalent to its two values together; `None` if there is none."""
    if json.dumps(left) == json.dumps(right):
        return left
    if key in ("properties", "patternProperties") and isinstance(left, dict) and isinstance(right, dict):
        return {name: _conjunction(name, left, right, hides) for name in {**right, **left}}
    if key == "additionalProperties":
        return _conjunction(key, {key: left}, {key: right}, hides)
    if isinstance(left, list) and isinstance(right, list) and key in ("required", "allOf"):
        return [*dict.fromkeys((*right, *left))] if key == "required" else [*right, *left]
    if key == "type":
        return _type(*(each if isinstance(each, list) else [each] for each in (left, right)))
    if (choose := _BOUNDS.get(key)) is not None:
        return cast("Json", choose(left, right))
    return None


def _type(ones: list[Json], twos: list[Json]) -> Json:
    """Return the types in both lists; `None` if there are none. Integers are numbers, too."""
    shared = [each for each in ones if each in twos or (each == "integer" and "number" in twos)]
    if "integer" in twos and "number" in ones and "integer" not in shared:
        shared.append("integer")
    return (shared if len(shared) > 1 else shared[0]) if shared else None


def _conjunction(name: str, left: Mapping[str, Json], right: Mapping[str, Json], hides: bool) -> Json:
    """Return a schema for the values that both schemas of a name accept."""
    if name not in left or name not in right:
        return left[name] if name in left else right[name]
    first, second = left[name], right[name]
    if isinstance(first, dict) and isinstance(second, dict):
        merged = _merged(first, second, hides)
        return {"allOf": [second, first]} if merged is None else merged
    if first is False or second is False:
        return False
    return second if first is True else first


class _Sizes:
    """The sizes of values as JSON; shared values are measured once, and counted at each place."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def count(self, value: Json) -> int:
        """Return the number of characters as compact JSON."""
        if not isinstance(value, dict | list):
            return len(json.dumps(value, ensure_ascii=False))
        if id(value) not in self._known:
            if isinstance(value, dict):
                inner = sum(
                    len(json.dumps(key, ensure_ascii=False)) + 1 + self.count(each) for key, each in value.items()
                )
            else:
                inner = sum(map(self.count, value))
            self._known[id(value)] = inner + max(len(value) - 1, 0) + 2
        return self._known[id(value)]
