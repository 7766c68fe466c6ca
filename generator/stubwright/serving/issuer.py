"""Issues access tokens for one `dev` run, replacing the manifest's issuer.

The private key never leaves this process, and only servers started by `dev` receive the public key.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOURS: Final = 12
"""Token lifetime in hours."""

_ALGORITHM: Final = "EdDSA"
_OWN: Final = ("iss", "aud", "sub", "client_id", "scope", "iat", "nbf", "exp", "jti")
"""The claims that the issuer sets (RFC 9068, 2.2)."""


class Issuer:
    """Issues tokens signed with this run's key."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.generate()
        self._id = secrets.token_hex(8)

    @property
    def public(self) -> str:
        """The public key, as a JWK (RFC 7517; RFC 8037)."""
        from jwt.algorithms import OKPAlgorithm

        key = OKPAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({**key, "kid": self._id, "alg": _ALGORITHM, "use": "sig"}, sort_keys=True)

    def make_token(
        self, auth: Mapping[str, Any], subject: str, scopes: Sequence[str], more: Mapping[str, Any] | None = None
    ) -> str:
        """Return an access token (RFC 9068).

        Args:
            auth: The manifest's `auth`, with the issuer and the audience.
            more: Additional claims.

        Raises:
            ValueError: An additional claim is reserved for the issuer.
        """
        import jwt

        check_claims(more or {})
        now = int(time.time())
        claims = {
            **(more or {}),
            "iss": auth["issuer"],
            "aud": auth["audience"],
            "sub": subject,
            "client_id": "stubwright dev",
            "scope": " ".join(scopes),
            "iat": now,
            "exp": now + HOURS * 3600,
            "jti": secrets.token_hex(8),
        }
        return jwt.encode(claims, self._key, _ALGORITHM, {"typ": "at+jwt", "kid": self._id})


def check_claims(claims: Mapping[str, Any]) -> None:
    """Raise ValueError if one of the claims is reserved for the issuer."""
    for name in claims:
        if name in _OWN:
            raise ValueError(f"`{name}` is set by the issuer; choose another claim")


def list_scopes(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all scopes in a resolved manifest, in its order."""
    auth: Mapping[str, Any] = document.get("auth") or {}
    entries = [
        entry.get("stubwright") or {}
        for section in ("tools", "resources", "resourceTemplates", "prompts")
        for entry in document.get(section) or ()
    ]
    needed = [scope for each in (document, *entries) for scope in (each.get("policy") or {}).get("scopes") or ()]
    holding: Mapping[str, Sequence[str]] = auth.get("scopes") or {}
    held = [scope for each in holding.values() for scope in each]
    return tuple(dict.fromkeys([*(auth.get("requiredScopes") or ()), *needed, *holding, *held]))
