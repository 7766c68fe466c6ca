"""Mock results repeat the values of matching arguments."""

from __future__ import annotations

from typing import Any

import pytest

from stubwright.mock.echo import echo

SKU = {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"}
ASKED: dict[str, Any] = {
    "type": "object",
    "properties": {"sku": {**SKU, "description": "Which"}, "most": {"type": "integer"}},
}
SENT = {"sku": "TEA-01", "most": 3, "unknown": 1}


@pytest.mark.parametrize(
    ("schema", "made", "echoed"),
    [
        ({"properties": {"sku": SKU}}, {"sku": "ABC-99"}, {"sku": "TEA-01"}),
        ({"properties": {"sku": {"type": "string"}}}, {"sku": "x"}, {"sku": "x"}),
        ({"properties": {"most": {"type": "integer"}, "n": {}}}, {"n": 1}, {"n": 1}),
        (
            {"properties": {"item": {"$ref": "#/$defs/Item"}}, "$defs": {"Item": {"properties": {"sku": SKU}}}},
            {"item": {"sku": "ABC-99", "more": 1}},
            {"item": {"sku": "TEA-01", "more": 1}},
        ),
        (
            {"properties": {"sku": {"$ref": "#/$defs/Sku", "title": "x"}}, "$defs": {"Sku": {**SKU, "title": "A"}}},
            {"sku": "ABC-99"},
            {"sku": "TEA-01"},
        ),
        ({"items": {"properties": {"sku": SKU}}}, [{"sku": "ABC-99"}], [{"sku": "ABC-99"}]),
        ({"properties": {"sku": {"$ref": "#/properties/sku"}}}, {"sku": "ABC-99"}, {"sku": "ABC-99"}),
        ({"properties": {"sku": True}}, {"sku": "ABC-99"}, {"sku": "ABC-99"}),
        (True, {"sku": "ABC-99"}, {"sku": "ABC-99"}),
        ({"type": "string"}, "ABC-99", "ABC-99"),
    ],
)
def test_arguments_stand_where_they_have_the_same_name_and_schema(schema: Any, made: Any, echoed: Any) -> None:
    assert echo(made, schema, SENT, ASKED) == echoed
