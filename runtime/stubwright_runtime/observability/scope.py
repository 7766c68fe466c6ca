"""The request scope, in a context variable for logging, redaction and the store."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final


@dataclass(slots=True, eq=False, repr=False)
class Scope:
    """The scope of one request.

    Attributes:
        package: The package to log under.
        secrets: The call's `redaction.Secret`s, or `None` if the call is unknown.
        waits: The remaining time to wait for the store (`state.outages`), or `None` for no limit.
    """

    package: str
    secrets: list[Any] | None = None
    waits: Any = None


SCOPE: Final[ContextVar[Scope]] = ContextVar("scope", default=Scope("stubwright_runtime"))  # noqa: B039 - never changed
"""The current scope."""
