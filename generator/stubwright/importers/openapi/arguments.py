"""Converts an operation's parameters and body to a tool's arguments and to `http`.

Invalid characters in names become `_`, and colliding names get their location as a prefix: `path_id`, `query_id`. The
properties of an object body become separate arguments, unless a parameter has the same name; any other body is the
argument `body`. A body with required properties is always sent, because documents often fail to mark it as required.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from stubwright.importers.openapi import media as media_types
from stubwright.importers.openapi import operations, paths
from stubwright.importers.openapi.documents import LocatedValue, UnsupportedError
from stubwright.importers.openapi.hints import READING
from stubwright.importers.openapi.schemas import parts
from stubwright.importers.openapi.schemas.conversion import drop_text
from stubwright.importers.openapi.schemas.parts import Parts
from stubwright_runtime.http.media import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stubwright.importers.openapi.apis import Credential
    from stubwright.importers.openapi.operations import Operation, Parameter
    from stubwright.importers.openapi.options import Options
    from stubwright.importers.openapi.schemas.conversion import FlatObject, Schemas
    from stubwright.ir import Json

BODY = "body"
"""The argument name for a whole body."""

_REFUSED = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 64
_IDEMPOTENCY_HEADER: Final = re.compile(r"(?:.+[-_])?idempotency[-_]?key", re.IGNORECASE)
"""The idempotency key header. It is not an argument, because a model would make up a new key for each call."""

_SECTIONS: Final = {"query": "query", "header": "headers", "cookie": "cookies", "path": "path"}
_DEFAULTS: Final = {"path": ("simple", False), "query": ("form", True), "header": ("simple", False)}
_BODILESS = frozenset({"get", "head", "options"})
"""Methods whose body is ignored (RFC 9110, section 9.3; 3.0.4, section 4.7.10.1)."""

_BODIED = frozenset({"post", "put", "patch", "query"})

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class Arguments:
    """A tool's arguments.

    Attributes:
        schema: The `inputSchema`.
        http: The tool's `http` binding.
        uses: The names of referenced shared schemas.
        withheld: Credentials that the document also lists as parameters.
        examples: The document's body examples, as arguments.
        notes: Notes on errors in the path.
    """

    schema: Mapping[str, Json]
    http: Mapping[str, Json]
    uses: frozenset[str]
    withheld: Sequence[Credential] = ()
    examples: Sequence[Mapping[str, Json]] = ()
    notes: Sequence[str] = ()


@dataclass(slots=True)
class _Builder:
    properties: dict[str, Json] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    http: dict[str, Any] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)
    additional: Json = False


@dataclass(frozen=True, slots=True)
class _Body:
    """A request body in the chosen media type."""

    media: str
    entry: LocatedValue
    required: bool
    description: str | None
    kind: str

    @property
    def schema(self) -> LocatedValue | None:
        return self.entry.get("schema")

    def make_form(self, schemas: Schemas) -> Parts | None:
        if self.kind not in ("form", "multipart"):
            return None
        return Parts(self.entry, schemas, is_multipart=self.kind == "multipart")


def make_arguments(
    operation: Operation, schemas: Schemas, options: Options, keys: Sequence[Credential] = ()
) -> Arguments:
    """Convert an operation's parameters and body to arguments.

    Args:
        operation: The operation to convert.
        schemas: Converts the operation's schemas.
        options: The user's preferences.
        keys: The credentials that the server sends; their parameters do not become arguments.

    Raises:
        UnsupportedError: The operation needs an unsupported feature.
    """
    path = paths.read(operation, operations.list_parameters(schemas.documents, operation))
    withheld = [key for key in keys if any(key.is_at(parameter.where, parameter.name) for parameter in path.parameters)]
    parameters = [
        parameter
        for parameter in path.parameters
        if not any(key.is_at(parameter.where, parameter.name) for key in withheld)
    ]
    key = _find_idempotency_header(operation, parameters)
    parameters = [parameter for parameter in parameters if parameter is not key]
    body = _choose_body(operation, schemas, options.media_types)
    flattened = _flatten(operation, body, parameters, schemas) if body is not None else None
    names = name_arguments(parameters, has_body=body is not None and flattened is None and not _is_empty_object(body))
    builder = _Builder()
    builder.http["url"] = path.write(
        {parameter.name: name for parameter, name in zip(parameters, names, strict=True) if parameter.where == "path"}
    )
    for parameter, name in zip(parameters, names, strict=True):
        builder.properties[name] = _convert_parameter(parameter, schemas, builder)
        if parameter.required:
            builder.required.append(name)
        _place_parameter(parameter, name, builder.http)
    if key is not None:
        builder.http["idempotencyHeader"] = key.name
    if body is not None and not (flattened is None and _is_empty_object(body)):
        if body.kind != "json" or body.media != "application/json":
            builder.http["contentType"] = body.media
        if flattened is None:
            _add_body(body, schemas, builder)
        else:
            _add_properties(flattened, body, schemas, builder)
    examples = [] if body is None else _list_examples(body, schemas, is_flat=flattened is not None)
    schema: dict[str, Json] = {"type": "object", "properties": builder.properties}
    if builder.required:
        schema["required"] = builder.required
    if builder.additional is not None:
        schema["additionalProperties"] = builder.additional
    return Arguments(schema, builder.http, frozenset(builder.uses), withheld, examples, path.notes)


def _find_idempotency_header(operation: Operation, parameters: Sequence[Parameter]) -> Parameter | None:
    if operation.method in READING:
        return None
    headers = (parameter for parameter in parameters if parameter.where == "header")
    return next((header for header in headers if _IDEMPOTENCY_HEADER.fullmatch(header.name)), None)


def _list_examples(body: _Body, schemas: Schemas, *, is_flat: bool) -> list[Mapping[str, Json]]:
    if body.kind not in ("json", "form"):
        return []
    examples = operations.list_examples(schemas.documents, body.entry)
    if is_flat:
        return [example for example in examples if isinstance(example, dict)]
    return [{BODY: example} for example in examples]


def _is_empty_object(body: _Body) -> bool:
    """Return whether a body is optional and an object without properties."""
    if body.required or body.schema is None or not isinstance(body.schema.value, dict):
        return False
    schema = body.schema.value
    return (
        schema.get("type") == "object" and not (schema.keys() - {"type", "properties"}) and not schema.get("properties")
    )


def name_arguments(parameters: list[Parameter], *, has_body: bool) -> list[str]:
    """Return unique argument names for parameters; `has_body` reserves the name `body`."""
    plain_names = [to_argument_name(parameter.name) for parameter in parameters]
    counts = Counter(plain_names + [BODY] * has_body)
    taken = set(plain_names) | {BODY}
    names = []
    for parameter, name in zip(parameters, plain_names, strict=True):
        if counts[name] > 1:
            placed = to_argument_name(f"{parameter.where}_{name}")
            if placed in taken:
                placed = to_argument_name(f"{placed}_{_digest(f'{parameter.where} {parameter.name}')}")
            name = placed
            taken.add(name)
        names.append(name)
    return names


def to_argument_name(name: str) -> str:
    """Replace characters that some clients reject; up to 64 letters, digits, `_`, `.` and `-` are valid."""
    allowed = _REFUSED.sub("_", name)
    if allowed != name:
        allowed = allowed.strip("_") or "parameter"
    return allowed if len(allowed) <= _LONGEST else f"{allowed[: _LONGEST - 7]}_{_digest(name)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _convert_parameter(parameter: Parameter, schemas: Schemas, builder: _Builder) -> Json:
    schema: Json = {}
    if parameter.schema is not None:
        schema, uses = schemas.convert(parameter.schema, "request")
        builder.uses |= uses
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        return schema
    if parameter.description is not None:
        schema = {**schema, "description": parameter.description}
    if parameter.deprecated:
        schema = {**schema, "deprecated": True}
    if parameter.example is not None and "examples" not in schema:
        schema = {**schema, "examples": [parameter.example]}
    return drop_text(schema)


def _place_parameter(parameter: Parameter, name: str, http: dict[str, Any]) -> None:
    entry: dict[str, Json] = {"value": f"{{{name}}}"}
    if parameter.content is not None:
        entry["contentType"] = parameter.content
    else:
        style, explode = _DEFAULTS.get(parameter.where, ("form", True))
        if parameter.style != style:
            entry["style"] = parameter.style
            # By default, `explode` is true only for the styles `form` and `cookie` ("Parameter Object").
            explode = parameter.style in ("form", "cookie")
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


def _choose_body(operation: Operation, schemas: Schemas, preferred: Sequence[str]) -> _Body | None:
    """Return the body in the best media type, or None if the operation does not have a body.

    The order is: preferred types, forms with a file, JSON, other forms, text, bytes.
    """
    at = operations.find_body(schemas.documents, operation)
    if at is None:
        return None
    if operation.method in _BODILESS:
        if at.get_field("required") is True:
            raise UnsupportedError(f"it is a {operation.method.upper()} operation that needs a body")
        return None
    content = operations.list_media_types(schemas.documents, at)
    if not content:
        raise UnsupportedError("its body has no media type")
    kinds: dict[str, tuple[str, str]] = {}
    ranks: dict[str, int] = {}
    problems: list[str] = []
    for media, entry in content:
        try:
            kinds[media] = _find_kind(media, entry, schemas)
            is_upload = kinds[media][0] == "multipart" and len(content) > 1 and _is_upload(entry, schemas)
            ranks[media] = 0 if is_upload else 1 + _KINDS.index(kinds[media][0])
        except UnsupportedError as error:
            problems.append(str(error))
    if not kinds:
        raise UnsupportedError(f"its body is {', '.join(problems)}")
    media = media_types.order(kinds, preferred, ranks.__getitem__)[0]
    kind, sent = kinds[media]
    entry, description = dict(content)[media], at.get_field("description")
    if kind == "multipart":
        entry = parts.name_lone_file(entry, schemas)
    return _Body(
        media=sent,
        entry=entry,
        required=at.get_field("required") is True,
        description=description if isinstance(description, str) and description.strip() else None,
        kind=kind,
    )


_KINDS: Final = ("json", "form", "multipart", "text", "bytes")
"""Body kinds, best first."""


def _is_upload(entry: LocatedValue, schemas: Schemas) -> bool:
    """Return whether a multipart form has a file and all parts of the form can be sent."""
    entry = parts.name_lone_file(entry, schemas)
    form, schema = Parts(entry, schemas, is_multipart=True), entry.get("schema")
    try:
        if schema is None or not form.has_file():
            return False
        form.convert_whole(schema)
    except UnsupportedError:
        return False
    return True


def _find_kind(media: str, entry: LocatedValue, schemas: Schemas) -> tuple[str, str]:
    """Return a body's kind, and the media type to send.

    Raises:
        UnsupportedError: The body cannot be sent.
    """
    schema = entry.get("schema")
    is_binary = parts.is_binary(schema, schemas)
    sent = media_types.make_concrete(media, is_binary=is_binary)
    unsupported = UnsupportedError(f"`{media}`")
    if sent is None or (media_types.is_any(media) and schema is None):
        raise unsupported
    plain = media_types.strip_parameters(sent)
    if media_types.is_json(plain):
        return "json", sent
    if isinstance(entry.value, dict) and "itemSchema" in entry.value:
        raise unsupported
    if plain in (FORM, MULTIPART):
        form = parts.name_lone_file(entry, schemas) if plain == MULTIPART else entry
        problem = Parts(form, schemas, is_multipart=plain == MULTIPART).find_problem()
        if problem is not None:
            raise UnsupportedError(f"`{media}`, {problem}")
        return ("form" if plain == FORM else "multipart"), sent
    if plain.startswith("multipart/"):
        raise unsupported
    if is_text(plain) and not is_binary and (schema is None or schemas.is_string(schema)):
        return "text", sent
    if parts.is_bytes(plain) or is_binary or schema is None:
        return "bytes", sent
    raise unsupported


def _flatten(operation: Operation, body: _Body, parameters: list[Parameter], schemas: Schemas) -> FlatObject | None:
    if body.schema is None or body.kind not in ("json", "form", "multipart") or operation.method not in _BODIED:
        return None
    flat = schemas.flatten(body.schema if body.kind == "json" else schemas.without_null(body.schema))
    if flat is None or not flat.properties:
        return None
    names = {to_argument_name(parameter.name) for parameter in parameters}
    examples = operations.list_examples(schemas.documents, body.entry)
    shown = {name for example in examples if isinstance(example, dict) for name in example}
    properties = {
        name: schema
        for name, schema in flat.properties.items()
        if name in shown or not schemas.has_flag(schema, "readOnly")
    }
    if not properties or any(name in names or name != to_argument_name(name) for name in properties):
        return None
    required = {
        name for name in flat.required & properties.keys() if not schemas.has_flag(properties[name], "readOnly")
    }
    return type(flat)(properties, frozenset(required), flat.additional)


def _add_properties(flat: FlatObject, body: _Body, schemas: Schemas, builder: _Builder) -> None:
    form = body.make_form(schemas)
    for name, at in flat.properties.items():
        builder.properties[name], uses = schemas.convert(at, "request") if form is None else form.convert(name, at)
        builder.uses |= uses
    _add_encoding(form, builder)
    builder.required += [name for name in flat.properties if name in flat.required]
    builder.additional = None
    if flat.additional is not None:
        at = flat.additional
        builder.additional, uses = schemas.convert(at, "request") if form is None else form.convert(None, at)
        builder.uses |= uses


def _add_body(body: _Body, schemas: Schemas, builder: _Builder) -> None:
    schema: Json = {}
    form = body.make_form(schemas)
    if body.kind == "bytes":
        described = body.schema
        is_nullable = described is not None and schemas.without_null(described) is not described
        schema = {"type": ["string", "null"] if is_nullable else "string", "contentEncoding": "base64"}
    elif body.schema is not None:
        schema, uses = schemas.convert(body.schema, "request") if form is None else form.convert_whole(body.schema)
        builder.uses |= uses
    elif body.kind == "text":
        schema = {"type": "string"}
    if body.kind in ("bytes", "text") and isinstance(schema, dict) and parts.is_base64(body.schema, schemas):
        schema = {**schema, "format": "byte"}  # the API itself expects base64
    if body.description is not None and isinstance(schema, dict):
        schema = {**schema, "description": body.description}
    builder.properties[BODY] = schema
    if body.required:
        builder.required.append(BODY)
    builder.http["body"] = f"{{{BODY}}}"
    _add_encoding(form, builder)


def _add_encoding(form: Parts | None, builder: _Builder) -> None:
    if form is not None and (styles := form.list_styles()):
        builder.http["fields"] = styles
    if form is not None and (types := form.list_types()):
        builder.http["parts"] = types
