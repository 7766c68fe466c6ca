"""Who asks.

Takes what the SDK knows of a request; gives a principal. Tokens themselves go no further than here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...values.modules import loaded

if TYPE_CHECKING:
    from ...sdk.auth import AccessToken

Kind: TypeAlias = Literal["token", "local", "anonymous"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: whoever an access token is for, the user of this machine, or nobody known.

    Attributes:
        kind: `token`; `local`, on standard input and output and in one process; `anonymous`, over HTTP without a token.
        issuer: Who issued the token; `None` where there is none.
        subject: Whom the token is for, unique with its issuer only; else the kind.
        client: The OAuth client that the token was issued to.
        scopes: The scopes of the token, or those that the server was started with for the local user.
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
        """A text that no other principal has; a token without a subject stands for its client."""
        who = self.subject if self.kind != "token" or self.subject is not None else [self.client]
        return json.dumps([self.kind, self.issuer, who])

    def __str__(self) -> str:
        """Return the principal in a few words."""
        return self.kind if self.kind != "token" else f"{self.subject or self.client} of {self.issuer or 'a token'}"


ANONYMOUS: Final = Principal("anonymous", subject="anonymous")


def local(scopes: Sequence[str]) -> Principal:
    """Return the user of this machine."""
    return Principal("local", subject="local", scopes=frozenset(scopes))


def of_token(token: AccessToken) -> Principal:
    """Return the principal that a verified access token is for."""
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


def access_token() -> AccessToken | None:
    """Return the access token of the request that is being answered. Where the SDK is not loaded, nobody has shown
    one.
    """
    auth = loaded("mcp.server.auth.middleware.auth_context")
    token: AccessToken | None = None if auth is None else auth.get_access_token()
    return token


def current(*, over_http: bool, user: Principal) -> Principal:
    """Return who sent the request that is being answered; `user` is the local user."""
    if not over_http:
        return user
    token = access_token()
    return ANONYMOUS if token is None else of_token(token)
