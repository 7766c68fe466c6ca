"""Selects how many cases open-ended tests run: a sample, many in `make verify`, or all on request."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

IS_SAMPLE = not any(name.startswith("STUBWRIGHT_WHOLE") and value for name, value in os.environ.items())
"""True in `make test`, which runs the smallest samples."""


def choose(variable: str, sample: int, many: int, everything: int) -> int:
    """Return the number for the value of an environment variable: unset or empty, `many`, or any other value."""
    value = os.environ.get(variable, "")
    return everything if value not in ("", "many") else many if value else sample


def sample(cases: Iterable[object], number: int) -> list[Any]:
    """Return all cases as parameters of a test. All except `number` evenly spread cases are marked `long`."""
    every = list(cases)
    kept = {index * len(every) // number for index in range(number)}
    return [case if index in kept else mark_long(case) for index, case in enumerate(every)]


def mark_long(case: object) -> Any:
    """Return a parameter of a test with the mark `long`; it retains its other marks and its id.

    A tuple has the values of several names, as in `parametrize`.
    """
    if isinstance(case, type(pytest.param())):  # `pytest.ParameterSet` from pytest 9.1 on
        return case._replace(marks=[*case.marks, pytest.mark.long])
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.long)
