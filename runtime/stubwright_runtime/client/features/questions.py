"""Types for server requests to the client, and for the callbacks that answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

from ...mcp.elicitation_answers import Accepted, Cancelled, Declined
from ...values.terminal import replace_controls

if TYPE_CHECKING:
    from anyio import Event
    from mcp_types import CreateMessageRequestParams, CreateMessageResult, Root


@dataclass(frozen=True, slots=True)
class Question:
    """A question for a person (MCP 2025-11-25, client/elicitation).

    Attributes:
        message: The text to show, as the server sent it; `str(question)` is safe on a terminal.
        schema: The form's JSON Schema, or `None` for a URL. The properties are scalars and enums.
        url: The URL to open in a browser after the person has seen it and agreed, or `None` for a form.
        key: The question's key within its call; `None` in MCP 2025-11-25 and earlier.
        elicitation: The ID to expect in the URL's completion notification (MCP 2025-11-25 and earlier).
    """

    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None
    key: str | None = None
    elicitation: str | None = None
    _done: Event | None = field(default=None, repr=False, compare=False)

    async def completed(self) -> None:
        """Wait until the server reports that the visit to the URL is complete (`notifications/elicitation/complete`).

        The server might never report completion, so limit the wait, for instance with `asyncio.timeout(300)`.

        Raises:
            ValueError: The server does not report completion, because the question has no URL or the connection uses
                MCP 2026-07-28.
        """
        if self._done is None:
            raise ValueError("the server does not report this question's completion")
        await self._done.wait()

    def __str__(self) -> str:
        """Return the message and the URL without control characters, for a terminal."""
        return replace_controls(self.message if self.url is None else f"{self.message}\n{self.url}")


Answer: TypeAlias = Mapping[str, Any] | BaseModel | Accepted | Declined | Cancelled
"""The form's values, or a person's decision without values."""

OnQuestion: TypeAlias = Callable[[Question], Answer | Awaitable[Answer]]
"""Asks a person the server's question. Missing values get the form's defaults, and invalid answers are not sent."""

Sample: TypeAlias = "CreateMessageResult | str"
OnSample: TypeAlias = "Callable[[CreateMessageRequestParams], Sample | Awaitable[Sample]]"
"""Samples from a model (MCP 2025-11-25, client/sampling). A `str` becomes text from the model `unknown`."""

RootLike: TypeAlias = "str | Path | Root"
"""A directory or file, as a path, a file:// URI, or the SDK's own class."""

Roots: TypeAlias = "Sequence[RootLike] | Callable[[], Sequence[RootLike] | Awaitable[Sequence[RootLike]]]"
"""Directories and files that the server may access (MCP 2025-11-25, client/roots), or a function that returns them."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The callbacks that the caller passed; the others are `None`."""

    on_question: OnQuestion | None = None
    on_sample: OnSample | None = None
    roots: Roots | None = None

    def list_given(self) -> list[str]:
        """Return the names of the callbacks that the caller passed."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]
