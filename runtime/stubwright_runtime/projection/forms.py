"""The function formats and JSON Schema subsets that model APIs accept.

The compiler's table (`stubwright targets`) lists the APIs' rules and their sources. Tests check the results against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Wrapping: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini", "bedrock"]


@dataclass(frozen=True, slots=True)
class Form:
    """An API's rules.

    Attributes:
        wrapping: The function format.
        strict: Whether the API enforces the schema.
        tool_name: The pattern for function names.
        property_name: The pattern for property names.
        rewrites: Whether the whole schema is converted, not just an unsupported root.
        all_required: Whether every property must be required.
        closes: Whether objects must have `additionalProperties: false`.
        nullable: Whether null is expressed with the `nullable` keyword instead of `type: null`.
        string_enums: Whether `enum` values must be strings.
        fills_objects: Whether each object must have at least one property.
        keywords: The supported keywords, except for types, properties, items, enums and unions.
        formats: The supported `format` values.
        item_bounds: The supported `minItems` values. `None` for all.
        levels: The maximum depth of objects.
        most_properties: The maximum number of properties.
        most_values: The maximum number of enum values.
        most_characters: The maximum number of characters in names and enum values.
    """

    wrapping: Wrapping
    strict: bool = False
    tool_name: str = r"^[a-zA-Z0-9_-]{1,64}$"
    property_name: str = r"^[a-zA-Z0-9_.-]{1,64}$"
    rewrites: bool = False
    all_required: bool = False
    closes: bool = False
    nullable: bool = False
    string_enums: bool = False
    fills_objects: bool = False
    keywords: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    item_bounds: tuple[int, ...] | None = None
    levels: int = 30
    most_properties: int = 5000
    most_values: int = 1000
    most_characters: int = 100_000


_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_GEMINI: Final = Form(
    "gemini",
    tool_name=r"^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$",
    property_name=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$",
    rewrites=True,
    nullable=True,
    string_enums=True,
    fills_objects=True,
    keywords=frozenset({"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern"}),
    formats=frozenset({"date-time"}),
)

FORMS: Final[Mapping[str, Form]] = {
    "openai": Form("openai"),
    "openai-responses": Form("openai-responses", tool_name=r"^[a-zA-Z0-9_-]{1,128}$"),
    "openai-strict": Form(
        "openai",
        strict=True,
        rewrites=True,
        all_required=True,
        closes=True,
        keywords=_NUMBERS | {"minItems", "maxItems", "pattern"},
        formats=_FORMATS,
        levels=10,
    ),
    "anthropic": Form("anthropic"),
    "anthropic-strict": Form(
        "anthropic",
        strict=True,
        rewrites=True,
        closes=True,
        keywords=frozenset({"minItems"}),
        formats=_FORMATS | {"uri"},
        item_bounds=(0, 1),
    ),
    "gemini": _GEMINI,
    "gemini-developer-api": _GEMINI,
    "bedrock": Form("bedrock"),
}
"""The supported APIs, by name."""


def wrap(form: Form, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function in the API's format, for the `tools` of a request."""
    strict = {"strict": True} if form.strict else {}
    match form.wrapping:
        case "openai":
            function = {"name": name, "description": description, "parameters": parameters, **strict}
            return {"type": "function", "function": function}
        case "openai-responses":
            return {
                "type": "function",
                "name": name,
                "description": description,
                "parameters": parameters,
                "strict": False,
            }
        case "anthropic":
            return {"name": name, "description": description, "input_schema": parameters, **strict}
        case "gemini":
            arguments = {"parameters": parameters} if parameters.get("properties") else {}
            return {"name": name, "description": description, **arguments}
        case "bedrock":
            return {"toolSpec": {"name": name, "description": description, "inputSchema": {"json": parameters}}}
