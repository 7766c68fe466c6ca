"""Derives a schema for selected parts of a value from the schema for the whole value.

If an exact schema is impossible, the result accepts more values, never fewer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stubwright.jsonschema.pointers import format_pointer, resolve_local
from stubwright_runtime.http.selections import WHOLE, select, select_below

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright_runtime.http.selections import Tree

_HIDING_DIALECTS: Final = ("draft-04", "draft-06", "draft-07")
"""Dialects that ignore siblings of `$ref`."""

_SCOPE_DEPENDENT: Final = frozenset({"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"})
"""Keywords that depend on a schema's location or on dynamic scope."""

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_BRANCHES: Final = ("then", "else")
_MAPPINGS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_SCHEMAS: Final = frozenset(
    {"additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items"}
    | {"not", "oneOf", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords whose values are schemas or lists of schemas."""

_DERIVED: Final = frozenset(
    {"$ref", "$defs", "definitions", "properties", "patternProperties", "additionalProperties", "required"}
    | {"minProperties", "dependentRequired", "dependentSchemas", "dependencies", "items", "prefixItems"}
    | {"additionalItems", "minItems", "contains", "allOf", "anyOf", "oneOf", "enum", "const", "default", "examples"}
    | {"propertyNames", "contentSchema"}
)
"""Keywords with a derived value."""

_DROPPED: Final = frozenset(
    {"if", "then", "else", "not", "uniqueItems", "maxContains", "minContains", "unevaluatedItems"}
    | {"unevaluatedProperties", "$id", "id", *_SCOPE_DEPENDENT}
)
"""Keywords that can be wrong after parts are removed. Dropping them widens the schema."""


@dataclass
class SchemaSelector:
    """Selects parts of a schema. `defs` contains the schemas that the results reference, by name."""

    root: Json
    defs: dict[str, Json] = field(default_factory=dict)
    _references: dict[str, str] = field(default_factory=dict)
    _made: dict[tuple[str, int], tuple[Tree, Json]] = field(default_factory=dict)

    @property
    def keyword(self) -> str:
        """The keyword for bundled schemas."""
        return "definitions" if self._hides else "$defs"

    @property
    def _hides(self) -> bool:
        return isinstance(self.root, dict) and any(name in str(self.root.get("$schema")) for name in _HIDING_DIALECTS)

    def finish(self, schema: Json) -> Json:
        """Add the dialect and all referenced schemas to a derived schema."""
        if not isinstance(schema, dict):
            return schema
        own = {key: value for key, value in schema.items() if key not in ("$schema", self.keyword)}
        dialect = {"$schema": self.root["$schema"]} if isinstance(self.root, dict) and "$schema" in self.root else {}
        return {**dialect, **own, **({self.keyword: dict(sorted(self.defs.items()))} if self.defs else {})}

    # Complete schemas

    def keep_whole(self, schema: Json) -> Json:
        """Return a complete schema in which references use their targets' new locations."""
        if not isinstance(schema, dict):
            return schema
        is_root = schema is self.root
        if not _SCOPE_DEPENDENT.isdisjoint(schema) or (not is_root and _is_identified(schema)):
            return True
        selected: dict[str, Json] = {}
        for key, value in schema.items():
            if key == "$ref":
                new_reference = self._bundle_target(value)
                if new_reference is None:
                    return True
                selected[key] = new_reference
            elif key in _MAPPINGS and isinstance(value, dict):
                if key not in ("$defs", "definitions"):
                    selected[key] = {name: self.keep_whole(each) for name, each in value.items()}
            elif key in _SCHEMAS:
                selected[key] = (
                    [self.keep_whole(each) for each in value] if isinstance(value, list) else self.keep_whole(value)
                )
            elif not (is_root and key in ("$schema", "$id", "id")):
                selected[key] = value
        return selected

    def _bundle_target(self, reference: Json) -> str | None:
        """Add a reference's target to `defs`. Return the new reference, or None if the target does not exist."""
        if not isinstance(reference, str):
            return None
        if reference not in self._references:
            try:
                target = resolve_local(self.root, reference)
            except LookupError:
                return None
            name = self._name_target(reference)
            self._references[reference] = format_pointer((self.keyword, name))
            self.defs[name] = True  # reserve the name before following the target's references
            self.defs[name] = self.keep_whole(target)
        return self._references[reference]

    def _name_target(self, reference: str) -> str:
        parts = reference.lstrip("#").split("/")
        name = parts[2] if len(parts) == 3 and parts[1] in ("$defs", "definitions") else "_".join(["whole", *parts[1:]])
        name = name.replace("~1", "/").replace("~0", "~")
        while name in self.defs:
            name += "_"
        return name

    # Selected parts

    def keep(self, schema: Json, tree: Tree) -> Json:
        """Return a schema for the parts of a value that a tree selects."""
        if not tree:
            return self.keep_whole(schema)
        if not isinstance(schema, dict):
            return schema
        if schema is not self.root and (_is_identified(schema) or not _SCOPE_DEPENDENT.isdisjoint(schema)):
            return True
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = self._keep_target(reference, tree)
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            if self._hides or rest.keys() <= {"$schema", self.keyword}:
                return target
            beside = self.keep(rest, tree)
            return {"allOf": [target, beside]} if beside not in (True, {}) else target
        selected: dict[str, Json] = {
            key: value for key, value in schema.items() if key not in _DERIVED and key not in _DROPPED
        }
        selected |= {key: self.keep_whole(schema[key]) for key in ("propertyNames", "contentSchema") if key in schema}
        selected |= self._keep_values(schema, tree)
        selected |= self._keep_object_keywords(schema, tree)
        selected |= self._keep_array_keywords(schema, tree)
        selected |= self._keep_choices(schema, tree)
        return selected

    def _keep_target(self, reference: str, tree: Tree) -> Json:
        """Return the selected part of a reference's target, or True if the reference is cyclic or does not resolve."""
        step = (reference, id(tree))  # storing the tree keeps its `id()` unique
        if step not in self._made:
            try:
                target = resolve_local(self.root, reference)
            except LookupError:
                return True
            # In the definitions, the root's identifier would change the base URI of references.
            if target is self.root:
                target = {key: value for key, value in target.items() if key not in ("$id", "id")}
            self._made[step] = tree, True  # a cycle adds no constraints
            self._made[step] = tree, self.keep(target, tree)
        return self._made[step][1]

    def _keep_values(self, schema: Mapping[str, Json], tree: Tree) -> dict[str, Json]:
        selected = {key: select(schema[key], tree) for key in ("const", "default") if key in schema}
        for key in ("enum", "examples"):
            if isinstance(schema.get(key), list):
                values = [select(each, tree) for each in schema[key]]
                selected[key] = [*{json.dumps(each, sort_keys=True): each for each in values}.values()]
        return selected

    def _keep_object_keywords(self, schema: Mapping[str, Json], tree: Tree) -> dict[str, Json]:
        selected: dict[str, Json] = {}
        names: list[str] = [step for step in tree if step is not None]
        properties: Mapping[str, Json] = schema.get("properties") or {}
        patterns: Mapping[str, Json] = schema.get("patternProperties") or {}
        rest = schema.get("additionalProperties")
        starred = tree.get(None)
        inner = {name: tree_ for name in properties if (tree_ := select_below(tree, name)) is not None}
        kept_properties = {name: self.keep(properties[name], tree_) for name, tree_ in inner.items()}
        if patterns:
            if starred is not None and not names:
                selected["patternProperties"] = {key: self.keep(each, starred) for key, each in patterns.items()}
                selected |= {"additionalProperties": self.keep(rest, starred)} if rest is not None else {}
        elif rest is False:
            selected["additionalProperties"] = False
        elif isinstance(rest, dict):
            for name in names:
                if name not in properties:
                    kept_properties[name] = self.keep(rest, select_below(tree, name) or WHOLE)
            if starred is not None:
                selected["additionalProperties"] = self.keep(rest, starred)
        elif rest is not None and starred is not None:
            selected["additionalProperties"] = rest
        if kept_properties or "properties" in schema:
            selected["properties"] = kept_properties
        if isinstance(schema.get("required"), list):
            required = [name for name in schema["required"] if select_below(tree, name) is not None]
            selected |= {"required": required} if required else {}
        if starred is not None and "minProperties" in schema:
            selected["minProperties"] = schema["minProperties"]
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            entries = self._keep_dependent(schema.get(keyword) or {}, tree)
            selected |= {keyword: entries} if entries else {}
        return selected

    def _keep_dependent(self, entries: Mapping[str, Json], tree: Tree) -> dict[str, Json]:
        return {
            name: (
                [each for each in value if select_below(tree, each) is not None]
                if isinstance(value, list)
                else self.keep(value, tree)
            )
            for name, value in entries.items()
            if select_below(tree, name) is not None
        }

    def _keep_array_keywords(self, schema: Mapping[str, Json], tree: Tree) -> dict[str, Json]:
        starred = tree.get(None)
        if starred is None or any(step is not None and step.isdecimal() for step in tree):
            return {}  # item indexes change
        selected: dict[str, Json] = {}
        items = schema.get("items")
        if isinstance(items, list):
            selected["items"] = [self.keep(each, starred) for each in items]
        elif items is not None:
            selected["items"] = self.keep(items, starred)
        if isinstance(schema.get("prefixItems"), list):
            selected["prefixItems"] = [self.keep(each, starred) for each in schema["prefixItems"]]
        if "additionalItems" in schema:
            selected["additionalItems"] = self.keep(schema["additionalItems"], starred)
        if "minItems" in schema:
            selected["minItems"] = schema["minItems"]
        if "contains" in schema and schema.get("minContains") != 0:
            selected["contains"] = self.keep(schema["contains"], starred)
        return selected

    def _keep_choices(self, schema: Mapping[str, Json], tree: Tree) -> dict[str, Json]:
        selected: dict[str, Json] = {}
        all_of = [self.keep(each, tree) for each in schema.get("allOf") or ()]
        # Alternatives can overlap without the omitted parts, so `oneOf` becomes `anyOf`.
        choices = [[self.keep(each, tree) for each in schema[key]] for key in ("anyOf", "oneOf") if schema.get(key)]
        if "if" in schema and all(key in schema for key in _BRANCHES):
            choices.append([self.keep(schema[key], tree) for key in _BRANCHES])
        if choices:
            selected["anyOf"], *others = choices
            all_of += [{"anyOf": each} for each in others]
        if all_of:
            selected["allOf"] = all_of
        return selected

    # Targets of pointers

    def expand(self, schema: Json) -> list[Mapping[str, Json]]:
        """Return a schema and all schemas that apply to the same value, through references, `allOf` or alternatives."""
        schemas: list[Mapping[str, Json]] = []
        waiting: list[Json] = [schema]
        seen: set[int] = set()
        while waiting:
            here = waiting.pop(0)
            if not isinstance(here, dict) or id(here) in seen:
                continue
            seen.add(id(here))
            schemas.append(here)
            if isinstance(here.get("$ref"), str):
                try:
                    waiting.append(resolve_local(self.root, here["$ref"]))
                except LookupError:
                    schemas.append({})
                if self._hides:
                    continue
            for key in _LISTS:
                waiting += here.get(key) or ()
            waiting += [here[key] for key in _BRANCHES if key in here]
        return schemas

    def follow(self, schemas: Sequence[Json], step: str | None) -> list[Json] | None:
        """Return the schemas of the values that a step selects, or None if the schema does not describe them."""
        parts = [part for schema in schemas for part in self.expand(schema)]
        if not any(_describes_parts(part) for part in parts):
            return None
        reached: list[Json] = []
        for part in parts:
            reached += _follow_step(part, step)
        return reached

    def list_known(self, schemas: Sequence[Json]) -> list[str]:
        """Return the property names that the schema and its alternatives declare."""
        parts = [part for schema in schemas for part in self.expand(schema)]
        return list(dict.fromkeys(name for part in parts for name in part.get("properties") or ()))

    def list_items(self, schema: Json, depth: int = 0) -> list[Json] | None:
        """Return the possible item schemas, or None if the schema does not describe items."""
        if not isinstance(schema, dict) or depth > _DEEPEST or "prefixItems" in schema:
            return None
        if isinstance(schema.get("items"), dict):
            return [schema["items"]]
        inner: list[Json] = [*(schema.get("allOf") or ())]
        if isinstance(schema.get("$ref"), str):
            try:
                inner.append(resolve_local(self.root, schema["$ref"]))
            except LookupError:
                return None
        for each in inner:
            if (items := self.list_items(each, depth + 1)) is not None:
                return items
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                alternatives: list[Json] = []
                for each in schema[key]:
                    if not _may_be(each, "array"):
                        continue
                    if (items := self.list_items(each, depth + 1)) is None:
                        return None
                    alternatives += items
                return alternatives
        return None


_DEEPEST: Final = 50


def _may_be(schema: Json, kind: str) -> bool:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    return kinds is None or kinds == kind or (isinstance(kinds, list) and kind in kinds)


def _describes_parts(schema: Mapping[str, Json]) -> bool:
    if not schema.keys().isdisjoint({"properties", "items", "prefixItems", "patternProperties"}):
        return True
    kinds = schema.get("type")
    scalar = {"string", "number", "integer", "boolean", "null"}
    return (isinstance(kinds, str) and kinds in scalar) or (isinstance(kinds, list) and scalar.issuperset(kinds))


def _follow_step(schema: Mapping[str, Json], step: str | None) -> list[Json]:
    properties: Mapping[str, Json] = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    patterns: Mapping[str, Json] = schema.get("patternProperties") or {}
    items = schema.get("items")
    parts: list[Json] = [*(schema.get("prefixItems") or ()), *(items if isinstance(items, list) else ())]
    schemas: list[Json] = []
    if step is None or step.isdecimal() or step == "-":
        schemas += parts
        schemas += [items] if isinstance(items, dict) else []
    if step is None:
        schemas += [*properties.values(), *patterns.values()]
    elif step in properties:
        return [*schemas, properties[step]]
    else:
        schemas += [each for key, each in patterns.items() if _matches(key, step)]
    if isinstance(rest, dict) or rest is True:
        schemas.append(rest)
    return schemas


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _is_identified(schema: Mapping[str, Json]) -> bool:
    """Return whether a schema has its own identifier, the base of the references in the schema."""
    return any(isinstance(schema.get(key), str) for key in ("$id", "id"))
