"""Discovers an MCP server's authorization server from metadata (RFC 9728, RFC 8414, OpenID Connect Discovery)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from stubwright.login import requests
from stubwright.login.errors import LoginError
from stubwright_runtime.http.servers import find_origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx2

_PART: Final = re.compile(
    r"""([!#$%&'*+\-.^_`|~0-9A-Za-z]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?""",
)
"""A scheme, or a parameter with its value (RFC 9110, section 11.3)."""

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""A scope (RFC 6749, section 3.3)."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The Bearer challenge in a response (RFC 6750, section 3).

    Attributes:
        metadata: The resource metadata's URL; empty if absent.
        scopes: The scopes that the request requires; None if absent.
        error: The error code.
    """

    metadata: str = ""
    scopes: tuple[str, ...] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """An MCP server as a resource (RFC 8707): its identifier, its authorization server, and its scopes."""

    identifier: str
    issuer: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Issuer:
    """An authorization server.

    Attributes:
        name: The issuer identifier.
        token: The token endpoint.
        authorization: The authorization endpoint; empty if absent.
        registration: The registration endpoint; empty if absent.
        scopes: The scopes in the metadata.
        methods: The token endpoint's client authentication methods.
        has_pkce: True if the server supports PKCE with S256.
        is_named: True if redirects contain the issuer identifier (RFC 9207).
    """

    name: str
    token: str
    authorization: str = ""
    registration: str = ""
    scopes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    has_pkce: bool = False
    is_named: bool = False


def parse_challenge(values: Sequence[str]) -> Challenge:
    """Parse the Bearer challenge in `WWW-Authenticate` values. Return an empty challenge if there is none."""
    fields: dict[str, str] = {}
    for value in values:
        scheme = ""
        for match in _PART.finditer(value):
            name, quoted, plain = match.groups()
            if quoted is None and plain is None:
                scheme = name.lower()
            elif scheme == "bearer":
                fields.setdefault(name.lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
    scopes = _split_scopes(fields["scope"]) if "scope" in fields else None
    return Challenge(fields.get("resource_metadata", ""), scopes, fields.get("error", ""))


def _split_scopes(text: str) -> tuple[str, ...]:
    return tuple(scope for scope in text.split(" ") if _SCOPE.fullmatch(scope))


def _read_scopes(value: Any) -> tuple[str, ...]:
    scopes = value if isinstance(value, list) else []
    return tuple(scope for scope in scopes if isinstance(scope, str) and _SCOPE.fullmatch(scope))


async def find_resource(client: httpx2.AsyncClient, server: str, challenge: Challenge) -> Resource | None:
    """Return a server's resource from its metadata; None if the server does not publish metadata.

    Args:
        server: The server's URL.
        challenge: The challenge in the server's response, which can contain the metadata URL.

    Raises:
        LoginError: The metadata describes another resource or lists no authorization server that may receive secrets.
    """
    parts = urlsplit(server)
    root = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/.well-known/oauth-protected-resource"
    urls = [f"{root}{parts.path.rstrip('/')}", root]
    if challenge.metadata:
        urls.insert(0, requests.check_url(challenge.metadata, "URL of the server's metadata", server))
    for url in dict.fromkeys(urls):
        answer = await requests.fetch(client, url)
        if answer.status == 200 and "resource" in answer.value:
            return _read_resource(answer.value, server)
    return None


def _read_resource(value: Mapping[str, Any], server: str) -> Resource:
    identifier, issuers = value["resource"], value.get("authorization_servers")
    if not isinstance(identifier, str) or not _covers(identifier, server):
        raise LoginError("the server's metadata describes a different resource")
    if not isinstance(issuers, list) or not issuers:
        raise LoginError("the server's metadata lists no authorization server")
    issuer = requests.check_url(issuers[0], "authorization server", server)
    return Resource(identifier, issuer, _read_scopes(value.get("scopes_supported")))


def _covers(identifier: str, server: str) -> bool:
    """Return whether the identifier is the server's URL, or a parent path on the same origin."""
    try:
        above, below = urlsplit(identifier), urlsplit(server)
        is_same = find_origin(identifier) == find_origin(server)
    except ValueError:
        return False
    return is_same and not above.fragment and f"{below.path}/".startswith(f"{above.path.rstrip('/')}/")


def make_resource(server: str) -> Resource:
    """Return the resource for a server without metadata.

    The authorization server is the server's origin (MCP 2025-03-26).
    """
    parts = urlsplit(server)
    host = parts.netloc.rpartition("@")[2]
    origin = f"{parts.scheme}://{host}"
    return Resource(f"{origin}{parts.path.rstrip('/')}", requests.check_url(origin, "authorization server", server))


async def find_issuer(client: httpx2.AsyncClient, resource: Resource, server: str) -> Issuer:
    """Return a resource's authorization server.

    Raises:
        LoginError: The authorization server has no metadata, or its metadata describes another server or contains an
            endpoint without https.
    """
    parts = urlsplit(resource.issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    for url in dict.fromkeys((f"{origin}{oauth}{path}", f"{origin}{openid}{path}", f"{origin}{path}{openid}")):
        answer = await requests.fetch(client, url)
        if answer.status == 200 and "issuer" in answer.value:
            return _read_issuer(answer.value, resource.issuer, server)
    raise LoginError(f"the authorization server {requests.show(resource.issuer)} has no metadata")


def _read_issuer(value: Mapping[str, Any], expected: str, server: str) -> Issuer:
    name = value["issuer"]
    # `https://host` and `https://host/` are equivalent (RFC 3986, section 6.2.3), and some servers use both.
    if not isinstance(name, str) or _add_root(name) != _add_root(expected):
        raise LoginError(f"the metadata of {requests.show(expected)} describes a different authorization server")
    methods, challenges = (
        value.get("token_endpoint_auth_methods_supported"),
        value.get("code_challenge_methods_supported"),
    )
    endpoints = {
        key: requests.check_url(value[f"{key}_endpoint"], f"{key} endpoint of the authorization server", server)
        for key in ("authorization", "registration")
        if value.get(f"{key}_endpoint")
    }
    return Issuer(
        name,
        requests.check_url(value.get("token_endpoint"), "token endpoint of the authorization server", server),
        scopes=_read_scopes(value.get("scopes_supported")),
        methods=tuple(methods) if isinstance(methods, list) else ("client_secret_basic",),
        has_pkce=isinstance(challenges, list) and "S256" in challenges,
        is_named=value.get("authorization_response_iss_parameter_supported") is True,
        **endpoints,
    )


def _add_root(url: str) -> str:
    parts = urlsplit(url)
    return url if parts.path or parts.query else f"{url}/"
