"""Protects an endpoint with access tokens and serves the protected resource metadata (RFC 9728)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from .authentication import Authentication

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from ...app.core import Core
    from ...core.access_tokens import TokenVerifier


def protect(endpoint: ASGIApp, core: Core, verifier: TokenVerifier | None) -> tuple[Authentication, list[BaseRoute]]:
    """Wrap an endpoint in authentication. Also return the routes that serve the resource metadata.

    Args:
        endpoint: The endpoint to protect.
        core: The server, without a transport.
        verifier: Verifies tokens; by default, it is created from the manifest's `auth`.
    """
    routes: list[BaseRoute] = []
    package = core.package
    auth: Mapping[str, Any] | None = package.manifest.get("auth")
    required = () if auth is None else auth.get("requiredScopes") or ()
    resource = None if auth is None else _url(auth.get("resource") or auth["audience"])
    if auth is not None and resource is not None:
        routes.append(_build_metadata_route(core, auth, resource))
    if verifier is None:
        from ....policy.tokens import Tokens

        verifier = Tokens(auth or {}, keeps_text=package.exchanges_tokens)
    protected = Authentication(
        endpoint,
        verifier,
        required=required,
        metadata_url=None if resource is None else _build_metadata_url(resource),
        scopes=core.scopes,
        audiences=() if auth is None else (auth["audience"], auth.get("resource") or auth["audience"]),
        recorder=core.recorder,
    )
    return protected, routes


_METADATA: Final = "/.well-known/oauth-protected-resource"


def _build_metadata_url(resource: AnyHttpUrl) -> str:
    """Return the metadata URL, which has the well-known path before the resource's path (RFC 9728, section 3.1)."""
    parts = urlsplit(str(resource))
    return urlunsplit((parts.scheme, parts.netloc, _METADATA + ("" if parts.path == "/" else parts.path), "", ""))


def _build_metadata_route(core: Core, auth: Mapping[str, Any], resource: AnyHttpUrl) -> Route:
    """Return the route that serves the metadata, such as the token issuer and the scopes (RFC 9728, section 2)."""
    scopes = auth.get("requiredScopes") if core.scopes is None else core.scopes.every
    metadata: dict[str, Any] = {"resource": str(resource), "authorization_servers": [str(_url(auth["issuer"]))]}
    if scopes:
        metadata["scopes_supported"] = list(scopes)
    metadata |= {
        "bearer_methods_supported": ["header"],
        "resource_name": core.identity.get("title") or core.identity["name"],
    }

    async def answer(_request: Request) -> JSONResponse:
        return JSONResponse(metadata, headers={"Cache-Control": "public, max-age=3600"})

    methods = ["GET", "OPTIONS"]  # browser clients send OPTIONS
    cors = Middleware(CORSMiddleware, allow_origins="*", allow_methods=methods, allow_headers=["mcp-protocol-version"])
    return Route(urlsplit(_build_metadata_url(resource)).path, answer, methods=methods, middleware=[cors])


def _url(text: str) -> AnyHttpUrl:
    """Parse a URL without adding a slash.

    Pydantic's default adds a slash to `https://example.com`, which is then another issuer.
    """
    return TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True)).validate_python(text)
