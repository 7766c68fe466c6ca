"""Selects how many cases open-ended tests run: a sample, many in `make verify`, or all on request."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

IS_SAMPLE = not any(name.startswith("STUBWRIGHT_WHOLE") and value for name, value in os.environ.items())
"""True in `make test`, which runs the smallest samples."""


def choose(variable: str, sample: int, many: int, everything: int) -> int:
    """Return the number of cases for an environment variable's value: unset or empty, `many`, or any other value."""
    value = os.environ.get(variable, "")
    return everything if value not in ("", "many") else many if value else sample


def sample(cases: Iterable[object], number: int) -> list[Any]:
    """Return all cases as test parameters. All except `number` evenly spread cases are marked `long`."""
    every = list(cases)
    kept = {index * len(every) // number for index in range(number)}
    return [case if index in kept else mark_long(case) for index, case in enumerate(every)]


def mark_long(case: object) -> Any:
    """Return a test parameter with the `long` mark. It keeps its other marks and its ID.

    A tuple contains values for several names, as in `parametrize`.
    """
    if isinstance(case, type(pytest.param())):  # `pytest.ParameterSet` since pytest 9.1
        return case._replace(marks=[*case.marks, pytest.mark.long])
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.long)
