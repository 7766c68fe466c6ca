"""Sends a typed client's requests over an open connection.

The session does not use `mcp.Client.call_tool`, which requests `tools/list`, validates each result against it, and
fails if any schema in the list is invalid.
"""

from __future__ import annotations

import inspect
import math
from contextlib import contextmanager
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from uuid import uuid4

from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    CallToolRequest,
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
from ..rpc.requests import Requests, ToolCall
from ..transports.bounds import CURRENT_BOUND, Bound, TooLargeError
from ..transports.parameter_headers import ParameterHeaders
from .errors import ResultTooLarge, make_safe_to_show
from .input_required import answer_until_result, send_until_result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence

    from mcp_types import ElicitRequestURLParams, PaginatedResult, Request
    from pydantic import BaseModel

    from ...observability.failures import Failures
    from ...package import Tool
    from ..rpc.untyped import UntypedClient
    from .options import OnProgress, Options, ProgressCallback
    from .pending_requests import PendingRequests

_Result = TypeVar("_Result", bound="BaseModel")
_T = TypeVar("_T")
_Page = TypeVar("_Page", bound="PaginatedResult")

_Send: TypeAlias = "Callable[[dict[str, Any]], Awaitable[CallToolResult | InputRequiredResult]]"
"""Sends one round of a call, given the round's parameters."""

_RESULT_TYPES: Final = ("complete", "input_required", "task")

_URL_ATTEMPTS: Final = 3
"""The maximum number of times to ask a person to visit URLs for one request."""


class Session:
    """Sends requests over one connection.

    `timeout` and `max_result_bytes` apply to each server response. Each method raises:

    - `MCPError` if the server returned a protocol error, an invalid result (`PARSE_ERROR`) or too many bytes, or timed
      out (`REQUEST_TIMEOUT`); if the connection failed; if the server sent too many rounds of questions; or if no
      callback accepts a question.
    - exceptions from callbacks.
    """

    def __init__(self, client: UntypedClient, in_flight: PendingRequests, failures: Failures | None = None) -> None:
        """Create a session for a client, which does not have to be open yet.

        If a response refers to an exception in `failures`, that exception is raised instead.
        """
        self._client = client
        self._failures = failures
        self.in_flight = in_flight
        self._is_ours = isinstance(client, Requests)
        self._connection = connection = find_connection(client)
        self._headers = ParameterHeaders(client) if connection is None or connection.over_http else None
        self._make_call: Any = CallToolRequest if connection is None else ToolCall

    @property
    def client(self) -> UntypedClient:
        """The untyped client that sends the requests. Raises RuntimeError if the connection is closed."""
        self.in_flight.check_open()
        return self._client

    @cached_property
    def modern(self) -> bool:
        """True if the negotiated revision is stateless (MCP 2026-07-28 and later)."""
        return Revision.from_date(self.client.protocol_version).has("stateless")

    def call(self, tool: Tool, arguments: dict[str, Any], options: Options) -> Awaitable[CallToolResult]:
        """Call a tool with JSON arguments (`tools/call`).

        Raises:
            ResultTooLarge: The result exceeds `max_result_bytes`.
        """

        def send(params: dict[str, Any]) -> Awaitable[CallToolResult | InputRequiredResult]:
            return self.send(self._make_call(params=params), _CALL_RESULT, options)

        params: dict[str, Any] = {"name": tool.name, "arguments": arguments}
        allows_retries = "once" in tool.package.policies
        chosen = self._add_retries(tool, params, send, options) if allows_retries else send
        return self.call_with_input(tool, params, chosen, options)

    def _add_retries(self, tool: Tool, params: dict[str, Any], send: _Send, options: Options) -> _Send:
        """If the tool accepts idempotency keys, add a key to `params` and, over HTTP, return a `send` that retries."""
        from ..rpc.retries import accepts_key, send_until_answered

        if not accepts_key(tool):
            return send
        params["_meta"] = {IDEMPOTENCY_META_KEY: options.idempotency_key or str(uuid4())}
        connection = self._connection
        if connection is None or not connection.over_http:  # a process that has exited cannot respond to a retry
            return send

        def send_again(params: dict[str, Any]) -> Awaitable[CallToolResult | InputRequiredResult]:
            return send_until_answered(
                lambda options: self.send(self._make_call(params=params), _CALL_RESULT, options),
                options,
                is_detached=self.modern,
                is_open=lambda: self.in_flight.is_open and connection.failure is None,
            )

        return send_again

    async def send_rounds(
        self,
        request: Callable[..., Request[Any, Any]],
        params: dict[str, Any],
        result: type[_Result],
        options: Options,
    ) -> _Result:
        """Send a request, and answer the server's questions, until the server returns a result.

        Args:
            request: The request class.
            params: The first round's parameters.
            result: The result class.
            options: The call options.
        """
        return await send_until_result(
            self._client, params, lambda params: self.send(request(params=params), allow_question(result), options)
        )

    async def call_with_input(
        self,
        tool: Tool,
        params: dict[str, Any],
        send: Callable[[dict[str, Any]], Awaitable[_Result | InputRequiredResult]],
        options: Options,
    ) -> _Result:
        """Run all rounds of a call, with the HTTP headers that mirror the call's arguments.

        Args:
            tool: The tool.
            params: The first round's parameters.
            send: Sends one round through `Session.send`.
            options: `timeout` and `max_result_bytes` apply to each response.

        Raises:
            ResultTooLarge: The result exceeds `max_result_bytes`.
        """
        if self._headers is not None:
            send = partial(self._headers.send_with_headers, tool, options.timeout, send)
        try:
            result = await send(params)
            if isinstance(result, InputRequiredResult):
                result = await answer_until_result(self._client, params, send, result)
        except MCPError as error:
            _raise_if_too_large(tool, error)
            raise
        return result

    @contextmanager
    def bound(self, tool: Tool) -> Generator[None, None, None]:
        """Raise `ResultTooLarge` for `tool` if the block receives a response that exceeds the limit."""
        try:
            yield
        except MCPError as error:
            _raise_if_too_large(tool, error)
            raise

    def fetch_pages(
        self, fetch: Callable[..., Awaitable[_Page]], options: Options, most_pages: int = MOST_PAGES
    ) -> AsyncIterator[_Page]:
        """Fetch all pages of a list.

        Args:
            fetch: A client method, such as `list_tools`. The cache of an `mcp.Client` is bypassed so that all pages
                belong to the same list.
            options: The call options.
            most_pages: The maximum number of pages.

        Raises:
            MCPError: A request failed, or the list never ends.
        """

        without_cache = {} if self._is_ours else {"cache_mode": "refresh"}  # for `mcp.Client`

        async def fetch_page(cursor: str | None) -> _Page:
            return await self._bound(options, options.timeout, lambda: fetch(cursor=cursor, **without_cache))

        return fetch_pages(fetch_page, options.max_result_bytes, most_pages)

    def send(
        self,
        request: Request[Any, Any],
        result: type[_Result],
        options: Options,
        *,
        read: Callable[[ValidationError], _Result] | None = None,
        allows_questions: bool = True,
    ) -> Coroutine[Any, Any, _Result]:
        """Send one request and wait for its result.

        Args:
            request: The request.
            result: The class of its result.
            options: `timeout`, `max_result_bytes` and `on_progress` apply.
            read: Returns a substitute for a result that fails validation, or re-raises the error.
            allows_questions: Whether the server may ask questions during the request (MCP 2025-11-25 and earlier).

        If the server requires a person to visit a URL first (-32042, MCP 2025-11-25, client/elicitation), the person is
        asked and the request is resent.

        Raises:
            UrlElicitationRequired: The person cannot be asked, declined, or was already asked three times.
            BaseException: The handler's exception, if the session has `failures`.
        """
        # Our own timer, which pauses during questions, limits the request.
        is_timed = self._is_ours or (self.in_flight.expects_questions and not self.modern)
        seconds = math.inf if is_timed or options.timeout is None else options.timeout

        def send() -> Awaitable[_Result]:
            session: Any = self._client.session
            answer: Awaitable[_Result] = session.send_request(
                request,
                result,
                request_read_timeout_seconds=seconds,
                progress_callback=_make_progress_callback(options.on_progress),
            )
            return answer if read is None else _read_invalid(answer, read)

        def send_bound() -> Coroutine[Any, Any, _Result]:
            return self._bound(options, options.timeout if is_timed else None, send, allows_questions)

        open_urls = self.in_flight.open_urls
        sending = send_bound() if open_urls is None else _send_after_visits(send_bound, open_urls)
        return sending if self._failures is None else self._raise_failure(sending, self._failures)

    @staticmethod
    async def _raise_failure(sending: Awaitable[_Result], failures: Failures) -> _Result:
        """Return the response's result. If the response refers to an exception of a handler, raise that exception."""
        try:
            answer: _Result | MCPError = await sending
        except MCPError as error:
            answer = error
        shown = answer.error if isinstance(answer, MCPError) else answer
        failure = failures.pop(shown.model_dump_json())
        try:
            if failure is not None:
                raise failure  # outside `except`, which would replace its context
            if isinstance(answer, MCPError):
                raise answer
            return answer
        finally:
            del answer, failure, shown  # an error's traceback references this frame and thus the arguments

    def check_kind(self, answer: BaseModel) -> None:
        """Check that a result's `resultType` is known (MCP 2026-07-28, basic, "Result Type").

        Raises:
            MCPError: The `resultType` is unknown (`PARSE_ERROR`).
        """
        kind = getattr(answer, "result_type", None)
        if kind is not None and kind not in _RESULT_TYPES and self.modern:
            message = f"the server's response is not valid MCP: its resultType is {shorten(str(kind))!r}"
            raise MCPError(code=PARSE_ERROR, message=message)

    async def _bound(
        self,
        options: Options,
        seconds: float | None,
        send: Callable[[], Awaitable[_Result]],
        allows_questions: bool = True,
    ) -> _Result:
        """Send a request with limits on the response's time and size. Raise `MCPError` for an invalid response."""
        bound = Bound(options.max_result_bytes)
        connection = self._connection
        token = CURRENT_BOUND.set(bound)
        try:
            with self.in_flight.request(seconds, allows_questions=allows_questions):
                try:
                    answer = await send()
                    if connection is None:  # our own client checks the size on arrival
                        bound.check(_measure_json(answer))
                except TooLargeError as error:
                    raise MCPError(code=CONNECTION_CLOSED, message=str(error)) from None
                except (ValidationError, OverflowError, RecursionError) as error:
                    wrong = describe_problems(error) if isinstance(error, ValidationError) else str(error)
                    message = f"the server's response is not valid MCP: {wrong}"
                    raise MCPError(code=PARSE_ERROR, message=message) from None
            self.check_kind(answer)
        except Exception as raised:
            converted = convert(raised)
            if not isinstance(converted, MCPError):
                raise
            better = self.in_flight.explain_close(converted)
            if better is converted and connection is not None:
                better = connection.explain_late(converted)
            try:
                make_safe_to_show(better)
                if bound.broken is not None or better is not raised:
                    raise better from bound.broken
                raise
            finally:
                del better, converted  # their tracebacks reference this frame
        else:
            return answer
        finally:
            CURRENT_BOUND.reset(token)


async def _send_after_visits(
    send: Callable[[], Awaitable[_T]], open_urls: Callable[[Sequence[ElicitRequestURLParams]], Awaitable[bool]]
) -> _T:
    """Send a request. Resend the request after the user has visited the URLs that the server requires."""
    for _ in range(_URL_ATTEMPTS):
        try:
            return await send()
        except UrlElicitationRequired as required:
            if not await open_urls(required.elicitations):
                raise
    return await send()


def _raise_if_too_large(tool: Tool, error: MCPError) -> None:
    too_large = error.__cause__
    if isinstance(too_large, TooLargeError):
        raise ResultTooLarge(tool.name, too_large.size, too_large.most) from None


def find_connection(client: UntypedClient) -> RpcConnection | None:
    """Return an `RpcClient`'s connection, or `None` for an SDK client."""
    server: object = client.server
    return server if isinstance(server, RpcConnection) else None


def _measure_json(result: Any) -> int:
    try:
        return len(result.model_dump_json(by_alias=True, exclude_unset=True))
    except (ValueError, RecursionError):
        return 0  # invalid results are reported elsewhere


def _make_progress_callback(on_progress: OnProgress | None) -> ProgressCallback | None:
    if on_progress is None:
        return None

    async def report(progress: float, total: float | None, message: str | None) -> None:
        result = on_progress(progress, total, message)
        if inspect.isawaitable(result):
            await result

    return report


async def _read_invalid(answer: Awaitable[_T], read: Callable[[ValidationError], _T]) -> _T:
    try:
        return await answer
    except ValidationError as error:
        return read(error)


class _OrQuestion:
    def __init__(self, result: type[BaseModel]) -> None:
        self._result = result

    def model_validate(self, value: Any, **options: Any) -> Any:
        is_question = isinstance(value, dict) and value.get("resultType") == "input_required"
        return (InputRequiredResult if is_question else self._result).model_validate(value, **options)


@cache
def allow_question(result: type[_Result]) -> type[_Result | InputRequiredResult]:
    """Return a substitute for a result class that also parses `input_required` results."""
    either: Any = _OrQuestion(result)
    kind: type[_Result | InputRequiredResult] = either
    return kind


_CALL_RESULT: Final[Any] = allow_question(CallToolResult)
