"""Tokens of OAuth 2.0 for the APIs that are called: by client credentials, by a refresh token (RFC 6749, 4.4 and 6), or
in exchange for the caller's token (RFC 8693).

Tokens go only to the API, and credentials only to the token endpoint: no redirect is followed, and no log or error
contains them.
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
from ..values.json import is_mapping
from .requests import grant, is_exchange
from .subjects import PrincipalCache, find_subject

if TYPE_CHECKING:
    from ..server.core.principal import Principal
    from .subjects import Subject

_TIMEOUT: Final = 20.0
_MOST_BYTES: Final = 256 * 1024
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine in URLs."""

_EXCHANGED: Final = 300.0
"""Seconds for which an exchanged token is used if its response has no `expires_in`."""

_MARGIN: Final = 30.0
"""Seconds before its end at which a token is renewed; a tenth of its lifetime if that is less."""

_ERRORS: Final = frozenset(
    {"access_denied", "consent_required", "interaction_required", "invalid_client", "invalid_client_metadata"}
    | {"invalid_grant", "invalid_redirect_uri", "invalid_request", "invalid_scope", "invalid_target"}
    | {"login_required", "server_error", "temporarily_unavailable", "unapproved_software_statement"}
    | {"unauthorized_client", "unsupported_grant_type", "unsupported_response_type"}
)
"""Error codes that may be shown (RFC 6749, RFC 7591, RFC 8707, OpenID Connect); other texts may hold secrets."""

_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS: Final = "urn:ietf:params:oauth:token-type:access_token"
_USABLE: Final = frozenset({_ACCESS, "urn:ietf:params:oauth:token-type:jwt"})
"""Types of tokens that an API takes (RFC 8693, 3)."""

Scheme = Mapping[str, Any]


@dataclass(slots=True)
class _GrantState:
    """The state of one scheme. `failed` says when getting a token failed, and why; times are monotonic."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    token: str = field(default="", repr=False)
    fresh_until: float = 0.0
    refresh: str = field(default="", repr=False)
    failed: tuple[float, str] = (-1.0, "")


def has_grant(scheme: Scheme, environment: Mapping[str, str]) -> bool:
    """Return whether the environment has what a token is got with."""
    return all(environment.get(variable) for variable in grant(scheme))


class Tokens:
    """The access tokens of a server, by their schemes."""

    def __init__(self) -> None:
        """Begin without any."""
        self._states: dict[str, _GrantState] = {}
        self._exchanged: PrincipalCache[_GrantState] = PrincipalCache(_GrantState)

    async def make_environment(
        self,
        client: httpx2.AsyncClient,
        schemes: Sequence[Scheme],
        environment: Mapping[str, str],
        principal: Principal,
    ) -> Mapping[str, str]:
        """Return the environment with tokens in the variables of the schemes.

        Args:
            client: Sends the requests for tokens.
            schemes: The schemes of a call; a scheme without a grant in the environment is ignored.
            environment: Where the grants are.
            principal: The caller, to whom an exchanged token belongs; on stdio, the token is in a variable.

        Raises:
            ToolError: A token cannot be had; the message holds no secret.
        """
        tokens: dict[str, str] = {}
        for scheme in schemes:
            if is_exchange(scheme):
                subject = _find_subject(scheme, environment, principal)
                if subject is not None:
                    grant_state = await self._current(client, scheme, environment, subject)
                    tokens[scheme["env"]] = grant_state.token
            elif scheme["type"] == "oauth2" and has_grant(scheme, environment):
                grant_state = await self._current(client, scheme, environment, None)
                tokens[scheme["env"]] = grant_state.token
                if grant_state.refresh:
                    tokens[scheme["refreshTokenEnv"]] = grant_state.refresh  # so that no error holds it
        return {**environment, **tokens} if tokens else environment

    def forget_refused(
        self,
        schemes: Sequence[Scheme],
        environment: Mapping[str, str],
        sent: Mapping[str, str],
        principal: Principal,
    ) -> bool:
        """Forget the tokens that the API refused, unless others took their place; whether there were any."""
        subject = find_subject(principal)
        granted = [
            scheme
            for scheme in schemes
            if scheme["type"] == "oauth2" and has_grant(scheme, environment) and (subject or not is_exchange(scheme))
        ]
        for scheme in granted:
            grant_state = self._of(scheme, subject if is_exchange(scheme) else None)
            if grant_state.token == sent.get(scheme["env"]):
                grant_state.fresh_until = 0.0
        return bool(granted)

    def _of(self, scheme: Scheme, subject: Subject | None) -> _GrantState:
        name = json.dumps(scheme, sort_keys=True)
        return self._exchanged.find_state(name, subject) if subject else self._states.setdefault(name, _GrantState())

    async def _current(
        self, client: httpx2.AsyncClient, scheme: Scheme, environment: Mapping[str, str], subject: Subject | None
    ) -> _GrantState:
        """Return the scheme with a fresh token; concurrent calls request it once."""
        grant_state = self._of(scheme, subject)
        asked = time.monotonic()
        async with grant_state.lock:
            when, why = grant_state.failed
            # The attempt that this call waited for failed; the
            # endpoint is not asked once more for each call that waits.
            if when >= asked:
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
    """Request a token, and cache it.

    Raises:
        ToolError: The token endpoint refuses.
    """
    url = urlsplit(str(scheme["tokenUrl"]))
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOOPBACK):
        raise ToolError("The server cannot get a token: its tokenUrl is not https.")
    begun = time.monotonic()
    try:
        with anyio.fail_after(_TIMEOUT):
            status, body = await _answer(client, scheme, environment, grant_state.refresh, subject)
    except TimeoutError:
        raise _failure(scheme, f"it did not answer within {_TIMEOUT:g} seconds") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _failure(scheme, f"it cannot be reached: {describe(error, type(error).__name__)}") from None
    answer: Any = _parsed(body)
    token = answer.get("access_token")
    if status != 200 or not is_token(token):
        raise _failure(scheme, f"it answered {status} {find_error_code(answer)}".rstrip())
    if not is_bearer(answer):
        raise _failure(scheme, "its token is not a bearer token")
    if subject is not None and answer.get("issued_token_type") not in _USABLE:
        raise _failure(scheme, "it gave no access token in exchange")
    grant_state.token = token
    life = find_lifetime(answer)
    if subject is not None:
        life = min(life, _EXCHANGED if subject.seconds is None else subject.seconds)
    # Counted from before the request, since the answer does not say when the lifetime began.
    grant_state.fresh_until = begun + life
    if "refreshTokenEnv" in scheme and isinstance(answer.get("refresh_token"), str) and answer["refresh_token"]:
        grant_state.refresh = answer["refresh_token"]  # what came before may be good once only (RFC 6749, 6)


async def _answer(
    client: httpx2.AsyncClient,
    scheme: Scheme,
    environment: Mapping[str, str],
    refresh: str,
    subject: Subject | None,
) -> tuple[int, bytes]:
    """Return the status and the body of the token endpoint's answer."""
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
        # RFC 6749, 2.3.1: both are form-encoded before they become Basic credentials.
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
    """Return the caller whose token is exchanged; None for the local user, who has one in a variable.

    Raises:
        ToolError: There is no token to exchange, or no credentials to exchange it with.
    """
    host = urlsplit(str(scheme["tokenUrl"])).hostname
    if principal.kind == "local":
        if environment.get(scheme["env"]):
            return None
        variable = scheme["env"]
        raise ToolError(f"The API is called with your own token, which belongs into {variable} of the server.")
    subject = find_subject(principal)
    if subject is None:
        raise ToolError(
            "The API is called with a token in exchange for your access token, and this call has no access token."
        )
    if missing := [variable for variable in grant(scheme) if not environment.get(variable)]:
        names = ", ".join(missing)
        raise ToolError(f"The server cannot get a token from {host}: {names} is not set in its environment.")
    return subject


def _parsed(body: bytes) -> Any:
    """Return the object that an answer is; an empty one where it is none."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if is_mapping(answer) else {}


def find_error_code(response: Mapping[str, Any]) -> str:
    """Return the error code of a response if it may be shown, and otherwise an empty text."""
    code = response.get("error")
    return code if isinstance(code, str) and code in _ERRORS else ""


def is_token(value: object) -> bool:
    """Return whether a value can be sent as a Bearer token: printable ASCII without spaces (RFC 6750, section 2.1)."""
    return isinstance(value, str) and bool(value) and value.isascii() and value.isprintable() and " " not in value


def is_bearer(response: Mapping[str, Any]) -> bool:
    """Return whether the token of a response is a Bearer token, which it also is if the response states no type."""
    return str(response.get("token_type") or "bearer").lower() == "bearer"


def find_lifetime(response: Mapping[str, Any]) -> float:
    """Return the seconds for which the token of a response is used; infinity if its lifetime is unknown or invalid."""
    seconds = response.get("expires_in")
    if isinstance(seconds, str) and seconds.isdecimal() and len(seconds) < 10:
        seconds = int(seconds)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 10**9:
        return float("inf")
    return seconds - min(_MARGIN, seconds / 10)


def _failure(scheme: Scheme, why: str) -> ToolError:
    """Return the error for the caller; none of it comes from the answer's own text."""
    host = urlsplit(str(scheme["tokenUrl"])).hostname
    log().warning("no token from %s: %s", host, why)
    return ToolError(f"The server cannot get a token from {host}: {why}.")
