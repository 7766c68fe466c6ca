"""Access tokens that are JWTs (RFC 9068).

Takes a token; says whom it is for, or that it is not valid here. Whoever sent it learns no more than that; the log has
the reason, and never the token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import jwt
from jwt.exceptions import PyJWTError
from mcp.server.auth.provider import AccessToken

from ..logs import CLEANERS, logger
from .keys import ALGORITHMS, Keys

_LOG: Final = logger(__name__)

SKEW: Final = 30.0
"""Seconds by which clocks may differ."""

_LONGEST: Final = 16 * 1024
"""Characters of a token."""

_TYPES: Final = ("at+jwt", "application/at+jwt", "jwt")
_JWT: Final = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*")

CLEANERS.append(lambda text: _JWT.sub("[token]", text))


class Tokens:
    """Verifies the tokens of one issuer, for one audience: a `TokenVerifier` of the SDK."""

    def __init__(self, auth: Mapping[str, Any], keys: Keys | None = None) -> None:
        """Take the manifest's `auth`; `keys` are the issuer's."""
        self._issuer: str = auth["issuer"]
        self._audience: str = auth["audience"]
        self._keys = Keys(self._issuer, auth.get("jwksUri")) if keys is None else keys

    async def verify_token(self, token: str) -> AccessToken | None:
        """Whom a token is for; `None` where it is not valid here.

        Raises:
            Unavailable: The issuer's keys cannot be had.
        """
        try:
            claims = await self._claims(token)
        except (PyJWTError, ValueError) as error:
            _LOG.info("a token was refused: %s", error)
            return None
        return AccessToken(
            token="",
            client_id=_text(claims.get("client_id") or claims.get("azp")) or "",
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]) + int(SKEW),
            resource=self._audience,
            subject=_text(claims.get("sub")),
            claims=claims,
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        """The claims of a valid token. Raises PyJWTError, ValueError."""
        if len(token) > _LONGEST:
            raise ValueError(f"it has {len(token):,} characters")
        header = jwt.get_unverified_header(token)
        algorithm, kind = str(header.get("alg")), header.get("typ")
        if algorithm not in ALGORITHMS:
            raise ValueError(f"its signature is of the kind {algorithm!r}")
        if kind is not None and str(kind).lower() not in _TYPES:
            raise ValueError(f"it is of the type {kind!r}")
        key = await self._keys.find(header.get("kid"), algorithm)
        if key is None:
            raise ValueError(f"its key {header.get('kid')!r} is none of its issuer's for {algorithm}")
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=self._audience,
            issuer=self._issuer,
            leeway=SKEW,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """The scopes of a token: `scope` is a text (RFC 9068, 2.2.3), `scp` a text or a list where others write that."""
    said = claims.get("scope", claims.get("scp"))
    if isinstance(said, str):
        return said.split()
    return [each for each in said if isinstance(each, str)] if isinstance(said, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
