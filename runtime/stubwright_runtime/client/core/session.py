"""The requests over an open connection, each until the result that ends it.

It validates nothing: `mcp.Client.call_tool` would check each result a second time, against a `tools/list` that it first
asks for, and fails there where one schema of the whole list is odd.
"""

from __future__ import annotations

import inspect
import math
from contextlib import contextmanager
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from uuid import uuid4

from mcp_types import (
    PARSE_ERROR,
    URL_ELICITATION_REQUIRED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
)
from pydantic import ValidationError

from ...mcp.problems import describe_problems
from ...mcp.revisions import Revision
from ...mcp.vocabulary import IDEMPOTENCY_META_KEY
from ...values.terminal import shorten
from ..features.list_pages import MOST_PAGES, fetch_pages
from ..rpc.connection import RpcConnection
from ..rpc.mcp_error import MCPError, UrlElicitationRequired, convert
from ..rpc.requests import Requests
from ..transports.bounds import Bound, TooLargeError, bound_answers
from ..transports.parameter_headers import ParameterHeaders
from .errors import ResultTooLarge, make_safe_to_show
from .input_required import send_until_result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator

    from mcp_types import InputResponseRequestParams, PaginatedResult, Request
    from pydantic import BaseModel

    from ...observability.failures import Failures
    from ...package import Tool
    from ..rpc.untyped import UntypedClient
    from .options import OnProgress, Options, TellProgress
    from .pending_requests import PendingRequests

_Result = TypeVar("_Result", bound="BaseModel")
_T = TypeVar("_T")
_Page = TypeVar("_Page", bound="PaginatedResult")

_Send: TypeAlias = "Callable[[CallToolRequestParams], Awaitable[CallToolResult | InputRequiredResult]]"
"""Sends one round of a call."""

_RESULT_TYPES: Final = ("complete", "input_required", "task")

_URL_ATTEMPTS: Final = 3
"""The most times that a person is asked to visit URLs for one request."""


class Session:
    """The requests over one connection.

    The options `timeout` and `max_result_bytes` hold for each answer of the server, and `on_progress` is told. Each
    method raises:

    - `MCPError` if the server answered with a protocol error, with an invalid result
      (`PARSE_ERROR`), or with more than it may; where it did not answer in time (`REQUEST_TIMEOUT`), is gone, or kept
      asking; or if there is no callback for a question.
    - what a callback raised.
    """

    def __init__(self, client: UntypedClient, in_flight: PendingRequests, failures: Failures | None = None) -> None:
        """Take a client, which may be closed still, and the account of its requests.

        What is retained in `failures` is raised in the place of the answer that refers to it.
        """
        self._client = client
        self._failures = failures
        self.in_flight = in_flight
        self._headers = ParameterHeaders(client)

    @property
    def client(self) -> UntypedClient:
        """The client below. Raises RuntimeError if the connection is closed."""
        self.in_flight.check_open()
        return self._client

    @cached_property
    def modern(self) -> bool:
        """True if the open connection speaks a revision without a handshake (from 2026-07-28 on)."""
        return Revision.from_date(self.client.protocol_version).has("stateless")

    async def call(self, tool: Tool, arguments: dict[str, Any], options: Options) -> CallToolResult:
        """Call a tool with JSON arguments (`tools/call`).

        Raises:
            ResultTooLarge: The result has more bytes than it may.
        """

        def send(params: CallToolRequestParams) -> Awaitable[CallToolResult | InputRequiredResult]:
            return self.send(CallToolRequest(params=params), allow_question(CallToolResult), options)

        params = CallToolRequestParams(name=tool.name, arguments=arguments)
        is_repeatable = "once" in tool.package.policies
        chosen = self._make_repeating(tool, params, send, options) if is_repeatable else send
        return await self.call_with_input(tool, params, chosen, options)

    def _make_repeating(self, tool: Tool, params: CallToolRequestParams, send: _Send, options: Options) -> _Send:
        """Return a function that sends a round until it is answered, if the tool takes keys; `params` get the key."""
        from ..rpc.repeating import send_until_answered, takes_key

        if not takes_key(tool):
            return send
        meta: Any = {IDEMPOTENCY_META_KEY: options.idempotency_key or str(uuid4())}
        params.meta = meta
        connection = find_connection(self._client)
        if connection is None or not connection.over_http:  # a process that has ended does not answer again
            return send

        def send_again(params: CallToolRequestParams) -> Awaitable[CallToolResult | InputRequiredResult]:
            return send_until_answered(
                lambda options: self.send(CallToolRequest(params=params), allow_question(CallToolResult), options),
                options,
                can_leave=self.modern,
                is_open=lambda: self.in_flight.is_open and connection.failure is None,
            )

        return send_again

    async def send_rounds(
        self,
        request: Callable[..., Request[Any, Any]],
        params: InputResponseRequestParams,
        result: type[_Result],
        options: Options,
    ) -> _Result:
        """Send a request until it has a result, and answer the questions of the server in between.

        Args:
            request: The class of the request.
            params: The parameters of the first round.
            result: The class of the result.
            options: As for all requests.
        """
        return await send_until_result(
            self.client, params, lambda params: self.send(request(params=params), allow_question(result), options)
        )

    async def call_with_input(
        self,
        tool: Tool,
        params: CallToolRequestParams,
        send: Callable[[CallToolRequestParams], Awaitable[_Result | InputRequiredResult]],
        options: Options,
    ) -> _Result:
        """Run all rounds of a call, with the headers that mirror its arguments.

        Args:
            tool: The tool.
            params: The parameters of the first round.
            send: Sends a round, by `send` of this class.
            options: Of these, `timeout` and `max_result_bytes` hold for each answer.

        Raises:
            ResultTooLarge: The result has more bytes than it may.
        """

        async def send_once(params: CallToolRequestParams) -> _Result | InputRequiredResult:
            arguments = params.arguments
            return await self._headers.send_with_headers(tool, arguments, options.timeout, lambda: send(params))

        try:
            result = await send_until_result(self.client, params, send_once)
            self.measure(result, options)
        except (MCPError, TooLargeError) as error:
            _raise_if_too_large(tool, error)
            raise
        return result

    @contextmanager
    def bound(self, tool: Tool) -> Generator[None, None, None]:
        """Raise `ResultTooLarge` if an answer in the block is too large for a result of `tool`."""
        try:
            yield
        except (MCPError, TooLargeError) as error:
            _raise_if_too_large(tool, error)
            raise

    def measure(self, result: BaseModel, options: Options) -> None:
        """Raise `TooLargeError` where a result has more bytes than it may, and was not bounded before it was parsed."""
        if find_connection(self._client) is None:
            Bound(options.max_result_bytes).check(_measure_json(result))

    def fetch_pages(
        self, fetch: Callable[..., Awaitable[_Page]], options: Options, most_pages: int = MOST_PAGES
    ) -> AsyncIterator[_Page]:
        """Return all pages of a list.

        Args:
            fetch: A method of the client, such as `list_tools`. Its cached answers are not used, so that
                all pages are of one list.
            options: As for all requests.
            most_pages: The most pages that the list may have.

        Raises:
            MCPError: As for all requests; also where the list has no end.
        """

        without_cache = {} if isinstance(self._client, Requests) else {"cache_mode": "refresh"}  # for `mcp.Client`

        async def fetch_page(cursor: str | None) -> _Page:
            answer = await self._bound(options, options.timeout, lambda: fetch(cursor=cursor, **without_cache))
            self.check_kind(answer)
            return answer

        return fetch_pages(fetch_page, options.max_result_bytes, most_pages)

    async def send(
        self,
        request: Request[Any, Any],
        result: type[_Result],
        options: Options,
        *,
        read: Callable[[ValidationError], _Result] | None = None,
        is_asked_in: bool = True,
    ) -> _Result:
        """Send one request and wait for its result.

        Args:
            request: The request.
            result: The kind of its result.
            options: Of these, `timeout` and `max_result_bytes` hold, and `on_progress` is told.
            read: Reads another kind of result from a ValidationError, or raises the error again.
            is_asked_in: Whether the server may ask in the middle of it (up to 2025-11-25).

        If the server requires a person to visit a URL first (-32042, MCP 2025-11-25, client/elicitation), that person
        is asked, and the request is sent again.

        Raises:
            UrlElicitationRequired: No one can be asked, declined, or was asked too often.
            BaseException: What the handler raised, where failures are retained.
        """
        if self._failures is None:
            return await self._send_until_visited(request, result, options, read, is_asked_in)
        try:
            answer: _Result | MCPError = await self._send_until_visited(request, result, options, read, is_asked_in)
        except MCPError as error:
            answer = error
        shown = answer.error if isinstance(answer, MCPError) else answer
        failure = self._failures.pop(shown.model_dump_json())
        try:
            if failure is not None:
                raise failure  # here, so that its own cause and context stay
            if isinstance(answer, MCPError):
                raise answer
            return answer
        finally:
            del answer, failure, shown  # the traceback of an error holds this frame, and with it the arguments

    async def _send_until_visited(
        self,
        request: Request[Any, Any],
        result: type[_Result],
        options: Options,
        read: Callable[[ValidationError], _Result] | None,
        is_asked_in: bool,
    ) -> _Result:
        """Send one request, and again where a person was to visit a URL first."""
        for number in range(_URL_ATTEMPTS + 1):
            try:
                return await self._send(request, result, options, read, is_asked_in)
            except MCPError as error:
                if error.code != URL_ELICITATION_REQUIRED:
                    raise
                open_urls, typed = self.in_flight.open_urls, UrlElicitationRequired.from_error(error)
                if typed is None:
                    raise
                if number == _URL_ATTEMPTS or open_urls is None or not await open_urls(typed.elicitations):
                    raise typed from None
        raise AssertionError

    async def _send(
        self,
        request: Request[Any, Any],
        result: type[_Result],
        options: Options,
        read: Callable[[ValidationError], _Result] | None,
        is_asked_in: bool,
    ) -> _Result:
        """Send one request once."""
        asks = self.in_flight.expects_questions and not self.modern
        ours = asks or isinstance(self.client, Requests)
        session: Any = self.client.session

        async def send() -> _Result:
            try:
                answer: _Result = await session.send_request(
                    request,
                    result,
                    request_read_timeout_seconds=math.inf if ours or options.timeout is None else options.timeout,
                    progress_callback=_make_progress_callback(options.on_progress),
                )
            except ValidationError as error:
                if read is None:
                    raise
                return read(error)
            return answer

        answer = await self._bound(options, options.timeout if ours else None, send, is_asked_in)
        self.check_kind(answer)
        return answer

    def check_kind(self, answer: BaseModel) -> None:
        """Refuse a result of a kind that this client does not know (MCP 2026-07-28, basic, "Result Type").

        Raises:
            MCPError: It is none of those (`PARSE_ERROR`).
        """
        kind = getattr(answer, "result_type", None)
        if kind is not None and kind not in _RESULT_TYPES and self.modern:
            message = f"the server's answer is not what MCP says: its resultType is {shorten(str(kind))!r}"
            raise MCPError(code=PARSE_ERROR, message=message)

    async def _bound(
        self, options: Options, seconds: float | None, send: Callable[[], Awaitable[_T]], is_asked_in: bool = True
    ) -> _T:
        """Limit the time and the size of a response, and translate the errors of invalid responses."""
        bound = Bound(options.max_result_bytes)
        with bound_answers(bound):
            try:
                async with self.in_flight.request(seconds, is_asked_in=is_asked_in):
                    try:
                        return await send()
                    except (ValidationError, OverflowError, RecursionError) as error:
                        wrong = describe_problems(error) if isinstance(error, ValidationError) else str(error)
                        message = f"the server's answer is not what MCP says: {wrong}"
                        raise MCPError(code=PARSE_ERROR, message=message) from None
            except Exception as raised:
                converted = convert(raised)
                if not isinstance(converted, MCPError):
                    raise
                better = self.in_flight.explain_close(converted)
                connection = find_connection(self._client)
                if better is converted and connection is not None:
                    better = connection.explain_late(converted)
                try:
                    make_safe_to_show(better)
                    if bound.broken is not None or better is not raised:
                        raise better from bound.broken
                    raise
                finally:
                    del better, converted  # their tracebacks hold this frame


def _raise_if_too_large(tool: Tool, error: MCPError | TooLargeError) -> None:
    too_large = error.__cause__ if isinstance(error, MCPError) else error
    if isinstance(too_large, TooLargeError):
        raise ResultTooLarge(tool.name, too_large.size, too_large.most) from None


def find_connection(client: UntypedClient) -> RpcConnection | None:
    """Return the connection of an `RpcClient`; `None` for a client of the SDK."""
    server: object = client.server
    return server if isinstance(server, RpcConnection) else None


def _measure_json(result: BaseModel) -> int:
    """Count the bytes of a result as JSON; 0 if it cannot be sent, which is reported elsewhere."""
    try:
        return len(result.model_dump_json(by_alias=True, exclude_unset=True))
    except (ValueError, RecursionError):
        return 0


def _make_progress_callback(on_progress: OnProgress | None) -> TellProgress | None:
    """Return the callback in the SDK's form."""
    if on_progress is None:
        return None

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        telling = on_progress(progress, total, message)
        if inspect.isawaitable(telling):
            await telling

    return tell


class _OrQuestion:
    """A result, or an `InputRequiredResult`."""

    def __init__(self, result: type[BaseModel]) -> None:
        self._result = result

    def model_validate(self, value: Any, **options: Any) -> Any:
        """Return the model that `resultType` selects."""
        is_question = isinstance(value, dict) and value.get("resultType") == "input_required"
        return (InputRequiredResult if is_question else self._result).model_validate(value, **options)


@cache
def allow_question(result: type[_Result]) -> type[_Result | InputRequiredResult]:
    """Return a substitute for the class of a result that also accepts `input_required`."""
    either: Any = _OrQuestion(result)
    kind: type[_Result | InputRequiredResult] = either
    return kind
