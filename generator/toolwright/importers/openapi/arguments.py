"""What an operation takes, as a tool's arguments and as the places of an HTTP request that they go to.

Takes an operation; gives the `inputSchema` and the part of the `http` binding that says where each argument goes.

An argument is called like its parameter, with `_` for each run of characters that clients refuse in names. Where
parameters of one operation would meet, each of them gets its place in front: `path_id`, `query_id`. The properties of a
body that is an object are arguments of their own, unless one of them would meet a parameter; then, and for any other
body, the whole of it is the argument `body`. A body that may be left out, but not without what it requires, is always
sent: such a document says less than it means, more often than not.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from toolwright.http import VARIABLE
from toolwright.importers.openapi import media as media_types
from toolwright.importers.openapi import operations
from toolwright.importers.openapi.documents import UnsupportedError
from toolwright.importers.openapi.schemas import without_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolwright.importers.openapi.apis import Credential
    from toolwright.importers.openapi.documents import Located
    from toolwright.importers.openapi.operations import Operation, Parameter
    from toolwright.importers.openapi.options import Options
    from toolwright.importers.openapi.schemas import Flat, Schemas
    from toolwright.ir import Json

BODY = "body"
"""The argument that a whole body is."""

_REFUSED = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 64
_SECTIONS: Final = {"query": "query", "header": "headers", "cookie": "cookies", "path": "path"}
_DEFAULTS: Final = {"path": ("simple", False), "query": ("form", True), "header": ("simple", False)}
_BODILESS = frozenset({"get", "head", "options"})
"""Methods whose body means nothing (RFC 9110, 9.3), so that it is ignored (3.0.4, section 4.7.10.1)."""

_BODIED = frozenset({"post", "put", "patch", "query"})

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class Arguments:
    """An `inputSchema`, where its properties go in the request, and the shared schemas that it refers to.

    `withheld` has the credentials that the document lists as parameters, too.
    """

    schema: Mapping[str, Json]
    http: Mapping[str, Json]
    uses: frozenset[str]
    withheld: Sequence[Credential] = ()


@dataclass(slots=True)
class _Making:
    properties: dict[str, Json] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    http: dict[str, Any] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)
    additional: Json = False


@dataclass(frozen=True, slots=True)
class _Body:
    """A request body in the media type that is chosen of those it may have."""

    media: str
    entry: Located
    required: bool
    description: str | None
    kind: str

    @property
    def schema(self) -> Located | None:
        """Its schema."""
        return self.entry.get("schema")


def of(operation: Operation, schemas: Schemas, options: Options, keys: Sequence[Credential] = ()) -> Arguments:
    """The arguments of an operation.

    Args:
        operation: The operation.
        schemas: What converts its schemas.
        options: What the user prefers.
        keys: The credentials that the server sends. A parameter that is one of them is no argument.

    Raises:
        UnsupportedError: It takes something that is not supported.
    """
    described = operations.parameters(schemas.documents, operation)
    withheld = [key for key in keys if any(key.is_at(one.where, one.name) for one in described)]
    parameters = [one for one in described if not any(key.is_at(one.where, one.name) for key in withheld)]
    body = _body(operation, schemas, options.media_types)
    flat = _flattened(operation, body, parameters, schemas) if body is not None else None
    names = named(parameters, has_body=body is not None and flat is None and not _is_nothing(body))
    making = _Making()
    making.http["url"] = _url(operation, parameters, names)
    for parameter, name in zip(parameters, names, strict=True):
        making.properties[name] = _property(parameter, schemas, making)
        if parameter.required:
            making.required.append(name)
        _place(parameter, name, making.http)
    if body is not None and not (flat is None and _is_nothing(body)):
        if body.kind != "json" or body.media != "application/json":
            making.http["contentType"] = body.media
            if body.kind == "form" and (fields := _fields(body)):
                making.http["fields"] = fields
        if flat is None:
            _whole(body, schemas, making)
        else:
            _spread(flat, body, schemas, making)
    schema: dict[str, Json] = {"type": "object", "properties": making.properties}
    if making.required:
        schema["required"] = making.required
    if making.additional is not None:
        schema["additionalProperties"] = making.additional
    return Arguments(schema, making.http, frozenset(making.uses), withheld)


def _is_nothing(body: _Body) -> bool:
    """Whether a body is an object that has nothing, and may be left out."""
    if body.required or body.schema is None or not isinstance(body.schema.value, dict):
        return False
    schema = body.schema.value
    return (
        schema.get("type") == "object" and not (schema.keys() - {"type", "properties"}) and not schema.get("properties")
    )


def named(parameters: list[Parameter], *, has_body: bool) -> list[str]:
    """The argument of each parameter, all of them different; `has_body` says that `body` is one already."""
    plain = [fixed(parameter.name) for parameter in parameters]
    meetings = Counter(plain + [BODY] * has_body)
    taken = set(plain) | {BODY}
    found = []
    for parameter, name in zip(parameters, plain, strict=True):
        if meetings[name] > 1:
            placed = fixed(f"{parameter.where}_{name}")
            if placed in taken:
                placed = fixed(f"{placed}_{_digest(f'{parameter.where} {parameter.name}')}")
            name = placed
            taken.add(name)
        found.append(name)
    return found


def fixed(name: str) -> str:
    """A name that every client takes for an argument: up to 64 letters, digits, `_`, `.` and `-`."""
    kept = _REFUSED.sub("_", name)
    if kept != name:
        kept = kept.strip("_") or "parameter"
    return kept if len(kept) <= _LONGEST else f"{kept[: _LONGEST - 7]}_{_digest(name)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _url(operation: Operation, parameters: list[Parameter], names: list[str]) -> str:
    """The path with its parameters' arguments in braces."""
    by_wire = {one.name: name for one, name in zip(parameters, names, strict=True) if one.where == "path"}
    whole = operation.path.partition("#")[0]  # a fragment is never sent (RFC 9110, 7.1)
    path, mark, fixed_query = whole.partition("?")  # some tell operations apart by a fragment, or by a query
    if not path.startswith("/") or re.search(r"[{}\s]", fixed_query):
        raise UnsupportedError(f"`{whole}` is no path")
    inside = VARIABLE.findall(path)
    lacking = [name for name in inside if name not in by_wire]
    if lacking or re.search(r"[{}]", VARIABLE.sub("", path)):
        raise UnsupportedError(f"the document does not say what `{{{lacking[0] if lacking else ''}}}` in its path is")
    if unplaced := [name for name in by_wire if name not in inside]:
        raise UnsupportedError(f"its path has no place for the parameter `{unplaced[0]}`")
    return VARIABLE.sub(lambda found: f"{{{by_wire[found[1]]}}}", path) + mark + fixed_query


def _property(parameter: Parameter, schemas: Schemas, making: _Making) -> Json:
    made: Json = {}
    if parameter.schema is not None:
        made, uses = schemas.converted(parameter.schema, "request")
        making.uses |= uses
    if made is True:
        made = {}
    if not isinstance(made, dict):
        return made
    if parameter.description is not None:
        made = {**made, "description": parameter.description}
    if parameter.deprecated:
        made = {**made, "deprecated": True}
    if parameter.example is not None and "examples" not in made:
        made = {**made, "examples": [parameter.example]}
    return without_text(made)


def _place(parameter: Parameter, name: str, http: dict[str, Any]) -> None:
    entry: dict[str, Json] = {"value": f"{{{name}}}"}
    if parameter.content is not None:
        entry["contentType"] = parameter.content
    else:
        style, explode = _DEFAULTS.get(parameter.where, ("form", True))
        if parameter.style != style:
            entry["style"] = parameter.style
            explode = False
        if parameter.explode != explode:
            entry["explode"] = parameter.explode
        if parameter.reserved and parameter.where == "query":
            entry["reserved"] = True
    is_plain = len(entry) == 1
    if parameter.where == "path":
        if not is_plain:
            del entry["value"]
            http.setdefault("path", {})[name] = entry
        return
    http.setdefault(_SECTIONS[parameter.where], {})[parameter.name] = entry["value"] if is_plain else entry


def _body(operation: Operation, schemas: Schemas, preferred: Sequence[str]) -> _Body | None:
    """The body in the best of its media types: those that are preferred, then JSON, then forms, then text and bytes."""
    at = operations.body(schemas.documents, operation)
    if at is None:
        return None
    if operation.method in _BODILESS:
        if at.field("required") is True:
            raise UnsupportedError(f"it is a {operation.method.upper()} that needs a body")
        return None
    content = operations.media_types(schemas.documents, at)
    if not content:
        raise UnsupportedError("its body has no media type")
    kinds = {media: _kind(media, entry) for media, entry in content}
    best = media_types.ordered(kinds, preferred, lambda media: _KINDS.index(kinds[media]) - 1)
    if not best:
        raise UnsupportedError(f"its body is {', '.join(f'`{media}`' for media in kinds)}")
    media, entry, description = best[0], dict(content)[best[0]], at.field("description")
    return _Body(
        media=media_types.concrete(media, entry.get("schema")) or media,
        entry=entry,
        required=at.field("required") is True,
        description=description if isinstance(description, str) and description.strip() else None,
        kind=str(kinds[media]),
    )


_KINDS: Final = (None, "json", "form", "multipart", "text", "bytes")
"""The kinds of bodies, the best first after the one that cannot be sent."""


def _kind(media: str, entry: Located) -> str | None:
    schema = entry.get("schema")
    sent = media_types.concrete(media, schema)
    if sent is None or (media_types.is_any(media) and schema is None):
        return None
    plain = media_types.plain(sent)
    if media_types.is_json(plain):
        return "json"
    if "itemSchema" in (entry.value if isinstance(entry.value, dict) else ()):
        return None
    if plain in (FORM, MULTIPART):
        is_form = plain == FORM
        return None if _is_encoded(entry, is_form=is_form) else "form" if is_form else "multipart"
    if plain.startswith("multipart/"):
        return None
    if plain.startswith("text/") and (schema is None or schema.field("type") == "string"):
        return "text"
    is_binary = schema is not None and schema.field("format") == "binary"
    return "bytes" if _is_bytes(plain) or is_binary else None


_BYTES = frozenset({"application/octet-stream", "application/pdf", "application/zip", "application/gzip"})


def _is_bytes(media: str) -> bool:
    return media.startswith(("image/", "audio/", "video/", "font/")) or media in _BYTES


def _is_encoded(entry: Located, *, is_form: bool) -> bool:
    """Whether a form says of a part how it is written, in a way that is not supported (3.1.1, "Encoding Object")."""
    for _, part in entry.entries("encoding"):
        encoding = part.value if isinstance(part.value, dict) else {}
        media = encoding.get("contentType", "text/plain")
        if not isinstance(media, str) or encoding.get("headers"):
            return True
        has_style = bool(encoding.keys() & {"style", "explode"})
        if (has_style and not is_form) or encoding.get("style", "form") not in _FORM_STYLES:
            return True
    return False


_PLAIN = ("string", "integer", "number", "boolean")
"""Types that are written as they are, whatever the media type of their part is."""

_FORM_STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


def _fields(body: _Body) -> dict[str, Json]:
    """The styles of a form's fields, where it says them."""
    found: dict[str, Json] = {}
    for name, part in body.entry.entries("encoding"):
        style = {key: part.field(key) for key in ("style", "explode") if part.field(key) is not None}
        if style and "contentType" not in (part.value or {}):
            found[name] = style
    return found


def _flattened(operation: Operation, body: _Body, parameters: list[Parameter], schemas: Schemas) -> Flat | None:
    """The body's properties, where they can be arguments; else None."""
    if body.schema is None or body.kind not in ("json", "form", "multipart") or operation.method not in _BODIED:
        return None
    flat = schemas.flat(body.schema)
    if flat is None or not flat.properties:
        return None
    taken = {fixed(parameter.name) for parameter in parameters}
    properties = {name: one for name, one in flat.properties.items() if not schemas.flagged(one, "readOnly")}
    if not properties or any(name in taken or name != fixed(name) for name in properties):
        return None
    return type(flat)(properties, flat.required & properties.keys(), flat.additional)


def _spread(flat: Flat, body: _Body, schemas: Schemas, making: _Making) -> None:
    for name, at in flat.properties.items():
        made, uses = schemas.converted(at, "request")
        making.uses |= uses
        making.properties[name] = _file(made, body.entry.get("encoding"), name) if body.kind == "multipart" else made
    making.required += [name for name in flat.properties if name in flat.required]
    making.additional = None
    if flat.additional is not None:
        making.additional, uses = schemas.converted(flat.additional, "request")
        making.uses |= uses


def _whole(body: _Body, schemas: Schemas, making: _Making) -> None:
    made: Json = {}
    if body.kind == "multipart":
        raise UnsupportedError("its form is not an object with properties that can be arguments")
    if body.kind == "bytes":
        made = {"type": "string", "contentEncoding": "base64", **_sent_in_base64(body.schema)}
    elif body.schema is not None:
        made, uses = schemas.converted(body.schema, "request")
        making.uses |= uses
    elif body.kind == "text":
        made = {"type": "string"}
    if body.description is not None and isinstance(made, dict):
        made = {**made, "description": body.description}
    making.properties[BODY] = made
    if body.required:
        making.required.append(BODY)
    making.http["body"] = f"{{{BODY}}}"


def _sent_in_base64(schema: Located | None) -> dict[str, Json]:
    """`format: byte` where the body is base64 on the wire, too (3.0.4, 3.1.1: "Considerations for File Uploads")."""
    is_base64 = schema is not None and (schema.field("format") == "byte" or schema.field("contentEncoding") == "base64")
    return {"format": "byte"} if is_base64 else {}


def _file(schema: Json, encoding: Located | None, name: str) -> Json:
    """A part of a form; one that is a file takes base64, which the request has as bytes.

    Of several media types that a file may have, it is sent as the first (3.0.4, section 4.7.15, `contentType`).
    """
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("items"), dict):
        return {**schema, "items": _file(schema["items"], encoding, name)}
    part = encoding.get(name) if encoding is not None else None
    content_type = part.field("contentType") if part is not None else None
    content_type = content_type.lower() if isinstance(content_type, str) else ""
    media = next((one.strip() for one in content_type.split(",") if "*" not in one), "")
    is_file = _is_bytes(content_type) and not schema.keys() & {"type", "$ref", "allOf", "anyOf", "oneOf"}
    if (
        is_file
        or schema.get("format") == "binary"
        or ("contentMediaType" in schema and "contentEncoding" not in schema)
    ):
        kept = {key: value for key, value in schema.items() if key != "format"}
        told = {"contentMediaType": media} if media else {}
        return without_text({"type": "string", **kept, "contentEncoding": "base64", **told})
    if media and not media_types.is_json(media) and schema.get("type") not in _PLAIN:
        raise UnsupportedError(f"the part `{name}` of its form is `{media}`")
    return schema
