"""Authenticates HTTP requests by access token and authorizes them by scope.

Rejections must precede the endpoint's response, because a challenge is a status code and a header (RFC 6750, section 3;
MCP 2025-11-25, basic/authorization, "Token Handling" and "Scope Challenge Handling"). Inner layers read the caller,
without the token, from the current context. ASGI requests call `Authentication`; the fast path calls its methods
directly.
"""

from __future__ import annotations

import json
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from starlette.authentication import AuthCredentials, SimpleUser

from ....observability.logs import log
from ....values.json import is_list
from ....values.urls import normalize_url
from ...core.access_tokens import CALLER
from ...core.call_state import CallState
from ...core.principal import VerificationUnavailableError, make_from_token
from ...middlewares.expiry import pass_while_valid
from .events import Response
from .headers import find_version
from .keys import POST
from .uploads import Uploads, replay_body

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ...core.access_tokens import TokenVerifier, VerifiedToken
    from ...core.feature import Scopes
    from ...core.outcomes import OutcomeStatus
    from ...core.principal import Principal
    from ...observability.audit import Recorder


_BEARER: Final = "bearer "
_AUTHORIZATION: Final = b"authorization"


class Caller(SimpleUser):
    """The caller of a request with a valid token.

    Attributes:
        access_token: The verified token.
        principal: The principal with the token's scopes.
        owner: The claims that identify the principal; sessions are bound to them.
    """

    def __init__(self, token: VerifiedToken) -> None:
        """Create the caller from a verified token."""
        super().__init__(token.client_id)
        self.access_token = token
        self.principal = make_from_token(token)
        issuer = self.principal.issuer
        self.owner: Mapping[str, Any] = {"client_id": token.client_id, "issuer": issuer, "subject": token.subject}

    def enter(self) -> None:
        """Set this caller in the current context."""
        CALLER.set(self)


def find_caller(user: object) -> Caller | None:
    """Return the caller for an ASGI scope's `user`, or `None` if the user has no access token.

    This server, or the application that mounts it, has verified the token.
    """
    if isinstance(user, Caller):
        return user
    token: VerifiedToken | None = getattr(user, "access_token", None)  # set by the SDK's authentication
    return None if token is None else Caller(token)


class Authentication:
    """ASGI middleware that rejects unauthenticated requests."""

    def __init__(
        self,
        app: ASGIApp,
        verifier: TokenVerifier,
        *,
        required: Sequence[str] = (),
        metadata_url: str | None = None,
        scopes: Scopes | None = None,
        audiences: Collection[str] = (),
        recorder: Recorder | None = None,
    ) -> None:
        """Wrap an application.

        Args:
            app: The application behind the middleware.
            verifier: Verifies tokens.
            required: The scopes that every request requires.
            metadata_url: The URL of the protected resource metadata (RFC 9728).
            scopes: The scopes that individual entries require.
            audiences: This server's identifiers; tokens for another resource are rejected.
            recorder: Records rejected requests.
        """
        self._app = app
        self._verifier = verifier
        self._required = required
        self._metadata_url = metadata_url
        self._scopes = scopes
        self._audiences = frozenset(_strip_slash(each) for each in audiences)
        self._recorder = recorder
        self._uploads = Uploads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the application, or respond with 400, 401, 403 or 503."""
        if scope["type"] != "http" or POST in scope:  # the connection has already authenticated the request
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        sent = [value for name, value in headers if name == _AUTHORIZATION]
        revision = find_version(headers)
        caller = await self.authenticate(sent, revision)
        if isinstance(caller, Response):
            await caller.send(send)
            return
        body = None
        if scope["method"] == "POST" and self._scopes is not None and self._scopes.challenges:
            body = await self._uploads.read(receive, send)
            if body is None:
                return
            receive = replay_body(body, receive)
        refusal = self.find_refusal(caller, revision, body)
        if refusal is not None:
            await refusal.send(send)
            return
        scope = {**scope, "user": caller, "auth": AuthCredentials(list(caller.access_token.scopes))}
        if scope["method"] == "GET":
            await pass_while_valid(caller.access_token, self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def authenticate(self, sent: Sequence[bytes], revision: str | None) -> Caller | Response:
        """Return a request's caller, or the error response if the token is missing or invalid.

        Args:
            sent: The values of all `Authorization` headers; more than one is an error.
            revision: The revision in the request's header, for the record of a rejection.
        """
        if len(sent) > 1:
            self._record_refusal("denied", "unauthenticated", revision)
            return self._refuse(400, "invalid_request", "The request has more than one Authorization header")
        text = sent[0].decode("latin-1") if sent else ""
        if not text.lower().startswith(_BEARER):
            self._record_refusal("denied", "unauthenticated", revision)
            return self._refuse(401, None, "Authentication required", self._required)
        try:
            token = await self._verifier.verify_token(text[len(_BEARER) :].strip(" \t"))
        except VerificationUnavailableError as error:
            log().error("cannot verify a token: %s", error)
            self._record_refusal("failed", "unverifiable", revision)
            retry_after = (b"retry-after", b"%d" % error.retry_after)
            return _encode(503, {"error": "temporarily_unavailable"}, retry_after)
        if token is None or not self._is_current(token):
            self._record_refusal("denied", "unauthenticated", revision)
            return self._refuse(401, "invalid_token", "The access token is not valid here", self._required)
        return Caller(token)

    def find_refusal(self, caller: Caller, revision: str | None, body: bytes | None) -> Response | None:
        """Return the 403 response if the caller lacks a required scope, otherwise `None`.

        Args:
            caller: The authenticated caller.
            revision: The revision in the request's header, for the record of a rejection.
            body: The body of a POST, if individual entries require scopes.
        """
        principal = caller.principal
        calls: Sequence[Mapping[str, Any]] = ()
        if self._scopes is not None:
            principal = self._scopes.widen(principal)
        lacking: Sequence[str] = () if principal.scopes.issuperset(self._required) else self._required
        if body is not None and self._scopes is not None and self._scopes.challenges:
            more, calls = _find_lacking(self._scopes, principal, body)
            lacking = tuple(dict.fromkeys((*lacking, *more)))
        if not lacking:
            return None
        for params in calls or (None,):
            self._record_refusal("denied", "insufficient_scope", revision, principal, params)
        text = f"This request needs the scopes {' '.join(lacking)}"
        return self._refuse(403, "insufficient_scope", text, lacking)

    def _record_refusal(
        self,
        status: OutcomeStatus,
        reason: str,
        revision: str | None,
        principal: Principal | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        if self._recorder is not None:
            call_state = CallState(time.time(), "http", revision, principal=principal, status=status, reason=reason)
            call_state.record_parameters(params or {})
            self._recorder.record(call_state)

    def _is_current(self, token: VerifiedToken) -> bool:
        if token.expires_at is not None and token.expires_at < time.time():
            return False
        return not self._audiences or token.resource is None or _strip_slash(token.resource) in self._audiences

    def _refuse(self, status: int, error: str | None, text: str, scopes: Sequence[str] = ()) -> Response:
        challenge = {
            "error": error,
            "error_description": None if error is None else text,
            "scope": " ".join(scopes) or None,
            "resource_metadata": self._metadata_url,
        }
        parts = ", ".join(f'{key}="{value}"' for key, value in challenge.items() if value is not None)
        body = {"error": error or "unauthorized", "error_description": text}
        return _encode(status, body, (b"www-authenticate", f"Bearer {parts}".strip().encode("latin-1")))


def _encode(status: int, body: Mapping[str, str], header: tuple[bytes, bytes]) -> Response:
    response = Response.from_answer(status, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
    return response._replace(headers=(header, *response.headers))


@lru_cache(256)
def _strip_slash(url: str) -> str:
    return normalize_url(url).removesuffix("/")


def _find_lacking(
    policy: Scopes, principal: Principal, body: bytes
) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
    """Return the scopes that the caller of a request lacks, and the parameters of the tool calls that require them."""
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):  # the endpoint responds with an error
        return (), ()
    messages: list[Any] = list(content) if is_list(content) else [content]
    lacking = [
        (message, scopes) for message in messages if (scopes := policy.find_lacking_of_message(principal, message))
    ]
    calls = [message["params"] for message, _ in lacking if message["method"] == "tools/call"]
    return tuple(dict.fromkeys(scope for _, scopes in lacking for scope in scopes)), calls
