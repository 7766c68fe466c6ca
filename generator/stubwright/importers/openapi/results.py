"""Converts an operation's responses to a tool's `outputSchema`.

A tool has no `outputSchema` if any response is not JSON with a schema. A response without a body is `null`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stubwright import http
from stubwright.importers.openapi import media as media_types
from stubwright.importers.openapi import operations
from stubwright.importers.openapi.documents import UnsupportedError, explain
from stubwright.importers.openapi.schemas import parts
from stubwright_runtime.http.styles import DELIMITERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.importers.openapi.documents import LocatedValue
    from stubwright.importers.openapi.operations import Operation
    from stubwright.importers.openapi.options import Options
    from stubwright.importers.openapi.schemas.conversion import Schemas
    from stubwright.ir import Json

_NULL: dict[str, Json] = {"type": "null"}


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result.

    Attributes:
        schema: The `outputSchema`, or None.
        uses: The referenced shared schemas.
        accept: The `Accept` header, unless it is plain JSON.
        no_schema_reason: The reason why the `outputSchema` is missing, if a response is invalid.
        headers: The manifest's `responseHeaders`, for responses without a body.
    """

    schema: Json
    uses: frozenset[str]
    accept: str | None
    no_schema_reason: str | None = None
    headers: Mapping[str, Json] = field(default_factory=dict)


def make_result(operation: Operation, schemas: Schemas, options: Options) -> Result:
    """Return an operation's result, in the user's preferred media type."""
    alternatives: list[Json] = []
    uses: frozenset[str] = frozenset()
    contents: list[Mapping[str, LocatedValue]] = []
    is_known, is_empty, are_objects = True, False, True
    responses, reason = _read_responses(operation, schemas)
    headers: dict[str, Json] = {}
    usual = set[str]()
    for at in responses:
        try:
            has_body = operation.method != "head"  # RFC 9110, section 9.3.2
            content = dict(operations.list_media_types(schemas.documents, at)) if has_body else {}
            if not content:
                is_empty = True
                headers |= _list_headers(at, schemas)
                continue
            usual |= _list_headers(at, schemas).keys()
            contents.append(content)
            media = _rank(content, options.media_types, schemas)[0]
            schema = content[media].get("schema") if _is_json(media, content[media], schemas) else None
            if not options.output_schemas or schema is None or schema.value in (True, {}):
                is_known = False
            else:
                converted, more_uses = schemas.convert(schema, "response")
                uses |= more_uses
                are_objects = are_objects and schemas.describes_object(schema)
                if converted not in alternatives:
                    alternatives.append(converted)
        except (UnsupportedError, RecursionError) as error:
            reason = reason or explain(error)
    accept = _make_accept(contents, options.media_types, schemas)
    headers = {name: header for name, header in headers.items() if name not in usual}
    if headers and not contents and reason is None and options.output_schemas:
        return Result(dict(_NULL), frozenset(), accept, headers=headers)
    if reason is not None or not alternatives or not is_known:
        return Result(None, frozenset(), accept, reason)
    if is_empty:
        alternatives.append(_NULL)
    converted = alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
    if are_objects and not is_empty and isinstance(converted, dict) and converted.get("type") != "object":
        converted = {"type": "object", **converted}  # required in MCP 2025-11-25 and earlier
    return Result(converted, uses, accept, headers=headers)


def _read_responses(operation: Operation, schemas: Schemas) -> tuple[list[LocatedValue], str | None]:
    responses: list[LocatedValue] = []
    reason: str | None = None
    try:
        for entry in operations.list_responses(schemas.documents, operation):
            try:
                responses.append(schemas.documents.resolve(entry))
            except UnsupportedError as error:
                reason = reason or explain(error)
    except UnsupportedError as error:
        reason = explain(error)
    return responses, reason


def _list_headers(response: LocatedValue, schemas: Schemas) -> dict[str, Json]:
    """Return the headers that a response declares, keyed by property name (3.1.1, "Header Object").

    Raises:
        UnsupportedError: A reference does not resolve.
    """
    headers: dict[str, Json] = {}
    for header, entry in schemas.documents.list_entries(response, "headers"):
        if header.lower() in _UNTOLD or not http.TOKEN.fullmatch(header):
            continue
        at = schemas.documents.resolve(entry)
        schema = at.get("schema") or at  # in Swagger 2.0, the header object is the schema
        types = [part.get_field("type") for part in schemas.list_applied(schema)]
        kinds = [str(kind) for each in types for kind in (each if isinstance(each, list) else [each])]
        kind = next((kind for kind in kinds if kind in ("array", "integer", "number", "boolean")), "string")
        name = re.sub(r"[^A-Za-z0-9]+", "_", header).strip("_").lower()
        style = at.get_field("style") if kind == "array" else None
        styled = {"style": style} if isinstance(style, str) and style in DELIMITERS else {}
        headers.setdefault(name, header if kind == "string" else {"name": header, "type": kind, **styled})
    return headers


_UNTOLD: Final = frozenset({"content-type", "set-cookie", "set-cookie2"})
"""Headers that documents cannot declare, or that contain credentials."""


def _rank(content: Mapping[str, LocatedValue], preferred: Sequence[str], schemas: Schemas) -> list[str]:
    return media_types.order(content, preferred, lambda media: 0 if _is_json(media, content[media], schemas) else 1)


def _is_json(media: str, entry: LocatedValue, schemas: Schemas) -> bool:
    """Return whether a response with a media type is JSON. A range counts as JSON, because calls then request JSON."""
    schema = entry.get("schema")
    if media_types.is_any(media) and (schema is None or schemas.is_string(schema)):
        return False
    return media_types.is_json(_make_concrete(media, entry, schemas) or media)


def _make_concrete(media: str, entry: LocatedValue, schemas: Schemas) -> str | None:
    return media_types.make_concrete(media, is_binary=parts.is_binary(entry.get("schema"), schemas))


def _make_accept(
    contents: Sequence[Mapping[str, LocatedValue]], preferred: Sequence[str], schemas: Schemas
) -> str | None:
    """Return the `Accept` header: the supported types, or all types if none is JSON. Return None for plain JSON."""
    best_types = [(_rank(content, preferred, schemas)[0], content) for content in contents]
    requested = [media for media, _ in best_types]
    if not {*map(media_types.strip_parameters, preferred)} & {*map(media_types.strip_parameters, requested)}:
        if any(_make_concrete(media, content[media], schemas) == media_types.JSON for media, content in best_types):
            return None
        json = [media for media, content in best_types if _is_json(media, content[media], schemas)]
        requested = json or sorted((media for content in contents for media in content), key=media_types.is_range)
    return ", ".join(dict.fromkeys(requested)) if requested and requested != [media_types.JSON] else None
