"""Principals: the callers of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .access_tokens import CALLER

if TYPE_CHECKING:
    from .access_tokens import VerifiedToken

Kind: TypeAlias = Literal["token", "local", "anonymous"]


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request: the subject of an access token, this machine's user, or an anonymous caller.

    Attributes:
        kind: `token`; `local` over stdio and in-process; `anonymous` over HTTP without a token.
        issuer: The issuer of the token; `None` without a token.
        subject: The subject of the token, unique per issuer; without a token, the kind.
        client: The OAuth client to which the token was issued.
        scopes: The scopes of the token; for the local user, the scopes that the server was started with.
        claims: The other claims of the token.
    """

    kind: Kind
    issuer: str | None = None
    subject: str | None = None
    client: str | None = None
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def key(self) -> str:
        """The unique key of the principal; a token without a subject represents its client."""
        return _make_key(self.kind, self.issuer, self.subject, self.client)

    def __str__(self) -> str:
        """Return a short description of the principal."""
        return self.kind if self.kind != "token" else f"{self.subject or self.client} of {self.issuer or 'a token'}"


@lru_cache(1024)
def _make_key(kind: Kind, issuer: str | None, subject: str | None, client: str | None) -> str:
    who = subject if kind != "token" or subject is not None else [client]
    return json.dumps([kind, issuer, who])


ANONYMOUS: Final = Principal("anonymous", subject="anonymous")


class VerificationUnavailableError(Exception):
    """A token cannot be verified at the moment.

    Attributes:
        retry_after: Seconds to wait before a retry, at least 1.
    """

    def __init__(self, text: str, retry_after: int = 10) -> None:
        """Create the error.

        Args:
            text: The reason, for the log.
            retry_after: Seconds to wait before a retry.
        """
        super().__init__(text)
        self.retry_after = retry_after


def make_local(scopes: Sequence[str]) -> Principal:
    """Return the principal for the local user."""
    return Principal("local", subject="local", scopes=frozenset(scopes))


def make_from_token(token: VerifiedToken) -> Principal:
    """Return the principal for a verified access token."""
    claims = token.claims or {}
    issuer = claims.get("iss")
    return Principal(
        "token",
        issuer=None if issuer is None else str(issuer),
        subject=token.subject,
        client=token.client_id,
        scopes=frozenset(token.scopes),
        claims=claims,
    )


def find_access_token() -> VerifiedToken | None:
    """Return the current request's access token; `None` without a token."""
    caller = CALLER.get()
    return None if caller is None else caller.access_token


def find_current() -> Principal:
    """Return the principal of the current HTTP request."""
    caller = CALLER.get()
    return ANONYMOUS if caller is None else caller.principal
