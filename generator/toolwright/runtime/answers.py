"""What a person answers to a question, beside the answer itself.

Takes and gives plain values; imports nothing. Servers get them from `ctx.ask`, clients give them from `on_question`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Accepted:
    """The user agreed to what was asked, such as to open a URL (MCP 2025-11-25, client/elicitation, `accept`)."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The user said no (MCP 2025-06-18, client/elicitation, `decline`). It is false."""

    def __bool__(self) -> Literal[False]:
        """No is false."""
        return False


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user gave no answer, as by closing the form (MCP 2025-06-18, client/elicitation, `cancel`). It is false."""

    def __bool__(self) -> Literal[False]:
        """No answer is false."""
        return False
