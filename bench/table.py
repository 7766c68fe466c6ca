"""The table of a benchmark: ratios of two servers' figures from the same round."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BARE, OURS = "bare", "ours"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        name: The measured quantity.
        target: The target ratio, a maximum or a minimum; `None` without a target.
        at_least: Whether the target is a minimum.
        unit: The unit of the figures.
    """

    name: str
    target: float | None
    at_least: bool
    unit: str


Figures = dict[str, dict[Row, float]]
"""The figures of one round, of `BARE` and of `OURS`."""


def table(rounds: Sequence[Figures]) -> Iterator[str]:
    """Return the lines of the table."""
    yield "| | ratio | spread | target | bare, ours |"
    yield "|---|---|---|---|---|"
    for row in rounds[0][BARE]:
        ratios = sorted(figures[OURS][row] / figures[BARE][row] for figures in rounds)
        median = statistics.median(ratios)
        both = ", ".join(_round(rounds[-1][side][row]) for side in (BARE, OURS))
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        yield f"| {row.name} | {median:.2f} | {spread} | {_judge(row, median)} | {both} {row.unit} |"


def _round(figure: float) -> str:
    """Round a figure to three significant digits, or to an integer if that has more digits."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def _judge(row: Row, median: float) -> str:
    """Return the target, and whether it is missed."""
    if row.target is None:
        return ""
    is_met = median >= row.target if row.at_least else median <= row.target
    return f"{'≥' if row.at_least else '≤'} {row.target:g}{'' if is_met else ', missed'}"
