"""Error messages when a caller's storage budget is exhausted."""

from __future__ import annotations

import pytest

from stubwright_runtime.state.budget import BudgetExceeded, Whose


@pytest.mark.parametrize(
    ("whose", "seconds", "end"),
    [
        ("caller", None, "there is no room for this. End a handle or cancel a task that you no longer need."),
        (
            "caller",
            0.2,
            "Try again in 1 second, when some of it expires, or end a handle or cancel a task that you no longer need.",
        ),
        ("server", None, "no caller can use more than remains free. Try again later."),
        ("server", 61, "no caller can use more than remains free. Try again in 61 seconds, when some of it expires."),
    ],
)
def test_they_say_what_to_do(whose: Whose, seconds: float | None, end: str) -> None:
    assert str(BudgetExceeded(whose, 1024, 1000, seconds)).endswith(end)
