"""The scope of a request: the log, the redaction and the store read it from one context variable.

Pure data. A server's `Request` is a scope; a call of a client has a plain one.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final


@dataclass(slots=True, eq=False, repr=False)
class Scope:
    """The scope of one request.

    Attributes:
        package: The package whose server or client is running: each has its own log.
        secrets: The `redaction.Secret`s that no log shows; `None` if it is not known which call is running.
        waits: The time that the request may still wait for the store (`state.outages`); `None` without a limit.
    """

    package: str
    secrets: list[Any] | None = None
    waits: Any = None


SCOPE: Final[ContextVar[Scope]] = ContextVar("scope", default=Scope("stubwright_runtime"))  # noqa: B039 - it is never changed
"""The current scope."""
