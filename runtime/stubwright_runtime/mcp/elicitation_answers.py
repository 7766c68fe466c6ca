"""Answers of a person to a question other than a filled-in form: yes, no, or nothing.

A handler gets these as answers, and a client's `on_question` returns them. Distinguish them with `isinstance`; those
without an answer are false, so that `if answer := await ctx.ask.confirm():` reads well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final


@final
@dataclass(frozen=True, slots=True)
class Accepted:
    """Yes: the person agreed (MCP 2025-11-25, client/elicitation, "Response Actions", `accept`).

    For a question with a URL it means that the person agreed to open it, not that they are done there. For a form it
    sends the form's defaults.

    Attributes:
        elicitation: With this a handler tells the client that the person is done at the URL (`ctx.complete`), up to
            2025-11-25.
    """

    elicitation: str | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Declined:
    """No: the person declined (MCP 2025-11-25, client/elicitation, "Response Actions", `decline`)."""

    def __bool__(self) -> Literal[False]:
        """Return False: it is not an answer."""
        return False


@final
@dataclass(frozen=True, slots=True)
class Cancelled:
    """No answer: the person closed the question (MCP 2025-11-25, client/elicitation, "Response Actions", `cancel`)."""

    def __bool__(self) -> Literal[False]:
        """Return False: it is not an answer."""
        return False
