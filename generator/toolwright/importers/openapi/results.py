"""What an operation gives, as a tool's `outputSchema`.

Takes an operation; gives the schema of the JSON of its successful responses. Where one of them is something else than
JSON with a schema, or cannot be told, nothing can be promised, and there is none. A response without a body is `null`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolwright.importers.openapi import operations
from toolwright.importers.openapi.documents import UnsupportedError, told

if TYPE_CHECKING:
    from toolwright.importers.openapi.documents import Located
    from toolwright.importers.openapi.operations import Operation
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


def of(operation: Operation, schemas: Schemas) -> Result:
    """The result of an operation."""
    found: list[Json] = []
    uses: frozenset[str] = frozenset()
    media: dict[str, None] = {}
    is_known, is_empty, are_objects = True, False, True
    responses, untold = _responses(operation, schemas)
    for at in responses:
        try:
            content = operations.media_types(schemas.documents, at)
            media |= dict.fromkeys(name for name, _ in content)
            schema = _json(content)
            if not content:
                is_empty = True
            elif schema is None or schema.value in (True, {}):
                is_known = False
            else:
                made, more = schemas.converted(schema, "response")
                uses |= more
                are_objects = are_objects and schemas.describes_object(schema)
                if made not in found:
                    found.append(made)
        except (UnsupportedError, RecursionError) as error:
            untold = untold or told(error)
    others = [name for name in media if not operations.is_json(name) and not operations.is_any(name)]
    accept = ", ".join(media) if media and len(others) == len(media) else None
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


def _json(content: list[tuple[str, Located]]) -> Located | None:
    """The schema of the response as JSON; None where it has none."""
    ranked = sorted(content, key=lambda entry: entry[0] != "application/json")
    for media, entry in ranked:
        if operations.is_json(media):
            return entry.get("schema")
    for media, entry in ranked:
        schema = entry.get("schema")
        if operations.is_any(media) and schema is not None and schema.field("type") != "string":
            return schema  # a call asks for JSON
    return None
