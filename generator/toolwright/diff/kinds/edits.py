"""What differs between two schemas, edit by edit, each of which can be made by itself.

Takes the old and the new schema; gives the edits in the order of the new one, each with the pointers where it stands,
words for it, and the old schema with this one edit made. Whether an edit breaks anything is not said here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolwright.diagnostics.suggestions import shorten

if TYPE_CHECKING:
    from toolwright.diagnostics import Pointer
    from toolwright.ir import Json
    from toolwright.jsonschema.dialects import Dialect

ABSENT: Final = object()
"""The value of a keyword that is not there."""

_REUSABLE: Final = ("$defs", "definitions")
_IGNORED: Final = frozenset({"$schema", "$comment", "x-mcp-header"})
_WORDS: Final = frozenset({"title", "description", "examples", "deprecated", "readOnly", "writeOnly"})
_BOUNDS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"}
    | {"minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains", "uniqueItems"}
)
_OPENNESS: Final = frozenset(
    {"additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames", "additionalItems"}
    | {"unevaluatedItems"}
)
_COMBINATIONS: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$id", "id", "$anchor", "$dynamicAnchor"})


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit.

    `where` names the part of the instance (`address.city`, `tags[]`), empty for the whole. `old` and `new` are the
    pointers in the two schemas; `made` is the old schema with this edit made, None where it asserts nothing. `opens`
    says that it names a key that was there to be used before, under no name.
    """

    code: str
    where: str
    message: str
    old: Pointer
    new: Pointer
    made: Json | None
    opens: bool = False


def edits(old: Json, new: Json, dialect: Dialect) -> list[Edit]:
    """All edits that make `new` of `old`, both read in one dialect."""
    return list(_Differ(old, new, dialect).schema(old, new, (), ""))


class _Differ:
    def __init__(self, old: Json, new: Json, dialect: Dialect) -> None:
        self._dialect = dialect
        self._old = _with_definitions(old, new)

    def schema(self, old: Json, new: Json, at: Pointer, where: str) -> Iterator[Edit]:
        if _same(old, new):
            return
        if not isinstance(old, dict) or not isinstance(new, dict):
            if where and _is_open(old) and _is_open(new):
                return
            message = f"it was {_shown(old)}, and is {_shown(new)}"
            yield Edit("TW536", where, message, at, at, self._with(at, new))
            return
        yield from self._properties(old, new, at, where)
        for keyword in dict.fromkeys((*new, *old)):
            before, after = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
            if keyword not in _HANDLED and keyword not in _IGNORED and not _same(before, after):
                yield from self._keyword(keyword, before, after, at, where)
        if not all(_same(old.get(keyword, ABSENT), new.get(keyword, ABSENT)) for keyword in _VALUES):
            yield self._values(old, new, at, where)

    def _keyword(self, keyword: str, before: Any, after: Any, at: Pointer, where: str) -> Iterator[Edit]:
        here = (*at, keyword)
        if keyword in _REUSABLE:
            for name, changed in _mapping(after).items():
                if name in _mapping(before):
                    yield from self.schema(before[name], changed, (*here, name), name)
            return
        inner = list(self._inner(keyword, before, after, here, where))
        if inner:
            yield from inner
            return
        code, message = _told(keyword, before, after, self._dialect)
        asserts = code not in ("TW546", "TW547")
        yield Edit(code, where, message, here, here, self._with(here, after) if asserts else None)

    def _values(self, old: Mapping[str, Any], new: Mapping[str, Any], at: Pointer, where: str) -> Edit:
        """An edit of `enum` and `const` together: one often becomes the other."""
        made = self._old
        for keyword in _VALUES:
            if keyword in old or keyword in new:
                made = self._with((*at, keyword), new.get(keyword, ABSENT), base=made)
        was, now = (next(((*at, keyword) for keyword in _VALUES if keyword in side), at) for side in (old, new))
        allowed = [
            side["enum"] if isinstance(side.get("enum"), list) else [side["const"]] if "const" in side else ABSENT
            for side in (old, new)
        ]
        return Edit("TW537", where, _members(*allowed), was, now, made)

    def _inner(self, keyword: str, before: Any, after: Any, here: Pointer, where: str) -> Iterator[Edit]:
        """The edits inside the keyword's value, where the old and the new are schemas that can be told apart."""
        known = self._dialect
        if keyword in known.named and isinstance(before, dict) and isinstance(after, dict):
            if before.keys() == after.keys() and keyword != "dependencies":
                for name in after:
                    yield from self.schema(before[name], after[name], (*here, name), f"{where}{_dot(where)}<{name}>")
        elif keyword in known.listed and isinstance(before, list) and isinstance(after, list):
            if len(before) == len(after):
                step = "[{}]" if keyword in ("items", "prefixItems") else ""
                for index, pair in enumerate(zip(before, after, strict=True)):
                    yield from self.schema(*pair, (*here, index), where + step.format(index))
        elif keyword in known.single and isinstance(before, dict) and isinstance(after, dict):
            step = {"items": "[]", "contains": "[]", "additionalProperties": f"{_dot(where)}*"}.get(keyword, "")
            yield from self.schema(before, after, here, where + step)

    def _properties(self, old: Mapping[str, Any], new: Mapping[str, Any], at: Pointer, where: str) -> Iterator[Edit]:
        """Edits of `properties` and `required` together, property by property."""
        before, after = _mapping(old.get("properties")), _mapping(new.get("properties"))
        needed, needs = _names(old.get("required")), _names(new.get("required"))
        renamed = _renamings(before, after)
        for name in dict.fromkeys((*after, *needs, *before, *needed)):
            here = (*at, "properties", name)
            path = f"{where}{_dot(where)}{name}"
            if name in renamed.values():
                continue
            if name in renamed:
                other = renamed[name]
                made = self._property(at, name, ABSENT, required=False)
                made = self._property(at, other, after[other], required=other in needs, base=made)
                message = f"it is called `{other}` now"
                yield Edit("TW533", path, message, here, (*at, "properties", other), made)
            elif name in after and name not in before and name not in needed:
                is_needed = name in needs
                made = self._property(at, name, after[name], required=is_needed)
                if is_needed:
                    yield Edit("TW531", path, "a required property is new", at, here, made)
                else:
                    yield Edit("TW530", path, "an optional property is new", at, here, made, opens=True)
            elif name in before and name not in after:
                made = self._property(at, name, ABSENT, required=name in needs)
                yield Edit("TW532", path, "the property is gone", here, at, made)
            else:
                if name in after:
                    yield from self.schema(before.get(name, True), after[name], here, path)
                if (name in needs) != (name in needed):
                    code, message = (
                        ("TW534", "it is required now") if name in needs else ("TW535", "it is no longer required")
                    )
                    made = self._property(at, name, before.get(name, ABSENT), required=name in needs)
                    yield Edit(code, path, message, (*at, "required"), (*at, "required"), made)

    def _property(self, at: Pointer, name: str, schema: Any, *, required: bool, base: Any = ABSENT) -> Json:
        """The old schema with one property set or taken out of the object schema at `at`."""

        def change(here: dict[str, Json]) -> dict[str, Json]:
            properties = {key: value for key, value in _mapping(here.get("properties")).items() if key != name}
            if schema is not ABSENT:
                properties[name] = schema
            names = [other for other in _names(here.get("required")) if other != name] + [name] * required
            made = {key: value for key, value in here.items() if key not in ("properties", "required")}
            if properties:
                made["properties"] = properties
            if names:
                made["required"] = names
            return made

        return _changed(self._old if base is ABSENT else base, at, change)

    def _with(self, at: Pointer, value: Any, base: Any = ABSENT) -> Json:
        """The old schema with one value set or taken out."""
        if not at:
            return _with_definitions(value, self._old)

        def change(here: Any) -> Any:
            if isinstance(here, list):
                return [*here[: int(at[-1])], value, *here[int(at[-1]) + 1 :]]
            made = {key: inner for key, inner in here.items() if key != at[-1] or value is not ABSENT}
            if value is not ABSENT:
                made[str(at[-1])] = value
            return made

        return _changed(self._old if base is ABSENT else base, at[:-1], change)


_VALUES: Final = ("enum", "const")
_HANDLED: Final = frozenset({"properties", "required", *_VALUES})


def _told(keyword: str, before: Any, after: Any, dialect: Dialect) -> tuple[str, str]:
    """The code of a change of one keyword, and words for it."""
    was, now = _shown(before), _shown(after)
    change = f"`{keyword}` was {was}, and is {now}"
    if after is ABSENT:
        change = f"`{keyword}` is gone; it was {was}"
    elif before is ABSENT:
        change = f"`{keyword}` is new: {now}"
    if keyword == "default":
        return "TW546", change
    if keyword in _WORDS or keyword not in dialect.keywords:
        return "TW547", f"`{keyword}` {'is gone' if after is ABSENT else 'is new' if before is ABSENT else 'changed'}"
    if keyword == "type":
        return "TW536", change
    if keyword in _BOUNDS:
        return "TW538", change
    if keyword in ("pattern", "format"):
        return "TW539", change
    if keyword in _OPENNESS:
        return "TW540", change
    if keyword in _COMBINATIONS:
        return "TW541", _alternatives(keyword, before, after)
    return ("TW543" if keyword in _REFERENCES else "TW542"), change


def _members(before: Any, after: Any) -> str:
    if not isinstance(before, list) or not isinstance(after, list):
        if isinstance(after, list):
            return f"only some values are allowed now: {_listed(after)}"
        return f"no longer only some values are allowed; it was {_listed(before)}"
    gone, new = _without(before, after), _without(after, before)
    parts = [f"{_listed(values)} {word}" for values, word in ((gone, "gone"), (new, "new")) if values]
    return f"of the values allowed, {' and '.join(parts)}" if parts else "the values allowed stand in another order"


def _alternatives(keyword: str, before: Any, after: Any) -> str:
    if not isinstance(before, list) or not isinstance(after, list):
        state = "gone" if after is ABSENT else "new" if before is ABSENT else "changed"
        return f"`{keyword}` is {state}"
    gone, new = len(_without(before, after)), len(_without(after, before))
    parts = [
        f"{count} schema{'s' if count != 1 else ''} {word}" for count, word in ((gone, "gone"), (new, "new")) if count
    ]
    return (
        f"under `{keyword}`, {' and '.join(parts)}" if parts else f"the schemas under `{keyword}` are in another order"
    )


def _renamings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Old names to new ones, where exactly one property that is gone has the very schema of exactly one that is new."""
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    made = {}
    for name in gone:
        twins = [other for other in new if _same(before[name], after[other])]
        others = [other for other in gone if _same(before[name], before[other])]
        # A schema that says little is no sign that the two are one.
        says = isinstance(before[name], dict) and ("description" in before[name] or len(_text(before[name])) > 50)
        if len(twins) == 1 and len(others) == 1 and says:
            made[name] = twins[0]
    return made


def _with_definitions(schema: Json, other: Json) -> Json:
    """The schema with the definitions that only the other one has, so that every reference of either resolves."""
    if not isinstance(schema, dict) or not isinstance(other, dict):
        return schema
    made = dict(schema)
    for keyword in _REUSABLE:
        more = {
            name: one for name, one in _mapping(other.get(keyword)).items() if name not in _mapping(made.get(keyword))
        }
        if more:
            made[keyword] = {**_mapping(made.get(keyword)), **more}
    return made


def _changed(root: Any, at: Pointer, change: Any) -> Any:
    """A copy of `root` in which what stands at `at` is changed."""
    if not at:
        return change(root if isinstance(root, dict | list) else {})
    if isinstance(root, list):
        index = int(at[0])
        return [*root[:index], _changed(root[index], at[1:], change), *root[index + 1 :]]
    return {**root, at[0]: _changed(root.get(at[0], {}), at[1:], change)}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _dot(where: str) -> str:
    return "." if where else ""


def _is_open(value: Any) -> bool:
    return value is True or value == {}


def _without(values: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    known = {_text(other) for other in others}
    return [value for value in values if _text(value) not in known]


def _listed(values: Iterable[Any]) -> str:
    shown = [_shown(value) for value in values]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return ", ".join(shown[:8]) + more


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    if value is True or value is False:
        return f"`{json.dumps(value)}`"
    return f"`{shorten(_text(value))}`"


def _same(one: Any, two: Any) -> bool:
    return one is two or (one is not ABSENT and two is not ABSENT and _sorted(one) == _sorted(two))


def _sorted(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
