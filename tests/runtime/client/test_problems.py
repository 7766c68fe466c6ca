"""Human-readable messages for the problems of a result."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Tag, ValidationError

from stubwright_runtime.mcp.problems import describe_problems


def _even(value: Any) -> Any:
    return value


def _kind(value: Any) -> Any:
    return value.get("kind") if isinstance(value, dict) else None


class _Answer(BaseModel):
    number: Annotated[int, AfterValidator(_even)] | list[Annotated[int, BeforeValidator(_even)]] = 0
    block: Annotated[Annotated[int, Tag("x")] | Annotated[str, Tag("y")], Discriminator(_kind)] = 0


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            {"number": ["q"]},
            "number: Input should be a valid integer; number.0: Input should be a valid",
        ),
        ({"block": 3}, "block: unknown type"),
        ({"block": {"kind": "z"}}, "block: it must be one of 'x', 'y'"),
    ],
)
def test_no_problem_names_a_function(answer: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=r"_(even|kind)\(") as raised:
        _Answer.model_validate(answer)
    assert describe_problems(raised.value).startswith(told)
