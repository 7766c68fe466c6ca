"""Name collisions of classes in different modules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import packages
from command_line import stubwright
from packages import tool

TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
NUMBER: dict[str, Any] = {"type": "object", "properties": {"number": {"type": "integer"}}}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/schemas/{name}"}


def holder(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SCHEMAS = {
    "User": holder(type={**TEXT, "properties": {**TEXT["properties"], "owner": TEXT}}),
    "UserType": holder(owner=NUMBER),
    "Tool": holder(error=TEXT),
    "Call": holder(event=TEXT, next=ref("Ring")),
    "Ring": holder(call=ref("Call"), seat={"type": "object", "properties": {"row": {"type": "integer"}}}),
    "RingSeat": holder(row=TEXT),
    "Day": {"enum": ["mon", "tue"]},
    "DynamicDay": {"enum": ["weekday"]},
    "Schedule": holder(Day=ref("DynamicDay"), more=ref("Series")),
    "Series": holder(days={"type": "array", "items": ref("Day")}, of=ref("Schedule")),
    "Same": holder(thing={"type": "object", "properties": {"a": TEXT}}),
}
TOOLS = [
    tool("put", {"input_filter": TEXT, "user": ref("User")}, outputSchema=holder(all=ref("Ring"), tool=ref("Tool"))),
    tool("put_input", {"user": ref("UserType"), "seat": ref("RingSeat")}, outputSchema=holder(filter=NUMBER)),
    {**tool("get", {"user": {"$ref": "#/$defs/UserInput"}}), "inputSchema": {
        "type": "object", "properties": {"user": {"$ref": "#/$defs/UserInput"}}, "$defs": {"UserInput": TEXT},
    }},
    tool("get_user", {"id": {"type": "integer"}, "day": ref("Day")}, outputSchema=ref("Schedule")),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("meeting")
    packages.generate(made, packages.manifest(TOOLS, name="meeting", schemas=SCHEMAS))
    return made


def test_each_class_is_exported_by_a_name_of_its_own(folder: Path) -> None:
    with packages.imported(folder, "meeting_mcp") as package:
        for module in ("user", "user_type", "tool", "call", "ring", "ring_seat"):
            models = __import__(f"meeting_mcp.models.shared.{module}", fromlist=["x"])
            for name, found in vars(models).items():
                if isinstance(found, type) and name not in ("Model", "Nullable"):
                    assert getattr(package, name) is found, name
        assert package.UserType.model_fields.keys() == {"owner"}
        assert package.RingSeat.model_fields.keys() == {"row"}
        assert issubclass(package.ToolError, Exception)
        assert package.CallEvent.__module__ == "stubwright_runtime.client.core.options"
        assert package.GetUserInput.model_fields.keys() == {"id", "day"}
        assert package.Series.model_validate({"days": ["mon"], "of": {"Day": "weekday"}}).of.Day == "weekday"
        user = package.User.model_validate({"type": {"text": "a", "owner": {"text": "b"}}})
        assert (user.type.owner.text, type(user.type) is package.UserType) == ("b", False)
        assert type(user.type.owner) is not type(package.UserType.model_validate({"owner": {"number": 1}}).owner)


@pytest.mark.long
def test_type_checkers_find_no_fault(folder: Path, mypy: list[str]) -> None:
    done = subprocess.run(
        [*mypy, "--no-error-summary", "meeting_mcp"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_names_that_do_not_meet_stay(folder: Path) -> None:
    with packages.imported(folder, "meeting_mcp") as package:
        assert "PutInputInputFilter" in dir(package)
        assert package.PutInputInputFilter.model_fields.keys() == {"text"}


def test_a_schema_that_takes_a_name_and_gives_it_back(tmp_path: Path) -> None:
    """With the cache of the previous run, the output equals a clean run's."""

    def generated(schemas: dict[str, Any], *options: str) -> dict[str, str]:
        uses = [tool("get", {name: ref(name) for name in schemas})]
        (tmp_path / "it.json").write_text(json.dumps(packages.manifest(uses, name="it", schemas=schemas)))
        done = stubwright("generate", "-q", "it.json", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        models = tmp_path / "generated/it_mcp/models"
        return {str(path.relative_to(models)): path.read_text() for path in sorted(models.rglob("*.py"))}

    user = {"User": SCHEMAS["User"]}
    both = {**user, "UserType": SCHEMAS["UserType"]}
    first = generated(user)
    assert "class UserType(" in first["shared/user.py"]
    second = generated(both)
    assert "class UserType(" not in second["shared/user.py"]
    assert generated(both, "--force") == second
    assert generated(user) == first
