"""Signs tokens as issuers do, and in invalid ways."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def make_rsa() -> Private:
    """Return a key of the most common kind of issuer."""
    return rsa.generate_private_key(65537, 2048)


@dataclass(frozen=True)
class Key:
    """A key pair with an identifier, for one signature algorithm. `make` is called on first use."""

    kid: str | None
    algorithm: str = "RS256"
    make: Callable[[], Private] = make_rsa

    @cached_property
    def private(self) -> Private:
        return self.make()

    def jwk(self, *, private: bool = False, **more: Any) -> dict[str, Any]:
        """Return the JWK, public or private."""
        kinds: dict[type[Any], Any] = {
            rsa.RSAPrivateKey: RSAAlgorithm,
            ec.EllipticCurvePrivateKey: ECAlgorithm,
            ed25519.Ed25519PrivateKey: OKPAlgorithm,
        }
        algorithm = next(made for kind, made in kinds.items() if isinstance(self.private, kind))
        found: dict[str, Any] = algorithm.to_jwk(self.private if private else self.private.public_key(), as_dict=True)
        found.pop("key_ops", None)
        named = {} if self.kid is None else {"kid": self.kid}
        return {**found, **named, "use": "sig", "alg": self.algorithm, **more}

    @property
    def pem(self) -> bytes:
        """Return the public key as PEM, which an attacker uses as an HMAC secret."""
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """Return a signed token."""
        named = {} if self.kid is None else {"kid": self.kid}
        return jwt.encode(dict(claims), self.private, self.algorithm, {"typ": "at+jwt", **named, **header})


def claims(issuer: str, audience: str, **more: Any) -> dict[str, Any]:
    """Return a valid access token's claims. `None` omits a claim."""
    now = int(time.time())
    said = {
        "iss": issuer,
        "aud": audience,
        "sub": "alice",
        "client_id": "machine",
        "iat": now,
        "exp": now + 86_400,
        "jti": "1",
        "scope": "read",
    }
    return {name: value for name, value in (said | more).items() if value is not None}


def raw(header: Mapping[str, Any], claims: Mapping[str, Any], signature: bytes = b"") -> str:
    """Return a token with any header and this signature."""
    return ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        for part in (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    )
