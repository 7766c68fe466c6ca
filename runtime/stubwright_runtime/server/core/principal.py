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
    """The caller of a request: an access token's subject, this machine's user, or an anonymous caller.

    Attributes:
        kind: `token`; `local` over stdio and in-process; `anonymous` over HTTP without a token.
        issuer: The token's issuer; `None` without a token or if unknown.
        subject: The token's subject, unique per issuer; without a token, the same as `kind`.
        client: The OAuth client that the token was issued to.
        scopes: The token's scopes; for the local user, the scopes that the server was started with.
        claims: All claims of the token.
    """

    kind: Kind
    issuer: str | None = None
    subject: str | None = None
    client: str | None = None
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def key(self) -> str:
        """The principal's unique key. A token without a subject represents its OAuth client."""
        return _make_key(self.kind, self.issuer, self.subject, self.client)

    @property
    def client_key(self) -> str:
        """The unique key of the principal and the OAuth client that acts for it."""
        return json.dumps([self.key, self.client])

    def __str__(self) -> str:
        """Return the principal's kind, or the token's subject and issuer."""
        return self.kind if self.kind != "token" else f"{self.subject or self.client} of {self.issuer or 'a token'}"


@lru_cache(1024)
def _make_key(kind: Kind, issuer: str | None, subject: str | None, client: str | None) -> str:
    who = subject if kind != "token" or subject is not None else [client]
    return json.dumps([kind, issuer, who])


ANONYMOUS: Final = Principal("anonymous", subject="anonymous")


class VerificationUnavailableError(Exception):
    """A token cannot be verified now, for example because the issuer is unavailable.

    Attributes:
        retry_after: Seconds to wait before a retry, at least 1.
    """

    def __init__(self, text: str, retry_after: int = 10) -> None:
        super().__init__(text)
        self.retry_after = retry_after


def make_local(scopes: Sequence[str]) -> Principal:
    """Return the principal of local clients, with `scopes`."""
    return Principal("local", subject="local", scopes=frozenset(scopes))


def make_from_token(token: VerifiedToken) -> Principal:
    """Return the principal that a verified access token represents."""
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
    """Return the current request's access token; `None` if the request has no token."""
    caller = CALLER.get()
    return None if caller is None else caller.access_token


def find_current() -> Principal:
    """Return the current HTTP request's principal."""
    caller = CALLER.get()
    return ANONYMOUS if caller is None else caller.principal
