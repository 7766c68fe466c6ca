"""Access tokens, if the manifest or the embedder wants them, and the metadata for clients to get one (RFC 9728).

Takes the endpoint; gives it behind the authentication, with the routes of the protected resource's metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter

from ....sdk.auth import build_resource_metadata_url, create_protected_resource_routes
from .authentication import Authentication

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.routing import BaseRoute, Route
    from starlette.types import ASGIApp

    from ....package import Package
    from ....sdk.auth import TokenVerifier
    from ...app.core import Core


def protect(endpoint: ASGIApp, core: Core, verifier: TokenVerifier | None) -> tuple[Authentication, list[BaseRoute]]:
    """Return the endpoint for callers with a token.

    Args:
        endpoint: Answers them.
        core: The server.
        verifier: The verifier of tokens; by default that of the manifest's `auth`.
    """
    routes: list[BaseRoute] = []
    auth: Mapping[str, Any] | None = core.package.manifest.get("auth")
    required = () if auth is None else auth.get("requiredScopes") or ()
    resource = None if auth is None else _url(auth.get("resource") or auth["audience"])
    if auth is not None and resource is not None:
        routes += _metadata(core, auth, resource)
    protected = Authentication(
        endpoint,
        _make_verifier(core.package, auth or {}) if verifier is None else verifier,
        required=required,
        metadata_url=None if resource is None else str(build_resource_metadata_url(resource)),
        scopes=core.scopes,
        audiences=() if auth is None else (auth["audience"], auth.get("resource") or auth["audience"]),
        recorder=core.recorder,
    )
    return protected, routes


def _make_verifier(package: Package, auth: Mapping[str, Any]) -> TokenVerifier:
    """Return the verifier of access tokens by the manifest's settings."""
    from ....policy.tokens import Tokens

    return Tokens(auth, keeps_text=package.exchanges_tokens)


def _metadata(core: Core, auth: Mapping[str, Any], resource: AnyHttpUrl) -> list[Route]:
    """Return the routes of this server's metadata: the issuer of its tokens, and its scopes (RFC 9728)."""
    scopes = auth.get("requiredScopes") if core.scopes is None else core.scopes.every
    name = core.identity.get("title") or core.identity["name"]
    return create_protected_resource_routes(resource, [_url(auth["issuer"])], list(scopes or ()) or None, name)


def _url(text: str) -> AnyHttpUrl:
    """Return a URL as it is written: `https://example.com` gets no slash at its end, since that is another issuer."""
    return TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True)).validate_python(text)
