"""Verified access tokens, and the caller of the current request."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .principal import Principal


class VerifiedToken(Protocol):
    """The interface for verified access tokens, such as `AccessToken` and the SDK's class of the same name.

    Attributes:
        token: The encoded token; empty if it is not needed.
        client_id: The OAuth client of the token.
        scopes: The scopes.
        expires_at: The expiry time in seconds since the epoch; `None` if the token does not expire.
        resource: The server that the token was issued for; `None` if unknown.
        subject: The user; `None` if the token was issued to the client itself.
        claims: The claims; `iss` is the issuer.
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
        client_id: The OAuth client of the token.
        scopes: The scopes.
        subject: The user; `None` if the token was issued to the client itself.
        expires_at: The expiry time in seconds since the epoch; `None` if the token does not expire.
        resource: The server that the token was issued for, which must be this one; `None` if unknown.
        claims: The claims; `iss` is the issuer.
        token: The encoded token, which HTTP tools with token exchange need.
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
        """Return the verified token; `None` if it is invalid.

        Raises:
            VerificationUnavailableError: The token cannot be verified now; the caller receives HTTP 503.
        """
        ...


class Caller(Protocol):
    """The caller of a request with a valid token.

    Attributes:
        access_token: The token.
        principal: The principal of the token.
    """

    access_token: VerifiedToken
    principal: Principal


CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
"""The caller of the current request, if it came over HTTP with a token."""
