"""Gets OAuth 2.0 API tokens from client credentials, refresh tokens (RFC 6749, 4.4 and 6), or exchange (RFC 8693).

Tokens are sent only to the API, and credentials only to the token endpoint, without redirects; logs and errors never
contain either.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import anyio
import httpx2

from ..errors import ToolError
from ..network.errors import describe
from ..observability.logs import log
from ..package import is_exchange
from ..values.json import is_mapping
from .requests import grant
from .subjects import PrincipalCache, find_subject

if TYPE_CHECKING:
    from ..server.core.principal import Principal
    from .subjects import Subject

_TIMEOUT: Final = 20.0
_MOST_BYTES: Final = 256 * 1024
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Host names of the local machine."""

_EXCHANGED: Final = 300.0
"""The default lifetime of an exchanged token in seconds."""

_MARGIN: Final = 30.0
"""Seconds before a token's expiry at which the token is renewed; at most a tenth of its lifetime."""

_ERRORS: Final = frozenset(
    {"access_denied", "consent_required", "interaction_required", "invalid_client", "invalid_client_metadata"}
    | {"invalid_grant", "invalid_redirect_uri", "invalid_request", "invalid_scope", "invalid_target"}
    | {"login_required", "server_error", "temporarily_unavailable", "unapproved_software_statement"}
    | {"unauthorized_client", "unsupported_grant_type", "unsupported_response_type"}
)
"""Error codes that are safe to show (RFC 6749, RFC 7591, RFC 8707, OpenID Connect); other text may contain secrets."""

_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS: Final = "urn:ietf:params:oauth:token-type:access_token"
_USABLE: Final = frozenset({_ACCESS, "urn:ietf:params:oauth:token-type:jwt"})
"""Token types that APIs accept (RFC 8693, 3)."""

Scheme = Mapping[str, Any]


@dataclass(slots=True)
class _GrantState:
    """The token for one scheme.

    `failed` is the time and the reason of the last failure. Times are monotonic.
    """

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    token: str = field(default="", repr=False)
    fresh_until: float = 0.0
    refresh: str = field(default="", repr=False)
    failed: tuple[float, str] = (-1.0, "")


def has_grant(scheme: Scheme, environment: Mapping[str, str]) -> bool:
    """Return whether the environment has the credentials for a scheme's grant."""
    return all(environment.get(variable) for variable in grant(scheme))


class Tokens:
    """A server's cached access tokens."""

    def __init__(self) -> None:
        self._states: dict[str, _GrantState] = {}
        self._exchanged: PrincipalCache[_GrantState] = PrincipalCache(_GrantState)

    async def make_environment(
        self,
        client: httpx2.AsyncClient,
        schemes: Sequence[Scheme],
        environment: Mapping[str, str],
        principal: Principal,
    ) -> Mapping[str, str]:
        """Return the environment with an access token in each scheme's variable.

        Args:
            client: The HTTP client for token requests.
            schemes: The call's schemes; schemes without a grant in the environment are ignored.
            environment: The environment variables, including the grants' credentials.
            principal: The caller whose token is exchanged; on stdio, the token is in an environment variable.

        Raises:
            ToolError: The token endpoint returned no token.
        """
        tokens: dict[str, str] = {}
        for scheme in schemes:
            if is_exchange(scheme):
                subject = _find_subject(scheme, environment, principal)
                if subject is not None:
                    grant_state = await self._refresh(client, scheme, environment, subject)
                    tokens[scheme["env"]] = grant_state.token
            elif scheme["type"] == "oauth2" and has_grant(scheme, environment):
                grant_state = await self._refresh(client, scheme, environment, None)
                tokens[scheme["env"]] = grant_state.token
                if grant_state.refresh:
                    tokens[scheme["refreshTokenEnv"]] = grant_state.refresh  # so that the token can be redacted
        return {**environment, **tokens} if tokens else environment

    def forget_refused(
        self,
        schemes: Sequence[Scheme],
        environment: Mapping[str, str],
        sent: Mapping[str, str],
        principal: Principal,
    ) -> bool:
        """Expire the tokens that the API rejected, unless already replaced. Return whether any scheme uses tokens."""
        subject = find_subject(principal)
        granted = [
            scheme
            for scheme in schemes
            if scheme["type"] == "oauth2" and has_grant(scheme, environment) and (subject or not is_exchange(scheme))
        ]
        for scheme in granted:
            grant_state = self._find_state(scheme, subject if is_exchange(scheme) else None)
            if grant_state.token == sent.get(scheme["env"]):
                grant_state.fresh_until = 0.0
        return bool(granted)

    def _find_state(self, scheme: Scheme, subject: Subject | None) -> _GrantState:
        name = json.dumps(scheme, sort_keys=True)
        return self._exchanged.find_state(name, subject) if subject else self._states.setdefault(name, _GrantState())

    async def _refresh(
        self, client: httpx2.AsyncClient, scheme: Scheme, environment: Mapping[str, str], subject: Subject | None
    ) -> _GrantState:
        """Return a scheme's state with a valid token. Concurrent calls share one token request."""
        grant_state = self._find_state(scheme, subject)
        started = time.monotonic()
        async with grant_state.lock:
            when, why = grant_state.failed
            # The request that this call waited for failed; do not repeat it for each waiting call.
            if when >= started:
                raise ToolError(why)
            if time.monotonic() >= grant_state.fresh_until:
                try:
                    await _get(client, scheme, environment, grant_state, subject)
                except ToolError as error:
                    grant_state.failed = (time.monotonic(), str(error))
                    raise
        return grant_state


async def _get(
    client: httpx2.AsyncClient,
    scheme: Scheme,
    environment: Mapping[str, str],
    grant_state: _GrantState,
    subject: Subject | None,
) -> None:
    """Request and cache a token.

    Raises:
        ToolError: The token endpoint returned no token.
    """
    url = urlsplit(str(scheme["tokenUrl"]))
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOOPBACK):
        raise ToolError("The server cannot get a token: its tokenUrl is not https.")
    begun = time.monotonic()
    try:
        with anyio.fail_after(_TIMEOUT):
            status, body = await _answer(client, scheme, environment, grant_state.refresh, subject)
    except TimeoutError:
        raise _failure(scheme, f"it did not respond within {_TIMEOUT:g} seconds") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _failure(scheme, f"it cannot be reached: {describe(error, type(error).__name__)}") from None
    answer: Any = _parse_object(body)
    token = answer.get("access_token")
    if status != 200 or not is_token(token):
        raise _failure(scheme, f"it returned {status} {find_error_code(answer)}".rstrip())
    if not is_bearer(answer):
        raise _failure(scheme, "its token is not a Bearer token")
    if subject is not None and answer.get("issued_token_type") not in _USABLE:
        raise _failure(scheme, "it did not return an access token in exchange")
    grant_state.token = token
    life = find_lifetime(answer)
    if subject is not None:
        life = min(life, _EXCHANGED if subject.seconds is None else subject.seconds)
    # Count from before the request, because the response does not say when the lifetime starts.
    grant_state.fresh_until = begun + life
    if "refreshTokenEnv" in scheme and isinstance(answer.get("refresh_token"), str) and answer["refresh_token"]:
        grant_state.refresh = answer["refresh_token"]  # the previous refresh token may no longer be valid (RFC 6749, 6)


async def _answer(
    client: httpx2.AsyncClient,
    scheme: Scheme,
    environment: Mapping[str, str],
    refresh: str,
    subject: Subject | None,
) -> tuple[int, bytes]:
    """Send a token request and return the response's status and body."""
    fields = {"grant_type": "client_credentials"}
    if "refreshTokenEnv" in scheme:
        fields = {"grant_type": "refresh_token", "refresh_token": refresh or environment[scheme["refreshTokenEnv"]]}
    if subject is not None:
        fields = {
            "grant_type": _EXCHANGE,
            "subject_token": subject.token,
            "subject_token_type": _ACCESS,
            "requested_token_type": _ACCESS,
            **{key: scheme[key] for key in ("audience", "resource") if key in scheme},
        }
    if scheme.get("scopes"):
        fields["scope"] = " ".join(scheme["scopes"])
    identity = environment[scheme["clientIdEnv"]].strip()
    secret = (environment.get(scheme.get("clientSecretEnv", "")) or "").strip() or None
    headers, auth = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}, None
    if secret is not None and scheme.get("clientAuth", "basic") == "basic":
        # RFC 6749, 2.3.1: form-encode both before Basic encoding.
        auth = httpx2.BasicAuth(quote_plus(identity), quote_plus(secret))
    else:
        fields |= {"client_id": identity} | ({} if secret is None else {"client_secret": secret})
    request = client.build_request("POST", scheme["tokenUrl"], headers=headers, content=urlencode(fields).encode())
    response = await client.send(request, auth=auth, stream=True)
    try:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MOST_BYTES:
                return response.status_code, b""
        return response.status_code, bytes(body)
    finally:
        await response.aclose()


def _find_subject(scheme: Scheme, environment: Mapping[str, str], principal: Principal) -> Subject | None:
    """Return the caller whose token to exchange. Return `None` for the local user, whose token is in the environment.

    Raises:
        ToolError: The caller has no token, or the server lacks credentials for the exchange.
    """
    host = urlsplit(str(scheme["tokenUrl"])).hostname
    if principal.kind == "local":
        if environment.get(scheme["env"]):
            return None
        variable = scheme["env"]
        raise ToolError(f"The API requires your own token; set it in the server's environment variable {variable}.")
    subject = find_subject(principal)
    if subject is None:
        raise ToolError(
            "The API requires a token obtained by exchanging your access token, but this call has no access token."
        )
    if missing := [variable for variable in grant(scheme) if not environment.get(variable)]:
        names = ", ".join(missing)
        raise ToolError(f"The server cannot get a token from {host}: {names} is not set in its environment.")
    return subject


def _parse_object(body: bytes) -> Any:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if is_mapping(answer) else {}


def find_error_code(response: Mapping[str, Any]) -> str:
    """Return a token response's error code if the code is safe to show, else an empty string."""
    code = response.get("error")
    return code if isinstance(code, str) and code in _ERRORS else ""


def is_token(value: object) -> bool:
    """Return whether a value is a valid Bearer token: printable ASCII without spaces (RFC 6750, section 2.1)."""
    return isinstance(value, str) and bool(value) and value.isascii() and value.isprintable() and " " not in value


def is_bearer(response: Mapping[str, Any]) -> bool:
    """Return whether a response's token is a Bearer token, the default type."""
    return str(response.get("token_type") or "bearer").lower() == "bearer"


def find_lifetime(response: Mapping[str, Any]) -> float:
    """Return a token's usable lifetime in seconds, or infinity if the lifetime is unknown or invalid."""
    seconds = response.get("expires_in")
    if isinstance(seconds, str) and seconds.isdecimal() and len(seconds) < 10:
        seconds = int(seconds)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 10**9:
        return float("inf")
    return seconds - min(_MARGIN, seconds / 10)


def _failure(scheme: Scheme, why: str) -> ToolError:
    """Log a failed token request and return the error for the caller, without text from the response."""
    host = urlsplit(str(scheme["tokenUrl"])).hostname
    log().warning("no token from %s: %s", host, why)
    return ToolError(f"The server cannot get a token from {host}: {why}.")
