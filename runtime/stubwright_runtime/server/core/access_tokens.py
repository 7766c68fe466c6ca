"""Verified access tokens, and the caller whose token the current request has."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .principal import Principal


class VerifiedToken(Protocol):
    """The attributes of a verified access token; `AccessToken` and the SDK's class of that name have them.

    Attributes:
        token: The text of the token; empty if nothing needs it.
        client_id: The OAuth client that it was issued to.
        scopes: Its scopes.
        expires_at: When it expires, in seconds since the epoch; `None` if it does not expire.
        resource: The server that it was issued for; `None` if unknown.
        subject: The user; `None` if the token is for the client itself.
        claims: Its claims; `iss` is the issuer.
    """

    @property
    def token(self) -> str: ...  # noqa: D102
    @property
    def client_id(self) -> str: ...  # noqa: D102
    @property
    def scopes(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def expires_at(self) -> int | None: ...  # noqa: D102
    @property
    def resource(self) -> str | None: ...  # noqa: D102
    @property
    def subject(self) -> str | None: ...  # noqa: D102
    @property
    def claims(self) -> Mapping[str, Any] | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A verified access token, as a `TokenVerifier` returns it.

    Attributes:
        client_id: The OAuth client that it was issued to.
        scopes: Its scopes.
        subject: The user; `None` if the token is for the client itself.
        expires_at: When it expires, in seconds since the epoch; `None` if it does not expire.
        resource: The server that it was issued for, which must be this one; `None` if unknown.
        claims: Its claims; `iss` is the issuer.
        token: The text of the token; HTTP tools that exchange tokens need it.
    """

    client_id: str
    scopes: Sequence[str] = ()
    subject: str | None = None
    expires_at: int | None = None
    resource: str | None = None
    claims: Mapping[str, Any] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)


class TokenVerifier(Protocol):
    """Verifies access tokens."""

    async def verify_token(self, token: str) -> VerifiedToken | None:
        """Return the verified token, or `None` if it is invalid here.

        Raises:
            VerificationUnavailableError: The token cannot be verified now; the caller gets HTTP 503.
        """
        ...


class Caller(Protocol):
    """The sender of a request with a valid token.

    Attributes:
        access_token: The token.
        principal: The token's principal.
    """

    access_token: VerifiedToken
    principal: Principal


CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
"""The sender of the current request, over HTTP with a token."""
