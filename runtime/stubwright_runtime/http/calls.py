"""Calls HTTP APIs for tools that the manifest binds to requests.

A call's time and size are limited, and only idempotent requests are retried. Redirects are followed only within the
API's origin, so that credentials never reach other hosts.
"""

from __future__ import annotations

import logging
import os
import random
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit
from uuid import UUID

import anyio
import httpx2

from ..errors import NoEffectError, ToolError, UnknownEffectError
from ..network.certificates import make_tls_context
from ..network.clients import make_http_client
from ..network.errors import describe
from ..observability.logs import log
from ..observability.redaction import mask
from ..server.calls.around import find_around
from ..server.handlers.invalid_arguments import InvalidArguments, LenientHandlers
from ..server.handlers.lifespan import is_entered
from ..values.sanitizing import clean
from ..values.units import parse_retry_after
from .requests import Api, Binding, OutgoingRequest
from .responses import (
    Answer,
    SchemaMismatch,
    conceal,
    describe_redirect,
    format_status,
    make_failure,
    make_result,
)
from .servers import fill_base_url, find_origin
from .templates import SAFE

if TYPE_CHECKING:
    from typing import Self

    from ..models.base import Model
    from ..package import Package, Tool
    from ..server.calls.around import Around
    from ..server.core.principal import Principal
    from ..server.features.context import Context
    from ..state.store import Store
    from .pagination import Page
    from .requests import ReadEvents
    from .shapes import Shape
    from .tokens import Tokens


_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "QUERY"})
"""Idempotent methods (RFC 9110, 9.2.2)."""

_READING: Final = ("GET", "HEAD")

_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
"""Errors raised before the request is sent."""

_EVENTS: Final = "text/event-stream"
_UNAUTHORIZED: Final = 401
_BUSY: Final = frozenset({429, 503})
_REJECTED: Final = frozenset({_UNAUTHORIZED, 403, 429})
"""Statuses that reject the caller rather than the request."""

_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 10.0
"""The maximum delay before a retry, in seconds. If an API requires a longer delay, the caller gets the error."""

_CONNECTING: Final = 10.0
_PLAIN: Final = ""
"""The key for the HTTP client that all APIs without a client certificate share."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # lower levels log URLs, which can contain keys

Call = Callable[["Model | InvalidArguments", "Context"], Awaitable[Any]]
Prepare = Callable[[Mapping[str, str], Sequence[str]], OutgoingRequest]
"""Creates a request from environment variables and a set of authentication schemes."""


def bind(package: Package, handlers: object, store: Store) -> Handlers:
    """Wrap the handlers and add an HTTP call for each bound tool that they do not implement."""
    return Handlers(package, handlers, store)


class Handlers(LenientHandlers, AbstractAsyncContextManager["Handlers"]):
    """The user's handlers and the HTTP calls of a package. Entering these handlers also enters the user's handlers."""

    def __init__(self, package: Package, handlers: object, store: Store) -> None:
        """Add the package's bound tools, whose large results are in `store`, to the user's handlers."""
        self._handlers = handlers
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._stack = AsyncExitStack()
        self._calls: dict[str, Call] = {}
        self._package = package
        self._store = store
        self._tokens = _tokens(package)
        for tool in package.tools.values():
            if tool.is_bound and getattr(handlers, tool.method, None) is None:
                self._calls[tool.method] = self._call(tool)

    def __getattr__(self, name: str) -> Any:
        """Return the HTTP call with this name, or the attribute of the user's handlers."""
        calls: Mapping[str, Call] = self.__dict__.get("_calls", {})
        return calls[name] if name in calls else getattr(self.__dict__["_handlers"], name)

    def accepts_invalid(self, tool: Tool) -> bool:
        """Return whether a tool's method accepts invalid arguments. A handwritten method requires a model."""
        return tool.accepts_invalid and tool.method in self._calls

    @property
    def around(self) -> Around | None:
        """The user's `around`, which wraps each method, or `None` if it is not defined."""
        return find_around(self._handlers)

    async def __aenter__(self) -> Self:
        """Enter the user's handlers if they form an async context manager.

        Raises:
            ValueError: An environment variable is missing or invalid.
        """
        # Fail on an invalid certificate before entering any context.
        contexts = {
            name: make_context(name, api, os.environ) for name, api in self._apis.items() if "clientCertificate" in api
        }
        self._stack = AsyncExitStack()
        if is_entered(self._handlers):
            await self._stack.enter_async_context(self._handlers)
        for name, context in {_PLAIN: None, **contexts}.items():
            self._clients[name] = await self._stack.enter_async_context(_client(context))
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Exit the user's handlers and close the connections to the APIs."""
        self._clients = {}
        await self._stack.aclose()

    @cached_property
    def _apis(self) -> Mapping[str, Mapping[str, Any]]:
        """The manifest's APIs, with base URLs from the environment at server startup."""
        declared: Mapping[str, Any] = self._package.manifest.get("apis") or {}
        return {name: _fill_variables(settings) for name, settings in declared.items()}

    def _call(self, tool: Tool) -> Call:
        binding: Binding | None = None
        http: Mapping[str, Any] = tool.extension["http"]
        shape, page = _make_shape(tool)
        accepted: Sequence[str] | None = None

        async def call(args: Model | InvalidArguments, ctx: Context) -> Any:
            nonlocal binding, accepted
            if binding is None:
                api = Api.from_entry(self._apis.get(http.get("api", ""), {}), http)
                binding = Binding(http, api, tool.accepts)
            values = dict(args.values) if isinstance(args, InvalidArguments) else args.model_dump(mode="json")
            if isinstance(args, InvalidArguments) and (lost := binding.describe_lost(values)):
                raise ToolError(f"Invalid arguments for {tool.name}: the request cannot contain {lost}.")
            values, following = (values, None) if page is None else page.begin(values)
            # Start with the credentials that the API last accepted.
            credentials = sorted(binding.list_credentials(os.environ), key=lambda schemes: schemes != accepted)
            bound = binding
            key = _make_key(tool, binding, ctx)
            read_events = _make_event_reader(ctx, bound.api, tool) if _EVENTS in http.get("accept", "") else None

            def prepare(environment: Mapping[str, str], schemes: Sequence[str]) -> OutgoingRequest:
                request = bound.make_request(values, environment, schemes)
                request = request if following is None else following.make_request(request)
                request = request if key is None else replace(request, headers=[*request.headers, key])
                return request if read_events is None else replace(request, read_events=read_events)

            hints: Mapping[str, Any] = tool.definition.get("annotations") or {}
            is_known = (
                key is not None and "idempotencyHeader" in http
            )  # an API that does not declare the header might ignore the key
            repeatable = binding.method in _REPEATABLE or hints.get("idempotentHint") is True or is_known
            retries = binding.api.retries if repeatable else 0
            async with self._open_client(http.get("api", _PLAIN)) as client:
                accepted, outgoing, answer = await self._send_authenticated(
                    client, binding, prepare, credentials, retries, ctx.principal
                )
            is_elsewhere = answer.status in _MOVED and find_origin(answer.url) != find_origin(outgoing.url)
            if not is_elsewhere and not 200 <= answer.status < 300:
                kind = _choose_error(outgoing, answer.status)
                raise make_failure(answer, binding.shown, outgoing.secrets, outgoing.lacking, kind)

            if following is not None:
                following = replace(following, secrets=outgoing.secrets)
            reshape = None if shape is None else partial(shape.shape, answer, following=following)

            bound_result = partial(_bound_result, self._store, tool, ctx)

            def make() -> Any:
                if is_elsewhere:
                    raise describe_redirect(answer.url, outgoing.secrets)
                return make_result(answer, tool, reshape, outgoing.secrets)

            if tool.is_lenient and tool.output_name is not None:
                from .deviations import tolerate

                return await tolerate(conceal(answer, outgoing.secrets), tool, make, bound_result)
            try:
                value = make()
            except SchemaMismatch as error:
                if error.instead is None or tool.output_name is not None:
                    raise
                value = error.instead
            return await bound_result(value)

        return call

    async def _send_authenticated(
        self,
        client: httpx2.AsyncClient,
        binding: Binding,
        prepare: Prepare,
        credentials: Sequence[Sequence[str]],
        retries: int,
        principal: Principal,
    ) -> tuple[Sequence[str], OutgoingRequest, Answer]:
        """Send a request with each set of credentials in turn, until the API does not return 401.

        Return the last set, the request and the response.
        """
        for number, schemes in enumerate(credentials, 1):
            outgoing = await self._make_request(client, binding, prepare, schemes, principal)
            answer = await _send(client, binding, outgoing, retries)
            if answer.status == _UNAUTHORIZED and self._tokens is not None:
                auths = [binding.api.auth[name] for name in schemes]
                if self._tokens.forget_refused(auths, os.environ, outgoing.environment, principal):
                    outgoing = await self._make_request(client, binding, prepare, schemes, principal)
                    answer = await _send(client, binding, outgoing, retries)
            if answer.status != _UNAUTHORIZED or number == len(credentials):
                return schemes, outgoing, answer
        raise ValueError("there are no credentials to try")

    async def _make_request(
        self,
        client: httpx2.AsyncClient,
        binding: Binding,
        prepare: Prepare,
        schemes: Sequence[str],
        principal: Principal,
    ) -> OutgoingRequest:
        environment: Mapping[str, str] = os.environ
        try:
            if self._tokens is not None:
                auths = [binding.api.auth[name] for name in schemes]
                environment = await self._tokens.make_environment(client, auths, environment, principal)
            return prepare(environment, schemes)
        except ToolError as error:
            raise NoEffectError(error.message) from error

    @asynccontextmanager
    async def _open_client(self, api: str) -> AsyncGenerator[httpx2.AsyncClient, None]:
        """Yield the API's open client, or a temporary client if the handlers were not entered."""
        if self._clients:
            yield self._clients.get(api) or self._clients[_PLAIN]
            return
        settings = self._apis.get(api, {})
        context = make_context(api, settings, os.environ) if "clientCertificate" in settings else None
        async with _client(context) as client:
            yield client


def _make_key(tool: Tool, binding: Binding, ctx: Context) -> tuple[str, bytes] | None:
    """Return the name and the value of a call's idempotency header, or `None` without such a header.

    The value is a version 4 UUID, which some APIs require.
    """
    is_declared = "idempotencyHeader" in tool.extension["http"] or "once" in tool.policy
    name = binding.idempotency_header if is_declared else None
    return None if name is None else (name, str(UUID(hex=ctx.idempotency_key("http"), version=4)).encode())


def _make_shape(tool: Tool) -> tuple[Shape | None, Page | None]:
    http = tool.extension["http"]
    shape: Shape | None = None
    page: Page | None = None
    if not http.keys().isdisjoint(("page", "responseHeaders", "select")):
        from .shapes import Shape

        shape = Shape(http)
    if "page" in http:
        from .pagination import Page

        page = Page(tool.name, http)
    return shape, page


def _tokens(package: Package) -> Tokens | None:
    apis: Mapping[str, Any] = package.manifest.get("apis") or {}
    if not any(auth["type"] == "oauth2" for api in apis.values() for auth in (api.get("auth") or {}).values()):
        return None
    from .tokens import Tokens

    return Tokens()


def _fill_variables(api: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an API's entry with the variables in its base URL replaced, unless the environment sets the whole URL."""
    if not api.get("variables") or os.environ.get(api.get("baseUrlEnv") or ""):
        return api
    return {**api, "baseUrl": fill_base_url(api, os.environ)}


def _make_event_reader(ctx: Context, api: Api, tool: Tool) -> ReadEvents:
    from .events import make_event_reader

    return make_event_reader(ctx, api, wants_json=tool.output_name is not None)


async def _bound_result(store: Store, tool: Tool, ctx: Context, value: Any) -> Any:
    if "large" not in tool.extension["http"]:
        return value
    from .large_results import bound_result

    return await bound_result(value, tool, ctx, store)


def make_context(name: str, settings: Mapping[str, Any], environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context for an API's client certificate (RFC 8446, 4.4.2).

    If the certificate is not set, log a warning and return `None`.

    Args:
        name: The API's name in the manifest.
        settings: The API's entry under `apis`.
        environment: The environment variables.

    Raises:
        SettingError: The `SSL_CERT_FILE` file is invalid.
        ValueError: The certificate or key is invalid, the key is not set, or the base URL is not HTTPS.
    """
    url = environment.get(settings.get("baseUrlEnv") or "") or settings.get("baseUrl", "")
    if urlsplit(str(url)).scheme != "https":
        raise ValueError(f"the API {name} has a client certificate, but its base URL is not HTTPS")
    certificate: Mapping[str, str] = settings["clientCertificate"]
    if not environment.get(certificate["certificateEnv"]):
        message = "%s is not set: the API %s is called without a client certificate"
        log().warning(message, certificate["certificateEnv"], name)
        return None
    values: dict[str, str] = {}
    for key in ("certificateEnv", "keyEnv", "passwordEnv"):
        if key in certificate:
            if not (value := environment.get(certificate[key])):
                raise ValueError(f"the client certificate for {name} requires {certificate[key]}, which is not set")
            values[key] = value
    context = make_tls_context()
    try:
        # OpenSSL would prompt for the password on the terminal if this were not a callable.
        context.load_cert_chain(values["certificateEnv"], values.get("keyEnv"), lambda: values.get("passwordEnv", ""))
    except OSError as error:  # also raised for invalid certificates, wrong passwords, and mismatched keys
        files = " and ".join(certificate[key] for key in ("certificateEnv", "keyEnv") if key in certificate)
        raise ValueError(
            f"the client certificate for {name} cannot be used ({files}): {error.strerror or error}"
        ) from None
    return context


def _client(context: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """Create a client that ignores cookies, because several callers share the client.

    Raises:
        SettingError: The environment specifies an invalid proxy or invalid certificates.
    """
    jar = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    # `_send` limits the whole call. A read timeout would restart with
    # each chunk, so a slow stream would never end.
    timeout = httpx2.Timeout(None, connect=_CONNECTING)
    return make_http_client(timeout, context, cookies=jar)


async def _send(client: httpx2.AsyncClient, binding: Binding, outgoing: OutgoingRequest, retries: int) -> Answer:
    """Send a request, retrying up to `retries` times if the API is busy or unreachable."""
    for tries in range(retries + 1):
        # Add jitter so that calls that failed together do not retry together.
        wait = min(_FIRST_WAIT * 2**tries, _LONGEST_WAIT) * random.uniform(0.5, 1.0)
        is_last = tries == retries
        begun = time.monotonic()
        try:
            with anyio.fail_after(binding.api.timeout):
                answer = await _follow_redirects(client, binding, outgoing)
        except TimeoutError:
            _debug(outgoing, "no response in time", begun)
            raise _failure(binding, outgoing, f"did not respond within {binding.api.timeout:g} seconds") from None
        except _UNSENT as error:
            _debug(outgoing, reason := describe(error, _split_name(error)), begun)
            if is_last:
                raise _failure(binding, outgoing, f"cannot be reached: {reason}", is_sent=False) from None
        except (httpx2.TransportError, ssl.SSLError) as error:  # SSLError if an API rejects a certificate
            _debug(outgoing, reason := describe(error, _split_name(error)), begun)
            if is_last:
                raise _failure(binding, outgoing, f"did not finish its response: {reason}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _failure(binding, outgoing, f"sent an unreadable response ({_split_name(error)})") from None
        else:
            _debug(outgoing, format_status(answer.status), begun)
            retry_after = parse_retry_after(answer.headers.get("retry-after"))
            if answer.status not in _BUSY or is_last or (retry_after or 0) > _LONGEST_WAIT:
                return answer
            wait = wait if retry_after is None else retry_after
        await anyio.sleep(wait)
    raise AssertionError("the last attempt neither returned nor raised")


async def _follow_redirects(client: httpx2.AsyncClient, binding: Binding, outgoing: OutgoingRequest) -> Answer:
    """Send a request. Follow same-origin redirects of `GET` and `HEAD`, and 303 for any method (RFC 9110, 15.4.4)."""
    url = outgoing.url
    for _ in range(_MOST_REDIRECTS + 1):
        answer = await _send_once(client, outgoing, url, binding.api.most)
        target = answer.headers.get("location")
        if answer.status not in _MOVED or target is None:
            return answer
        try:
            target = urljoin(url, target)
            is_same = find_origin(target) == find_origin(url)
        except ValueError:
            raise ToolError("The API redirected to an invalid URL.") from None
        if answer.status == HTTPStatus.SEE_OTHER and outgoing.method not in _READING:
            outgoing = _to_get(outgoing)
        if not is_same and outgoing.method in _READING:
            return Answer(answer.status, answer.headers, b"", target)
        if not is_same:
            raise ToolError(f"The API's redirect to another host, {urlsplit(target).hostname}, was not followed.")
        if outgoing.method not in _READING:
            where = mask(urlsplit(target).path, outgoing.secrets)
            moved = f"The API returned {format_status(answer.status)} for a {outgoing.method}"
            raise ToolError(clean(f"{moved} request, which is not resent to {where}."))
        url = target
    raise ToolError("The API redirected too many times.")


def _to_get(outgoing: OutgoingRequest) -> OutgoingRequest:
    headers = [each for each in outgoing.headers if not each[0].lower().startswith("content-")]
    return replace(outgoing, method="GET", headers=headers, content=None, parts=())


def _host(url: str) -> str:
    return clean(urlsplit(url).netloc.rpartition("@")[2])


def _failure(binding: Binding, outgoing: OutgoingRequest, why: str, *, is_sent: bool = True) -> ToolError:
    """Log a failed request and return the error for the caller.

    `why` is a predicate without its subject, such as `did not respond within 5 seconds`. `is_sent` is true if the API
    might have received the request.
    """
    text = f"The API at {_host(outgoing.url)} {why}."
    log().warning("%s failed: %s", binding.shown, text)
    if not is_sent or outgoing.method in SAFE:
        return NoEffectError(text)
    return UnknownEffectError(f"{text} The request may have taken effect; check before you send it again.")


def _choose_error(outgoing: OutgoingRequest, status: int) -> type[ToolError]:
    if outgoing.method in SAFE or status in _REJECTED:
        return NoEffectError
    return UnknownEffectError if status >= 500 or status == HTTPStatus.REQUEST_TIMEOUT else ToolError


def _debug(outgoing: OutgoingRequest, how: str, begun: float) -> None:
    if log().isEnabledFor(logging.DEBUG):
        url = mask(_hide_query(outgoing.url), outgoing.secrets)
        log().debug("%s %s: %s in %.3f s", outgoing.method, url, how, time.monotonic() - begun)


def _hide_query(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def _send_once(client: httpx2.AsyncClient, outgoing: OutgoingRequest, url: str, most: int) -> Answer:
    request = client.build_request(
        outgoing.method,
        url,
        headers=[(name.encode(), value) for name, value in outgoing.headers],
        content=outgoing.content,
        files=list(outgoing.parts) or None,
    )
    response = await client.send(request, stream=True)
    try:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if outgoing.read_events is not None and response.is_success and _is_stream(headers):
            media, data = await outgoing.read_events(response.aiter_bytes(), outgoing.secrets)
            return Answer(response.status_code, {**headers, "content-type": media}, data, url)
        body = bytearray()
        # The limit also applies to the decompressed size.
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                raise ToolError(f"The API's response is larger than {most:,} bytes; request less data.")
        return Answer(response.status_code, headers, bytes(body), url)
    finally:
        await response.aclose()


def _is_stream(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"


def _split_name(error: Exception) -> str:
    # The error's message can contain a URL.
    name = type(error).__name__
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()
