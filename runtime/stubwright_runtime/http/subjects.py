"""Callers whose access tokens are exchanged for API tokens (RFC 8693), and a cache for each caller.

Each entry belongs to one of the caller's tokens, because other tokens can grant other permissions.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ..server.core.principal import find_access_token, make_from_token

if TYPE_CHECKING:
    from ..server.core.principal import Principal

_State = TypeVar("_State")

PRINCIPALS: Final = 1000
"""The maximum number of cached callers; the least recently used is evicted."""

EACH: Final = 8
"""The maximum number of states per caller, one for each scheme and token."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A caller: the principal, the token, and the seconds until the token expires, if known."""

    principal: str
    token: str = field(repr=False)
    seconds: float | None

    @property
    def digest(self) -> str:
        """The token's digest for cache keys."""
        return hashlib.sha256(self.token.encode()).hexdigest()


def find_subject(principal: Principal) -> Subject | None:
    """Return the caller with the current request's token, or `None` if the principal has no token.

    Tasks have no token because they run after the request.
    """
    token = find_access_token() if principal.kind == "token" else None
    if token is None or not token.token or make_from_token(token).key != principal.key:
        return None
    seconds = None if token.expires_at is None else token.expires_at - time.time()
    return Subject(principal.key, token.token, seconds)


class PrincipalCache(Generic[_State]):
    """Caches up to `EACH` states for each of up to `PRINCIPALS` callers."""

    def __init__(self, make: Callable[[], _State]) -> None:
        self._make = make
        self._principals: OrderedDict[str, OrderedDict[tuple[str, str], _State]] = OrderedDict()

    def find_state(self, scheme: str, subject: Subject) -> _State:
        """Return the state for a scheme and a caller's token, creating it if necessary."""
        states = self._principals.setdefault(subject.principal, OrderedDict())
        self._principals.move_to_end(subject.principal)
        key = (scheme, subject.digest)
        if key not in states:
            states[key] = self._make()
        states.move_to_end(key)
        while len(states) > EACH:
            states.popitem(last=False)
        while len(self._principals) > PRINCIPALS:
            self._principals.popitem(last=False)
        return states[key]
