"""Converts a contract's schema to an API's form: closed objects, null for absence, pairs for maps, or text.

Unsupported constraints move to the description or are dropped, because the contract's validator checks the result.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from .codecs import Array, Codec, Member, Object, Pairs, Text, Union, Values
from .forms import Form
from .merging import SchemaMerger, View

Json: TypeAlias = Any

_SCALARS: Final = ("string", "integer", "number", "boolean")
_SHOWN: Final = 600
"""The maximum length of a schema in a description."""

_SAID: Final = (
    *("default", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
"""Keywords that move to the description if the form does not support them."""

_OF_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"pattern", "format", "minLength", "maxLength"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"minItems", "maxItems"}),
}
_NOT_PLAIN: Final = re.compile(r"\(\?|\\[1-9bBpPkK]")
"""Syntax that constrained decoding does not support: look-around, back-references, boundaries, classes."""


class SchemaShaper:
    """Converts a schema to a form."""

    def __init__(self, root: Json, form: Form) -> None:
        """Create a shaper for a schema and a form."""
        self._root = root
        self._form = form
        self._merging = SchemaMerger(root)
        self._properties = 0
        self._values = 0
        self._characters = 0

    def make_root(self) -> Codec:
        """Return the codec for a tool's arguments, which are always an object."""
        view = self._merging.view([self._root])
        return self._object(self.flatten(view), 0, is_root=True)

    def _make(self, schemas: Sequence[Json], level: int, followed: frozenset[str]) -> Codec:
        view = self._merging.view(schemas, followed)
        if followed & self._merging.view(schemas).references:
            return self._text(schemas, view)  # it is recursive
        return self._make_codec(view, schemas, level)

    def _make_codec(self, view: View, schemas: Sequence[Json], level: int) -> Codec:
        if view.values is not None:
            return self._enum(view)
        if view.choices:
            return self._choice(view, schemas, level)
        if view.is_anything or not view.types:
            return self._text(schemas, view)
        types = view.types - {"integer"} if "number" in view.types else view.types
        is_nullable, types = "null" in types, types - {"null"}
        if not types:
            return self._null(view)
        if len(types) == 1:
            codec = self._make_type_codec(next(iter(types)), view, schemas, level)
            return self._allow_null(codec) if is_nullable else codec
        order = [name for name in (*_SCALARS, "array", "object") if name in types]
        branches = [self._make_type_codec(name, view, schemas, level) for name in order]
        return self._union([*branches, *([self._null(view)] if is_nullable else [])], view)

    def _make_type_codec(self, name: str, view: View, schemas: Sequence[Json], level: int) -> Codec:
        if name == "object":
            return self._container(view, schemas, level)
        if name == "array":
            return self._array(view, schemas, level)
        return Codec({"type": name, **self._list_keywords(view, name)}, frozenset({name}))

    def _null(self, view: View) -> Codec:
        if self._form.nullable:
            return Codec({"type": "string", "nullable": True, "enum": ["null"], **self._list_keywords(view, "null")})
        return Codec({"type": "null", **self._list_keywords(view, "null")}, frozenset({"null"}))

    def _allow_null(self, codec: Codec) -> Codec:
        schema = codec.schema
        types = codec.types | {"null"} if codec.types else codec.types
        if self._form.nullable:
            return _Nullable(schema={**schema, "nullable": True}, types=types, inner=codec)
        if "anyOf" in schema:
            nullable = {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
        elif isinstance(schema.get("type"), str) and "enum" not in schema:
            nullable = {**schema, "type": [schema["type"], "null"]}
        else:
            inner = {key: value for key, value in schema.items() if key != "description"}
            words = {"description": schema["description"]} if "description" in schema else {}
            nullable = {"anyOf": [inner, {"type": "null"}], **words}
        return _Nullable(schema=nullable, types=types, inner=codec)

    def _enum(self, view: View) -> Codec:
        values = [value for value in view.values or () if _has_type(value, view.types)]
        distinct = {json.dumps(value, sort_keys=True): value for value in values}
        texts = {value if isinstance(value, str) else json.dumps(value): value for value in values}
        length = sum(len(text) for text in texts)
        self._values += len(texts)
        self._characters += length
        is_large = len(texts) > 250 and length > 15_000
        if (
            not values
            or is_large
            or self._values > self._form.most_values
            or self._characters > self._form.most_characters
        ):
            self._values -= len(texts)
            self._characters -= length
            return self._text([{"enum": values}], view)
        if all(isinstance(value, str) for value in values):
            schema = {"type": "string", "enum": values, **self._list_keywords(view, "enum")}
            return Codec(schema, frozenset({"string"}))
        is_simple = all(value is None or isinstance(value, str | int | float) for value in values)
        if is_simple and not self._form.string_enums and len(distinct) == len(values):
            types = sorted({_name_type(value) for value in values})
            return Codec(
                {"type": types[0] if len(types) == 1 else types, "enum": values, **self._list_keywords(view, "enum")}
            )
        if len(texts) < len(distinct):  # "1" and 1
            return self._text([{"enum": values}], view)
        return Values(
            {"type": "string", "enum": [*texts], **self._list_keywords(view, "enum")}, frozenset({"string"}), texts
        )

    def _array(self, view: View, schemas: Sequence[Json], level: int) -> Codec:
        if view.is_tuple:
            return self._text(schemas, view)
        items = self._make(view.items or [True], level, view.references)
        schema = {"type": "array", "items": items.schema, **self._list_keywords(view, "array")}
        types = frozenset({"array"})
        return Codec(schema, types) if items.is_plain else Array(schema, types, items)

    def _container(self, view: View, schemas: Sequence[Json], level: int) -> Codec:
        has_more = view.more not in (None, False)
        if (
            level + 1 + has_more > self._form.levels
            or self._properties + len(view.properties) > self._form.most_properties
        ):
            return self._text(schemas, view)
        if view.properties:
            return self._object(view, level)
        if view.more is False and not self._form.fills_objects:
            return self._object(view, level)
        if not isinstance(view.more, list):
            return self._text(schemas, view)
        values = self._make(view.more, level + 1, view.references)
        self._properties += 2
        schema = {"type": "array", "items": self._pair(values), **self._list_keywords(view, "pairs")}
        return Pairs(schema, frozenset({"array"}), values)

    def _pair(self, values: Codec) -> dict[str, Any]:
        return self._close({"key": {"type": "string"}, "value": values.schema}, ["key", "value"])

    def _close(self, properties: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
        closed = {"additionalProperties": False} if self._form.closes else {}
        return {"type": "object", "properties": dict(properties), "required": [*required], **closed}

    def _object(self, view: View, level: int, *, is_root: bool = False) -> Codec:
        self._properties += len(view.properties)
        names = make_names(view.properties, self._form.property_name)
        self._characters += sum(map(len, names.values()))
        members: dict[str, Member] = {}
        for wire, name in names.items():
            codec = self._make(view.properties[wire], level + 1, view.references)
            members[name] = self._member(wire, codec, view.properties[wire], is_required=wire in view.required)
        more = None
        if isinstance(view.more, list) and view.more != [False]:
            values = self._make(view.more, level + 2, view.references)
            self._properties += 3
            free = next(name for name in _FURTHER if name not in members)
            more = (free, values)
        properties = {name: member.codec.schema for name, member in members.items()}
        for name, member in members.items():
            if member.is_wrapped:
                wrapped = self._close({"value": member.codec.schema}, ["value"])
                properties[name] = {"anyOf": [wrapped, {"type": "null"}], "description": _LEFT_OUT}
        if more is not None:
            text = "Additional properties, each with its name."
            properties[more[0]] = {"type": "array", "items": self._pair(more[1]), "description": text}
        is_all = self._form.all_required
        required = [name for name in properties if is_all or (name in members and members[name].is_required)]
        if more is not None and not is_all:
            required.append(more[0])
        schema = {**self._close(properties, required), **({} if is_root else self._list_keywords(view, "object"))}
        if not properties and self._form.fills_objects:
            schema = {"type": "object"}
        is_same = all(
            name == member.name and member.codec.is_plain and not member.null_is_absent
            for name, member in members.items()
        )
        types = frozenset({"object"})
        # Unnamed properties are invalid in a closed object, even if all others are equal.
        return (
            Object(schema, types, members, more)
            if more or not is_same or is_root or self._form.closes
            else Codec(schema, types)
        )

    def _member(self, wire: str, codec: Codec, schemas: Sequence[Json], *, is_required: bool) -> Member:
        if is_required or not self._form.all_required:
            return Member(wire, codec, is_required=is_required)
        takes_null = not codec.types or "null" in codec.types
        if isinstance(codec, Text):
            takes_null = False
        if takes_null and not _defaults_to_null(schemas):
            return Member(wire, codec, null_is_absent=True, is_wrapped=True)
        if not takes_null:
            codec = self._allow_null(codec)
        return Member(wire, codec, null_is_absent=True)

    def _choice(self, view: View, schemas: Sequence[Json], level: int) -> Codec:
        if view.types == {"object"} or view.properties:
            flat = self.flatten(view)
            if flat is not None:
                return self._container(flat, schemas, level)
        base = [replace_choices(schema) for schema in schemas]
        first, *_ = view.choices
        inherited = {"type": sorted(view.types)} if len(view.types) < _ALL_TYPES else {}
        branches = []
        for branch in first:
            merged = self._merging.view([inherited, branch], view.references)
            if merged.is_impossible or not merged.types:
                continue
            if self._merging.view([branch]).references & view.references:
                branches.append(self._text([branch], merged))
            else:
                branches.append(self._make_codec(merged, [inherited, branch], level))
        if not branches or any(isinstance(branch, Text) for branch in branches):
            return self._text([*base, {"anyOf": [*first]}], view)
        return self._union(branches, view)

    def _union(self, branches: Sequence[Codec], view: View) -> Codec:
        distinct = {json.dumps(branch.schema, sort_keys=True): branch for branch in branches}
        kept = [*distinct.values()]
        is_nullable = any(_is_null(branch) for branch in kept)
        kept = [branch for branch in kept if not _is_null(branch)]
        words = self._list_keywords(view, "union")
        types = (
            frozenset().union(*(branch.types for branch in kept))
            if all(branch.types for branch in kept)
            else frozenset()
        )
        if not kept:
            return self._null(view)
        if len(kept) == 1:
            only = kept[0]
            codec = replace(only, schema={**only.schema, **words})
        else:
            flat = [inner for branch in kept for inner in _alternatives(branch.schema)]
            schema = {"anyOf": flat, **words}
            is_plain = all(branch.is_plain for branch in kept)
            codec = Codec(schema, types) if is_plain else Union(schema, types, kept)
        return self._allow_null(codec) if is_nullable else codec

    def flatten(self, view: View) -> View:
        """Merge an object's alternatives, with all properties. Only common required properties stay required."""
        for group in view.choices:
            views = [self._merging.view([branch], view.references) for branch in group]
            views = [each for each in views if "object" in each.types and not each.is_impossible]
            flat = [self.flatten(each) if each.choices else each for each in views]
            for each in flat:
                for name, schemas in each.properties.items():
                    known = view.properties.setdefault(name, [])
                    alternatives = [schema for schema in schemas if schema not in known]
                    if not known:
                        known += alternatives
                    elif alternatives:
                        view.properties[name] = [{"anyOf": [*_options(known), *alternatives]}]
                view.references |= each.references
            if flat:
                common = set.intersection(*(set(each.required) for each in flat))
                view.required |= {name: None for name in flat[0].required if name in common}
        view.choices = []
        return view

    def _text(self, schemas: Sequence[Json], view: View) -> Codec:
        shown = json.dumps(schemas[0] if len(schemas) == 1 else {"allOf": [*schemas]}, ensure_ascii=False)
        about = view.words.get("description")
        sentence = (
            "JSON text of any value" if shown in ("true", "{}") else f"JSON text of a value of this schema: {shown}"
        )
        if len(sentence) > _SHOWN:
            sentence = "JSON text of a value" + (
                f" ({', '.join(sorted(view.types))})" if len(view.types) < _ALL_TYPES else ""
            )
        description = f"{about} {sentence}" if isinstance(about, str) and about not in sentence else sentence
        return Text({"type": "string", "description": description}, frozenset({"string"}))

    def _list_keywords(self, view: View, kind: str) -> dict[str, Json]:
        """Return the supported keywords, with a description that contains the unsupported keywords."""
        kinds = ("number",) if kind in ("integer", "number") else (kind,)
        of_type = frozenset().union(*(_OF_TYPES.get(each, frozenset()) for each in kinds))
        kept: dict[str, Json] = {}
        sentences = []
        for keyword in _SAID:
            if keyword not in view.words:
                continue
            value = view.words[keyword]
            if keyword in of_type and self._accepts_keyword(keyword, value):
                kept[keyword] = value
            elif keyword == "default" or keyword in of_type or kind in ("array", "pairs", "object"):
                sentences.append(f"{keyword}: {json.dumps(value, ensure_ascii=False)}")
        description = view.words.get("description")
        text = description if isinstance(description, str) else ""
        if sentences:
            text = f"{text} ({'; '.join(sentences)})".strip()
        return {**kept, **({"description": text} if text else {})}

    def _accepts_keyword(self, keyword: str, value: Json) -> bool:
        form = self._form
        match keyword:
            case "format":
                return value in form.formats
            case "pattern":
                return keyword in form.keywords and not _NOT_PLAIN.search(str(value))
            case "minItems" if form.item_bounds is not None:
                return value in form.item_bounds
            case "exclusiveMinimum" | "exclusiveMaximum":
                return keyword in form.keywords and not isinstance(value, bool)
            case _:
                return keyword in form.keywords


_ALL_TYPES: Final = 7
_FURTHER: Final = tuple(f"further_properties{suffix}" for suffix in ("", *(f"_{number}" for number in range(2, 100))))
_LEFT_OUT: Final = "Null means absence; an object with `value` contains the value, which may be null."


@dataclass(frozen=True, kw_only=True)
class _Nullable(Codec):
    """The codec for null or another codec's value."""

    inner: Codec

    @property
    def is_plain(self) -> bool:
        return self.inner.is_plain

    def encode(self, value: Json) -> Json:
        return None if value is None else self.inner.encode(value)

    def decode(self, value: Json, at: str) -> Json:
        return None if value is None else self.inner.decode(value, at)


def make_names(names: Iterable[str], pattern: str) -> dict[str, str]:
    """Map each name to itself if it matches the pattern, or to a unique name that does."""
    names = [*names]
    taken = {name for name in names if re.search(pattern, name)}
    names_by_wire: dict[str, str] = {}
    for name in names:
        names_by_wire[name] = name if name in taken else _make_name(name, pattern, taken)
        taken.add(names_by_wire[name])
    return names_by_wire


def _make_name(name: str, pattern: str, taken: set[str]) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    for tried in (clean, f"_{clean}", f"{clean[:48]}_{digest}", f"_{clean[:48]}_{digest}"):
        if re.search(pattern, tried) and tried not in taken:
            return tried
    return f"_{digest}"


def replace_choices(schema: Json) -> Json:
    """Return a schema without its alternatives."""
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "$defs", "definitions")}


def _options(known: Sequence[Json]) -> list[Json]:
    if len(known) == 1 and isinstance(known[0], dict) and known[0].keys() == {"anyOf"}:
        return [*known[0]["anyOf"]]
    return [known[0]] if len(known) == 1 else [{"allOf": [*known]}]


def _alternatives(schema: Mapping[str, Any]) -> list[Json]:
    return [*schema["anyOf"]] if schema.keys() == {"anyOf"} else [schema]


def _is_null(codec: Codec) -> bool:
    return codec.types == {"null"} or (codec.schema.get("nullable") is True and codec.schema.get("enum") == ["null"])


def _defaults_to_null(schemas: Sequence[Json]) -> bool:
    return any(isinstance(schema, dict) and schema.get("default", 0) is None for schema in schemas)


def _has_type(value: Json, types: frozenset[str]) -> bool:
    name = _name_type(value)
    return name in types or (name == "integer" and "number" in types)


def _name_type(value: Json) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"
