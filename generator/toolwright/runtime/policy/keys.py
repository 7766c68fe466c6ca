"""The keys that an authorization server signs its tokens with.

Takes the issuer; finds its keys through its metadata (RFC 8414; OpenID Connect Discovery 1.0), keeps them for a while,
and asks again when a token names a key that is not among them, though not at each such token.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import anyio
import httpx2
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from ..logs import logger
from ..server.guard import Unavailable
from ..values import is_list, is_object

_LOG: Final = logger(__name__)

_KEPT: Final = 3600.0
"""Seconds for which keys hold without being asked for again."""

_PAUSE: Final = 30.0
"""Seconds between two questions to the issuer, whatever tokens name."""

_TIMEOUT: Final = 5.0
"""Seconds that one answer may take."""

_LARGEST: Final = 512 * 1024
"""Bytes of an answer."""

ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The signatures that are taken, with the type and the curve of their keys: none that both sides have the key of, and
not `none` (RFC 8725, 3.1)."""

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Keys:
    """The keys of one issuer."""

    def __init__(
        self,
        issuer: str,
        jwks_uri: str | None = None,
        *,
        pause: float = _PAUSE,
        kept: float = _KEPT,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Name the issuer.

        Args:
            issuer: Its identifier.
            jwks_uri: Where its keys are; by default its metadata say so.
            pause: Seconds between two questions to it.
            kept: Seconds after which keys are asked for again.
            transport: What requests go through; by default the network.
        """
        self._issuer, self._uri = issuer, jwks_uri
        self._pause, self._kept = pause, kept
        self._transport = transport
        self._keys: Mapping[str | None, Mapping[str, Any]] = {}
        self._ready: dict[tuple[str | None, str], PyJWK | None] = {}
        self._asked = self._had = -float("inf")
        self._lock = anyio.Lock()

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The key with an identifier, for signatures of a kind; without an identifier, the only key that there is.

        Raises:
            Unavailable: No keys can be had.
        """
        if self._known(kid) is None or time.monotonic() > self._had + self._kept:
            async with self._lock:
                if time.monotonic() > self._asked + self._pause:
                    await self._ask()
        if not self._keys:
            raise Unavailable(f"the keys of {self._issuer} cannot be had")
        if (found := self._known(kid)) is None:
            return None
        if (kid, algorithm) not in self._ready:
            self._ready[kid, algorithm] = _key(found, algorithm)
        return self._ready[kid, algorithm]

    def _known(self, kid: str | None) -> Mapping[str, Any] | None:
        if kid is not None:
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    async def _ask(self) -> None:
        """Ask for the keys; those that are there stay where there is no answer."""
        self._asked = time.monotonic()
        try:
            async with httpx2.AsyncClient(timeout=_TIMEOUT, transport=self._transport, trust_env=False) as client:
                with anyio.fail_after(4 * _TIMEOUT):
                    uri = self._uri or await self._discover(client)
                    found = await _json(client, uri)
            self._keys = _signing(found.get("keys"))
            self._ready = {}
            self._had = time.monotonic()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError, ValueError) as error:
            _LOG.warning("the keys of %s cannot be had: %s", self._issuer, str(error) or type(error).__name__)

    async def _discover(self, client: httpx2.AsyncClient) -> str:
        """Where the keys are, as the issuer's metadata say (MCP 2025-11-25, basic/authorization, discovery)."""
        reasons = []
        for url in _metadata_urls(self._issuer):
            try:
                found = await _json(client, url)
            except (httpx2.HTTPError, ValueError) as error:
                reasons.append(f"{url}: {str(error) or type(error).__name__}")
                continue
            if found.get("issuer") != self._issuer:
                reasons.append(f"{url}: it is the metadata of {found.get('issuer')!r}")
                continue
            uri = found.get("jwks_uri")
            if not isinstance(uri, str) or not is_trustworthy(uri):
                raise ValueError(f"{url}: `jwks_uri` is {uri!r}, which is no https URL")
            return uri
        raise ValueError("; ".join(reasons))


def is_trustworthy(url: str) -> bool:
    """Whether nobody on the way can change what comes from a URL: `https`, or `http` on this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL))


def _metadata_urls(issuer: str) -> Iterator[str]:
    """Where an issuer's metadata may be, in the order of MCP."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    places = [f"/.well-known/oauth-authorization-server{path}", f"/.well-known/openid-configuration{path}"]
    for place in dict.fromkeys([*places, f"{path}/.well-known/openid-configuration"]):
        yield urlunsplit((parts.scheme, parts.netloc, place, "", ""))


async def _json(client: httpx2.AsyncClient, url: str) -> Mapping[str, Any]:
    """A JSON object. Raises ValueError, httpx2.HTTPError."""
    body = bytearray()
    async with client.stream("GET", url, headers={"Accept": "application/json"}) as response:
        if response.status_code != httpx2.codes.OK:
            raise ValueError(f"HTTP {response.status_code}")
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _LARGEST:
                raise ValueError(f"the answer has more than {_LARGEST:,} bytes")
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("the answer is no JSON object")  # noqa: TRY004 - what came is wrong, not a type of ours
    return found


def _signing(keys: object) -> dict[str | None, Mapping[str, Any]]:
    """The keys for signatures of a set (RFC 7517), by their identifiers. Raises ValueError."""
    if not is_list(keys):
        raise ValueError("what is at `jwks_uri` is no set of keys")
    return {key.get("kid"): key for key in keys if is_object(key) and key.get("use", "sig") == "sig"}


def _key(found: Mapping[str, Any], algorithm: str) -> PyJWK | None:
    """A key for signatures of one kind; `None` where it is for others."""
    kind, curve = ALGORITHMS[algorithm]
    if found.get("kty") != kind or found.get("alg", algorithm) != algorithm or (curve and found.get("crv") != curve):
        return None
    try:
        return PyJWK(dict(found), algorithm)
    except PyJWTError as error:
        _LOG.warning("a key cannot be used: %s", error)
        return None
