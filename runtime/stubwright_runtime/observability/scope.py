"""The request scope: a context variable that logging, redaction and the store read."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final


@dataclass(slots=True, eq=False, repr=False)
class Scope:
    """The values that apply while one request is handled.

    Attributes:
        package: The package under which to log.
        secrets: The call's `redaction.Secret`s, or `None` outside calls.
        waits: The remaining time that the request can wait for the store (`state.outages`), or `None` for no limit.
    """

    package: str
    secrets: list[Any] | None = None
    waits: Any = None


SCOPE: Final[ContextVar[Scope]] = ContextVar("scope", default=Scope("stubwright_runtime"))  # noqa: B039 - never changed
"""The scope of the current request."""
