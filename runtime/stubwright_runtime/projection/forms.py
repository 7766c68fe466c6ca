"""The form that each API takes: its way of writing a function, and the part of JSON Schema that parameters may use.

The rules, with the pages that state them, are in the compiler's table (`stubwright targets`); a form describes how to
change a schema so that it keeps them. A test checks the result against that table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Wrapping: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini", "bedrock"]


@dataclass(frozen=True, slots=True)
class Form:
    """One API.

    Attributes:
        wrapping: How a function is written.
        strict: Whether the API holds the model to the schema.
        tool_name: The pattern of names of functions.
        property_name: The pattern of names of properties.
        rewrites: Whether all of a schema is written again; otherwise only a root that the API does not take.
        all_required: Whether every property has to be required.
        closes: Whether objects have to say `additionalProperties: false`.
        nullable: Whether null is a keyword next to the type (`nullable`), and not a type.
        string_enums: Whether the values of an `enum` have to be strings.
        fills_objects: Whether each object needs at least one property.
        keywords: The keywords that it takes next to types, properties, items, enums and unions.
        formats: The values of `format` that it takes.
        item_bounds: The values of `minItems` that it takes; any, where it is None.
        levels: How many objects may be in each other.
        most_properties: How many properties a schema may have.
        most_values: How many values the enums of a schema may have.
        most_characters: How many characters the names and the enums of a schema may have.
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
"""The APIs that functions can be written for, by the names of their targets."""


def wrap(form: Form, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function as the API takes it, among the `tools` of a request."""
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
