"""Expands shorthand (short types in files with `shorthand: true`) to JSON Schemas."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from stubwright.compile.syntax import foreign_types
from stubwright.diagnostics import Diagnostic, Place, Pointer
from stubwright.diagnostics.suggestions import KINDS, describe_found, find_misspelt, find_nearest, suggest
from stubwright.jsonschema import dialects, locations
from stubwright.jsonschema.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

LONG: Final = {"input": "inputSchema", "output": "outputSchema"}
"""Tools' short keys, and the MCP keys that they replace."""

_HOLDERS: Final = {"array": "items", "map": "additionalProperties"}
_BUILT_IN: Final = frozenset({*KINDS, *FORMATS, "any", "map"})
_ANNOTATIONS: Final = frozenset({"title", "description", "pattern", "default"})
_UNTYPED: Final = {"items": "array", "additionalProperties": "map"}
"""Keywords that ignore values of other types, and the shorthand for the intended type."""

_BOUNDED: Final = {"string": "Length", "array": "Items", "map": "Properties", "object": "Properties"}
"""Suffixes of each type's bounds keywords. Numbers use `minimum` and `maximum`."""

_TYPING: Final = frozenset(
    {"type", "fields", "$ref", "$dynamicRef", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "prefixItems"}
)
"""Keywords that restrict a schema to a type or to certain values."""

_IMPLIED: Final = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("items", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("additionalProperties", "minProperties", "maxProperties"), "object"),
}
"""Keywords that only restrict values of one type, with that type."""

_CORE: Final = frozenset(key for dialect in dialects.DIALECTS for key in dialect.keywords if key.startswith("$"))
"""The `$` keywords of all dialects. Other names with `$`, such as OData's `$top`, are fields."""

_TEXTS: Final = frozenset({"title", "description", "default", "examples", "deprecated"})
_REFERRING: Final = frozenset({"extends", "ref"})
"""Keywords that other languages use for references."""

_LISTS: Final = frozenset({"enum", "examples", "required", "type"})
"""Keywords that contain a list of values that are not schemas."""

_LONGEST_LINE: Final = 120
_TOKEN: Final = re.compile(r"\s*([\w.-]+|[<>|]|\S)")
_NAME: Final = re.compile(r"[\w.-]+")
_PLAIN_TEXT: Final = re.compile(r"[A-Za-z][\w. -]*")
_MAX_DEPTH: Final = 20
"""Maximum number of types inside each other, since the parser recurses."""

_TOO_DEEP: Final = f"nest at most {_MAX_DEPTH} types, and declare the inner ones under `schemas`"

_FIX: Final = (
    "write a type or a format of JSON Schema, the name of a shared schema, `any`, `array<…>`, `map<…>`, or several of "
    "them, separated by ` | `"
)


@dataclass(frozen=True, slots=True)
class Expansion:
    """A file's expanded value and the problems found. `origins` maps expanded locations to written ones."""

    value: Json
    origins: Mapping[Pointer, Pointer]
    faults: Sequence[Diagnostic] = ()


def expand(value: Json, file: str) -> Expansion:
    """Expand all shorthand in a file with `shorthand: true`. Other files stay unchanged.

    Args:
        value: The file's parsed contents.
        file: The file's path, for diagnostics.
    """
    if not isinstance(value, dict) or value.get("shorthand") is not True:
        return Expansion(value, {})
    schemas = list(locations.list_items(value, ("schemas",)))
    writer = _Writer(file, {str(pointer[-1]): schema for pointer, schema in schemas})
    for pointer, _ in schemas:
        writer.check_name(pointer)
    for pointer, tool in locations.list_items(value, ("tools",)):
        if isinstance(tool, dict) and LONG.keys() & tool.keys():
            value = _replace(value, pointer, writer.expand_tool(tool, pointer))
    for role, pointer, schema in locations.find_schemas(value):
        if isinstance(schema, dict) or role not in LONG.values():
            value = _replace(value, pointer, writer.expand_schema(schema, pointer))
    return Expansion(value, writer.origins, writer.faults)


def find_written(origins: Mapping[Pointer, Pointer], pointer: Pointer) -> Pointer:
    """Return the written location of part of an expanded value, or the written location that implies the part."""
    for length in range(len(pointer), 0, -1):
        if (origin := origins.get(pointer[:length])) is not None:
            return origin + pointer[length:]
    return pointer


def _replace(value: Json, pointer: Pointer, new: Json) -> Json:
    """Return a copy of a value with the part at `pointer` replaced.

    Copy all parents, because YAML aliases can share a parent.
    """
    if not pointer:
        return new
    copy = value.copy()
    copy[pointer[0]] = _replace(value[pointer[0]], pointer[1:], new)
    return copy


def _is_keyword(key: str, dialect: Dialect) -> bool:
    is_extension = key.startswith("x-") and not key.endswith("?")
    return key in dialect.keywords or key in dialect.holders or key == "fields" or key in _CORE or is_extension


def _find_extensions(schema: Mapping[str, Json]) -> set[str]:
    return {key for key in schema if key.startswith("x-")}


def _are_fields(schema: Mapping[str, Json], dialect: Dialect) -> bool:
    """Return whether a mapping in a schema position consists of fields: named types or mappings.

    `title` and `description` can be fields if their value is a type name.
    """
    keywords = {key for key in schema if _is_keyword(key, dialect)}
    fields = (isinstance(child := schema[key], dict) or _is_type_name(child) for key in keywords)
    return (
        len(keywords) < len(schema)
        and keywords <= {"title", "description"}
        and all(fields)
        and all(isinstance(schema[key], str | dict) for key in schema.keys() - keywords)
    )


def _could_be_fields(schema: Mapping[str, Json]) -> bool:
    """Return whether all keys are annotations that could be field names, as in `title: string`."""
    has_type = "type" in schema
    ambiguous = {"title", "description"} if has_type else _ANNOTATIONS | _find_extensions(schema)
    texts = [child for key, child in schema.items() if key in ambiguous]
    if not texts or schema.keys() - ambiguous - {"type"}:
        return False
    # in a typed schema, `title: date` could be a human-readable title
    return all(isinstance(child, str) and child in KINDS if has_type else _is_type_name(child) for child in texts)


def _could_have_lists(schema: Mapping[str, Json], dialect: Dialect) -> bool:
    """Return whether a mapping would consist of fields if lists counted as types."""
    types = {key: child for key, child in schema.items() if not isinstance(child, list)}
    lists = schema.keys() - types.keys()
    keywords = sorted(_LISTS | dialect.listed)
    are_names = all(not _is_keyword(key, dialect) and find_nearest(key, keywords) is None for key in lists)
    return bool(lists) and are_names and (not types or _are_fields(types, dialect))


def _is_type_name(value: Json) -> bool:
    return isinstance(value, str) and value in _BUILT_IN


def _explain_format(word: str) -> str | None:
    """Suggest a fix for a format that is misspelled or is a type. Return None for other formats, such as `int64`."""
    if word in FORMATS:
        return None
    if word in KINDS:
        return f"write `type: {word}`"
    if _NAME.fullmatch(word) is None:
        advice = foreign_types.suggest(word, frozenset())
        return None if advice is None else advice.replace("`", "`type: ", 1)
    near = find_misspelt(word, FORMATS)
    return suggest(word, near) if near else None


def _quote_text(value: Json) -> Json:
    """Quote a string if a YAML flow mapping requires it. Return other values unchanged."""
    is_text = isinstance(value, str) and _PLAIN_TEXT.fullmatch(value) is None
    return json.dumps(value, ensure_ascii=False) if is_text else value


def _find_kind(default: Json) -> str:
    if isinstance(default, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return next((kind for type_, kind in kinds.items() if isinstance(default, type_)), "any")


def _show_fields(schema: Mapping[str, Json]) -> str:
    shown = f"fields: {_show_flow(schema)}"
    return shown if len(shown) <= _LONGEST_LINE else "fields: {…}"


def _show_flow(value: Json) -> str:
    if isinstance(value, dict):
        entries = ((f'"{key}"' if key.endswith("?") else key, _show_flow(child)) for key, child in value.items())
        return f"{{{', '.join(f'{key}: {child}' for key, child in entries)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_show_flow, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


class _InvalidTypeError(Exception):
    """The string is not a type.

    `part` contains the offsets of the invalid characters, and `fix` contains the advice.
    """

    def __init__(self, part: tuple[int, int], fix: str) -> None:
        super().__init__(fix)
        self.part = part
        self.fix = fix


class _Writer:
    def __init__(self, file: str, schemas: Mapping[str, Json]) -> None:
        self.origins: dict[Pointer, Pointer] = {}
        self.faults: list[Diagnostic] = []
        self._file = file
        self._schemas = schemas
        self._names = frozenset(schemas)

    def expand_tool(self, tool: Mapping[str, Json], at: Pointer) -> Json:
        """Replace a tool's short keys. `expand_schema` expands the schemas later."""
        result: dict[str, Json] = {}
        for key, child in tool.items():
            long = LONG.get(key)
            if long is None:
                result[key] = child
            elif long in tool:
                self._report((*at, key), f"`{key}` and `{long}` are alternatives", "remove one", key=True)
            else:
                self.origins[*at, long] = (*at, key)
                result[long] = self._make_root(child, key, (*at, long))
        return result

    def _make_root(self, written: Json, key: str, at: Pointer) -> Json:
        if isinstance(written, str):
            return self._make_root_type(written, at) if key == "input" else {"type": written}
        if not isinstance(written, dict):
            self._expect("a type or a mapping of fields", written, at)
            return {}
        if key == "input" and not written:  # some clients read every tool's `properties`
            return {"type": "object", "properties": {}, "additionalProperties": False}
        self.origins[*at, "fields"] = find_written(self.origins, at)
        return {"fields": written} | ({"additionalProperties": False} if key == "input" else {})

    def _make_root_type(self, written: str, at: Pointer) -> Json:
        """Return an `inputSchema` for a type, with `type: object` at the root (MCP 2025-11-25, `Tool`)."""
        if not self._may_be_object(written):
            self._report(at, f"arguments must be an object, and `{written}` is not", "write `input: {NAME: TYPE}`")
            return {"type": "object"}
        return {"type": "object", "$ref": f"#/schemas/{written}"} if written in self._names else {"type": written}

    def _may_be_object(self, text: str) -> bool:
        """Return whether a type can be an object. Return true for invalid types, which are reported elsewhere."""
        seen: set[str] = set()
        while text in self._names and text not in seen:
            seen.add(text)
            schema = self._schemas[text]
            kind = schema.get("type", "object") if isinstance(schema, dict) else schema
            text = kind if isinstance(kind, str) else "object"
        try:
            schema = _TypeReader(text, self._names).read()
        except _InvalidTypeError:
            return True
        return schema.get("type", "object") == "object" and "anyOf" not in schema

    def check_name(self, at: Pointer) -> None:
        if at[-1] in _BUILT_IN:
            message = f"`{at[-1]}` is a built-in shorthand type, so types cannot refer to this schema"
            self._report(at, message, "rename the schema", key=True)

    def expand_schema(self, schema: Json, at: Pointer, dialect: Dialect = dialects.DRAFT_2020_12) -> Json:
        if isinstance(schema, str):
            return self._read(schema, at)
        if not isinstance(schema, dict):
            return schema
        dialect = dialects.find_dialect(schema, dialect) or dialect
        if _are_fields(schema, dialect) or _could_have_lists(schema, dialect):
            self._report_map(schema, at)
            self.origins[*at, "fields"] = find_written(self.origins, at)
            schema = {"fields": schema}
        else:
            self._check_keys(schema, at, dialect)
        result: dict[str, Json] = {}
        for key, child in schema.items():
            if key == "fields":
                new = self._expand_fields(child, at, dialect)
            elif key == "type" and isinstance(child, str) and child not in KINDS:
                new = self._read(child, (*at, key), schema)
            else:
                result[key] = self._expand_keyword(key, child, (*at, key), dialect)
                continue
            if twice := [f"`{name}`" for name in new if name != key and name in schema]:
                names = " and ".join(twice)
                self._report((*at, key), f"`{key}` replaces {names}", f"remove {names}", key=True)
            result |= new
        return result

    def _check_keys(self, schema: Mapping[str, Json], at: Pointer, dialect: Dialect) -> None:
        unknown = [key for key in schema if not _is_keyword(key, dialect)]
        if unknown:
            message = f"`{unknown[0]}` is not a JSON Schema keyword"
            self._report((*at, unknown[0]), message, self._advise(unknown[0], schema, dialect), key=True)
        elif (untyped := self._find_untyped(schema)) is not None:
            self._report_untyped(schema, at, untyped)
            return
        elif _could_be_fields(schema):
            message = "these keys could be fields or JSON Schema keywords"
            fix = f"if they are fields, write `{_show_fields(schema)}`; otherwise reword the strings"
            self._report((*at, next(iter(schema))), message, fix, key=True)
        if isinstance(is_required := schema.get("required"), bool):
            fix = "remove it" if is_required else "remove it, and write `?` after the field name"
            message = "all fields are required unless their name ends in `?`"
            self._report((*at, "required"), message, fix, key=True)
        word = schema.get("format")
        if isinstance(word, str) and (advice := _explain_format(word)) is not None:
            self._report((*at, "format"), f"`{word}` is not a JSON Schema format", advice)

    def _report_map(self, schema: Mapping[str, Json], at: Pointer) -> None:
        """Report fields that could be maps, such as `{string: integer}`, or references, such as `{ref: Book}`."""
        for key, child in schema.items():
            if key in _REFERRING and isinstance(child, str) and child in self._names:
                others = [f"{{fields: {_show_flow({name: schema[name] for name in schema if name != key})}}}"]
                whole = f"{{allOf: [{', '.join([child, *others])}]}}" if len(schema) > 1 else child
                fix = f"write `{whole}`, or `{_show_fields(schema)}` for a field `{key}`"
                self._report((*at, key), f"`{key}` could be a reference or a field name", fix, key=True)
        for key, child in schema.items():
            if len(schema) == 1 and key in ("string", "str") and isinstance(child, str) and self._is_type(child):
                fix = f"write `map<{child}>` for a map, or `{_show_fields(schema)}` for a field"
                self._report((*at, key), f"`{key}` could be a field name or a type", fix, key=True)

    def _find_untyped(self, schema: Mapping[str, Json]) -> str | None:
        """Return the key of an item or value type without a `type`, if any."""
        if schema.keys() & _TYPING:
            return None
        return next((key for key in _UNTYPED if isinstance(schema.get(key), str) and self._is_type(schema[key])), None)

    def _report_untyped(self, schema: Mapping[str, Json], at: Pointer, key: str) -> None:
        child, holder = schema[key], _UNTYPED[key]
        rest = {name: value for name, value in schema.items() if name != key}
        flow = _show_flow({"type": f"{holder}<{child}>", **rest}) if rest else f"{holder}<{child}>"
        fix = f"write `{flow}`" + (f", or `fields: {{items: {child}}}` for a field" if key == "items" else "")
        kind = "array" if holder == "array" else "object"
        self._report((*at, key), f"`{key}` without `type: {kind}` accepts values of other types", fix, key=True)

    def _report_any(self, schema: Mapping[str, Json], at: Pointer) -> None:
        implied = [_IMPLIED[key] for key in schema if key in _IMPLIED]
        if not schema or schema.keys() - _IMPLIED.keys() - _TEXTS - _find_extensions(schema):
            return
        if _could_be_fields(schema) or self._find_untyped(schema) is not None:  # reported elsewhere
            return
        kind = implied[0] if implied else _find_kind(schema.get("default"))
        shown = _show_flow({"type": kind, **{name: _quote_text(child) for name, child in schema.items()}})
        fix = f"write `{shown}`" + (" for any value" if kind == "any" else "")
        key = next(iter(schema))
        self._report((*at, key), "a field without a type accepts any value", fix, key=True)

    def _is_type(self, text: str) -> bool:
        try:
            _TypeReader(text, self._names).read()
        except _InvalidTypeError:
            return False
        return True

    def _report_list(self, name: str, items: Json, at: Pointer) -> None:
        is_type = len(items) == 1 and _is_type_name(items[0])
        shown = f"array<{items[0]}>" if is_type else f"{{enum: [{', '.join(map(str, items))}]}}"
        is_short = items and len(shown) <= _LONGEST_LINE and all(isinstance(item, str | int | float) for item in items)
        fix = f"write `{name}: {shown}`" if is_short else f"write `{name}: {{enum: […]}}` for a choice"
        self._report(at, "a list is not a type", fix)

    def _advise(self, key: str, schema: Mapping[str, Json], dialect: Dialect) -> str:
        if key.lower() in ("optional", "nullable") and isinstance(schema[key], bool):
            is_optional = key.lower() == "optional"
            return "write `?` after the field name" if is_optional else "write `type: … | null`"
        known = foreign_types.KEYWORDS.get(key.lower())
        if known is not None and known not in schema and self._fits(schema[key], known, dialect):
            if known == "examples" and not isinstance(schema[key], list):
                return f"write `examples: [{_show_flow(schema[key])}]`"
            return suggest(key, known)
        fields = {
            name: child
            for name, child in schema.items()
            if isinstance(child, dict)
            or (isinstance(child, str) and (not _is_keyword(name, dialect) or self._is_type(child)))
        }
        if schema.get("type") == "object":
            fields.pop("type", None)
        rest = {name: child for name, child in schema.items() if name not in (*fields, "required")}
        if schema.get("type") == "object":
            del rest["type"]
        is_field = isinstance(schema[key], dict) or (isinstance(schema[key], str) and self._is_type(schema[key]))
        if is_field and all(_is_keyword(name, dialect) and name != "type" for name in rest):
            shown = _show_fields(fields) + "".join(f", {name}: {_show_flow(child)}" for name, child in rest.items())
            return f"if the keys are fields, write `{shown}`"
        if key in ("min", "max"):
            suffix = _BOUNDED.get(re.split(r"\W", str(schema.get("type")))[0], "imum")
            return suggest(key, f"{key}{suffix}")
        near = find_nearest(key, sorted(dialect.keywords))
        return suggest(key, near) if near else "remove it, or start its name with `x-`"

    def _expand_keyword(self, key: str, value: Json, at: Pointer, dialect: Dialect) -> Json:
        if key in dialect.named and isinstance(value, dict):
            return {name: self.expand_schema(child, (*at, name), dialect) for name, child in value.items()}
        if key in dialect.listed and isinstance(value, list):
            return [self.expand_schema(child, (*at, index), dialect) for index, child in enumerate(value)]
        return self.expand_schema(value, at, dialect) if key in dialect.single else value

    def _expand_fields(self, fields: Json, at: Pointer, dialect: Dialect) -> dict[str, Json]:
        written = find_written(self.origins, (*at, "fields"))
        self.origins |= {(*at, "properties"): written, (*at, "required"): written, (*at, "type"): written}
        if not isinstance(fields, dict):
            self._expect("a mapping of fields", fields, (*at, "fields"))
            return {}
        properties: dict[str, Json] = {}
        for key, child in fields.items():
            name, here = key.removesuffix("?"), (*at, "properties", key.removesuffix("?"))
            if name in properties:
                fix = f"keep `{name}?` if it is optional, and `{name}` if it is not"
                self._report((*at, "fields", key), f"duplicate field `{name}`", fix, key=True)
                continue
            self.origins[here] = (*written, key)
            if isinstance(child, list):
                self._report_list(key, child, here)
                child = {}
            if isinstance(child, dict):
                self._report_any(child, here)
            properties[name] = self.expand_schema(child, here, dialect)
        required = [key for key in fields if key in properties]
        result: dict[str, Json] = {"type": "object"}
        if properties:
            result["properties"] = properties
        if required:
            result["required"] = required
        return result

    def _fits(self, value: Json, keyword: str, dialect: Dialect) -> bool:
        """Return whether a value is valid for a keyword, so that the key is not a field."""
        if keyword in _LISTS or keyword in dialect.listed:
            return isinstance(value, list) or keyword == "examples"
        is_type = isinstance(value, str) and self._is_type(value)
        return is_type if keyword in ("items", "$ref") else isinstance(value, str) and not is_type

    def _read(self, text: str, at: Pointer, schema: Mapping[str, Json] | None = None) -> dict[str, Json]:
        try:
            return _TypeReader(text, self._names).read()
        except _InvalidTypeError as error:
            start, end = error.part
            fix = foreign_types.suggest_type_keyword(text, (schema or {}).keys()) or error.fix
            found = text[start:end]
            named = describe_found(text) if found == text else f"`{found}`"
            role = "a type" if found == text or _NAME.fullmatch(found) else "part of a type"
            place = Place(self._file, at, part=() if found == text else error.part)
            self.faults.append(Diagnostic("SW108", f"{named} is not {role}", place, fix))
            return {}

    def _expect(self, wanted: str, found: Json, at: Pointer) -> None:
        self._report(at, f"expected {wanted}, found {describe_found(found)}", "write `NAME: TYPE` for each field")

    def _report(self, at: Pointer, message: str, fix: str, *, key: bool = False) -> None:
        place = Place(self._file, at)
        self.faults.append(Diagnostic("SW108", message, place.point_at_key() if key else place, fix))


class _TypeReader:
    """Parses a type: `type = one *("|" one)`, where `one = name / ("array" / "map") "<" type ">"`."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self._text = text
        self._tokens = list(_TOKEN.finditer(text))
        self._names = names
        self._at = 0

    def read(self) -> dict[str, Json]:
        if max(accumulate({"<": 1, ">": -1}.get(token[1], 0) for token in self._tokens), default=0) > _MAX_DEPTH:
            raise _InvalidTypeError((0, len(self._text)), _TOO_DEEP)
        schema = self._read_union()
        if self._at < len(self._tokens):
            raise self._explain()
        return schema

    def _read_union(self) -> dict[str, Json]:
        alternatives = [self._read_one()]
        while self._accept("|"):
            alternatives.append(self._read_one())
        if len(alternatives) == 1:
            return alternatives[0]
        if all(each.keys() == {"type"} for each in alternatives):
            return {"type": [each["type"] for each in alternatives]}
        return {"anyOf": alternatives}

    def _read_one(self) -> dict[str, Json]:
        name = self._next
        if not _NAME.fullmatch(name):
            raise self._explain()
        self._at += 1
        if name in _HOLDERS and self._accept("<"):
            inner = self._read_union()
            if not self._accept(">"):
                raise self._explain()
            return {"type": "object" if name == "map" else name, _HOLDERS[name]: inner}
        schema = self._resolve(name)
        if schema is None:
            self._at -= 1
            raise self._explain()
        return schema

    def _resolve(self, name: str) -> dict[str, Json] | None:
        if name in KINDS:
            return {"type": name}
        if name in FORMATS:
            return {"type": "string", "format": name}
        if name in self._names:
            return {"$ref": f"#/schemas/{name}"}
        return {} if name == "any" else None

    @property
    def _next(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _accept(self, token: str) -> bool:
        is_next = self._next == token
        self._at += is_next
        return is_next

    def _explain(self) -> _InvalidTypeError:
        if not self._next:
            return _InvalidTypeError((0, len(self._text)), _FIX)
        token = self._tokens[self._at]
        is_name = _NAME.fullmatch(token[1])
        part = token.span(1) if is_name else (token.start(1), len(self._text.rstrip()))
        if self._text.strip() == "map":
            return _InvalidTypeError(part, "write `map<…>` with the type of its values, or `object`")
        if (fix := foreign_types.suggest(self._text, self._names)) is not None:
            return _InvalidTypeError(part, fix)
        if token[1] in _HOLDERS or not is_name:
            return _InvalidTypeError(part, _FIX)
        near = find_nearest(token[1], sorted(self._names | _BUILT_IN))
        fix = f"declare `{token[1]}` under `schemas` of this file" if token[1][:1].isupper() else _FIX
        return _InvalidTypeError(part, suggest(token[1], near) if near else fix)
