"""Shorthand: the short types of a file that says `shorthand: true`, written out as JSON Schemas.

Takes the value of a file; gives the value that the long form would have, and where each part of it is written. It
resolves no reference, and does not judge schemas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from stubwright.diagnostics import Diagnostic, Place, Pointer
from stubwright.diagnostics.suggestions import KINDS, describe_found, find_nearest
from stubwright.jsonschema import dialects, locations
from stubwright.jsonschema.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

LONG: Final = {"input": "inputSchema", "output": "outputSchema"}
"""The short keys of a tool, and the keys of MCP that they stand for."""

_HOLDERS: Final = {"array": "items", "map": "additionalProperties"}
_BUILT_IN: Final = frozenset({*KINDS, *FORMATS, "any", "map"})
_ELSEWHERE: Final = {
    "bool": "boolean",
    "dict": "map<…>",
    "float": "number",
    "int": "integer",
    "list": "array<…>",
    "none": "null",
}
"""The types that other languages call so."""

_TOKEN: Final = re.compile(r"\s*([\w.-]+|[<>|]|\S)")
_NAME: Final = re.compile(r"[\w.-]+")
_MAX_DEPTH: Final = 20
"""The number of `<` that a type may have; it is read by recursion."""

_FIX: Final = (
    "write a type or a format of JSON Schema, the name of a shared schema, `any`, `array<…>`, `map<…>`, or several of "
    "them with ` | ` between"
)


@dataclass(frozen=True, slots=True)
class Expanded:
    """The value of a file, written out, and its problems.

    `origins` has the places at which parts of the value are written, by their places in it.
    """

    value: Json
    origins: Mapping[Pointer, Pointer]
    faults: Sequence[Diagnostic] = ()


def expand(value: Json, file: str) -> Expanded:
    """Return the value of a file with all shorthand written out; the value itself if it does not say `shorthand: true`.

    Args:
        value: The value, whatever it is.
        file: The path of the file, for the places of problems.
    """
    if not isinstance(value, dict) or value.get("shorthand") is not True:
        return Expanded(value, {})
    schemas = [pointer for pointer, _ in locations.list_items(value, ("schemas",))]
    writer = _Writer(file, frozenset(str(pointer[-1]) for pointer in schemas))
    for pointer in schemas:
        writer.check_name(pointer)
    for pointer, tool in locations.list_items(value, ("tools",)):
        if isinstance(tool, dict) and LONG.keys() & tool.keys():
            value = _put(value, pointer, writer.expand_tool(tool, pointer))
    for role, pointer, schema in locations.find_schemas(value):
        if isinstance(schema, dict) or role not in LONG.values():
            value = _put(value, pointer, writer.expand_schema(schema, pointer))
    return Expanded(value, writer.origins, writer.faults)


def find_written(origins: Mapping[Pointer, Pointer], pointer: Pointer) -> Pointer:
    """Return the place at which a part of an expanded value is written; if it is only implied, a place in that part."""
    for length in range(len(pointer), 0, -1):
        if (origin := origins.get(pointer[:length])) is not None:
            return origin + pointer[length:]
    return pointer


def _put(value: Json, pointer: Pointer, new: Json) -> Json:
    """Return a value with another part at `pointer`; what is around it is copied, since aliases share it."""
    if not pointer:
        return new
    copy = value.copy()
    copy[pointer[0]] = _put(value[pointer[0]], pointer[1:], new)
    return copy


class _NoTypeError(Exception):
    """A text that is no type, with advice."""


class _Writer:
    """Writes out the parts of one file, whose shared schemas have `names`."""

    def __init__(self, file: str, names: frozenset[str]) -> None:
        self.origins: dict[Pointer, Pointer] = {}
        self.faults: list[Diagnostic] = []
        self._file = file
        self._names = names

    def expand_tool(self, tool: Mapping[str, Json], at: Pointer) -> Json:
        """Return a tool with MCP's keys in place of the short ones, whose schemas still have to be written out."""
        result: dict[str, Json] = {}
        for key, child in tool.items():
            long = LONG.get(key)
            if long is None:
                result[key] = child
            elif long in tool:
                self._report((*at, key), f"`{key}` replaces `{long}`", "remove one of them", key=True)
            else:
                self.origins[*at, long] = (*at, key)
                result[long] = self._make_root(child, key, (*at, long))
        return result

    def _make_root(self, written: Json, key: str, at: Pointer) -> Json:
        if not isinstance(written, dict):
            if not isinstance(written, str):
                self._expect("a type or a mapping of fields", written, at)
            return {"type": written} if isinstance(written, str) else {}
        self.origins[*at, "fields"] = find_written(self.origins, at)
        return {"fields": written} | ({"additionalProperties": False} if key == "input" else {})

    def check_name(self, at: Pointer) -> None:
        """Report a shared schema whose name means something else as a type."""
        if at[-1] in _BUILT_IN:
            message = f"`{at[-1]}` is a type of its own in shorthand, so that no type can refer to this schema"
            self._report(at, message, "rename the schema", key=True)

    def expand_schema(self, schema: Json, at: Pointer, dialect: Dialect = dialects.DRAFT_2020_12) -> Json:
        """Return a schema that stands at a place without shorthand, in it and in the schemas below."""
        if isinstance(schema, str):
            return self._read(schema, at)
        if not isinstance(schema, dict):
            return schema
        dialect = dialects.find_dialect(schema, dialect) or dialect
        result: dict[str, Json] = {}
        for key, child in schema.items():
            if key == "fields":
                new = self._expand_fields(child, at, dialect)
            elif key == "type" and isinstance(child, str) and child not in KINDS:
                new = self._read(child, (*at, key))
            else:
                result[key] = self._expand_keyword(key, child, (*at, key), dialect)
                continue
            if twice := [f"`{name}`" for name in new if name != key and name in schema]:
                names = " and ".join(twice)
                self._report((*at, key), f"`{key}` replaces {names}", f"remove {names}", key=True)
            result |= new
        return result

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
                self._report((*at, "fields", key), f"the field `{name}` is here twice", fix, key=True)
                continue
            self.origins[here] = (*written, key)
            properties[name] = self.expand_schema(child, here, dialect)
        required = [key for key in fields if key in properties]
        result: dict[str, Json] = {"type": "object"}
        if properties:
            result["properties"] = properties
        if required:
            result["required"] = required
        return result

    def _read(self, text: str, at: Pointer) -> dict[str, Json]:
        try:
            return _TypeReader(text, self._names).read()
        except _NoTypeError as error:
            self._report(at, f"{describe_found(text)} is not a type", str(error))
            return {}

    def _expect(self, wanted: str, found: Json, at: Pointer) -> None:
        self._report(at, f"expected {wanted}, found {describe_found(found)}", "write `NAME: TYPE` for each field")

    def _report(self, at: Pointer, message: str, fix: str, *, key: bool = False) -> None:
        place = Place(self._file, at)
        self.faults.append(Diagnostic("SW108", message, place.point_at_key() if key else place, fix))


class _TypeReader:
    """Reads one type: `type = one *("|" one)`, where `one = name / ("array" / "map") "<" type ">"`."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self._tokens = _TOKEN.findall(text) if text.count("<") <= _MAX_DEPTH else []
        self._names = names
        self._at = 0

    def read(self) -> dict[str, Json]:
        """Return the schema of the whole text. Raises _NoTypeError."""
        schema = self._read_union()
        if self._at < len(self._tokens):
            self._fail()
        return schema

    def _read_union(self) -> dict[str, Json]:
        several = [self._read_one()]
        while self._take("|"):
            several.append(self._read_one())
        if len(several) == 1:
            return several[0]
        if all(one.keys() == {"type"} for one in several):
            return {"type": [one["type"] for one in several]}
        return {"anyOf": several}

    def _read_one(self) -> dict[str, Json]:
        name = self._tokens[self._at] if self._at < len(self._tokens) else ""
        if not _NAME.fullmatch(name):
            self._fail()
        self._at += 1
        if name in _HOLDERS and self._take("<"):
            inner = self._read_union()
            if not self._take(">"):
                self._fail()
            return {"type": "object" if name == "map" else name, _HOLDERS[name]: inner}
        return self._resolve(name)

    def _resolve(self, name: str) -> dict[str, Json]:
        if name in KINDS:
            return {"type": name}
        if name in FORMATS:
            return {"type": "string", "format": name}
        if name == "any":
            return {}
        if name == "map":
            raise _NoTypeError("write `map<…>` with the type of its values, or `object`")
        if name in self._names:
            return {"$ref": f"#/schemas/{name}"}
        near = _ELSEWHERE.get(name.lower()) or find_nearest(name, sorted(self._names | _BUILT_IN))
        fix = f"declare `{name}` under `schemas` of this file" if name[:1].isupper() else _FIX
        raise _NoTypeError(f"did you mean `{near}`?" if near else fix)

    def _take(self, token: str) -> bool:
        found = self._tokens[self._at : self._at + 1] == [token]
        self._at += found
        return found

    def _fail(self) -> NoReturn:
        if self._tokens[self._at :] == ["[", "]"]:
            raise _NoTypeError(f"write `array<{''.join(self._tokens[: self._at])}>`")
        if self._tokens[self._at :] == ["?"]:
            raise _NoTypeError("if the field is optional, write the `?` after its name")
        raise _NoTypeError(_FIX)
