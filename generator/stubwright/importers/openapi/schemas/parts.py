"""Converts form parts, with files as base64 arguments (3.0.4, section 4.7.14.2; 3.1.1, section 4.8.14.3)."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from stubwright.importers.openapi import media as media_types
from stubwright.importers.openapi.documents import LocatedValue, UnsupportedError, walk
from stubwright.importers.openapi.schemas.conversion import REFERENCE, drop_text
from stubwright_runtime.http.media import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stubwright.importers.openapi.schemas.conversion import Schemas
    from stubwright.ir import Json

    _Change: TypeAlias = Callable[[Mapping[str, Json], frozenset[str]], Mapping[str, Json]]
    """Converts a schema within the shared schemas with these names."""

_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf")
_COMBINED: Final = frozenset({"$ref", *_ALTERNATIVES})
_PLAIN: Final = frozenset({"string", "integer", "number", "boolean", "null"})
"""Types whose text form does not depend on the media type."""

_BYTES: Final = frozenset({"application/octet-stream", "application/pdf", "application/zip", "application/gzip"})
_BYTE_RANGES: Final = ("image/", "audio/", "video/", "font/")
_NARROWING: Final = frozenset({"format", "contentEncoding", "enum", "const", "pattern"})
"""Keywords whose presence shows that a string is not a file."""

_OF_BYTES: Final = frozenset({"format", "minLength", "maxLength", "pattern"})
"""Keywords of a file that do not apply to its base64 form."""

_ITEM: Final = "[]"
"""Marks lists among the names of enclosing schemas; nested lists are JSON, without files."""

_COMMA: Final = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A comma outside quoted parameters."""

_STYLES: Final = ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject")


def is_bytes(media: str) -> bool:
    """Return whether a media type is always binary."""
    return media.startswith(_BYTE_RANGES) or media in _BYTES


def is_binary(at: LocatedValue | None, schemas: Schemas) -> bool:
    """Return whether a schema, its reference's target, or one of its alternatives describes bytes."""
    return at is not None and any(_is_unencoded(part.value) for part in schemas.list_applied(at))


def is_base64(at: LocatedValue | None, schemas: Schemas) -> bool:
    """Return whether the API itself expects base64."""
    return at is not None and any(
        part.get_field("format") == "byte" or part.get_field("contentEncoding") == "base64"
        for part in schemas.list_applied(at)
    )


def name_lone_file(entry: LocatedValue, schemas: Schemas) -> LocatedValue:
    """Wrap a form schema that is a file, a list of files, or null: it becomes the part `file` of an object.

    A form is an object (3.1.1, section 4.8.14.4). Frameworks write only the file's schema for a handler with a single
    file, and lose the part's name, which is usually `file`.
    """
    schema = entry.get("schema")
    applied = [] if schema is None else [*schemas.list_applied(schema)]
    items = [at for part in applied for at in _list_items(part)]
    applied += [part for at in items for part in schemas.list_applied(at)]
    is_form = any(_may_be_object(part) for part in applied)
    if schema is None or is_form or not any(_is_file(part.value) for part in applied):
        return entry
    form = {"type": "object", "properties": {"file": schema.value}, "additionalProperties": False}
    return LocatedValue({**entry.value, "schema": form}, entry.file, entry.pointer)


class Parts:
    """The parts of a form, or the fields of a URL-encoded form."""

    def __init__(self, entry: LocatedValue, schemas: Schemas, *, is_multipart: bool) -> None:
        """Create the parts of a form from its media type object. `schemas` converts the schemas of the parts."""
        self._entry = entry
        self._schemas = schemas
        self._is_multipart = is_multipart
        documents = schemas.documents
        self._is_styled = not is_multipart or documents.minor >= 1 or documents.is_swagger
        """True if `style` and `explode` apply: 3.0 ignores them in multipart forms (3.0.4, section 4.7.15.1.2)."""
        self._files: set[str] = set()

    def has_file(self) -> bool:
        """Return whether any part is, or can be, a file or a list of files."""
        schema = self._entry.get("schema")
        for applied in () if schema is None else self._schemas.list_applied(schema):
            others = [at for _, at in applied.list_entries("patternProperties")]
            if (rest := applied.get("additionalProperties")) is not None:
                others.append(rest)
            named: list[tuple[str | None, LocatedValue]] = [*applied.list_entries("properties")]
            if any(self._describes_file(name, at) for name, at in [*named, *((None, at) for at in others)]):
                return True
        return False

    def _describes_file(self, name: str | None, at: LocatedValue, depth: int = 3) -> bool:
        types = self._list_media(name)
        for part in self._schemas.list_applied(at) if depth else ():
            below = _list_items(part)
            if _is_file(part.value, types) or any(self._describes_file(name, item, depth - 1) for item in below):
                return True
        return False

    def find_problem(self) -> str | None:
        """Return the reason that a part cannot be sent, as a relative clause, or None."""
        schema = self._entry.get("schema")
        applied = [] if schema is None else [*self._schemas.list_applied(schema)]
        if any("type" in part.value for part in applied) and not any(map(_may_be_object, applied)):
            return "whose schema is not an object"
        for name, encoding in self._entry.list_entries("encoding"):
            style = encoding.get_field("style")
            if self._is_styled and style not in (None, *_STYLES):
                return f"whose field `{name}` has the style `{style}`"
            for header, described in encoding.list_entries("headers") if self._is_multipart else ():
                is_known = header.lower() == "content-type"
                if self._schemas.documents.resolve(described).get_field("required") is True and not is_known:
                    return f"whose part `{name}` needs the header `{header}`"
        return None

    def list_styles(self) -> dict[str, Json]:
        """Return the fields' styles by name, without defaults. Call this method after all parts have been converted."""
        styles: dict[str, Json] = {}
        for name, encoding in self._entry.list_entries("encoding") if self._is_styled else ():
            given = {key: encoding.get_field(key) for key in ("style", "explode")}
            style = {key: value for key, value in given.items() if value is not None}
            reserved = encoding.get_field("allowReserved")
            if isinstance(reserved, bool) and not self._is_multipart:
                style["reserved"] = reserved
            media = self._find_media(name)
            if not style and not self._is_multipart and media_types.is_json(media):
                style = {"contentType": media}
            if style and name not in self._files:
                styles[name] = style
        return styles

    def list_types(self) -> dict[str, Json]:
        """Return a multipart form's media types by part, without files.

        Call this method after all parts have been converted.
        """
        styled = self.list_styles()
        types: dict[str, Json] = {}
        for name, _ in self._entry.list_entries("encoding") if self._is_multipart else ():
            media = self._find_media(name)
            if media and name not in styled and name not in self._files:
                types[name] = {"contentType": media.replace("{", "{{").replace("}", "}}")}
        return types

    def convert(self, name: str | None, at: LocatedValue) -> tuple[Json, frozenset[str]]:
        """Return the schema of a part's argument, and the names of the shared schemas in it.

        Args:
            name: The part's name; None for parts with any other name (`additionalProperties`).
            at: The part's schema.

        Raises:
            UnsupportedError: The part's media type cannot represent JSON values.
        """
        converted, uses = self._schemas.convert(at, "request")
        if not self._is_multipart:
            return converted, uses
        schema = self._convert_part(name, converted, self._schemas.list_shared(uses))
        return schema, uses if schema is converted else _find_uses(schema)

    def convert_whole(self, at: LocatedValue) -> tuple[Json, frozenset[str]]:
        """Return the schema of one argument for the whole form, and the names of the shared schemas in it.

        Raises:
            UnsupportedError: See `convert`.
        """
        converted, uses = self._schemas.convert(at, "request")
        if not self._is_multipart:
            return converted, uses
        shared = self._schemas.list_shared(uses)

        def change(schema: Mapping[str, Json], _: frozenset[str]) -> Mapping[str, Json]:
            changed: dict[str, Json] = {}
            for key, entry in schema.items():
                if key in ("properties", "patternProperties") and isinstance(entry, dict):
                    is_named = key == "properties"
                    changed_parts = {
                        name: self._convert_part(name if is_named else None, part, shared)
                        for name, part in entry.items()
                    }
                    is_same = all(changed_parts[name] is part for name, part in entry.items())
                    changed[key] = entry if is_same else changed_parts
                elif key == "additionalProperties":
                    changed[key] = self._convert_part(None, entry, shared)
                else:
                    changed[key] = entry
            return schema if all(changed[key] is entry for key, entry in schema.items()) else changed

        schema = _rewrite(converted, shared, change)
        return schema, uses if schema is converted else _find_uses(schema)

    def _convert_part(self, name: str | None, converted: Json, shared: Mapping[str, Json]) -> Json:
        media = self._find_media(name)
        types, plain = self._list_media(name), media_types.strip_parameters(media)

        def change(schema: Mapping[str, Json], above: frozenset[str]) -> Mapping[str, Json]:
            if _is_file(schema, types):
                keywords = {key: value for key, value in schema.items() if key not in _OF_BYTES}
                named = {"contentMediaType": media} if media else {}
                return drop_text({"type": "string", **keywords, "contentEncoding": "base64", **named})
            if schema.get("contentEncoding") == "base64":  # the API itself expects base64
                return {**schema, "format": "byte"}
            return schema if _ITEM in above else _rewrite_items(schema, shared, change)

        schema = _rewrite(converted, shared, change)
        if schema is not converted:
            schema = _let_files_be_texts(schema)
        if name is None:
            return schema
        if _has_file(schema):
            self._files.add(name)
        elif plain and not media_types.is_json(plain) and not _is_plain(schema, shared):
            raise UnsupportedError(f"the part `{name}` of its form has the media type `{media}`")
        return schema

    def _find_media(self, name: str | None) -> str:
        """Return the first media type in a part's `encoding` that is not a range, or an empty string."""
        return next((media for media in self._list_media(name) if not media_types.is_range(media)), "")

    def _list_media(self, name: str | None) -> list[str]:
        encoding = self._entry.get("encoding")
        part = encoding.get(name) if encoding is not None and name is not None else None
        listed = part.get_field("contentType") if part is not None else None
        types = _COMMA.split(listed) if isinstance(listed, str) else []
        return [media.strip() for media in types if "/" in media]


def _is_file(schema: Mapping[str, Json], types: Sequence[str] = ()) -> bool:
    """Return whether a schema describes bytes. A text `contentMediaType` excludes bytes (3.1.1, section 4.8.14.3).

    Args:
        schema: The schema.
        types: The part's media types. If a type is not text, any string of that type is a file.
    """
    media = schema.get("contentMediaType")
    if _is_unencoded(schema):
        return True
    if isinstance(media, str):
        return "contentEncoding" not in schema and not _is_text_type(media)
    if not schema.keys() & (_COMBINED | {"type"}):
        return any(is_bytes(media_types.strip_parameters(listed)) for listed in types)
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    is_any_string = "string" in kinds and {*kinds} <= {"string", "null"} and not schema.keys() & _NARROWING
    return is_any_string and bool(types) and not any(map(_is_text_type, types))


def _may_be_object(at: LocatedValue) -> bool:
    kind = at.get_field("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or at.get_field("properties") is not None


def _is_unencoded(schema: Mapping[str, Json]) -> bool:
    """Return whether a schema has `format: binary`, or `binary` as its `contentEncoding` (RFC 2045, 6.2)."""
    return schema.get("format") == "binary" or schema.get("contentEncoding") == "binary"


def _is_text_type(media: str) -> bool:
    """Return whether a media type is text or JSON.

    A range counts as text unless the range includes only binary types.
    """
    plain = media_types.strip_parameters(media)
    if media_types.is_range(plain):
        return not is_bytes(plain)
    return is_text(plain) or media_types.is_json(plain)


def _has_file(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    below = [item for key in (*_ALTERNATIVES, "prefixItems") for item in schema.get(key) or ()]
    return schema.get("contentEncoding") == "base64" or any(map(_has_file, [*below, schema.get("items")]))


def _let_files_be_texts(schema: Json) -> Json:
    """Replace `oneOf` with `anyOf` where an alternative is a file.

    A file's base64 is a string, which can also match a text alternative.
    """
    if not isinstance(schema, dict):
        return schema
    lists = (*_ALTERNATIVES, "prefixItems")
    below = {key: [*map(_let_files_be_texts, schema[key])] for key in lists if key in schema}
    if "items" in schema:
        below["items"] = _let_files_be_texts(schema["items"])
    if "anyOf" not in below and any(map(_has_file, below.get("oneOf", ()))):
        schema = {"anyOf" if key == "oneOf" else key: entry for key, entry in schema.items()}
        below["anyOf"] = below.pop("oneOf")
    return {**schema, **below} if below else schema


def _is_plain(schema: Json, shared: Mapping[str, Json], depth: int = 8) -> bool:
    """Return whether all of a schema's values, or their items, can be written as plain text."""
    if not isinstance(schema, dict) or not depth:
        return False
    if isinstance(schema.get("$ref"), str):
        return _is_plain(shared.get(schema["$ref"].removeprefix(REFERENCE)), shared, depth - 1)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return all(_is_plain(item, shared, depth - 1) for item in schema[key])
    kinds = {*schema["type"]} if isinstance(schema.get("type"), list) else {schema.get("type")}
    items = [*schema.get("prefixItems", ()), *([] if schema.get("items") is False else [schema.get("items")])]
    is_list_of_plain = bool(items) and all(_is_plain(item, shared, depth - 1) for item in items)
    return kinds <= _PLAIN or (kinds <= _PLAIN | {"array"} and is_list_of_plain)


def _list_items(at: LocatedValue) -> list[LocatedValue]:
    rest = at.get("items")
    return [*at.list_items("prefixItems"), *([] if rest is None else [rest])]


def _rewrite_items(
    schema: Mapping[str, Json],
    shared: Mapping[str, Json],
    change: _Change,
) -> Mapping[str, Json]:
    """Apply a change to the schemas of a list's items. Return the same object if nothing changes."""
    changed = dict(schema)
    if "items" in schema:
        changed["items"] = _rewrite(schema["items"], shared, change, frozenset({_ITEM}))
    if isinstance(listed := schema.get("prefixItems"), list):
        items = [_rewrite(item, shared, change, frozenset({_ITEM})) for item in listed]
        changed["prefixItems"] = listed if all(map(operator.is_, items, listed)) else items
    return schema if all(changed[key] is entry for key, entry in schema.items()) else changed


def _rewrite(
    schema: Json,
    shared: Mapping[str, Json],
    change: _Change,
    above: frozenset[str] = frozenset(),
) -> Json:
    """Apply a change to each schema for the same value. Return the same object if nothing changes.

    If a shared schema changes, the result replaces the reference to the shared schema.
    """
    if not isinstance(schema, dict):
        return schema
    changed = own = change(schema, above)
    reference = changed.get("$ref")
    name = reference.removeprefix(REFERENCE) if isinstance(reference, str) else ""
    if name in shared and name not in above:
        target = _rewrite(shared[name], shared, change, above | {name})
        if isinstance(target, dict) and target is not shared[name]:
            changed = {**target, **{key: value for key, value in changed.items() if key != "$ref"}}
    for key in _ALTERNATIVES:
        items = own.get(key)  # the target is already rewritten
        if isinstance(items, list):
            rewritten = [_rewrite(item, shared, change, above) for item in items]
            if any(new is not old for new, old in zip(rewritten, items, strict=True)):
                changed = {**changed, key: rewritten}
    return schema if changed is schema else dict(changed)


def _find_uses(schema: Json) -> frozenset[str]:
    references = (part.get("$ref") for part in walk(schema))
    return frozenset(
        reference.removeprefix(REFERENCE)
        for reference in references
        if isinstance(reference, str) and reference.startswith(REFERENCE)
    )
