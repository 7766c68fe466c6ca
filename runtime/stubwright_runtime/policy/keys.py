"""Fetches and caches the keys with which an authorization server signs tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from math import ceil
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import anyio
import httpx2
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from ..network.certificates import share_tls_context
from ..network.errors import check_proxies
from ..observability.logs import log
from ..server.core.principal import VerificationUnavailableError
from ..values.json import Json, is_list, is_object

_KEPT: Final = 3600.0
"""Seconds after which cached keys are fetched again."""

_PAUSE: Final = 30.0
"""The minimum time between two requests to the issuer, in seconds."""

_FIRST_PAUSE: Final = 5.0
"""The minimum time between two requests to the issuer before the first one succeeds, in seconds."""

_LONGEST: Final = 86400.0
"""The maximum age of keys while the issuer is unavailable, in seconds; they might be revoked in the meantime."""

_TIMEOUT: Final = 5.0
"""The timeout of a request in seconds."""

_LARGEST: Final = 512 * 1024
"""The maximum size of a response, in bytes."""

_SHOWN: Final = 200
"""The maximum length of a logged value, in characters."""

ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The accepted algorithms, with their key type and curve. Symmetric algorithms and `none` are excluded (RFC 8725,
3.1).
"""

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Keys:
    """Caches one issuer's keys."""

    def __init__(
        self,
        issuer: str,
        jwks_uri: str | None = None,
        *,
        pause: float = _PAUSE,
        kept: float = _KEPT,
        longest: float = _LONGEST,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Create an empty cache for an issuer.

        Args:
            issuer: The issuer identifier.
            jwks_uri: The URL of the keys; by default, the URL from the issuer's metadata.
            pause: The minimum time between two requests, in seconds.
            kept: Seconds after which the keys are fetched again.
            longest: Seconds after which cached keys expire if they cannot be fetched again.
            transport: The HTTP transport; by default, httpx2's.
        """
        self._issuer, self._uri = issuer, jwks_uri
        self._pause, self._kept, self._longest = pause, kept, longest
        self._transport = transport
        self._keys: Sequence[Mapping[str, Any]] = ()
        self._ready: dict[tuple[str | None, str], PyJWK] = {}
        self._asked = self._had = -float("inf")
        self._lock = anyio.Lock()

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """Return the key with an ID for an algorithm, or `None` if no single key matches.

        Without an ID, return the only key for the algorithm.

        A call that finds a cached key does not wait while another call fetches the keys.

        Raises:
            VerificationUnavailableError: No keys are available or the ID is unknown, and it is too early to fetch the
                keys again.
        """
        began = time.monotonic()
        key = self._known(kid, algorithm)
        if key is None or (self._age > self._kept and not self._lock.locked()):
            async with self._lock:
                if time.monotonic() > self._next:
                    await self._ask()
            key = self._known(kid, algorithm)
        if not self._keys or self._age > self._longest:
            raise VerificationUnavailableError(f"cannot fetch the keys of {self._issuer}")
        if key is None and self._had < began and kid not in {None, *(key.get("kid") for key in self._keys)}:
            text = f"the key is unknown, and the keys of {self._issuer} were fetched a moment ago"
            raise VerificationUnavailableError(text, max(1, ceil(self._next - time.monotonic())))
        return key

    @property
    def _next(self) -> float:
        """The earliest monotonic time for the next request to the issuer."""
        return self._asked + (self._pause if self._keys else min(self._pause, _FIRST_PAUSE))

    @property
    def _age(self) -> float:
        return time.monotonic() - self._had

    def _known(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """Return the cached key if exactly one key matches. Keys of different types can share an ID (RFC 7517, 4.5)."""
        if (kid, algorithm) in self._ready:
            return self._ready[kid, algorithm]
        fitting = [key for key in self._keys if kid in (None, key.get("kid")) and _fits(key, algorithm)]
        key = _key(fitting[0], algorithm) if len(fitting) == 1 else None
        if key is not None:
            self._ready[kid, algorithm] = key
        return key

    async def _ask(self) -> None:
        """Fetch the keys. On failure, log the error and retain the cached keys."""
        self._asked = time.monotonic()
        try:
            is_remote = self._issuer.startswith("https:")  # a proxy cannot reach an issuer on this machine
            if is_remote:
                check_proxies()
            async with httpx2.AsyncClient(
                verify=share_tls_context(), timeout=_TIMEOUT, transport=self._transport, trust_env=is_remote
            ) as client:
                with anyio.fail_after(4 * _TIMEOUT, shield=True):  # other calls also wait for this request
                    uri = self._uri or await self._discover(client)
                    document = await _json(client, uri)
            self._keys = _signing(document.get("keys"))
            self._ready = {}
            self._had = time.monotonic()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, RecursionError, ValueError) as error:
            log().warning("cannot fetch the keys of %s: %s", self._issuer, str(error) or type(error).__name__)

    async def _discover(self, client: httpx2.AsyncClient) -> str:
        """Return the URL of the keys from the issuer's metadata (MCP 2025-11-25, basic/authorization, discovery).

        Raises:
            ValueError: No metadata document contains a trustworthy key URL.
        """
        reasons: list[str] = []
        for url in _metadata_urls(self._issuer):
            try:
                document = await _json(client, url)
            except (httpx2.HTTPError, RecursionError, ValueError) as error:
                reasons.append(f"{url}: {str(error) or type(error).__name__}")
                continue
            # RFC 8414, 3.3: metadata with another issuer must not be used.
            if document.get("issuer") != self._issuer:
                reasons.append(f"{url}: its issuer is {str(document.get('issuer'))[:_SHOWN]!r}")
                continue
            uri = document.get("jwks_uri")
            if not isinstance(uri, str) or not _is_trustworthy(uri, self._issuer):
                raise ValueError(f"{url}: `jwks_uri` is {str(uri)[:_SHOWN]!r}, which is not an https URL")
            return uri
        raise ValueError("; ".join(reasons))


def _is_trustworthy(url: str, issuer: str) -> bool:
    """Return whether a URL uses `https`, or `http` on this machine if its issuer also does.

    Raises:
        ValueError: The URL is invalid.
    """
    parts, of_issuer = urlsplit(url), urlsplit(issuer)
    is_here = parts.hostname in _LOCAL and of_issuer.scheme == "http" and of_issuer.hostname in _LOCAL
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and is_here))


def _metadata_urls(issuer: str) -> Iterator[str]:
    """Yield the URLs at which an issuer may publish its metadata, in the order that MCP specifies."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    places = [f"/.well-known/oauth-authorization-server{path}", f"/.well-known/openid-configuration{path}"]
    for place in dict.fromkeys([*places, f"{path}/.well-known/openid-configuration"]):
        yield urlunsplit((parts.scheme, parts.netloc, place, "", ""))


async def _json(client: httpx2.AsyncClient, url: str) -> Mapping[str, Any]:
    """Fetch a JSON object. Raises ValueError, httpx2.HTTPError."""
    body = bytearray()
    async with client.stream("GET", url, headers={"Accept": "application/json"}) as response:
        if response.status_code != HTTPStatus.OK:
            raise ValueError(f"HTTP {response.status_code}")
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _LARGEST:
                raise ValueError(f"the response has more than {_LARGEST:,} bytes")
    document: Json = json.loads(body)
    if not is_object(document):
        raise ValueError("the response is not a JSON object")
    return document


def _signing(keys: object) -> list[Mapping[str, Any]]:
    """Return the keys for signatures in a JWK set (RFC 7517). Raises ValueError for any other document."""
    if not is_list(keys):
        raise ValueError("the document at `jwks_uri` is not a JWK set")
    return [key for key in keys if is_object(key) and key.get("use", "sig") == "sig" and _verifies(key)]


def _verifies(key: Mapping[str, Any]) -> bool:
    operations = key.get("key_ops")
    return operations is None or (is_list(operations) and "verify" in operations)


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    kind, curve = ALGORITHMS[algorithm]
    return key.get("kty") == kind and key.get("alg", algorithm) == algorithm and (not curve or key.get("crv") == curve)


def _key(jwk: Mapping[str, Any], algorithm: str) -> PyJWK | None:
    try:
        return PyJWK(dict(jwk), algorithm)
    except (PyJWTError, TypeError, ValueError) as error:
        log().warning("ignoring an unusable key: %s", error)
        return None
