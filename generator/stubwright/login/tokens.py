"""Requests tokens from an authorization server (RFC 6749) and registers clients with it (RFC 7591)."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import httpx2

from stubwright.login import requests
from stubwright.login.errors import LoginError, RefusedError
from stubwright_runtime.http.tokens import find_error_code, find_lifetime, is_bearer, is_token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.login.discovery import Issuer


@dataclass(frozen=True, slots=True)
class Program:
    """A client's registration with an authorization server.

    Attributes:
        id: The client ID.
        secret: The client secret; empty for a public client.
        method: The authentication method at the token endpoint.
        redirect: The registered redirect URI; empty if the user registered the client.
        scopes: The registered scopes; empty for all.
    """

    id: str
    secret: str = field(default="", repr=False)
    method: str = "none"
    redirect: str = ""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """An access token, and the data needed to renew it.

    Attributes:
        resource: The resource for which the token is valid.
        issuer: The authorization server.
        endpoint: The authorization server's token endpoint.
        program: The client.
        scopes: The requested scopes.
        access: The access token.
        refresh: The refresh token; empty if none was issued.
        ends: The Unix time after which to renew the token; None if unknown.
    """

    resource: str
    issuer: str
    endpoint: str
    program: Program
    scopes: tuple[str, ...]
    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    ends: float | None = None

    @property
    def is_fresh(self) -> bool:
        """True unless the access token is known to have expired."""
        return self.ends is None or time.time() < self.ends

    @property
    def secrets(self) -> tuple[str, ...]:
        """The token and the client secret, which must not appear in output."""
        return tuple(filter(None, (self.access, self.refresh, self.program.secret)))


def find_error(value: Mapping[str, Any]) -> str:
    """Return the error code in a response as a phrase, or an empty string if the code is missing or invalid."""
    code = find_error_code(value)
    return f" with the error {code}" if code else ""


def choose_method(secret: str, issuer: Issuer) -> str:
    """Return the authentication method for a client with this secret, which is empty for a public client."""
    if not secret:
        return "none"
    is_post = "client_secret_post" in issuer.methods and "client_secret_basic" not in issuer.methods
    return "client_secret_post" if is_post else "client_secret_basic"


def fit(program: Program, issuer: Issuer) -> Program:
    """Return a client that the user registered, with the authentication method for this server."""
    return program if program.redirect else replace(program, method=choose_method(program.secret, issuer))


async def get_token(
    client: httpx2.AsyncClient,
    issuer: str,
    endpoint: str,
    program: Program,
    resource: str,
    scopes: Sequence[str],
    fields: Mapping[str, str],
) -> Grant:
    """Request tokens from a token endpoint.

    Args:
        issuer: The authorization server, for the grant.
        endpoint: The authorization server's token endpoint.
        program: The client.
        resource: The resource for which the token will be valid.
        scopes: The scopes to request.
        fields: The grant's form fields.

    Raises:
        LoginError: The endpoint does not issue a usable token.
    """
    form, auth = {**fields, "resource": resource}, None
    if program.method == "client_secret_basic":
        # RFC 6749, section 2.3.1: both are form-encoded before they become Basic credentials.
        auth = httpx2.BasicAuth(quote_plus(program.id), quote_plus(program.secret))
    else:
        form["client_id"] = program.id
        if program.method == "client_secret_post":
            form["client_secret"] = program.secret
    asked = time.time()
    answer = await requests.post_form(client, endpoint, form, auth)
    token = answer.value.get("access_token")
    where = requests.show(endpoint)
    if answer.status != 200 or not is_token(token):
        raise RefusedError(f"{where} issued no token: HTTP {answer.status}{find_error(answer.value)}")
    if not is_bearer(answer.value):
        raise LoginError(f"{where} issued a token that is not a Bearer token")
    refresh, life = answer.value.get("refresh_token"), find_lifetime(answer.value)
    return Grant(
        resource,
        issuer,
        endpoint,
        program,
        tuple(scopes),
        str(token),
        refresh if isinstance(refresh, str) else fields.get("refresh_token", ""),
        asked + life if math.isfinite(life) else None,
    )


async def refresh(client: httpx2.AsyncClient, grant: Grant) -> Grant:
    """Refresh the access token and return the new grant. Raises LoginError."""
    fields = {"grant_type": "refresh_token", "refresh_token": grant.refresh}
    return await get_token(client, grant.issuer, grant.endpoint, grant.program, grant.resource, grant.scopes, fields)


async def register(client: httpx2.AsyncClient, issuer: Issuer, redirect: str, scopes: Sequence[str]) -> Program:
    """Register this program as a client and return the registration.

    Args:
        issuer: The authorization server.
        redirect: The redirect URI.
        scopes: All scopes that can be requested; empty if they are unknown.

    Raises:
        LoginError: The authorization server rejects the registration.
    """
    if not issuer.registration:
        raise LoginError(
            f"{requests.show(issuer.name)} does not allow programs to register; "
            "register a client there yourself and pass --client-id"
        )
    described = {
        "client_name": "stubwright",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **({"scope": " ".join(scopes)} if scopes else {}),
    }
    answer = await requests.post_json(client, issuer.registration, described)
    name, secret = answer.value.get("client_id"), answer.value.get("client_secret")
    if answer.status not in (200, 201) or not isinstance(name, str) or not name:
        raise LoginError(
            f"{requests.show(issuer.registration)} did not register this program: HTTP {answer.status}"
            f"{find_error(answer.value)}"
        )
    secret = secret if isinstance(secret, str) else ""
    method = answer.value.get("token_endpoint_auth_method")
    known = method if method in ("none", "client_secret_basic", "client_secret_post") else None
    return Program(name, secret, str(known or choose_method(secret, issuer)), redirect, tuple(scopes))
