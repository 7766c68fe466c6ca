"""Verified access tokens, and the current request's caller."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .principal import Principal


class VerifiedToken(Protocol):
    """A verified access token, such as `AccessToken` or the SDK's class with the same name.

    Attributes:
        token: The encoded token; an empty string if no tool exchanges tokens.
        client_id: The OAuth client that the token was issued to.
        scopes: The scopes that the token grants.
        expires_at: The expiry time in seconds since the epoch; `None` if the token does not expire.
        resource: The server that the token was issued for; `None` if unknown.
        subject: The user ID; `None` if the token was issued to the client itself.
        claims: The token's claims, including the issuer as `iss`.
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
    """A verified access token, the result of a `TokenVerifier`.

    Attributes:
        client_id: The OAuth client that the token was issued to.
        scopes: The scopes that the token grants.
        subject: The user ID; `None` if the token was issued to the client itself.
        expires_at: The expiry time in seconds since the epoch; `None` if the token does not expire.
        resource: The server that the token was issued for; a token for another server is refused. `None` if unknown.
        claims: The token's claims, including the issuer as `iss`.
        token: The encoded token, required by HTTP tools with token exchange.
    """

    client_id: str
    scopes: Sequence[str] = ()
    subject: str | None = None
    expires_at: int | None = None
    resource: str | None = None
    claims: Mapping[str, Any] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)


class TokenVerifier(Protocol):
    """Verifies the access tokens of HTTP requests."""

    async def verify_token(self, token: str) -> VerifiedToken | None:
        """Return the verified token; `None` if the token is invalid.

        Raises:
            VerificationUnavailableError: The token cannot be verified now; the caller receives HTTP 503.
        """
        ...


class Caller(Protocol):
    """The caller of a request that has a valid token.

    Attributes:
        access_token: The request's access token.
        principal: The token's subject, with its scopes.
    """

    access_token: VerifiedToken
    principal: Principal


CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
"""The current request's caller, if the request arrived over HTTP with a token."""
