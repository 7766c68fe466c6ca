"""Verifies JWT access tokens (RFC 9068). The reason why a token is invalid is only logged, without the token."""

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
"""The permitted clock skew in seconds."""

_LONGEST: Final = 16 * 1024
"""The maximum length of a token, in characters."""

_PLAIN: Final = "jwt"
_TYPES: Final = ("at+jwt", "application/at+jwt", _PLAIN)
_OTHERS: Final = frozenset({"at_hash", "c_hash", "events", "nonce", "s_hash"})
"""Claims that only ID tokens and logout tokens have (OpenID Connect Core 1.0, 2 and 3.3.2.11; Back-Channel Logout 1.0,
2.4).
"""

_KINDS: Final = ("typ", "token_use", "token_type", "tokenName")
"""Claims with which Keycloak, Amazon Cognito, several libraries and ForgeRock declare a token's type."""

_ACCESS: Final = frozenset({"access", "access_token", "bearer", "dpop", *_TYPES})
"""The values of the `_KINDS` claims in access tokens, in lower case."""

_VERIFIED: Final = 1000
"""The maximum number of verified tokens in the cache, whose keys are the tokens' SHA-256 digests."""

_TIMES: Final = ("exp", "nbf", "iat")
"""Claims with times in seconds since 1970 (RFC 7519, 2, "NumericDate")."""

_LAST_TIME: Final = 253_402_300_799
"""The end of the year 9999 (RFC 3339, 1), in seconds since 1970."""

_SHOWN: Final = 80
"""The maximum length of a token value in the log, in characters."""


@dataclass(frozen=True, slots=True)
class _VerifiedToken:
    """A verified token, with the key that verified its signature."""

    token: AccessToken
    key: PyJWK
    kid: str | None
    algorithm: str


class Tokens:
    """A `TokenVerifier` that accepts one issuer's tokens for one audience."""

    def __init__(self, auth: Mapping[str, Any], keys: Keys | None = None, *, keeps_text: bool = False) -> None:
        """Create a verifier from the manifest's `auth`.

        Args:
            auth: The manifest's `auth`, which names the issuer and the audience.
            keys: The issuer's keys; by default, the keys that the issuer publishes.
            keeps_text: True if the encoded token is retained for handlers, so that they can exchange it.
        """
        self._issuer: str = auth["issuer"]
        self._audience: str = auth["audience"]
        self._keys = Keys(self._issuer, auth.get("jwksUri")) if keys is None else keys
        self._keeps_text = keeps_text
        self._refused = LogThrottle(log(), "tokens refused: %d; the last: %s")
        self._verified: OrderedDict[bytes, _VerifiedToken] = OrderedDict()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Verify a token. Return its subject, client and scopes as an `AccessToken`, or `None` if it is invalid.

        Raises:
            VerificationUnavailableError: The issuer's keys are unavailable, or the token's key is unknown and it is too
                early to fetch the keys again.
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
        # A copy, because requests must not change the cached token's claims.
        text = token if self._keeps_text else ""
        return replace(verified.token, token=text, claims=dict(verified.token.claims or {}))

    async def _known(self, digest: bytes) -> _VerifiedToken | None:
        """Return a token from the cache, unless it has expired or the issuer has replaced its key."""
        verified = self._verified.pop(digest, None)
        if verified is None or (verified.token.expires_at or 0) <= time.time():
            return None
        return verified if await self._keys.find(verified.kid, verified.algorithm) is verified.key else None

    async def _verify(self, token: str) -> _VerifiedToken:
        """Verify a token, and return the access token with the key that verified it. Raises PyJWTError, ValueError."""
        header, key, claims = await self._claims(token)
        _check_kind(header, claims)
        access = AccessToken(
            token="",
            client_id=_client(claims) or "",
            scopes=_scopes(claims),
            # Later comparisons do not add the clock skew.
            expires_at=int(claims["exp"]) + int(SKEW),
            resource=self._audience,
            subject=_text(claims.get("sub")),
            claims=claims,
        )
        return _VerifiedToken(access, key, header.get("kid"), header["alg"])

    async def _claims(self, token: str) -> tuple[dict[str, Any], PyJWK, dict[str, Any]]:
        """Return a token's header, key and verified claims.

        Raises:
            PyJWTError: The token's encoding, signature or time is invalid.
            ValueError: The token's length, algorithm, key, issuer, audience or type is invalid.
        """
        if len(token) > _LONGEST:
            raise ValueError(f"it has {len(token):,} characters")
        header = jwt.get_unverified_header(token)
        algorithm = str(header.get("alg"))
        if algorithm not in ALGORITHMS:
            raise ValueError(f"its signature algorithm is {_shorten(algorithm)}")
        key = await self._keys.find(header.get("kid"), algorithm)
        if key is None:
            raise ValueError(f"its issuer has no key {_shorten(header.get('kid'))} for {algorithm}")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self._issuer,
                leeway=SKEW,
                # PyJWT compares audiences as strings, not as URLs.
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True, "verify_aud": False},
            )
        except (OverflowError, TypeError) as error:  # raised for infinite numbers and, by PyJWT 2.14, for lists
            raise ValueError("a claim is not a time") from error
        except InvalidIssuerError as error:  # raised after PyJWT has verified the signature
            value = jwt.decode(token, options={"verify_signature": False})["iss"]
            raise ValueError(f"its `iss` is {_shorten(value)}, which is not {self._issuer!r}") from error
        if not _is_for(self._audience, claims["aud"]):
            raise ValueError(f"its `aud` is {_shorten(claims['aud'])}, which is not {self._audience!r}")
        _check_times(claims)
        return header, key, claims


def _check_times(claims: Mapping[str, Any]) -> None:
    """Check that times are numbers between 1970 and the year 9999 (RFC 7519, 4.1.4 to 4.1.6).

    Raises:
        ValueError: A claim is not a time.
    """
    for name in _TIMES:
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST_TIME:
            raise ValueError(f"its `{name}` is {_shorten(value)}, which is not a time")


def _is_for(audience: str, named: object) -> bool:
    """Return whether `aud`, which is a string or a list of strings, contains an audience (RFC 7519, 4.1.3)."""
    names = named if is_list(named) else [named]
    texts = [name for name in names if isinstance(name, str)]
    return len(texts) == len(names) and normalize_url(audience) in map(normalize_url, texts)


def _check_kind(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Check that a token is an access token with a subject or a client.

    Many issuers set the type `JWT` instead of `at+jwt` (RFC 9068). The claims of a `JWT` token distinguish access
    tokens from the issuer's other tokens (RFC 8725, 3.12).

    Raises:
        ValueError: The token has another type, or neither a subject nor a client.
    """
    kind = str(header.get("typ", _PLAIN)).lower()
    if kind not in _TYPES:
        raise ValueError(f"its type is {_shorten(header.get('typ'))}")
    if kind == _PLAIN and (foreign := _OTHERS & claims.keys()):
        raise ValueError(f"it is not an access token: it has {', '.join(sorted(foreign))}")
    for name in _KINDS if kind == _PLAIN else ():
        if claims.get(name) is not None and str(claims[name]).lower().replace("-", "_") not in _ACCESS:
            raise ValueError(f"it is not an access token: its `{name}` is {_shorten(claims[name])}")
    if not (_text(claims.get("sub")) or _client(claims)):
        raise ValueError("it has neither a subject nor a client")


def _client(claims: Mapping[str, Any]) -> str | None:
    """Return the client that a token names: `client_id` (RFC 9068, 2.2), or `azp` from other issuers."""
    return _text(claims.get("client_id") or claims.get("azp"))


def _shorten(value: object) -> str:
    return repr(str(value)[:_SHOWN])


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes that a token grants.

    The scopes are in `scope`, a string (RFC 9068, 2.2.3), or in `scp` from other issuers, a string or a list. Spaces
    separate the scopes in a string (RFC 6749, 3.3).
    """
    scope_claim = claims.get("scope", claims.get("scp"))
    if isinstance(scope_claim, str):
        return [scope for scope in scope_claim.split(" ") if scope]
    return [each for each in scope_claim if isinstance(each, str)] if is_list(scope_claim) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
