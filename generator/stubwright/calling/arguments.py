"""Parses command-line words as tool arguments, typed by the tool's `inputSchema`.

Only unambiguous values are converted; the server validates the rest.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stubwright.compile.syntax import strictjson
from stubwright.diagnostics.suggestions import did_you_mean, find_misspelt, quote, shorten

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_WORDS: Final = {
    "array": "a list",
    "boolean": "`true` or `false`",
    "integer": "a whole number",
    "null": "`null`",
    "number": "a number",
    "object": "a JSON object",
    "string": "a text",
}
_DEPTH: Final = 20
"""The maximum number of references to follow for one value; circular references are ignored."""


class ArgumentError(Exception):
    """A command-line word is not a valid tool argument; the message explains why."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The name of an argument or nested property in messages, and the schemas that apply to its value."""

    name: str
    schemas: tuple[Mapping[str, Any], ...]


def parse(
    words: Sequence[str],
    schema: Mapping[str, Any],
    read: Callable[[str], bytes],
    read_input: Callable[[], str],
    note: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Parse the arguments of a call.

    Args:
        words: Each is one of: `NAME=VALUE`, typed by the schema, where a VALUE that starts with `@` is the content of a
            file (`@@` for a value that starts with `@`) and a repeated NAME makes a list; `NAME:=JSON`; a JSON object;
            or `-`, for a JSON object on standard input. Later words override earlier ones.
        schema: The tool's `inputSchema`.
        read: Reads a file. Raises OSError.
        read_input: Reads standard input.
        note: Receives warnings about words.

    Raises:
        ArgumentError: A word is invalid, its argument is unknown, its value has the wrong type, an object has a
            duplicate key, or a file cannot be read.
    """
    reader = _Reader(schema, read, note)
    arguments: dict[str, Any] = {}
    seen: set[tuple[str, ...]] = set()
    for word in words:
        if word == "-" or word.lstrip().startswith("{"):
            text = read_input() if word == "-" else word
            arguments |= _parse_object(text, "standard input" if word == "-" else "the argument")
            continue
        name, equals, text = word.partition("=")
        if not equals or not name.strip(":"):
            raise ArgumentError(f"`{shorten(word)}` is not an argument; write NAME=VALUE, such as `location=Paris`")
        is_json = name.endswith(":")
        path, place = reader.find(name.removesuffix(":"))
        value = _parse_json(text, place) if is_json else reader.convert(text, place)
        _put(arguments, path, value, again=path in seen and not is_json and "array" in reader.find_types(place))
        if path in seen and "array" not in reader.find_types(place):
            raise ArgumentError(f"`{place.name}` is specified twice, but is not a list")
        seen.add(path)
    for name, value in arguments.items():
        _check_text(name, value)
    return arguments


def read_value(name: str, text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Parse a value with the type from `schema`, a part of `root`; read no files. Raises ArgumentError."""
    reader = _Reader(root, lambda _: b"", lambda _: None)
    value = reader.convert(f"@{text}" if text.startswith("@") else text, _Place(name, (schema,)))
    _check_text(name, value)
    return value


def _check_text(name: str, value: Any) -> None:
    """Raise ArgumentError if a value contains a lone surrogate, which would be sent as U+FFFD."""
    try:
        json.dumps({name: value}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"`{name}` contains invalid UTF-8 or an unpaired surrogate, which cannot be sent") from None


def _put(arguments: dict[str, Any], path: tuple[str, ...], value: Any, *, again: bool) -> None:
    *above, last = path
    inner = arguments
    for key in above:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ArgumentError(f"`{'.'.join(path)}` cannot be set, because its parent is not an object")
    if again and isinstance(inner.get(last), list) and isinstance(value, list):
        inner[last] += value
    else:
        inner[last] = value


class _Reader:
    def __init__(self, root: Mapping[str, Any], read: Callable[[str], bytes], note: Callable[[str], object]) -> None:
        self._root = root
        self._read = read
        self._note = note

    def find(self, name: str) -> tuple[tuple[str, ...], _Place]:
        """Return an argument's path and schemas. `name` can refer to a nested property, such as `place.city`."""
        schemas: tuple[Mapping[str, Any], ...] = (self._root,)
        path: tuple[str, ...] = ()
        rest = name
        while True:
            property_ = self._property(schemas, rest)
            if property_:
                return (*path, rest), _Place(name, property_)
            first, dot, below = rest.partition(".")
            inner = self._property(schemas, first) if dot and below else ()
            if not inner or "object" not in self.find_types(_Place(first, inner)):
                return (*path, rest), _Place(name, self._additional(schemas, rest, path))
            schemas, path, rest = inner, (*path, first), below

    def find_types(self, place: _Place) -> frozenset[str]:
        """Return the types that every schema allows, or all types if the schemas contradict each other."""
        types = frozenset(_TYPES)
        for schema in place.schemas:
            types &= self._types(schema, _DEPTH)
        return types & frozenset(_TYPES) or frozenset(_TYPES)

    def convert(self, text: str, place: _Place) -> Any:
        """Parse a string as one of the types that the schemas allow. Raises ArgumentError."""
        if text.startswith("@@"):
            text = text[1:]
        elif text.startswith("@"):
            return self._read_file(text[1:], place)
        choices = [choice for schema in place.schemas for choice in self._choices(schema, _DEPTH)]
        types = self.find_types(place)
        if choices and "array" not in types:
            for choice in choices:
                if text == (choice if isinstance(choice, str) else json.dumps(choice)):
                    return choice
            types = frozenset(_TYPES)
            for schema in place.schemas:
                types &= self._types(schema, _DEPTH, beside_choices=True)
            if not types:
                raise ArgumentError(f"`{place.name}` must be {quote(choices)}, not `{shorten(text)}`")
        return self._convert(text, place, types)

    def _convert(self, text: str, place: _Place, types: frozenset[str]) -> Any:
        try:
            value = _try_json(text)
        except strictjson.DuplicateKeyError as error:
            if types & {"object", "array"}:
                raise _report_duplicate(f"`{place.name}`", error) from None
            value = _NOTHING  # a string
        kind = _type_of(value)
        if kind in ("object", "array") and kind in types:
            return value
        if types == frozenset(_TYPES):  # unrestricted: parsed as JSON if possible
            return text if kind is None else value
        if "array" in types and "string" not in types:
            items = _Place(place.name, tuple(self._items(place)))
            return [self.convert(text, items)]
        if "string" in types:
            return text
        if kind in types or (kind == "integer" and "number" in types):
            return value
        if kind == "number" and "integer" in types and value == int(value):
            return value
        wanted = " or ".join(_WORDS[name] for name in sorted(types) if name != "integer" or "number" not in types)
        raise ArgumentError(f"`{place.name}` must be {wanted}, not `{shorten(text)}`")

    def _read_file(self, path: str, place: _Place) -> Any:
        try:
            data = self._read(path)
        except OSError as error:
            raise ArgumentError(f"`{place.name}` cannot be read from `{path}`: {error.strerror or error}") from None
        if any(schema.get("contentEncoding") == "base64" for schema in self._flat(place.schemas)):
            return base64.b64encode(data).decode()
        items = tuple(self._items(place))
        if any(schema.get("contentEncoding") == "base64" for schema in self._flat(items)):
            return [base64.b64encode(data).decode()]
        try:
            text = data.decode("utf-8-sig")  # Windows editors write a byte order mark first
        except UnicodeDecodeError:
            raise ArgumentError(f"`{path}` is not valid UTF-8, which `{place.name}` requires") from None
        types = self.find_types(place)
        return text if "string" in types else self._convert(text.strip(), place, types)

    def _property(self, schemas: tuple[Mapping[str, Any], ...], name: str) -> tuple[Mapping[str, Any], ...]:
        subschemas = []
        for schema in self._flat(schemas):
            known = schema.get("properties")
            if isinstance(known, dict) and isinstance(known.get(name), dict):
                subschemas.append(known[name])
            elif isinstance(known, dict) and known.get(name) is True:
                subschemas.append({})
        return tuple(subschemas)

    def _additional(
        self, schemas: tuple[Mapping[str, Any], ...], name: str, path: tuple[str, ...]
    ) -> tuple[Mapping[str, Any], ...]:
        """Return the schemas for an undeclared property.

        Raises ArgumentError if the schemas forbid additional properties.
        """
        subschemas: list[Mapping[str, Any]] = []
        names: dict[str, None] = {}
        is_closed = False
        for schema in self._flat(schemas):
            known = schema.get("properties")
            names |= dict.fromkeys(known if isinstance(known, dict) else ())
            for keyword in ("additionalProperties", "unevaluatedProperties"):
                is_closed |= schema.get(keyword) is False and not schema.get("patternProperties")
                if isinstance(schema.get(keyword), dict):
                    subschemas.append(schema[keyword])
        shown = shorten(".".join((*path, name)))
        if is_closed:
            raise ArgumentError(f"there is no argument `{shown}`; {did_you_mean(name, names, 'arguments')}")
        if not subschemas and (near := find_misspelt(name, names)) is not None:
            self._note(f"the tool does not declare `{shown}`, which is sent anyway; did you mean `{near}`?")
        return tuple(subschemas)

    def _items(self, place: _Place) -> Iterator[Mapping[str, Any]]:
        for schema in self._flat(place.schemas):
            if isinstance(schema.get("items"), dict):
                yield schema["items"]

    def _flat(self, schemas: Sequence[Mapping[str, Any]], depth: int = _DEPTH) -> Iterator[Mapping[str, Any]]:
        """Yield each schema, followed by its subschemas that apply to the same value."""
        for schema in schemas if depth else ():
            yield schema
            below = [each for key in ("allOf", "anyOf", "oneOf") for each in _list(schema.get(key))]
            referred = self._resolve_reference(schema)
            inner = [*([referred] if referred is not None else []), *(each for each in below if isinstance(each, dict))]
            yield from self._flat(inner, depth - 1)

    def _resolve_reference(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        value: Any = self._root
        for part in reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else None

    def _types(self, schema: Mapping[str, Any], depth: int, *, beside_choices: bool = False) -> frozenset[str]:
        """Return the types that a schema allows. With `beside_choices`, ignore `anyOf` and `oneOf`."""
        types = frozenset(_TYPES)
        if not depth:
            return types
        named = schema.get("type")
        names = frozenset(
            each for each in ([named] if isinstance(named, str) else _list(named)) if isinstance(each, str)
        )
        if names:
            types &= names | {"integer"} if "number" in names else names
        for values in ([schema["const"]] if "const" in schema else None, schema.get("enum")):
            if isinstance(values, list):
                types &= frozenset(() if beside_choices else (name for value in values for name in _list_types(value)))
        for inner in (self._resolve_reference(schema), *_list(schema.get("allOf"))):
            if isinstance(inner, dict):
                types &= self._types(inner, depth - 1, beside_choices=beside_choices)
        for key in ("anyOf", "oneOf"):
            either = [each for each in _list(schema.get(key)) if isinstance(each, dict)]
            if either:
                several = (self._types(each, depth - 1, beside_choices=beside_choices) for each in either)
                types &= frozenset().union(*several)
        return types

    def _choices(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        for each in self._flat([schema], depth):
            if "const" in each:
                yield each["const"]
            yield from _list(each.get("enum"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _list_types(value: Any) -> tuple[str, ...]:
    kind = _type_of(value)
    return ("integer", "number") if kind == "integer" else (kind,) if kind is not None else ()


def _type_of(value: Any) -> str | None:
    kinds: dict[type, str] = {
        bool: "boolean",
        dict: "object",
        float: "number",
        int: "integer",
        list: "array",
        str: "string",
        type(None): "null",
    }
    return kinds.get(type(value))


_NOTHING: Final = object()


def _report_duplicate(source: str, error: strictjson.DuplicateKeyError) -> ArgumentError:
    return ArgumentError(f"{source} has a duplicate key, `{shorten(str(error))}`")


def _try_json(text: str) -> Any:
    """Parse JSON. Return _NOTHING if the text is not valid JSON. Raises DuplicateKeyError."""
    try:
        return strictjson.load(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _parse_json(text: str, place: _Place) -> Any:
    try:
        value = _try_json(text)
    except strictjson.DuplicateKeyError as error:
        raise _report_duplicate(f"`{place.name}`", error) from None
    if value is _NOTHING:
        raise ArgumentError(f"`{place.name}:=` requires JSON; `{shorten(text)}` is not valid JSON")
    return value


def _parse_object(text: str, source: str) -> dict[str, Any]:
    try:
        value = strictjson.load(text)
    except strictjson.DuplicateKeyError as error:
        raise _report_duplicate(source, error) from None
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f'{source} is not JSON: {error}; write {{"NAME": VALUE}} in single quotes') from None
    if not isinstance(value, dict):
        raise ArgumentError(f'{source} is not a JSON object, such as {{"location": "Paris"}}')
    return value
