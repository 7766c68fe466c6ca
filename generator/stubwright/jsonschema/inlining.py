"""Replaces a schema's non-recursive references with their targets and drops unused definitions.

Many clients read only `properties` next to `type: object` and ignore siblings of `$ref` and `allOf`. So each reference
is merged with its siblings, and the parts of an `allOf` with each other. The tests prove that each merge is equivalent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from stubwright.jsonschema import dialects
from stubwright.jsonschema.bundling import edit
from stubwright.jsonschema.cycles import find_cycles, find_reachable
from stubwright.jsonschema.pointers import format_pointer
from stubwright.jsonschema.references import Folder, LocalTarget, Outline, name_id_keyword
from stubwright_runtime.values.nesting import DEEPEST, is_too_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from stubwright.diagnostics import Place, Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

LARGEST: Final = 1_000_000
"""The maximum number of JSON characters, since nested references can double the result at each level."""

_DEFS: Final = ("$defs", "definitions")
_NOTES: Final = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}
)
"""Annotations. Next to a reference, they override the target's annotations."""

_OF_OBJECTS: Final = frozenset({"properties", "patternProperties", "additionalProperties"})
_DEPENDENT: Final = (
    _OF_OBJECTS,
    frozenset({"prefixItems", "items", "additionalItems"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)
"""Keywords that depend on their siblings (JSON Schema 2020-12 Core, 10.2 and 10.3)."""

_META: Final = frozenset({"$schema", "$id", "id", *_DEFS})
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_IN_PLACE: Final = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
    | {"dependentSchemas", "dependencies"}
)
"""Keywords whose schemas apply to the same value, so that `unevaluatedProperties` considers them."""

_SWITCHES: Final = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
"""Keywords that are booleans in draft-04."""

_BOUNDS: Final[Mapping[str, Callable[[float, float], float]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
"""Bounds, each with the function that selects the stricter of two."""

_MAX_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class InlinedSchema:
    """An inlined schema. If references remain, `kept` is the reason and `help` the advice."""

    wire: Json
    kept: str | None = None
    help: str | None = None


def inline(wire: Json, dialect: Dialect, place: Place) -> InlinedSchema:
    """Replace a schema's references with their targets.

    Args:
        wire: The schema. Its references must be local or refer to a meta-schema.
        dialect: The schema's dialect.
        place: The schema's location in the source.
    """
    outline = Outline(place, wire, dialect, Folder("", {}))
    if not isinstance(wire, dict) or not (outline.references or any(True for _ in outline.find_having("allOf"))):
        return InlinedSchema(wire)
    if (named := _find_anchoring_keyword(outline)) is not None:
        if not outline.references:
            return InlinedSchema(wire)
        fix = f'remove `{named}`, and refer to schemas by path: "#/$defs/NAME"'
        return InlinedSchema(wire, f"the schema has `{named}`, which changes reference targets", fix)
    inlining = _Inliner(outline)
    try:
        root = inlining.inline_root()
    except _TooDeepError:
        return _report_depth(wire)
    size = _Sizes().count(root)
    # Shared parts can expand to gigabytes, so check the size before walking the result.
    if size <= LARGEST and is_too_deep(root):
        return _report_depth(wire)
    if size > LARGEST:
        return InlinedSchema(
            wire,
            f"the inlined schema would have {size:,} characters of JSON, more than {LARGEST:,}",
            "nest fewer shared schemas, or write `wire: {refs: bundled}`",
        )
    if inlining.recursive:
        shown = ", ".join(f"`{format_pointer(pointer)}`" for pointer in inlining.recursive[:_MAX_SHOWN])
        more = f" and {len(inlining.recursive) - _MAX_SHOWN} more" if len(inlining.recursive) > _MAX_SHOWN else ""
        verb = "contains itself" if len(inlining.recursive) == 1 else "contain themselves"
        fix = "use an ID instead of nested values, or write out each level, for clients that do not resolve references"
        return InlinedSchema(root, f"{shown}{more} {verb}", fix)
    if inlining.metas:
        fix = "write `type: [object, boolean]` instead, for clients that do not resolve references"
        return InlinedSchema(root, f"the schema refers to the meta-schema `{inlining.metas[0]}`", fix)
    return InlinedSchema(root)


def _report_depth(wire: Json) -> InlinedSchema:
    reason = f"the inlined schema would be nested more than {DEEPEST} levels deep"
    return InlinedSchema(wire, reason, "reduce the nesting, or write `wire: {refs: bundled}`")


def _find_anchoring_keyword(outline: Outline) -> str | None:
    """Return the first keyword, such as `$anchor`, that makes a schema depend on its location, or None."""
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
    """The inlined schema would exceed the maximum message depth."""


class _Inliner:
    """Inlines one schema. `recursive` contains the pointers of self-referential targets."""

    def __init__(self, outline: Outline) -> None:
        self._schema, self._dialect = outline.schema, outline.dialect
        hiding = {each.pointer for each in outline.references} if self._dialect.reference_hides_siblings else set()
        targets = {
            reference.pointer: reference.target.pointer
            for reference in outline.references
            if isinstance(reference.target, LocalTarget) and not _is_hidden(reference.pointer, hiding)
        }
        self.metas = [each.text for each in outline.references if not isinstance(each.target, LocalTarget)]
        following = _map_targets(targets)
        starts = (target for pointer, target in targets.items() if not _is_in_definition(pointer))
        # `find_cycles` does not detect nodes that reference themselves.
        cyclic = {target for members in find_cycles(following) if len(members) > 1 for target in members}
        cyclic |= {target for target in following if target in following[target]}
        self.recursive = [target for target in find_reachable(starts, following.__getitem__) if target in cyclic]
        kept = {*self.recursive}
        self._targets = {pointer: target for pointer, target in targets.items() if target not in kept}
        self._homes = {target[:end] for target in kept for end in range(len(target) + 1)}
        self._fixed = {pointer[:-1] for pointer in self._homes if pointer and pointer[-1] not in _DEFS}
        self._made: dict[tuple[Pointer, bool], tuple[Json, int]] = {}

    def inline_root(self) -> Json:
        whole, _ = self._inline_at((), copied=False, depth=0)
        return whole if isinstance(whole, dict) else {} if whole else {"not": {}}

    def _inline_at(self, pointer: Pointer, *, copied: bool, depth: int) -> tuple[Json, int]:
        """Return the inlined schema at a pointer, and its depth.

        Copies omit `$defs`, because nothing references a copy's `$defs`.
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
            schema = self._remove_unused(schema, pointer, copied)
        edits: dict[Pointer, Any] = {}
        deepest = 0
        for steps, child in dialects.iterate_children(schema, self._dialect):
            new, levels = self._inline_at((*pointer, *steps), copied=copied, depth=depth)
            deepest = max(deepest, levels)
            if new is not child:
                edits[steps] = new
        edited: Json = edit(schema, edits)
        merges = copied or pointer not in self._fixed  # the targets of remaining references must not move
        if (target := self._targets.get(pointer)) is not None:
            there, levels = self._inline_at(target, copied=True, depth=depth)
            deepest = max(deepest, levels)
            edited = _join(edited, there, self._dialect, merges)
        if merges and isinstance(edited, dict) and not schema.keys().isdisjoint(("$ref", "allOf")):
            edited = _simplify(edited, self._dialect)
        if deepest >= DEEPEST:
            raise _TooDeepError
        return edited, deepest + 1

    def _remove_unused(self, schema: dict[str, Json], pointer: Pointer, copied: bool) -> dict[str, Json]:
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
    """Return whether a sibling `$ref` hides a schema. Definitions are never hidden."""
    return any(pointer[:end] in hiding and pointer[end] not in _DEFS for end in range(len(pointer)))


def _is_in_definition(steps: Pointer) -> bool:
    """Return whether a pointer leads into a definition, which applies only where it is referenced."""
    return any(keyword in steps for keyword in _DEFS)


def _map_targets(targets: Mapping[Pointer, Pointer]) -> Mapping[Pointer, Iterable[Pointer]]:
    """Map each target to the targets of references at or below it, except references in definitions."""
    following: dict[Pointer, dict[Pointer, None]] = {target: {} for target in targets.values()}
    for pointer, target in targets.items():
        for end in range(len(pointer) + 1):
            if pointer[:end] in following and not _is_in_definition(pointer[end:]):
                following[pointer[:end]][target] = None
    return following


def _join(schema: dict[str, Json], target: Json, dialect: Dialect, merges: bool) -> Json:
    """Replace a schema's reference with its target.

    Before 2019-09, siblings of a reference are ignored (draft-07, 8.3), except for annotations. Since then, both
    the target and the siblings apply: merge them if `merges` is true and they can be merged, otherwise use an `allOf`.
    """
    hides = dialect.reference_hides_siblings
    siblings = {
        key: value
        for key, value in schema.items()
        if key != "$ref" and (not hides or key in _NOTES or key in (*_DEFS, "$schema") or key not in dialects.KEYWORDS)
    }
    if isinstance(target, dict):
        target = {key: value for key, value in target.items() if key != "$schema"}
    if not siblings:
        return target
    if target is True:
        return siblings
    if merges and isinstance(target, dict) and (merged := _merge(siblings, target, hides, outer=siblings)) is not None:
        order = [key for each in schema for key in (target if each == "$ref" else [each])]
        return {key: merged[key] for key in dict.fromkeys(order) if key in merged}
    return {**siblings, "allOf": [*siblings.get("allOf", ()), target]}


def _simplify(schema: dict[str, Json], dialect: Dialect) -> dict[str, Json]:
    hides = dialect.reference_hides_siblings
    if hides and "$ref" in schema:
        return schema
    return _replace_unevaluated(
        _fold_all_of(schema, hides) if isinstance(schema.get("allOf"), list) else schema, dialect
    )


def _fold_all_of(schema: dict[str, Json], hides: bool) -> dict[str, Json]:
    """Merge each part of an `allOf` into the schema if the result is equivalent."""
    parts = schema["allOf"]
    folded = {key: value for key, value in schema.items() if key != "allOf"}
    remaining: list[Json] = []
    for part in parts:
        # after a merge, a part's `unevaluatedProperties` would also consider the other parts
        apart = not isinstance(part, dict) or part.keys() & _META or (len(parts) > 1 and part.keys() & _UNEVALUATED)
        merged = None if apart else _merge(part, folded, hides, outer=folded)
        if merged is None:
            remaining.append(part)
        else:
            folded = {**merged, **{key: value for key, value in folded.items() if key in _NOTES}}
    if remaining == parts:
        return schema
    return {**folded, "allOf": [*remaining, *folded.get("allOf", ())]} if remaining else folded


def _replace_unevaluated(schema: dict[str, Json], dialect: Dialect) -> dict[str, Json]:
    """Replace `unevaluatedProperties` with `additionalProperties` if the result is equivalent.

    The two differ only if other schemas apply in place (JSON Schema 2020-12 Core, 11.3). Next to
    `additionalProperties`, `unevaluatedProperties` has no effect.
    """
    looking = "unevaluatedProperties"
    if looking not in schema or looking not in dialect.keywords or schema.keys() & _IN_PLACE:
        return schema
    if "additionalProperties" in schema:
        return {key: value for key, value in schema.items() if key != looking}
    return {"additionalProperties" if key == looking else key: value for key, value in schema.items()}


def _merge(
    siblings: Mapping[str, Json], target: Mapping[str, Json], hides: bool, *, outer: Mapping[str, Json] | None = None
) -> dict[str, Json] | None:
    """Merge two schemas into an equivalent one, with the annotations of `siblings`. Return None if no merge is
    equivalent.

    Args:
        siblings: The keywords next to the reference, or the first schema.
        target: The reference's target, or the second schema.
        hides: Whether a reference hides its siblings.
        outer: The schema that applies `target` and considers the properties that `target` evaluates, if any.
    """
    left, right = ({key for key in each if key not in _NOTES and key not in _META} for each in (siblings, target))
    inner = (set() if outer is siblings else left) | (set() if outer is target else right)
    if left and right and (inner & _UNEVALUATED or (hides and "$ref" in left | right)):
        return None
    if left and right and any(isinstance(each.get(key), bool) for key in _SWITCHES for each in (siblings, target)):
        return None
    for group in _DEPENDENT:
        if left & group and right & group and not (group is _OF_OBJECTS and _have_same_properties(siblings, target)):
            return None
    merged = {**target, **siblings}
    for key in left & right & dialects.KEYWORDS:
        value = _merge_values(key, siblings[key], target[key], hides)
        if value is None:
            return None
        merged[key] = value
    return merged


def _have_same_properties(left: Mapping[str, Json], right: Mapping[str, Json]) -> bool:
    """Return whether each schema's `additionalProperties` would apply to the same properties after a merge.

    This is true if `additionalProperties` is unconstrained, or the other schema does not have more properties or
    patterns.
    """
    for each, other in ((left, right), (right, left)):
        is_open = each.get("additionalProperties", True) in (True, {})
        names = ("properties", "patternProperties")
        if not is_open and not all(other.get(key, {}).keys() <= each.get(key, {}).keys() for key in names):
            return False
    return True


def _merge_values(key: str, left: Json, right: Json, hides: bool) -> Json:
    if json.dumps(left) == json.dumps(right):
        return left
    if key in ("properties", "patternProperties") and isinstance(left, dict) and isinstance(right, dict):
        return {name: _merge_named(name, left, right, hides) for name in {**right, **left}}
    if key == "additionalProperties":
        return _merge_named(key, {key: left}, {key: right}, hides)
    if isinstance(left, list) and isinstance(right, list) and key in ("required", "allOf"):
        return [*dict.fromkeys((*right, *left))] if key == "required" else [*right, *left]
    if key == "type":
        return _intersect_types(*(each if isinstance(each, list) else [each] for each in (left, right)))
    if (choose := _BOUNDS.get(key)) is not None:
        return cast("Json", choose(left, right))
    return None


def _intersect_types(left: list[Json], right: list[Json]) -> Json:
    # `number` includes integers.
    shared = [each for each in left if each in right or (each == "integer" and "number" in right)]
    if "integer" in right and "number" in left and "integer" not in shared:
        shared.append("integer")
    return (shared if len(shared) > 1 else shared[0]) if shared else None


def _merge_named(name: str, left: Mapping[str, Json], right: Mapping[str, Json], hides: bool) -> Json:
    if name not in left or name not in right:
        return left[name] if name in left else right[name]
    first, second = left[name], right[name]
    if isinstance(first, dict) and isinstance(second, dict):
        merged = _merge(first, second, hides)
        return {"allOf": [second, first]} if merged is None else merged
    if first is False or second is False:
        return False
    return second if first is True else first


class _Sizes:
    """Measures values as compact JSON. A shared part is measured only once."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def count(self, value: Json) -> int:
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
