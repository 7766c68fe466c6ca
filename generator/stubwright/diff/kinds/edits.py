"""Splits the difference between two schemas into independent edits, for `schemas` to classify."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.diagnostics.suggestions import shorten
from stubwright.diff.changes import TextChange
from stubwright.jsonschema.pointers import resolve_local

if TYPE_CHECKING:
    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

ABSENT: Final = object()
"""The value that represents an absent keyword."""

_REUSABLE: Final = ("$defs", "definitions")
_IGNORED: Final = frozenset({"$schema", "x-mcp-header"})
_WORDS: Final = frozenset({"title", "description", "examples", "$comment", "deprecated", "readOnly", "writeOnly"})
_CODES: Final = {
    "default": "SW546",
    "type": "SW536",
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "SW538"),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), "SW538"),
    **dict.fromkeys(("minContains", "maxContains", "uniqueItems"), "SW538"),
    **dict.fromkeys(("pattern", "format"), "SW539"),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"), "SW540"),
    **dict.fromkeys(("additionalItems", "unevaluatedItems"), "SW540"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"), "SW541"),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef", "$id", "id", "$anchor", "$dynamicAnchor"), "SW543"),
}
"""The change code for each keyword. All other keywords in a dialect have SW542."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A difference between the old and the new schema in one part.

    Attributes:
        where: The part of the instance, such as `address.city` or `tags[]`. Empty for the whole instance.
        message: A clause that describes the edit.
        old: The changed part's pointer in the old schema.
        new: The changed part's pointer in the new schema.
        edited: The old schema with only this edit. None if the edit has no effect on validation.
        opens: True if the edit constrains a key for which the old schema accepted any value.
        words: The changed text that models read, if it is the only change.
        deprecates: True if the edit deprecates the part.
    """

    code: str
    where: str
    message: str
    old: Pointer
    new: Pointer
    edited: Json | None
    opens: bool = False
    words: TextChange | None = None
    deprecates: bool = False


def find_edits(old: Json, new: Json, dialect: Dialect) -> list[Edit]:
    """Return all edits from `old` to `new`, which must have the same dialect."""
    return list(_Differ(old, new, dialect).compare_schemas(old, new, (), ""))


class _Differ:
    def __init__(self, old: Json, new: Json, dialect: Dialect) -> None:
        self._dialect = dialect
        self._old = _add_definitions(old, new)
        self._new = new

    def compare_schemas(self, old: Json, new: Json, at: Pointer, where: str) -> Iterator[Edit]:
        if _are_equal(old, new):
            return
        if not isinstance(old, dict) or not isinstance(new, dict):
            if where and _is_open(old) and _is_open(new):
                return
            message = f"it changed from {_show(old)} to {_show(new)}"
            yield Edit("SW536", where, message, at, at, self._set_value(at, new))
            return
        yield from self._compare_properties(old, new, at, where)
        for keyword in dict.fromkeys((*new, *old)):
            before, after = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
            if keyword not in _HANDLED and keyword not in _IGNORED and not _are_equal(before, after):
                yield from self._compare_keyword(keyword, before, after, at, where)
        if not all(_are_equal(old.get(keyword, ABSENT), new.get(keyword, ABSENT)) for keyword in _VALUES):
            yield self._compare_values(old, new, at, where)

    def _compare_keyword(self, keyword: str, before: Any, after: Any, at: Pointer, where: str) -> Iterator[Edit]:
        here = (*at, keyword)
        if keyword in _REUSABLE:
            for name, changed in _to_mapping(after).items():
                if name in _to_mapping(before):
                    yield from self.compare_schemas(before[name], changed, (*here, name), name)
            return
        inner = list(self._compare_inside(keyword, before, after, here, where))
        if inner:
            yield from inner
            return
        code, message = _describe(keyword, before, after, self._dialect)
        if code not in ("SW546", "SW547"):
            yield Edit(code, where, message, here, here, self._set_value(here, after))
            return
        words = (
            None
            if sorted(_list_texts(before)) == sorted(_list_texts(after))
            else TextChange(_replace_absent(before), _replace_absent(after))
        )
        deprecates = keyword == "deprecated" and after is True
        yield Edit(code, where, message, here, here, None, words=words, deprecates=deprecates)

    def _compare_values(self, old: Mapping[str, Any], new: Mapping[str, Any], at: Pointer, where: str) -> Edit:
        """Return a single edit for `enum` and `const`, since `const` often replaces `enum` or the reverse."""
        edited = self._old
        for keyword in _VALUES:
            if keyword in old or keyword in new:
                edited = self._set_value((*at, keyword), new.get(keyword, ABSENT), base=edited)
        old_at, new_at = (next(((*at, keyword) for keyword in _VALUES if keyword in side), at) for side in (old, new))
        allowed = [
            side["enum"] if isinstance(side.get("enum"), list) else [side["const"]] if "const" in side else ABSENT
            for side in (old, new)
        ]
        return Edit("SW537", where, _describe_values(*allowed), old_at, new_at, edited)

    def _compare_inside(self, keyword: str, before: Any, after: Any, here: Pointer, where: str) -> Iterator[Edit]:
        """Yield the edits inside a keyword's value if the old and new subschemas correspond."""
        dialect = self._dialect
        if keyword in dialect.named and isinstance(before, dict) and isinstance(after, dict):
            if before.keys() == after.keys() and keyword != "dependencies":
                for name in after:
                    yield from self.compare_schemas(
                        before[name], after[name], (*here, name), f"{where}{_dot(where)}<{name}>"
                    )
        elif keyword in dialect.listed and isinstance(before, list) and isinstance(after, list):
            if len(before) == len(after):
                step = "[{}]" if keyword in ("items", "prefixItems") else ""
                for index, pair in enumerate(zip(before, after, strict=True)):
                    yield from self.compare_schemas(*pair, (*here, index), where + step.format(index))
        elif keyword in dialect.single and isinstance(before, dict) and isinstance(after, dict):
            step = {"items": "[]", "contains": "[]", "additionalProperties": f"{_dot(where)}*"}.get(keyword, "")
            yield from self.compare_schemas(before, after, here, where + step)

    def _compare_properties(
        self, old: Mapping[str, Any], new: Mapping[str, Any], at: Pointer, where: str
    ) -> Iterator[Edit]:
        before, after = _to_mapping(old.get("properties")), _to_mapping(new.get("properties"))
        needed, needs = _to_names(old.get("required")), _to_names(new.get("required"))
        renamed = _find_renamings(before, after)
        for name in dict.fromkeys((*after, *needs, *before, *needed)):
            here = (*at, "properties", name)
            path = f"{where}{_dot(where)}{name}"
            if name in renamed.values():
                continue
            if name in renamed:
                other = renamed[name]
                edited = self._set_property(at, name, ABSENT, required=False)
                edited = self._set_property(at, other, after[other], required=other in needs, base=edited)
                message = f"it was renamed to `{other}`"
                yield Edit("SW533", path, message, here, (*at, "properties", other), edited)
            elif name in after and name not in before and name not in needed:
                is_needed = name in needs
                edited = self._set_property(at, name, after[name], required=is_needed)
                if is_needed:
                    yield Edit("SW531", path, "a required property was added", at, here, edited)
                else:
                    opens = _is_left_open(old) and _find_applicator(old, name, self._old) is None
                    yield Edit("SW530", path, "an optional property was added", at, here, edited, opens=opens)
            elif name in before and name not in after:
                edited = self._set_property(at, name, ABSENT, required=name in needs)
                applicator = _find_applicator(new, name, self._new)
                if applicator is None:
                    yield Edit("SW532", path, "the property was removed", here, at, edited)
                else:
                    message = f"the property is now described under `{applicator}`"
                    yield Edit("SW541", path, message, here, (*at, applicator), edited)
            else:
                if name in after:
                    yield from self.compare_schemas(before.get(name, True), after[name], here, path)
                if (name in needs) != (name in needed):
                    code, message = (
                        ("SW534", "it is now required") if name in needs else ("SW535", "it is no longer required")
                    )
                    edited = self._set_property(at, name, before.get(name, ABSENT), required=name in needs)
                    yield Edit(code, path, message, (*at, "required"), (*at, "required"), edited)

    def _set_property(self, at: Pointer, name: str, schema: Any, *, required: bool, base: Any = ABSENT) -> Json:
        """Return `base`, by default the old schema, with a property of the object schema at `at` set or removed."""

        def change(here: dict[str, Json]) -> dict[str, Json]:
            properties = {key: value for key, value in _to_mapping(here.get("properties")).items() if key != name}
            if schema is not ABSENT:
                properties[name] = schema
            names = [other for other in _to_names(here.get("required")) if other != name] + [name] * required
            copy = {key: value for key, value in here.items() if key not in ("properties", "required")}
            if properties:
                copy["properties"] = properties
            if names:
                copy["required"] = names
            return copy

        return _change_at(self._old if base is ABSENT else base, at, change)

    def _set_value(self, at: Pointer, value: Any, base: Any = ABSENT) -> Json:
        """Return `base`, by default the old schema, with the value at `at` set or removed."""
        if not at:
            return _add_definitions(value, self._old)

        def change(here: Any) -> Any:
            if isinstance(here, list):
                return [*here[: int(at[-1])], value, *here[int(at[-1]) + 1 :]]
            copy = {key: inner for key, inner in here.items() if key != at[-1] or value is not ABSENT}
            if value is not ABSENT:
                copy[str(at[-1])] = value
            return copy

        return _change_at(self._old if base is ABSENT else base, at[:-1], change)


_VALUES: Final = ("enum", "const")
_HANDLED: Final = frozenset({"properties", "required", *_VALUES})


def _describe(keyword: str, before: Any, after: Any, dialect: Dialect) -> tuple[str, str]:
    old, new = _show(before), _show(after)
    change = f"`{keyword}` changed from {old} to {new}"
    if after is ABSENT:
        change = f"`{keyword}` was removed; it was {old}"
    elif before is ABSENT:
        change = f"`{keyword}` was added: {new}"
    if keyword != "default" and (keyword in _WORDS or keyword not in dialect.keywords):
        return "SW547", f"`{keyword}` {_describe_state(before, after)}"
    code = _CODES.get(keyword, "SW542")
    return code, _describe_alternatives(keyword, before, after) if code == "SW541" else change


def _describe_state(before: Any, after: Any) -> str:
    return "was removed" if after is ABSENT else "was added" if before is ABSENT else "changed"


def _describe_values(before: Any, after: Any) -> str:
    if not isinstance(before, list) or not isinstance(after, list):
        if isinstance(after, list):
            return f"only these values are now allowed: {_list_values(after)}"
        return f"the values are no longer limited to {_list_values(before)}"
    removed, added = _subtract(before, after), _subtract(after, before)
    parts = [
        f"{words}: {_list_values(values)}"
        for words, values in (("no longer allowed", removed), ("now allowed", added))
        if values
    ]
    return "; ".join(parts) or "the order of the allowed values changed"


def _describe_alternatives(keyword: str, before: Any, after: Any) -> str:
    if not isinstance(before, list) or not isinstance(after, list):
        return f"`{keyword}` {_describe_state(before, after)}"
    removed, added = len(_subtract(before, after)), len(_subtract(after, before))
    parts = [
        f"{verb} {count} schema{'s' if count != 1 else ''}"
        for verb, count in (("lost", removed), ("gained", added))
        if count
    ]
    return f"`{keyword}` {' and '.join(parts) or 'changed the order of its schemas'}"


def _find_renamings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Map a removed property's name to a new property's name if only these two properties have the same schema."""
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    renamings = {}
    for name in gone:
        twins = [other for other in new if _are_equal(before[name], after[other])]
        others = [other for other in gone if _are_equal(before[name], before[other])]
        # A short schema is not evidence of a rename.
        is_specific = isinstance(before[name], dict) and (
            "description" in before[name] or len(_to_json(before[name])) > 50
        )
        if len(twins) == 1 and len(others) == 1 and is_specific:
            renamings[name] = twins[0]
    return renamings


def _is_left_open(schema: Mapping[str, Any]) -> bool:
    return _is_open(schema.get("additionalProperties", True)) and "patternProperties" not in schema


def _find_applicator(schema: Mapping[str, Any], name: str, root: Json) -> str | None:
    """Return the keyword, such as `allOf`, whose schemas describe a property of the same instance, or None."""
    return next((keyword for keyword in _APPLICATORS if _describes(schema.get(keyword), name, root, 0)), None)


def _describes(value: Any, name: str, root: Json, depth: int) -> bool:
    """Return whether a keyword's schemas describe a property of the same instance."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, str):
        try:
            return _describes(resolve_local(root, value), name, root, depth + 1)
        except LookupError:
            return False
    if isinstance(value, list):
        return any(_describes(inner, name, root, depth + 1) for inner in value)
    if not isinstance(value, dict):
        return False
    return name in _to_mapping(value.get("properties")) or any(
        _describes(value.get(keyword), name, root, depth + 1) for keyword in _APPLICATORS
    )


_APPLICATORS: Final = ("anyOf", "oneOf", "allOf", "if", "then", "else", "$ref")
_DEEPEST: Final = 12
"""The maximum depth to search for a property."""


def _add_definitions(schema: Json, other: Json) -> Json:
    """Copy the definitions that only `other` has into `schema`, so that references from both schemas resolve."""
    if not isinstance(schema, dict) or not isinstance(other, dict):
        return schema
    combined = dict(schema)
    for keyword in _REUSABLE:
        more = {
            name: definition
            for name, definition in _to_mapping(other.get(keyword)).items()
            if name not in _to_mapping(combined.get(keyword))
        }
        if more:
            combined[keyword] = {**_to_mapping(combined.get(keyword)), **more}
    return combined


def _change_at(root: Any, at: Pointer, change: Any) -> Any:
    if not at:
        return change(root if isinstance(root, dict | list) else {})
    if isinstance(root, list):
        index = int(at[0])
        return [*root[:index], _change_at(root[index], at[1:], change), *root[index + 1 :]]
    return {**root, at[0]: _change_at(root.get(at[0], {}), at[1:], change)}


def _replace_absent(value: Any) -> Any:
    return None if value is ABSENT else value


def _list_texts(value: Any) -> Iterator[str]:
    """Yield all strings that models read in a value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _list_texts(inner)


def _to_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _to_names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _dot(where: str) -> str:
    return "." if where else ""


def _is_open(value: Any) -> bool:
    return value is True or value == {}


def _subtract(values: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    other_texts = {_to_json(other) for other in others}
    return [value for value in values if _to_json(value) not in other_texts]


def _list_values(values: Iterable[Any]) -> str:
    shown = [_show(value) for value in values]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return ", ".join(shown[:8]) + more


def _show(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    if value is True or value is False:
        return f"`{json.dumps(value)}`"
    return f"`{shorten(_to_json(value))}`"


def _are_equal(first: Any, second: Any) -> bool:
    return first is second or (
        first is not ABSENT and second is not ABSENT and _to_sorted_json(first) == _to_sorted_json(second)
    )


def _to_sorted_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
