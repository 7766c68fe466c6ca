"""Sources of bound arguments for each kind of caller."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stubwright_runtime.policy.claims import read_value, set_arguments
from stubwright_runtime.server.core.principal import ANONYMOUS, Principal, make_local

pytestmark = pytest.mark.anyio

LOCAL = make_local(())
ANN = Principal("token", "https://a", "ann", claims={"level": 3})
BOB = Principal("token", "https://a", "bob")
LEVEL = {"type": "integer", "maximum": 5}
ACCEPTS = {"type": "object", "properties": {"level": LEVEL, "text": True}, "required": ["level", "text"]}
CLAIM = {"claim": "level", "schema": LEVEL}
BOTH = {**CLAIM, "local": {"env": "LEVEL"}}
VARIABLE = {"env": "LEVEL", "schema": LEVEL}
DEFAULT = {**VARIABLE, "default": 2}


class Bound:
    """A tool with one argument from the server and one from the caller."""

    name = "rise"
    package = SimpleNamespace(asserts_formats=False, has_exact_formats=False)

    def __init__(self, binding: Any) -> None:
        self.accepts, self.bound = ACCEPTS, {"level": binding}


async def call(binding: Any, principal: Principal) -> Any:
    """Return the arguments with which a call is let through, or why it is refused."""
    request: Any = SimpleNamespace(principal=principal, arguments={"text": "a"})
    tool: Any = Bound(binding)

    async def call_next(request: Any) -> Any:
        return request.arguments

    outcome: Any = await set_arguments(tool, call_next)(request)
    return outcome if isinstance(outcome, dict) else outcome.result["content"][0]["text"]


@pytest.mark.parametrize(
    ("binding", "principal", "variable", "level"),
    [
        ({"value": 1, "schema": LEVEL}, ANONYMOUS, "5", 1),
        ({"value": "1", "schema": LEVEL}, LOCAL, None, 1),
        (VARIABLE, ANN, "4", 4),
        (VARIABLE, ANONYMOUS, "4", 4),
        (DEFAULT, ANN, "4", 4),
        (DEFAULT, ANN, None, 2),
        (CLAIM, ANN, "4", 3),
        (BOTH, ANN, "4", 3),
        (BOTH, LOCAL, "4", 4),
    ],
)
async def test_a_call_goes_on_with_the_value(
    binding: Any, principal: Principal, variable: str | None, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEVEL", raising=False)
    if variable is not None:
        monkeypatch.setenv("LEVEL", variable)
    assert await call(binding, principal) == {"text": "a", "level": level}


@pytest.mark.parametrize(
    ("binding", "principal", "variable", "text"),
    [
        ({"value": 6, "schema": LEVEL}, ANN, None, "cannot use the value that the manifest binds to it"),
        (VARIABLE, ANN, None, "needs the environment variable LEVEL of the server"),
        (VARIABLE, LOCAL, "6", "cannot use the environment variable LEVEL of the server"),
        (VARIABLE, LOCAL, "x", "cannot use the environment variable LEVEL of the server"),
        (CLAIM, LOCAL, "4", "needs HTTP and an access token"),
        (CLAIM, BOB, "4", "needs the claim 'level' of your access token"),
        (CLAIM, ANONYMOUS, "4", "needs an access token with the claim 'level'"),
        (BOTH, LOCAL, None, "needs the environment variable LEVEL of the server"),
        (BOTH, BOB, "4", "needs the claim 'level' of your access token"),
        (BOTH, ANONYMOUS, "4", "needs an access token with the claim 'level'"),
    ],
)
async def test_a_call_without_a_fitting_value_says_where_it_comes_from(
    binding: Any, principal: Principal, variable: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEVEL", raising=False)
    if variable is not None:
        monkeypatch.setenv("LEVEL", variable)
    end = ": it does not match the schema." if text.startswith("cannot") else "."
    assert await call(binding, principal) == f"rise {text}{end}"


@pytest.mark.parametrize(
    ("value", "schema", "read"),
    [
        ("1", {"type": "integer"}, 1),
        ("1", {"type": "string"}, "1"),
        ("1", {"type": ["integer", "string"]}, "1"),
        ("1", {}, "1"),
        ("1", True, "1"),
        ("[1]", {"type": ["array", "null"]}, [1]),
        ("x", {"type": "integer"}, "x"),
        (1, {"type": "string"}, 1),
        (1, {"type": "integer"}, 1),
        (["1"], {}, ["1"]),
        (None, {"type": "null"}, None),
    ],
)
async def test_a_text_is_read_by_the_type_of_its_argument(value: Any, schema: Any, read: Any) -> None:
    assert read_value(value, schema) == read
    assert type(read_value(value, schema)) is type(read)
