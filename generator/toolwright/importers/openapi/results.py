"""What an operation gives, as a tool's `outputSchema`.

Takes an operation; gives the schema of the JSON of its successful responses. Where one of them is something else than
JSON with a schema, or cannot be told, nothing can be promised, and there is none. A response without a body is `null`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolwright.importers.openapi import media as media_types
from toolwright.importers.openapi import operations
from toolwright.importers.openapi.documents import UnsupportedError, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolwright.importers.openapi.documents import Located
    from toolwright.importers.openapi.operations import Operation
    from toolwright.importers.openapi.options import Options
    from toolwright.importers.openapi.schemas import Schemas
    from toolwright.ir import Json

_NULL: dict[str, Json] = {"type": "null"}


@dataclass(frozen=True, slots=True)
class Result:
    """An `outputSchema`, where there is one, the shared schemas that it refers to, and what clients ask for.

    `accept` is the value of the `Accept` header, where it is not JSON. `untold` says why a response cannot be told.
    """

    schema: Json
    uses: frozenset[str]
    accept: str | None
    untold: str | None = None


def of(operation: Operation, schemas: Schemas, options: Options) -> Result:
    """The result of an operation, in what the user prefers of the media types that it may have."""
    found: list[Json] = []
    uses: frozenset[str] = frozenset()
    contents: list[Mapping[str, Located]] = []
    is_known, is_empty, are_objects = True, False, True
    responses, untold = _responses(operation, schemas)
    for at in responses:
        try:
            content = dict(operations.media_types(schemas.documents, at))
            if not content:
                is_empty = True
                continue
            contents.append(content)
            media = _best(content, options.media_types)[0]
            schema = content[media].get("schema") if _is_json(media, content[media]) else None
            if not options.output_schemas or schema is None or schema.value in (True, {}):
                is_known = False
            else:
                made, more = schemas.converted(schema, "response")
                uses |= more
                are_objects = are_objects and schemas.describes_object(schema)
                if made not in found:
                    found.append(made)
        except (UnsupportedError, RecursionError) as error:
            untold = untold or told(error)
    accept = _accept(contents, options.media_types)
    if untold is not None or not found or not is_known:
        return Result(None, frozenset(), accept, untold)
    if is_empty:
        found.append(_NULL)
    made = found[0] if len(found) == 1 else {"anyOf": found}
    if are_objects and not is_empty and isinstance(made, dict) and made.get("type") != "object":
        made = {"type": "object", **made}  # what clients before 2026-07-28 need to see
    return Result(made, uses, accept)


def _responses(operation: Operation, schemas: Schemas) -> tuple[list[Located], str | None]:
    """The responses that can be read, and why one cannot."""
    found: list[Located] = []
    untold: str | None = None
    try:
        for entry in operations.responses(schemas.documents, operation):
            try:
                found.append(schemas.documents.resolved(entry))
            except UnsupportedError as error:
                untold = untold or told(error)
    except UnsupportedError as error:
        untold = told(error)
    return found, untold


def _best(content: Mapping[str, Located], preferred: Sequence[str]) -> list[str]:
    """The media types of a response, the best first."""
    return media_types.ordered(content, preferred, lambda media: 0 if _is_json(media, content[media]) else 1)


def _is_json(media: str, entry: Located) -> bool:
    """Whether an answer in a media type is JSON; a call asks for JSON where anything will do but a text."""
    schema = entry.get("schema")
    if media_types.is_any(media) and (schema is None or schema.field("type") == "string"):
        return False
    return media_types.is_json(media_types.concrete(media, schema) or media)


def _accept(contents: Sequence[Mapping[str, Located]], preferred: Sequence[str]) -> str | None:
    """What calls ask for: what is read of each response, or all of it where none is JSON; None for plain JSON."""
    best = [(_best(content, preferred)[0], content) for content in contents]
    asked = [media for media, _ in best]
    if not {*map(media_types.plain, preferred)} & {*map(media_types.plain, asked)}:
        if any(
            media_types.concrete(media, content[media].get("schema")) == media_types.JSON for media, content in best
        ):
            return None
        json = [media for media, content in best if _is_json(media, content[media])]
        asked = json or sorted((media for content in contents for media in content), key=media_types.is_range)
    return ", ".join(dict.fromkeys(asked)) if asked and asked != [media_types.JSON] else None
