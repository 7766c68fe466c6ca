"""What a person can say to a question beside filling in its form: yes, no, and nothing.

Takes and gives nothing; a handler gets these as answers, and a client's `on_question` gives them. Instances are told
apart with `isinstance`, and what is no answer is false, so that `if answer := await ctx.ask.confirm():` reads well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final


@final
@dataclass(frozen=True, slots=True)
class Accepted:
    """Yes: the person agreed (MCP 2025-11-25, client/elicitation, "Response Actions", `accept`).

    For a question with a URL it says that the person agreed to open it, not that they are done there. For a form it
    sends the defaults of the form.

    Attributes:
        elicitation: What a handler tells the client by that all is done at the URL (`ctx.complete`), up to 2025-11-25.
    """

    elicitation: str | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Declined:
    """No: the person said so (MCP 2025-11-25, client/elicitation, "Response Actions", `decline`)."""

    def __bool__(self) -> Literal[False]:
        """It is no answer."""
        return False


@final
@dataclass(frozen=True, slots=True)
class Cancelled:
    """Nothing: the person closed the question (MCP 2025-11-25, client/elicitation, "Response Actions", `cancel`)."""

    def __bool__(self) -> Literal[False]:
        """It is no answer."""
        return False
