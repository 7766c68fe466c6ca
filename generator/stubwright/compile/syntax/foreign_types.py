"""Translates types from TypeScript, Python and other languages to shorthand, for help messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

from stubwright.diagnostics.suggestions import KINDS, find_nearest
from stubwright.jsonschema.formats import FORMATS

_NAMES: Final = {
    "bool": "boolean",
    **dict.fromkeys(("bigint", "int", "int32", "int64", "long", "short", "uint"), "integer"),
    **dict.fromkeys(("decimal", "double", "float", "float32", "float64"), "number"),
    **dict.fromkeys(("char", "str", "text", "varchar"), "string"),
    **dict.fromkeys(("nil", "none"), "null"),
    **dict.fromkeys(("datetime", "timestamp"), "date-time"),
    **dict.fromkeys(("json", "jsonb", "mixed", "unknown"), "any"),
    "guid": "uuid",
    "url": "uri",
}
"""Shorthand types by lower-case type name in other languages."""

_LISTS: Final = frozenset({"array", "frozenset", "iterable", "list", "readonlyarray", "sequence", "set", "vec"})
_MAPS: Final = frozenset({"dict", "dictionary", "hashmap", "map", "mapping", "record"})
KEYWORDS: Final = {
    **dict.fromkeys(("comment", "desc", "doc", "help", "summary"), "description"),
    **dict.fromkeys(("choices", "options", "values"), "enum"),
    **dict.fromkeys(("elements", "item", "itemtype", "of"), "items"),
    **dict.fromkeys(("oneof", "types", "union"), "anyOf"),
    **dict.fromkeys(("regex", "regexp", "match"), "pattern"),
    "example": "examples",
    "ref": "$ref",
}
"""Keywords that are commonly mistaken for JSON Schema's, in lower case."""

_ABSENT: Final = frozenset({"undefined", "void"})
_CHOICES: Final = frozenset({"enum", "literal", "oneof"})
_CLOSING: Final = {"<": ">", "[": "]", "(": ")"}
_TOKEN: Final = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w.-]+|\S)""")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_LONGEST: Final = 200  # characters
_REFERENCE: Final = re.compile(r"(?:#/(?:schemas|\$defs|definitions|components/schemas)/|[#$@&])(?P<name>[\w.-]+)")
_COMMENTED: Final = re.compile(r"(?P<type>[\w<>| ]+?)\s*(?://|#|:|--)\s*(?P<words>[^\W\d].*)")
_BYTES: Final = frozenset({"binary", "blob", "buffer", "bytearray", "bytes", "uint8array"})
_TUPLE: Final = re.compile(
    r"(?:(?:typing\.)?tuple\s*[\[<(]|\[)(?P<items>[^\[\]<>()]+,[^\[\]<>()]+)[\])>]", re.IGNORECASE
)
_INTERSECTION: Final = re.compile(r"\s*[\w.-]+\s*(?:&\s*[\w.-]+\s*)+")
_RANGE: Final = re.compile(
    r"(?P<name>\w+)\s*(?:[(\[{]\s*(?:(?P<low>-?\d+)\s*(?:\.\.|,|-)\s*)?(?P<high>-?\d+)\s*[)\]}]"
    r"|(?P<first>-?\d+)\s*(?:\.\.|-)\s*(?P<last>-?\d+)|>=\s*(?P<least>-?\d+)|<=\s*(?P<most>-?\d+))"
)


@dataclass(frozen=True, slots=True)
class _Type:
    """A shorthand type, or a list of allowed values, with `None` for `null`."""

    text: str = ""
    values: tuple[str | float | bool | None, ...] = ()
    may_be_absent: bool = False


class _UnknownError(Exception):
    """The type is unknown."""


def suggest(text: str, schemas: Set[str]) -> str | None:
    """Suggest the shorthand for a type from another language. Return None if the type is unknown.

    Args:
        text: The type as written, such as `Optional[str]`.
        schemas: The names of shared schemas.
    """
    if len(text) > _LONGEST:
        return None
    text = text.strip()
    if (reference := _REFERENCE.fullmatch(text)) is not None and reference["name"] in schemas:
        return f"write `{reference['name']}`"
    if (bounded := _RANGE.fullmatch(text)) is not None:
        return _suggest_bounds(bounded)
    if (commented := _COMMENTED.fullmatch(text)) is not None and commented["type"] in {*KINDS, *FORMATS, *schemas}:
        return f"write `{{type: {commented['type']}, description: {_show_value(commented['words'])}}}`"
    if text.lower() in _BYTES:
        return "write `{type: string, contentEncoding: base64}`: JSON has no bytes"
    if (listed := _TUPLE.fullmatch(text)) is not None:
        return _suggest_tuple([part.strip() for part in listed["items"].split(",")], schemas)
    if _INTERSECTION.fullmatch(text) is not None:
        return f"write `{{allOf: [{', '.join(part.strip() for part in text.split('&'))}]}}`"
    written, _, default = text.partition("=")
    reader = _Reader(_TOKEN.findall(written), schemas)
    try:
        found = reader.read()
    except _UnknownError:
        return None
    advice = _show(found, default.strip())
    if not found.may_be_absent:
        return f"write `{advice}`"
    return f"write `{advice}`, and put the `?` after the field name" if advice else None


def _suggest_tuple(items: list[str], schemas: Set[str]) -> str | None:
    """Suggest the shorthand for a Python tuple. For `tuple[T, ...]`, suggest a list."""
    try:
        types = [_Reader(_TOKEN.findall(item), schemas).read().text for item in items if item != "..."]
    except _UnknownError:
        return None
    if not all(types):
        return None
    if items[-1] == "...":
        return f"write `array<{types[0]}>`"
    return f"write `{{type: array, prefixItems: [{', '.join(types)}], items: false}}`"


def suggest_type_keyword(text: str, keywords: Set[str]) -> str | None:
    """Suggest a replacement for `type` in a schema with these keywords or return None to fall back to `suggest`."""
    name = text.strip().lower()
    if name in _LISTS and "items" in keywords:
        return "write `array`"
    if name in _CHOICES:
        return "write `enum: [VALUE, …]`, and remove `type`"
    if name == "union":
        return "write `anyOf: [TYPE, …]`, and remove `type`"
    return None


def _suggest_bounds(found: re.Match[str]) -> str | None:
    """Suggest the shorthand for a bounded type, such as `varchar(20)`, `integer 1..10` or `int >= 0`."""
    kind = _NAMES.get(found["name"].lower(), found["name"].lower())
    least, most = found["low"] or found["first"] or found["least"], found["high"] or found["last"] or found["most"]
    if kind == "string":
        names = ("minLength", "maxLength")
    elif kind in ("integer", "number") and (least is not None or found["most"] is not None):
        names = ("minimum", "maximum")
    else:
        return f"write `{kind}`" if kind in KINDS else None  # as in `number(2)`: digits, not a bound
    bounds = ", ".join(f"{name}: {bound}" for name, bound in zip(names, (least, most), strict=True) if bound)
    return f"write `{{type: {kind}, {bounds}}}`"


def _show(found: _Type, default: str) -> str:
    if found.values:
        values = ", ".join("null" if value is None else _show_value(value) for value in found.values)
        return f"{{enum: [{values}]{f', default: {default}' if default else ''}}}"
    return f"{{type: {found.text}, default: {default}}}" if default else found.text


def _show_value(value: str | float | bool) -> str:
    is_plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w-]*", value)
    return str(value) if is_plain and str(value).lower() not in _NOT_STRINGS else json.dumps(value)


_NOT_STRINGS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class _Reader:
    """Parses unions, type arguments in any kind of bracket, literals, and suffixes for lists and optionals."""

    def __init__(self, tokens: list[str], schemas: Set[str]) -> None:
        self._tokens = tokens
        self._schemas = schemas
        self._at = 0

    def read(self) -> _Type:
        found = self._read_union(",")
        if self._at < len(self._tokens):
            raise _UnknownError
        return found

    def _read_union(self, *separators: str) -> _Type:
        parts = [self._read_marked()]
        while any(self._accept(separator) for separator in ("|", "or", *separators)):
            self._accept("|")  # as in `||`
            parts.append(self._read_marked())
        return self._unite(parts)

    def _unite(self, parts: list[_Type]) -> _Type:
        may_be_absent = any(part.may_be_absent for part in parts)
        known = [part for part in parts if part.text or part.values]
        if not any(part.values for part in known):
            texts = dict.fromkeys(part.text for part in known)
            return _Type(" | ".join(texts), (), may_be_absent)
        if any(part.text not in ("", "null") for part in known):
            raise _UnknownError  # values and types
        values = tuple(value for part in known for value in (part.values or (None,)))
        return _Type("boolean", (), may_be_absent) if values == ("true", "false") else _Type("", values, may_be_absent)

    def _read_marked(self) -> _Type:
        is_optional = self._accept("?")
        found = self._read_pointer() if self._accept("*") else self._read_one()
        while self._accept("!"):  # GraphQL: not null
            pass
        while True:
            if self._tokens[self._at : self._at + 2] == ["[", "]"]:
                self._at += 2
                found = self._make_list(found)
            elif self._accept("?"):
                is_optional = True
            else:
                return _Type(found.text, found.values, True) if is_optional else found

    def _read_pointer(self) -> _Type:
        return self._unite([self._read_marked(), _Type("null")])

    def _read_bracketed(self) -> _Type:
        """Read `[]T` (Go) or `[T]` (GraphQL) after the opening bracket."""
        if self._accept("]"):
            return self._make_list(self._read_marked())
        found = self._read_union()
        self._expect("]")
        return self._make_list(found)

    def _read_one(self) -> _Type:
        if self._accept("["):
            return self._read_bracketed()
        token = self._next()
        if token[0] in "\"'":
            return _Type("", (token[1:-1],))
        if _NUMBER.fullmatch(token):
            return _Type("", (json.loads(token),))
        if token.startswith("("):
            found = self._read_union()
            self._expect(")")
            return found
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", token):
            raise _UnknownError
        name = token.rpartition(".")[2].lower()  # as in `typing.Optional`
        if name in _LISTS and self._accept("of"):
            return self._make_list(self._read_marked())
        opening = self._tokens[self._at] if self._at < len(self._tokens) else ""
        is_list_of_none = self._tokens[self._at : self._at + 2] == ["[", "]"]
        if opening in _CLOSING and not is_list_of_none:
            self._at += 1
            arguments = list(self._read_arguments(_CLOSING[opening]))
            if name == "map" and opening == "[" and self._at < len(self._tokens) and self._tokens[self._at] != "|":
                arguments = [self._read_marked()]  # as in Go: `map[string]int`
            return self._apply(name, arguments)
        return self._resolve(token, name)

    def _read_arguments(self, closing: str) -> Iterator[_Type]:
        yield self._read_union()
        while self._accept(","):
            yield self._read_union()
        self._expect(closing)

    def _apply(self, name: str, arguments: list[_Type]) -> _Type:
        if name in _LISTS:
            return self._make_list(self._unite(arguments))
        if name in _MAPS and len(arguments) <= 2:
            return _Type(f"map<{self._need_text(arguments[-1])}>")
        if name in ("optional", "nullable", "maybe"):
            return self._unite([*arguments, _Type("null")])
        if name in ("union", *_CHOICES):
            return self._unite(arguments)
        if _NAMES.get(name, name) in KINDS:  # as in `varchar(50)`; the length is a separate keyword
            return _Type(_NAMES.get(name, name))
        raise _UnknownError

    def _resolve(self, token: str, name: str) -> _Type:
        if token in self._schemas:
            return _Type(token)
        if name in _ABSENT:
            return _Type(may_be_absent=True)
        if name in _LISTS | _MAPS:
            return _Type("array<any>" if name in _LISTS else "object")
        text = _NAMES.get(name, name)
        if text in KINDS or text in FORMATS or text == "any":
            return _Type(text)
        is_typo = find_nearest(token, [*KINDS, *FORMATS, *self._schemas]) is not None
        if token == token.lower() and len(self._tokens) > 1 and not is_typo:
            return _Type("", (token,))  # a word, as in `red | green`
        raise _UnknownError

    def _make_list(self, item: _Type) -> _Type:
        return _Type(f"array<{self._need_text(item)}>")

    def _need_text(self, found: _Type) -> str:
        if not found.text:
            raise _UnknownError
        return found.text

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise _UnknownError
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, token: str) -> bool:
        is_next = self._tokens[self._at : self._at + 1] == [token]
        self._at += is_next
        return is_next

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise _UnknownError
