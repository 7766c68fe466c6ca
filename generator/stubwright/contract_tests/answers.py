"""The outcomes of a request: an answer, an error, or no answer in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY, URL_ELICITATION_REQUIRED

_QUESTIONS: Final = (MISSING_REQUIRED_CLIENT_CAPABILITY, URL_ELICITATION_REQUIRED)
"""Errors that MCP prescribes to a server that needs its client before it can run a tool."""


@dataclass(frozen=True, slots=True)
class Result:
    """A result, as it came; with the seconds it took, and its size in bytes of JSON."""

    value: Mapping[str, Any]
    seconds: float
    size: int

    @property
    def is_error(self) -> bool:
        """True if the tool reports a failure."""
        return self.value.get("isError") is True

    @property
    def is_question(self) -> bool:
        """True if the server asks its client something first (MCP 2026-07-28, server/tools, Incomplete Results)."""
        return self.value.get("resultType") == "input_required"

    @property
    def text(self) -> str:
        """The texts of its content."""
        content = self.value.get("content")
        blocks = content if isinstance(content, list) else []
        return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """An error of JSON-RPC."""

    code: int
    message: str
    data: Any
    seconds: float

    @property
    def is_question(self) -> bool:
        """True if the server needs input from its client first.

        Sources: MCP 2025-11-25, client/elicitation, URL Elicitation Required Error; MCP 2026-07-28, basic, Error Codes.
        """
        return self.code in _QUESTIONS


@dataclass(frozen=True, slots=True)
class Late:
    """No answer within the deadline."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Gone:
    """No answer, because the connection broke; `why` continues the name of the server."""

    why: str


Answer: TypeAlias = Result | ProtocolError | Late | Gone
