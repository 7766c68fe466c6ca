"""The outcomes of a request: a result, an error, or no response in time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY, URL_ELICITATION_REQUIRED

_QUESTIONS: Final = (MISSING_REQUIRED_CLIENT_CAPABILITY, URL_ELICITATION_REQUIRED)
"""The error codes of a server that needs input from its client before it can run a tool."""


@dataclass(frozen=True, slots=True)
class Result:
    """A raw result, with its latency in seconds and its JSON size in bytes."""

    value: Mapping[str, Any]
    seconds: float
    size: int

    @property
    def is_error(self) -> bool:
        """True if the tool reports a failure."""
        return self.value.get("isError") is True

    @property
    def is_question(self) -> bool:
        """True if the server needs input from its client first (MCP 2026-07-28, server/tools, Incomplete Results)."""
        return self.value.get("resultType") == "input_required"

    @property
    def text(self) -> str:
        """The result's text content blocks, joined."""
        content = self.value.get("content")
        blocks = content if isinstance(content, list) else []
        return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """A JSON-RPC error.

    Attributes:
        seconds: The latency in seconds.
        retry_after: The server's `Retry-After` in seconds, if any.
    """

    code: int
    message: str
    data: Any
    seconds: float
    retry_after: float | None = None

    @property
    def is_question(self) -> bool:
        """True if the server needs input from its client first.

        Sources: MCP 2025-11-25, client/elicitation, URL Elicitation Required Error; MCP 2026-07-28, basic, Error Codes.
        """
        return self.code in _QUESTIONS


@dataclass(frozen=True, slots=True)
class Timeout:
    """No response within the deadline."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Disconnect:
    """No response, because the connection broke or HTTP rejected the request.

    Attributes:
        why: The reason, as a clause that follows the server's name.
        retry_after: The server's `Retry-After` in seconds, if any.
        has_ended: True if the server process has exited.
    """

    why: str
    retry_after: float | None = None
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class RateLimitRefusal:
    """A response that rejects a call because of a rate limit, with the seconds until the server accepts calls again."""

    seconds: float


Answer: TypeAlias = Result | ProtocolError | Timeout | Disconnect | RateLimitRefusal

_LIMIT: Final = re.compile(
    r"\b((http|status|code|error|rejected|failed)\W{1,3}429|too many (requests|calls)|slow down|throttl\w+"
    r"|rate exceeded|rate[-_ ]?limit(ed|[-_: ]*((is|was|has been|of [\w/]+) )?(exceeded|reached|hit|error))"
    r"|(exceed(ed|s)|hit|reached) (your|the|its|our) rate[-_ ]?limit"
    r"|(request|call|usage)s?[-_ ]limit[-_ ](exceeded|reached|hit)|(quota[-_ ]|resource_)(exceeded|reached|exhausted)"
    r"|limit of \d+ (requests|calls)|\d+ (requests|calls|times) (per|a|each|every) (second|minute|hour|day)"
    r"|retry[-_ ]?(after|in)\W{1,3}\d\w*|try again (in|after)|wait \d+ ?(ms|s|sec\w*|min\w*))\b",
    re.IGNORECASE,
)
_WAIT: Final = re.compile(
    r"\b(?:try again (?:in|after)|retry[-_ ]?(?:after|in)\W{0,3}|wait(?: for)?)\s*"
    r"(\d+(?:\.\d+)?)\s*(ms|millis\w*|s|m|h|d|sec\w*|min\w*|hour\w*|days?)?\b",
    re.IGNORECASE,
)
_UNITS: Final = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DEFAULT_WAIT: Final = 1.0
"""The number of seconds to wait after a rejected call if the server does not send `Retry-After`."""

_LONGEST_WORDS: Final = 500  # characters; longer errors have other causes


def find_limit(answer: Answer) -> RateLimitRefusal | None:
    """Return the rejection if a rate limit rejected the call, otherwise None.

    The patterns match the messages of this project's servers and of HTTP (RFC 6585, section 4; RFC 9110, section
    10.2.3).
    """
    match answer:
        case Disconnect(retry_after=float() as seconds) | ProtocolError(retry_after=float() as seconds):
            return RateLimitRefusal(seconds)
        case ProtocolError():
            words = f"{answer.message} {answer.data or ''}"
        case Result() if answer.is_error:
            words = answer.text
        case Disconnect() if re.search(r"\b429\b", answer.why):  # without a status, the text could come from a log
            words = answer.why
        case _:
            return None
    if len(words) > _LONGEST_WORDS or not _LIMIT.search(words):
        return None
    if (found := _WAIT.search(words)) is None:
        return RateLimitRefusal(DEFAULT_WAIT)
    unit = (found[2] or "").lower()
    return RateLimitRefusal(float(found[1]) * _UNITS["ms" if unit.startswith(("ms", "milli")) else unit[:1]])
