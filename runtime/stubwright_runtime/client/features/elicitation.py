"""Checks the form in a server's question and builds a validated answer with the form's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from ...mcp.elicitation_answers import Accepted, Cancelled, Declined
from ...schema.validation import Validator
from ...values.json import Json, is_mapping
from ..core.arguments import to_json

if TYPE_CHECKING:
    from mcp_types import ElicitResult

_OBJECTS: Final = {"items": {"type": "object"}}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}

# User interfaces for forms expect more than JSON Schema requires, which also allows booleans as schemas.
_FORM: Final = {
    "$ref": "https://json-schema.org/draft/2020-12/schema",
    "properties": {
        "type": {"const": "object"},
        "properties": {
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "oneOf": _OBJECTS,
                    "anyOf": _OBJECTS,
                    "enumNames": _TEXTS,
                    "items": {"type": "object", "properties": {"oneOf": _OBJECTS, "anyOf": _OBJECTS}},
                },
            },
        },
    },
}


@cache
def _get_form_validator() -> Validator:
    return Validator(_FORM)


def find_fault(schema: Mapping[str, Any]) -> str | None:
    """Describe the first error in a form's schema (MCP 2025-11-25, client/elicitation, "Requested Schema")."""
    faults = _get_form_validator().find_errors(schema, "requestedSchema")
    if faults:
        return faults[0]
    try:
        Validator(schema, formats=True)
    except ValueError as error:
        return str(error).partition("\n")[0]
    return None


def build_result(answer: object, schema: Mapping[str, Any] | None) -> ElicitResult:
    """Build the answer to a question (MCP 2025-11-25, client/elicitation, "Response Actions").

    Args:
        answer: A mapping or a model with the form's values, `Accepted()`, `Declined()` or `Cancelled()`. `Accepted()`
            checks a form's only checkbox, such as a confirmation.
        schema: The form's schema, or `None` for a question with a URL. Missing values get their `default`.

    Raises:
        TypeError: The answer has another type.
        ValueError: The answer violates the schema.
    """
    from mcp_types import ElicitResult

    if isinstance(answer, Declined):
        return ElicitResult(action="decline")
    if isinstance(answer, Cancelled):
        return ElicitResult(action="cancel")
    if schema is None:
        if isinstance(answer, Accepted):
            return ElicitResult(action="accept")
        raise TypeError(f"answer a question with a URL with Accepted(), Declined() or Cancelled(), not {answer!r}")
    given = _read_content(answer, schema)
    content = {**given, **_find_defaults(schema, given)}
    # Check formats, too, because servers may reject an answer that violates one (MCP 2025-11-25, client/elicitation).
    violations = Validator(schema, formats=True).find_errors(content, "answer")
    if violations:
        lines = "".join(f"\n  {violation}" for violation in violations)
        raise ValueError(f"the answer violates the question's schema:{lines}")
    return ElicitResult(action="accept", content=content)


def _read_content(answer: object, schema: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(answer, Accepted):
        return dict.fromkeys(_find_only_checkbox(schema), True)
    if is_mapping(answer):
        return to_json(answer)
    if isinstance(answer, BaseModel):
        content: Json = to_json({"answer": answer})["answer"]
        if isinstance(content, dict):
            return content
    raise TypeError(f"an answer must be a mapping, a model, Accepted(), Declined() or Cancelled(), not {answer!r}")


def _find_only_checkbox(schema: Mapping[str, Any]) -> list[str]:
    """Return the name of the form's only field if it is a required checkbox, otherwise an empty list."""
    fields: Json = schema.get("properties")
    if not isinstance(fields, dict) or len(fields) != 1 or schema.get("required") != [*fields]:
        return []
    return [name for name, field in fields.items() if is_mapping(field) and field.get("type") == "boolean"]


def _find_defaults(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of the properties that `given` lacks (SEP-1034; MCP 2025-11-25, client/elicitation)."""
    properties: Json = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: field["default"]
        for name, field in properties.items()
        if name not in given and is_mapping(field) and "default" in field
    }
