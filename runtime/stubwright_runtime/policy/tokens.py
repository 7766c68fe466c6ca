"""Access tokens that are JWTs (RFC 9068).

Its sender learns no more than that; the log has the reason, and never the token.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import jwt
from jwt import PyJWK
from jwt.exceptions import InvalidIssuerError, PyJWTError

from ..observability.logs import LogThrottle, log
from ..server.core.access_tokens import AccessToken
from ..values.json import is_list
from ..values.urls import normalize_url
from .keys import ALGORITHMS, Keys

SKEW: Final = 30.0
"""Seconds by which clocks may differ."""

_LONGEST: Final = 16 * 1024
"""Characters of a token."""

_PLAIN: Final = "jwt"
_TYPES: Final = ("at+jwt", "application/at+jwt", _PLAIN)
_OTHERS: Final = frozenset({"at_hash", "c_hash", "events", "nonce", "s_hash"})
"""Claims of ID tokens and of logout tokens (OpenID Connect Core 1.0, 2 and 3.3.2.11; Back-Channel Logout 1.0, 2.4)."""

_KINDS: Final = ("typ", "token_use", "token_type", "tokenName")
"""Claims in which issuers name the kind of a token: Keycloak, Amazon Cognito, several libraries, and ForgeRock."""

_ACCESS: Final = frozenset({"access", "access_token", "bearer", "dpop", *_TYPES})
"""The kinds of access tokens there, in lower case; others are ID, refresh, offline, logout and action tokens."""

_VERIFIED: Final = 1000
"""Tokens that need not be verified again; they are known by their SHA-256 digests."""

_TIMES: Final = ("exp", "nbf", "iat")
"""Claims that are times, in seconds since 1970 (RFC 7519, 2, "NumericDate")."""

_LAST_TIME: Final = 253_402_300_799
"""The end of the year 9999 (RFC 3339, 1), in seconds since 1970."""

_SHOWN: Final = 80
"""The maximum number of characters of a value in a token that are logged."""


@dataclass(frozen=True, slots=True)
class _VerifiedToken:
    """A token whose signature was verified, and the key that verified it."""

    token: AccessToken
    key: PyJWK
    kid: str | None
    algorithm: str


class Tokens:
    """The verifier of one issuer's tokens for one audience: a `TokenVerifier`."""

    def __init__(self, auth: Mapping[str, Any], keys: Keys | None = None, *, keeps_text: bool = False) -> None:
        """Take the manifest's `auth`.

        Args:
            auth: The issuer and the audience of tokens.
            keys: The issuer's keys; by default its published keys.
            keeps_text: True if a verified token keeps its own text. Otherwise no handler can pass it on.
        """
        self._issuer: str = auth["issuer"]
        self._audience: str = auth["audience"]
        self._keys = Keys(self._issuer, auth.get("jwksUri")) if keys is None else keys
        self._keeps_text = keeps_text
        self._refused = LogThrottle(log(), "tokens refused: %d; the last: %s")
        self._verified: OrderedDict[bytes, _VerifiedToken] = OrderedDict()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the subject, client and scopes of a token as an `AccessToken`; `None` if it is not valid here.

        Raises:
            VerificationUnavailableError: The issuer's keys cannot be had, or it may have a new one, and cannot be asked
                yet.
        """
        try:
            digest = sha256(token.encode()).digest()
            verified = await self._known(digest) or await self._verify(token)
        except (PyJWTError, ValueError) as error:
            self._refused.count(error)
            return None
        self._verified[digest] = verified
        self._verified.move_to_end(digest)
        if len(self._verified) > _VERIFIED:
            self._verified.popitem(last=False)
        # A copy, since the verified token is cached, and a request must not change the claims of the next.
        text = token if self._keeps_text else ""
        return replace(verified.token, token=text, claims=dict(verified.token.claims or {}))

    async def _known(self, digest: bytes) -> _VerifiedToken | None:
        """Return a token's verified claims, unless it has expired or its key has changed."""
        verified = self._verified.pop(digest, None)
        if verified is None or (verified.token.expires_at or 0) <= time.time():
            return None
        return verified if await self._keys.find(verified.kid, verified.algorithm) is verified.key else None

    async def _verify(self, token: str) -> _VerifiedToken:
        """Verify a token, and return its content. Raises PyJWTError, ValueError."""
        header, key, claims = await self._claims(token)
        _check_kind(header, claims)
        access = AccessToken(
            token="",
            client_id=_client(claims) or "",
            scopes=_scopes(claims),
            # What compares it later grants no leeway of its own.
            expires_at=int(claims["exp"]) + int(SKEW),
            resource=self._audience,
            subject=_text(claims.get("sub")),
            claims=claims,
        )
        return _VerifiedToken(access, key, header.get("kid"), header["alg"])

    async def _claims(self, token: str) -> tuple[dict[str, Any], PyJWK, dict[str, Any]]:
        """Return the header of a token that its issuer signed for here, the key, and the claims.

        Raises:
            PyJWTError: It is not valid.
            ValueError: Likewise.
        """
        if len(token) > _LONGEST:
            raise ValueError(f"it has {len(token):,} characters")
        header = jwt.get_unverified_header(token)
        algorithm = str(header.get("alg"))
        if algorithm not in ALGORITHMS:
            raise ValueError(f"its signature is of the kind {_short(algorithm)}")
        key = await self._keys.find(header.get("kid"), algorithm)
        if key is None:
            raise ValueError(f"its key {_short(header.get('kid'))} is none of its issuer's for {algorithm}")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self._issuer,
                leeway=SKEW,
                # PyJWT compares audiences as texts.
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True, "verify_aud": False},
            )
        except OverflowError as error:  # of a number that is infinite
            raise ValueError("a claim is not a time") from error
        except InvalidIssuerError as error:  # its signature is valid
            value = jwt.decode(token, options={"verify_signature": False})["iss"]
            raise ValueError(f"its `iss` is {_short(value)}, which is not {self._issuer!r}") from error
        if not _is_for(self._audience, claims["aud"]):
            raise ValueError(f"its `aud` is {_short(claims['aud'])}, which is not {self._audience!r}")
        _check_times(claims)
        return header, key, claims


def _check_times(claims: Mapping[str, Any]) -> None:
    """Refuse a token whose times are not numbers between 1970 and the year 9999 (RFC 7519, 4.1.4 to 4.1.6).

    Raises:
        ValueError: One of them is not.
    """
    for name in _TIMES:
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST_TIME:
            raise ValueError(f"its `{name}` is {_short(value)}: not a time")


def _is_for(audience: str, named: object) -> bool:
    """Return whether `aud` names an audience: it is a text or a list of texts (RFC 7519, 4.1.3)."""
    names = named if is_list(named) else [named]
    texts = [name for name in names if isinstance(name, str)]
    return len(texts) == len(names) and normalize_url(audience) in map(normalize_url, texts)


def _check_kind(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Refuse a token that is not an access token with a subject or a client.

    Many issuers write the type `JWT` in place of `at+jwt` (RFC 9068); then the claims tell access tokens from the other
    tokens of the issuer (RFC 8725, 3.12).

    Raises:
        ValueError: It is another kind of token, or has neither a subject nor a client.
    """
    kind = str(header.get("typ", _PLAIN)).lower()
    if kind not in _TYPES:
        raise ValueError(f"it is of the type {_short(header.get('typ'))}")
    if kind == _PLAIN and (foreign := _OTHERS & claims.keys()):
        raise ValueError(f"it is not an access token: it has {', '.join(sorted(foreign))}")
    for name in _KINDS if kind == _PLAIN else ():
        if claims.get(name) is not None and str(claims[name]).lower().replace("-", "_") not in _ACCESS:
            raise ValueError(f"it is not an access token: its `{name}` is {_short(claims[name])}")
    if not (_text(claims.get("sub")) or _client(claims)):
        raise ValueError("it says neither whose it is nor which client's")


def _client(claims: Mapping[str, Any]) -> str | None:
    """Return the client that a token was issued to: `client_id` (RFC 9068, 2.2), or `azp` of other issuers."""
    return _text(claims.get("client_id") or claims.get("azp"))


def _short(value: object) -> str:
    """Truncate a value for the log, which senders of tokens must not fill."""
    return repr(str(value)[:_SHOWN])


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes of a token: `scope` is a text (RFC 9068, 2.2.3), `scp` of other issuers a text or a list.

    In a text there are spaces between them, and no other white space (RFC 6749, 3.3).
    """
    scope_claim = claims.get("scope", claims.get("scp"))
    if isinstance(scope_claim, str):
        return [scope for scope in scope_claim.split(" ") if scope]
    return [each for each in scope_claim if isinstance(each, str)] if is_list(scope_claim) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
