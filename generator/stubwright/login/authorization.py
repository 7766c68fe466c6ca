"""Authorizes requests to one server with access tokens and handles its challenges."""

from __future__ import annotations

import base64
import hashlib
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx2
import mcp_types
from mcp_types.version import LATEST_MODERN_VERSION

from stubwright import __version__
from stubwright.login import browser, discovery, requests, storage, tokens
from stubwright.login.discovery import Challenge
from stubwright.login.errors import LoginError, RefusedError
from stubwright.login.tokens import Program
from stubwright_runtime.http.servers import find_origin

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from stubwright.login.discovery import Issuer, Resource
    from stubwright.login.tokens import Grant

_ATTEMPTS: Final = 3
"""The maximum number of retries with another token."""

_OFFLINE: Final = "offline_access"
"""The scope that requests a refresh token (OpenID Connect Core, section 11)."""

_PROBE: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "server/discover",
    "params": {
        "_meta": {
            mcp_types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
            mcp_types.CLIENT_INFO_META_KEY: {"name": "stubwright", "version": __version__},
            mcp_types.CLIENT_CAPABILITIES_META_KEY: {},
        }
    },
}

_LOGINS: Final = anyio.Lock()
"""Serializes browser logins to several servers."""


class Authorization(httpx2.Auth):
    """Adds an access token to each request to one server and renews it when the server rejects it."""

    def __init__(self, server: str) -> None:
        """Create the authorization for a server.

        Args:
            server: The server's URL. Tokens are not sent to other origins.
        """
        self._server = server
        self._origin = find_origin(str(httpx2.URL(server)))
        self._grant: Grant | None = None
        self._lock = anyio.Lock()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The current tokens and secrets, which must not appear in output."""
        return () if self._grant is None else self._grant.secrets

    async def prepare(self) -> None:
        """Log in interactively if necessary, before the connection's time limits start. Raises LoginError."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token, and retry with a new token if the server rejects it. Raises LoginError."""
        if find_origin(str(request.url)) != self._origin:
            yield request
            return
        await self._renew_early()
        for _ in range(_ATTEMPTS):
            sent = self._set_token(request)
            response = yield request
            challenge = _find_challenge(response)
            if challenge is None or not await self._renew(challenge, response.status_code, sent):
                return
            # httpx2 would read the whole response before the next request, but this response might never end.
            if isinstance(response.stream, httpx2.AsyncByteStream):
                await response.stream.aclose()
            response.stream = httpx2.ByteStream(b"")
        self._set_token(request)
        yield request

    def _set_token(self, request: httpx2.Request) -> str:
        """Set the request's `Authorization` header. Return the token, or an empty string if there is no token."""
        if self._grant is None:
            return ""
        request.headers["authorization"] = f"Bearer {self._grant.access}"
        return self._grant.access

    async def _renew(self, challenge: Challenge, status: int, sent: str) -> bool:
        """Replace a rejected token. Return whether a new token is available."""
        async with self._lock:
            if self._grant is not None and self._grant.access != sent:
                return True  # another request renewed it in the meantime
            return await self._answer(challenge, status)

    async def _renew_early(self) -> None:
        """Renew the token if it has expired."""

    async def _answer(self, challenge: Challenge, status: int) -> bool:
        """Get a token that satisfies the challenge. Return whether a new token is available."""
        raise NotImplementedError

    async def _discover(self, client: httpx2.AsyncClient, challenge: Challenge) -> tuple[Resource, Issuer]:
        resource = await discovery.find_resource(client, self._server, challenge)
        resource = resource or discovery.make_resource(self._server)
        return resource, await discovery.find_issuer(client, resource, self._server)

    def _choose_scopes(self, challenge: Challenge, resource: Resource) -> tuple[str, ...]:
        """Return the scopes to request.

        These are the challenge's scopes or, without any, the resource's scopes, together with the scopes of earlier
        requests.
        """
        needed = resource.scopes if challenge.scopes is None else challenge.scopes
        return tuple(dict.fromkeys((*(() if self._grant is None else self._grant.scopes), *needed)))

    def _requires_new_scopes(self, challenge: Challenge) -> bool:
        requested = () if self._grant is None else self._grant.scopes
        return bool({*(challenge.scopes or ())} - {*requested})


def _find_challenge(response: httpx2.Response) -> Challenge | None:
    """Return a response's challenge, or None if no other token can satisfy the challenge."""
    challenge = discovery.parse_challenge(response.headers.get_list("www-authenticate"))
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return challenge
    is_scope = response.status_code == HTTPStatus.FORBIDDEN and challenge.error == "insufficient_scope"
    return challenge if is_scope else None


class ClientCredentials(Authorization):
    """Gets tokens with the client credentials grant (RFC 6749, section 4.4), and stores them in memory."""

    def __init__(self, server: str, name: str, secret: str) -> None:
        """Create the authorization for a server.

        Args:
            server: The server's URL.
            name: The client ID.
            secret: The client secret.
        """
        super().__init__(server)
        self._name, self._secret = name, secret

    @property
    def secrets(self) -> tuple[str, ...]:
        """The current tokens and secrets, which must not appear in output."""
        return (*super().secrets, self._secret)

    async def _renew_early(self) -> None:
        async with self._lock:
            if self._grant is not None and not self._grant.is_fresh:
                self._grant = await self._get(Challenge())

    async def _answer(self, challenge: Challenge, status: int) -> bool:
        if status == HTTPStatus.FORBIDDEN and not self._requires_new_scopes(challenge):
            return False
        self._grant = await self._get(challenge)
        return True

    async def _get(self, challenge: Challenge) -> Grant:
        async with requests.open_client() as client:
            resource, issuer = await self._discover(client, challenge)
            scopes = self._choose_scopes(challenge, resource)
            fields = {"grant_type": "client_credentials", **({"scope": " ".join(scopes)} if scopes else {})}
            program = Program(self._name, self._secret, tokens.choose_method(self._secret, issuer))
            return await tokens.get_token(
                client, issuer.name, issuer.token, program, resource.identifier, scopes, fields
            )


class StoredLogin(Authorization):
    """Uses the token from an earlier login, which is refreshed and stored again if it has expired."""

    _is_read = False

    async def _renew_early(self) -> None:
        async with self._lock:
            self._read()
            if self._grant is not None and not self._grant.is_fresh:
                await self._refresh()

    async def _answer(self, challenge: Challenge, status: int) -> bool:  # noqa: ARG002 - a refresh does not send scopes
        return status == HTTPStatus.UNAUTHORIZED and await self._refresh()

    def _read(self) -> None:
        if not self._is_read:
            self._grant, self._is_read = storage.read(self._server), True

    def _keep(self, grant: Grant) -> None:
        storage.write(self._server, grant)
        self._grant = grant

    async def _refresh(self) -> bool:
        """Refresh the stored token. Return whether a new token is available."""
        old = self._grant
        kept = storage.read(self._server)
        if old is not None and kept is not None and kept.access != old.access and kept.is_fresh:
            self._grant = kept  # another process refreshed it, and a refresh token might be valid only once
            return True
        grant = kept or old
        if grant is None or not grant.refresh:
            return False
        try:
            async with requests.open_client() as client:
                self._keep(await tokens.refresh(client, grant))
        except RefusedError:
            kept = storage.read(self._server)  # another process might have used the refresh token at the same time
            if kept is None or kept.access == grant.access:
                return False  # the server sends its own challenge
            self._grant = kept
        return True


class BrowserLogin(StoredLogin):
    """Gets tokens with the authorization code grant and PKCE; a person logs in (RFC 8252)."""

    def __init__(
        self,
        server: str,
        headers: Mapping[str, str],
        say: Callable[[str], None],
        program: Program | None = None,
    ) -> None:
        """Create the authorization for a server.

        Args:
            server: The server's URL.
            headers: The user's headers for each request to the server.
            say: Prints instructions for the user.
            program: The registered client; None to register one on the first login.
        """
        super().__init__(server)
        self._headers, self._say, self._program = headers, say, program
        self._is_new = False

    async def prepare(self) -> None:
        """Log in, unless the server accepts the saved token or requires none. Raises LoginError."""
        await self._renew_early()
        async with requests.open_client() as client:
            for _ in range(_ATTEMPTS):
                response = await self._probe(client)
                if response is None:
                    return  # connecting reports the error
                sent = "" if self._grant is None else self._grant.access
                challenge = _find_challenge(response)
                if challenge is not None:
                    if not await self._renew(challenge, response.status_code, sent):
                        return
                    continue
                if self._grant is None and await discovery.find_resource(client, self._server, Challenge()):
                    await self._log_in(Challenge())  # without a token, the server might list fewer tools
                return

    async def _probe(self, client: httpx2.AsyncClient) -> httpx2.Response | None:
        """Send a first request. Return the response without its body, or None if there was no response."""
        headers = {
            **self._headers,
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": LATEST_MODERN_VERSION,
            "Mcp-Method": str(_PROBE["method"]),
        }
        try:
            request = client.build_request("POST", self._server, headers=headers, json=_PROBE)
            self._set_token(request)
            response = await client.send(request, stream=True)
        except httpx2.RequestError:
            return None
        await response.aclose()
        return response

    async def _answer(self, challenge: Challenge, status: int) -> bool:
        if status == HTTPStatus.FORBIDDEN:
            if not self._requires_new_scopes(challenge):
                return False
        elif self._is_new:  # the server rejects the token from this login
            return False
        elif await self._refresh():
            return True
        await self._log_in(challenge)
        return True

    async def _log_in(self, challenge: Challenge) -> None:
        async with _LOGINS, requests.open_client() as client:
            resource, issuer = await self._discover(client, challenge)
            if not issuer.authorization:
                raise LoginError(f"{requests.show(issuer.name)} has no authorization endpoint")
            if not issuer.has_pkce:
                raise LoginError(f"{requests.show(issuer.name)} does not list S256 among its PKCE methods")
            scopes = self._choose_scopes(challenge, resource)
            known = self._find_program(issuer, scopes)
            port = (urlsplit(known.redirect).port if known is not None else None) or 0
            async with browser.listen(port) as listener:
                if known is None or (known.redirect and known.redirect != listener.uri):
                    every = dict.fromkeys((*scopes, *resource.scopes)) if resource.scopes else {}
                    offline = [_OFFLINE] if every and _OFFLINE in issuer.scopes else []
                    known = await tokens.register(client, issuer, listener.uri, [*every, *offline])
                known = tokens.fit(known, issuer)
                verifier = secrets.token_urlsafe(48)
                url = _make_url(issuer, known, listener, resource, scopes, verifier)
                await browser.show(url, requests.show(self._server), self._say)
                code = _read_code(await listener.wait(), issuer)
            fields = {
                "grant_type": "authorization_code",
                "code": code,
                "code_verifier": verifier,
                "redirect_uri": listener.uri,
            }
            self._keep(
                await tokens.get_token(client, issuer.name, issuer.token, known, resource.identifier, scopes, fields)
            )
            self._is_new = True

    def _find_program(self, issuer: Issuer, scopes: Sequence[str]) -> Program | None:
        """Return the client registered with the authorization server.

        Return None if the client cannot request all scopes.
        """
        if self._program is not None:
            return self._program
        if self._grant is None or self._grant.issuer != issuer.name:
            return None
        known = self._grant.program
        is_enough = not known.scopes or {*known.scopes} >= {*scopes}
        return known if known.redirect and is_enough else None


def _make_url(
    issuer: Issuer,
    program: Program,
    listener: browser.Listener,
    resource: Resource,
    scopes: Sequence[str],
    verifier: str,
) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    fields: dict[str, Any] = {
        "response_type": "code",
        "client_id": program.id,
        "redirect_uri": listener.uri,
        "state": listener.state,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "resource": resource.identifier,
    }
    requested = [*scopes]
    if _OFFLINE in issuer.scopes:
        requested = [*dict.fromkeys((*scopes, _OFFLINE))]
        fields["prompt"] = "consent"  # without `prompt`, the scope is ignored (OpenID Connect Core, section 11)
    if requested:
        fields["scope"] = " ".join(requested)
    parts = urlsplit(issuer.authorization)
    own = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in fields]
    return parts._replace(query=urlencode([*own, *fields.items()])).geturl()


def _read_code(fields: Mapping[str, str], issuer: Issuer) -> str:
    """Return the code from a redirect. Raises LoginError if the redirect reports an error or is from another server."""
    name = fields.get("iss")
    if name != issuer.name and (name is not None or issuer.is_named):
        raise LoginError(f"the browser was redirected by a server other than {requests.show(issuer.name)}")
    if "error" in fields:
        raise LoginError(f"{requests.show(issuer.name)} denied the login{tokens.find_error(fields)}")
    if not fields.get("code"):
        raise LoginError(f"{requests.show(issuer.name)} redirected the browser without a code")
    return fields["code"]
