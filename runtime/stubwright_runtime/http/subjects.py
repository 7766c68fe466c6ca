"""Callers whose own access tokens are exchanged for those of an API (RFC 8693), and what is retained for each of them.

What is retained belongs to that token, so that neither another caller nor an older token of the same caller, which may
allow more, is served by it.
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
"""The most callers for whom state is retained; the one that called longest ago goes first."""

EACH: Final = 8
"""The most states that are retained for one of them: a token for each scheme, and earlier ones."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A caller: its principal, its token, and the seconds for which the token is valid, if known."""

    principal: str
    token: str = field(repr=False)
    seconds: float | None

    @property
    def digest(self) -> str:
        """The digest that represents the token in stored keys."""
        return hashlib.sha256(self.token.encode()).hexdigest()


def find_subject(principal: Principal) -> Subject | None:
    """Return the caller with the token of the current request; None if that has none, or belongs to another principal.

    A task has none: it runs after its request, in this process or in another one.
    """
    token = find_access_token() if principal.kind == "token" else None
    if token is None or not token.token or make_from_token(token).key != principal.key:
        return None
    seconds = None if token.expires_at is None else token.expires_at - time.time()
    return Subject(principal.key, token.token, seconds)


class PrincipalCache(Generic[_State]):
    """The states that are retained for callers: up to `EACH` for each of up to `PRINCIPALS`."""

    def __init__(self, make: Callable[[], _State]) -> None:
        """Take the function that makes a state."""
        self._make = make
        self._principals: OrderedDict[str, OrderedDict[tuple[str, str], _State]] = OrderedDict()

    def find_state(self, scheme: str, subject: Subject) -> _State:
        """Return the state for a scheme and a caller's token; a new one if there is none."""
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
