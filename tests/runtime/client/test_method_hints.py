"""Type hints of generated clients' methods, which other libraries resolve at run time to generate schemas."""

from __future__ import annotations

import inspect
import sys
import typing
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import TypeAdapter, create_model

from stubwright_runtime import OMIT, Omit

ROOT: Final = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def helpdesk() -> Any:
    sys.path[:0] = [str(ROOT / "generated"), str(ROOT / "examples")]
    try:
        import helpdesk_mcp
    finally:
        del sys.path[:2]
    return helpdesk_mcp


def list_tool_methods(module: Any) -> list[Any]:
    client = module.HelpdeskClient
    return [getattr(client, tool.method) for tool in module.TOOLS.values()]


def test_hints_resolve_without_the_names_of_type_checkers(helpdesk: Any) -> None:
    hints = typing.get_type_hints(helpdesk.HelpdeskClient.get_ticket)
    assert hints["id"] is helpdesk.models.Id
    assert hints["return"] is helpdesk.models.GetTicketOutput
    assert len(list_tool_methods(helpdesk)) > 5
    for method in list_tool_methods(helpdesk):
        function = inspect.unwrap(getattr(method, "_method", method))
        assert "return" in typing.get_type_hints(function)


def test_a_model_of_a_signature_leaves_omitted_arguments_optional(helpdesk: Any) -> None:
    hints = typing.get_type_hints(helpdesk.HelpdeskClient.create_ticket)
    parameters = inspect.signature(helpdesk.HelpdeskClient.create_ticket).parameters
    fields: dict[str, Any] = {
        name: (hints[name], ... if each.default is each.empty else each.default)
        for name, each in parameters.items()
        if name != "self"
    }
    model = create_model("Arguments", **fields)
    schema = model.model_json_schema()
    assert schema["required"] == ["subject", "description", "reporter"]
    assert "Omit" not in str(schema)
    person = {"name": "Ann", "email": "ann@example.com"}
    given = model.model_validate({"subject": "s", "description": "d", "reporter": person})
    assert getattr(given, "priority") is OMIT  # noqa: B009 - the model is made here
    assert TypeAdapter(Omit).validate_python(OMIT) is OMIT
