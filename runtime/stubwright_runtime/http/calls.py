"""Tools that are HTTP calls: the manifest declares them, and they need no handler.

Calls have a bounded time and size, are repeated only where that changes nothing, and follow redirects only to the API
itself, so that credentials reach no other process.
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
from ..network.clients import make_http_client
from ..network.errors import describe
from ..observability.logs import log
from ..observability.redaction import mask
from ..server.calls.around import find_around
from ..server.handlers.invalid_arguments import InvalidArguments, LenientHandlers
from ..server.handlers.lifespan import is_entered
from ..values.sanitizing import clean
from ..values.units import parse_retry_after
from .requests import SAFE, Api, Binding, OutgoingRequest
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

if TYPE_CHECKING:
    from typing import Self

    from ..models.base import Model
    from ..package import Package, Tool
    from ..server.calls.around import Around
    from ..server.core.principal import Principal
    from ..server.features.context import Context
    from .pagination import Page
    from .requests import Hear
    from .shapes import Shape
    from .tokens import Tokens


_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "QUERY"})
"""Methods that change nothing more when they are repeated (RFC 9110, 9.2.2)."""

_READING: Final = ("GET", "HEAD")

_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
"""Errors before anything was sent."""

_EVENTS: Final = "text/event-stream"
_UNAUTHORIZED: Final = 401
_BUSY: Final = frozenset({429, 503})
_REJECTED: Final = frozenset({_UNAUTHORIZED, 403, 429})
"""Statuses that reject the caller, whatever the request."""

_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 10.0
"""Seconds to wait before a call is repeated. An API that asks for more is told to the caller instead."""

_CONNECTING: Final = 10.0
_PLAIN: Final = ""
"""Stands for the client of all APIs without a client certificate."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # below, it tells URLs, which may hold keys

Call = Callable[["Model | InvalidArguments", "Context"], Awaitable[Any]]
Prepared = Callable[[Mapping[str, str], Sequence[str]], OutgoingRequest]
"""Makes a request with an environment, that says in one way who the server is."""


def bind(package: Package, handlers: object) -> Handlers:
    """Return the handlers, with a call for each bound tool that has no method of its own."""
    return Handlers(package, handlers)


class Handlers(LenientHandlers, AbstractAsyncContextManager["Handlers"]):
    """The handlers of a package with HTTP tools: a context manager that enters the user's handlers, too."""

    def __init__(self, package: Package, handlers: object) -> None:
        """Take the package, and the handlers that were written."""
        self._handlers = handlers
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._stack = AsyncExitStack()
        self._calls: dict[str, Call] = {}
        self._package = package
        self._tokens = _tokens(package)
        for tool in package.tools.values():
            if tool.is_bound and getattr(handlers, tool.method, None) is None:
                self._calls[tool.method] = self._call(tool)

    def __getattr__(self, name: str) -> Any:
        """Return a call, or an attribute of the user's handlers."""
        calls: Mapping[str, Call] = self.__dict__.get("_calls", {})
        return calls[name] if name in calls else getattr(self.__dict__["_handlers"], name)

    def accepts_invalid(self, tool: Tool) -> bool:
        """Return whether a call of a tool may have arguments that do not fit: methods that were written get models."""
        return tool.accepts_invalid and tool.method in self._calls

    @property
    def around(self) -> Around | None:
        """The handlers' `around`, which wraps each method; `None` if there is none."""
        return find_around(self._handlers)

    async def __aenter__(self) -> Self:
        """Enter the user's handlers if they are an async context manager.

        Raises:
            ValueError: An environment variable is missing or invalid.
        """
        # Certificates come first: an invalid one fails before any context is entered.
        contexts = {name: _make_context(name, api) for name, api in self._apis.items() if "clientCertificate" in api}
        self._stack = AsyncExitStack()
        if is_entered(self._handlers):
            await self._stack.enter_async_context(self._handlers)
        for name, context in {_PLAIN: None, **contexts}.items():
            self._clients[name] = await self._stack.enter_async_context(_client(context))
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Leave them, and close the connections."""
        self._clients = {}
        await self._stack.aclose()

    @cached_property
    def _apis(self) -> Mapping[str, Mapping[str, Any]]:
        """The APIs of the manifest, as the environment has them when the server starts."""
        declared: Mapping[str, Any] = self._package.manifest.get("apis") or {}
        return {name: _located(settings) for name, settings in declared.items()}

    def _call(self, tool: Tool) -> Call:
        binding: Binding | None = None
        http: Mapping[str, Any] = tool.extension["http"]
        shape, page = _shaping(tool)
        worked: Sequence[str] | None = None

        async def call(args: Model | InvalidArguments, ctx: Context) -> Any:
            nonlocal binding, worked
            if binding is None:
                api = Api.from_entry(self._apis.get(http.get("api", ""), {}), http)
                binding = Binding(http, api, tool.accepts)
            values = dict(args.values) if isinstance(args, InvalidArguments) else args.model_dump(mode="json")
            if isinstance(args, InvalidArguments) and (lost := binding.describe_lost(values)):
                raise ToolError(f"Invalid arguments for {tool.name}: there is no place in the request for {lost}.")
            values, following = (values, None) if page is None else page.begin(values)
            ways = sorted(
                binding.list_ways(os.environ), key=lambda way: way != worked
            )  # what was refused once comes last
            bound = binding
            key = _make_key(tool, binding, ctx)
            hear = _hearing(ctx, bound.api, tool) if _EVENTS in http.get("accept", "") else None

            def prepare(environment: Mapping[str, str], way: Sequence[str]) -> OutgoingRequest:
                request = bound.make_request(values, environment, way)
                request = request if following is None else following.make_request(request)
                request = request if key is None else replace(request, headers=[*request.headers, key])
                return request if hear is None else replace(request, hear=hear)

            hints: Mapping[str, Any] = tool.definition.get("annotations") or {}
            is_known = key is not None and "idempotencyHeader" in http  # without it, the API may ignore the key
            repeatable = binding.method in _REPEATABLE or hints.get("idempotentHint") is True or is_known
            retries = binding.api.retries if repeatable else 0
            async with self._connected(http.get("api", _PLAIN)) as client:
                who = ctx.principal
                worked, outgoing, answer = await self._admitted(client, binding, prepare, ways, retries, who)
            is_elsewhere = answer.status in _MOVED and find_origin(answer.url) != find_origin(outgoing.url)
            if not is_elsewhere and not 200 <= answer.status < 300:
                kind = _choose_error(outgoing, answer.status)
                raise make_failure(answer, binding.shown, outgoing.secrets, outgoing.lacking, kind)

            if following is not None:
                following = replace(following, secrets=outgoing.secrets)
            reshape = None if shape is None else partial(shape.shape, answer, following=following)

            def make() -> Any:
                if is_elsewhere:
                    raise describe_redirect(answer.url, outgoing.secrets)
                value = make_result(answer, tool, reshape, outgoing.secrets)
                return _bounded(value, tool) if "large" in http else value

            if tool.is_lenient and tool.output_name is not None:
                from .deviations import tolerate

                return tolerate(conceal(answer, outgoing.secrets), tool, make)
            try:
                return make()
            except SchemaMismatch as error:
                if error.instead is None or tool.output_name is not None:
                    raise
                return error.instead

        return call

    async def _admitted(
        self,
        client: httpx2.AsyncClient,
        binding: Binding,
        prepared: Prepared,
        ways: Sequence[Sequence[str]],
        retries: int,
        principal: Principal,
    ) -> tuple[Sequence[str], OutgoingRequest, Answer]:
        """Return the first way that the API does not refuse for who it is from, or the last, its request and its
        answer.
        """
        for number, way in enumerate(ways, 1):
            outgoing = await self._outgoing(client, binding, prepared, way, principal)
            answer = await _sent(client, binding, outgoing, retries)
            if answer.status == _UNAUTHORIZED and self._tokens is not None:
                schemes = [binding.api.auth[name] for name in way]
                if self._tokens.forget_refused(schemes, os.environ, outgoing.environment, principal):
                    outgoing = await self._outgoing(client, binding, prepared, way, principal)
                    answer = await _sent(client, binding, outgoing, retries)
            if answer.status != _UNAUTHORIZED or number == len(ways):
                return way, outgoing, answer
        raise ValueError("no attempt is possible")

    async def _outgoing(
        self,
        client: httpx2.AsyncClient,
        binding: Binding,
        prepared: Prepared,
        way: Sequence[str],
        principal: Principal,
    ) -> OutgoingRequest:
        """Return the request that says in one way who the server is, with a token that is fresh where it needs one."""
        environment: Mapping[str, str] = os.environ
        try:
            if self._tokens is not None:
                schemes = [binding.api.auth[name] for name in way]
                environment = await self._tokens.make_environment(client, schemes, environment, principal)
            return prepared(environment, way)
        except ToolError as error:
            raise NoEffectError(error.message) from error

    @asynccontextmanager
    async def _connected(self, api: str) -> AsyncGenerator[httpx2.AsyncClient, None]:
        """Yield the client that is retained for an API; without a server around the handlers, one for this call."""
        if self._clients:
            yield self._clients.get(api) or self._clients[_PLAIN]
            return
        settings = self._apis.get(api, {})
        context = _make_context(api, settings) if "clientCertificate" in settings else None
        async with _client(context) as client:
            yield client


def _make_key(tool: Tool, binding: Binding, ctx: Context) -> tuple[str, bytes] | None:
    """Return the header by which the API recognizes a repeated call; `None` without one.

    Its value is written as a UUID of version 4, which some APIs require.
    """
    is_declared = "idempotencyHeader" in tool.extension["http"] or "once" in tool.policy
    name = binding.idempotency_header if is_declared else None
    return None if name is None else (name, str(UUID(hex=ctx.idempotency_key("http"), version=4)).encode())


def _shaping(tool: Tool) -> tuple[Shape | None, Page | None]:
    """Return the shape and the pages of a tool's responses, `None` for each that it lacks."""
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
    """Return the source of access tokens; `None` if no API uses OAuth 2.0."""
    apis: Mapping[str, Any] = package.manifest.get("apis") or {}
    if not any(auth["type"] == "oauth2" for api in apis.values() for auth in (api.get("auth") or {}).values()):
        return None
    from .tokens import Tokens

    return Tokens()


def _located(api: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an API whose base URL has the values of its variables."""
    if not api.get("variables") or os.environ.get(api.get("baseUrlEnv") or ""):
        return api
    return {**api, "baseUrl": fill_base_url(api, os.environ)}


def _hearing(ctx: Context, api: Api, tool: Tool) -> Hear:
    """Return the reader of an answer that comes as events."""
    from .events import make_listener

    return make_listener(ctx, api, wants_json=tool.output_name is not None)


def _bounded(value: Any, tool: Tool) -> Any:
    """Return a result, or the start of a result that is too large."""
    from .large_results import bound_result

    return bound_result(value, tool.name, tool.policy, tool.result_budget)


def _make_context(name: str, api: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return the TLS context of an API that has a client certificate; None if none exists."""
    from .certificates import make_context

    return make_context(name, api, os.environ)


def _client(context: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """Return a client without cookies, since it serves more than one caller.

    Raises:
        SettingError: A proxy or the certificates of the environment cannot be used.
    """
    jar = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    # `_sent` bounds a call as a whole. A timeout here would begin
    # again with each read, and an API that drips never ends.
    timeout = httpx2.Timeout(None, connect=_CONNECTING)
    return make_http_client(timeout, context, cookies=jar)


async def _sent(client: httpx2.AsyncClient, binding: Binding, outgoing: OutgoingRequest, retries: int) -> Answer:
    """Return the answer to a request, tried again up to `retries` times where the API is busy or cannot be reached."""
    for tries in range(retries + 1):
        # At random, so that calls that were refused together do not come back together.
        wait = min(_FIRST_WAIT * 2**tries, _LONGEST_WAIT) * random.uniform(0.5, 1.0)
        is_last = tries == retries
        begun = time.monotonic()
        try:
            with anyio.fail_after(binding.api.timeout):
                answer = await _followed(client, binding, outgoing)
        except TimeoutError:
            _debug(outgoing, "no answer in time", begun)
            raise _failure(binding, outgoing, f"did not answer within {binding.api.timeout:g} seconds") from None
        except _UNSENT as error:
            _debug(outgoing, reason := describe(error, _words(error)), begun)
            if is_last:
                raise _failure(binding, outgoing, f"cannot be reached: {reason}", is_sent=False) from None
        except (httpx2.TransportError, ssl.SSLError) as error:  # the latter if an API refuses a certificate
            _debug(outgoing, reason := describe(error, _words(error)), begun)
            if is_last:
                raise _failure(binding, outgoing, f"did not finish its answer: {reason}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:  # an answer that cannot be read, and the like
            what = f"sent an answer that cannot be read ({_words(error)})"
            raise _failure(binding, outgoing, what) from None
        else:
            _debug(outgoing, format_status(answer.status), begun)
            asked = parse_retry_after(answer.headers.get("retry-after"))
            if answer.status not in _BUSY or is_last or (asked or 0) > _LONGEST_WAIT:
                return answer
            wait = wait if asked is None else asked
        await anyio.sleep(wait)
    raise AssertionError("the last try neither answered nor failed")


async def _followed(client: httpx2.AsyncClient, binding: Binding, outgoing: OutgoingRequest) -> Answer:
    """Return the answer, through redirects to the same host that send nothing a second time.

    Those are the redirects of what only reads, and 303, which specifies where to read what came of it (RFC 9110,
    15.4.4).
    """
    url = outgoing.url
    for _ in range(_MOST_REDIRECTS + 1):
        answer = await _once(client, outgoing, url, binding.api.most)
        target = answer.headers.get("location")
        if answer.status not in _MOVED or target is None:
            return answer
        try:
            target = urljoin(url, target)
            is_same = find_origin(target) == find_origin(url)
        except ValueError:
            raise ToolError("The API redirects to an invalid URL.") from None
        if answer.status == HTTPStatus.SEE_OTHER and outgoing.method not in _READING:
            outgoing = _reading(outgoing)
        if not is_same and outgoing.method in _READING:
            return Answer(answer.status, answer.headers, b"", target)
        if not is_same:
            raise ToolError(f"The API redirects to another host, {urlsplit(target).hostname}, which is not followed.")
        if outgoing.method not in _READING:
            where = mask(urlsplit(target).path, outgoing.secrets)
            moved = f"The API answered {format_status(answer.status)} to a {outgoing.method}"
            raise ToolError(clean(f"{moved}, which is not sent again to {where}."))
        url = target
    raise ToolError("The API redirects in a circle.")


def _reading(outgoing: OutgoingRequest) -> OutgoingRequest:
    """Return a `GET` request with the caller's headers, and without a body."""
    headers = [each for each in outgoing.headers if not each[0].lower().startswith("content-")]
    return replace(outgoing, method="GET", headers=headers, content=None, parts=())


def _host(url: str) -> str:
    """Return the host of a URL, and its port where it says one."""
    return clean(urlsplit(url).netloc.rpartition("@")[2])


def _failure(binding: Binding, outgoing: OutgoingRequest, what: str, *, is_sent: bool = True) -> ToolError:
    """Log why a request has no answer, and return the error that tells the caller.

    Args:
        binding: The tool's request.
        outgoing: The request that was sent.
        what: What the API did, or did not do.
        is_sent: Whether the API may have received it.
    """
    text = f"The API at {_host(outgoing.url)} {what}."
    log().warning("%s failed: %s", binding.shown, text)
    if not is_sent or outgoing.method in SAFE:
        return NoEffectError(text)
    return UnknownEffectError(f"{text} The request may have taken effect; check before you send it again.")


def _choose_error(outgoing: OutgoingRequest, status: int) -> type[ToolError]:
    """Return the class of the error for an answer that is not a success."""
    if outgoing.method in SAFE or status in _REJECTED:
        return NoEffectError
    return UnknownEffectError if status >= 500 or status == HTTPStatus.REQUEST_TIMEOUT else ToolError


def _debug(outgoing: OutgoingRequest, how: str, begun: float) -> None:
    """Note a request in the log, without its query and without credentials."""
    if log().isEnabledFor(logging.DEBUG):
        url = mask(_shown(outgoing.url), outgoing.secrets)
        log().debug("%s %s: %s in %.3f s", outgoing.method, url, how, time.monotonic() - begun)


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def _once(client: httpx2.AsyncClient, outgoing: OutgoingRequest, url: str, most: int) -> Answer:
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
        if outgoing.hear is not None and response.is_success and _is_stream(headers):
            media, data = await outgoing.hear(response.aiter_bytes(), outgoing.secrets)
            return Answer(response.status_code, {**headers, "content-type": media}, data, url)
        body = bytearray()
        # Bytes after decompression: a small answer may unpack to a huge one.
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                raise ToolError(f"The API's answer is larger than {most:,} bytes; ask for less.")
        return Answer(response.status_code, headers, bytes(body), url)
    finally:
        await response.aclose()


def _is_stream(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"


def _words(error: Exception) -> str:
    """Return the error in words, without any URL."""
    name = type(error).__name__
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()
