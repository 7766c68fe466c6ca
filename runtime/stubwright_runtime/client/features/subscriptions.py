"""Subscriptions to changes in a server's lists and resources.

In MCP 2026-07-28 and later, clients send `subscriptions/listen`. In earlier revisions, servers announce changed lists
without a request, and clients subscribe to each resource.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import clean_raised
from .changes import MOST, Change, ListChanged, ResourceUpdated

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp.client.session import IncomingMessage
    from mcp.client.subscriptions import Subscription

    from ..core.binding import Binding
    from ..core.options import Options
    from ..core.session import Session
    from ..rpc.untyped import UntypedClient

_QUIET: Final = 15.0
"""The idle time before a ping, in seconds (MCP 2025-11-25 and earlier)."""


def changes(
    client: Binding, *, lists: bool = True, resources: Sequence[str] = ()
) -> AbstractAsyncContextManager[AsyncIterator[Change], bool | None]:
    """Listen for server changes during an `async with` block.

    The block's value is an asynchronous iterator over `ListChanged` and `ResourceUpdated`. Equal queued changes are
    merged. Iteration ends when the connection closes or the server ends the subscription. The iterator raises
    `MCPError` if changes were lost, for instance because more than a thousand were queued.

    Args:
        client: A connected client.
        lists: Whether to report changes to the lists of tools, prompts and resources.
        resources: The URIs of the resources to watch.

    Raises:
        MCPError: The server rejects the request or times out, or the connection failed.
        TypeError: `resources` is a string.
        ValueError: Neither lists nor resources are requested.
    """
    session, subscriptions, options = client.__stubwright__
    changed: Subscriptions = subscriptions
    return changed.changes(session, options, lists=lists, resources=resources)


class Subscriptions:
    """One connection's change listeners."""

    def __init__(self) -> None:
        self._backlogs: list[_Backlog] = []
        self._subscribed: Counter[str] = Counter()

    async def on_message(self, message: IncomingMessage) -> None:
        """Queue the change that a server message reports. The SDK calls it as `message_handler`."""
        change = _read_notification(message)
        if change is not None:
            for backlog in self._backlogs:
                backlog.add(change, self._subscribed)

    def close(self) -> None:
        """End all subscriptions when the connection is closed."""
        for backlog in self._backlogs:
            backlog.end()

    @asynccontextmanager
    async def changes(
        self, session: Session, options: Options, *, lists: bool, resources: Sequence[str]
    ) -> AsyncGenerator[AsyncIterator[Change], None]:
        """Listen for changes during the block; see the function `changes`.

        Args:
            session: The connection's session.
            options: The options for the subscription requests.
            lists: True to report changed lists.
            resources: The URIs of the resources to watch.

        Raises:
            MCPError: The server rejected the request, timed out, or does not announce changed resources, or the
                connection failed.
            RuntimeError: The connection was opened in another event loop.
            TypeError: `resources` is a string, or the target was an open client or a session, which itself receives the
                changes in MCP 2025-11-25 and earlier.
            ValueError: Neither lists nor resources are requested.
        """
        if isinstance(resources, str):
            raise TypeError(f"resources must be a sequence of URIs, not {resources!r}")
        if not lists and not resources:
            raise ValueError("empty subscription: `lists` is False and `resources` is empty")
        session.in_flight.check_loop()
        opened = _listen if session.modern else self._subscribe
        async with opened(session, options, lists, resources) as changes:
            yield changes

    @asynccontextmanager
    async def _subscribe(
        self, session: Session, options: Options, lists: bool, resources: Sequence[str]
    ) -> AsyncGenerator[_Backlog, None]:
        """Subscribe to each resource, and yield the queue of changes (MCP 2025-11-25 and earlier, server/resources)."""
        from mcp_types import METHOD_NOT_FOUND, EmptyResult, SubscribeRequest, SubscribeRequestParams

        from ..rpc.mcp_error import MCPError
        from ..rpc.wrapped import WrappedClient

        if isinstance(session.client, WrappedClient):
            raise TypeError(
                f"in revision {session.client.protocol_version}, only the client passed to connect receives changes"
            )
        backlog = _Backlog(session.client, lists, resources)
        self._backlogs.append(backlog)
        wanted: list[str] = []
        try:
            for uri in dict.fromkeys(resources):
                self._subscribed[uri] += 1
                wanted.append(uri)
                try:
                    await session.send(SubscribeRequest(params=SubscribeRequestParams(uri=uri)), EmptyResult, options)
                except MCPError as error:
                    if error.code == METHOD_NOT_FOUND:
                        raise _make_silent_error() from error
                    raise
            yield backlog
        finally:
            self._backlogs.remove(backlog)
            self._subscribed.subtract(wanted)
            if not backlog.ended:
                # A generator, because another block may subscribe to a resource in the meantime.
                await _unsubscribe(session, options, (uri for uri in wanted if not self._subscribed[uri]))
            backlog.end()


async def _unsubscribe(session: Session, options: Options, uris: Iterable[str]) -> None:
    """Unsubscribe from resources, even after the block was cancelled. Ignore errors."""
    import anyio
    from mcp_types import EmptyResult, UnsubscribeRequest, UnsubscribeRequestParams

    from ..rpc.mcp_error import MCPError

    with anyio.move_on_after(1, shield=True):
        for uri in uris:
            try:
                request = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
                await session.send(request, EmptyResult, options)
            except MCPError:
                continue


class _Backlog:
    """An asynchronous iterator over one listener's queued changes (MCP 2025-11-25 and earlier)."""

    def __init__(self, client: UntypedClient, lists: bool, resources: Sequence[str]) -> None:
        import anyio

        self.ended = False
        self._client = client
        self._lists = lists
        self._resources = frozenset(resources)
        self._waiting: dict[Change, None] = {}
        self._overflown = False
        self._wake = anyio.Event()

    def add(self, change: Change, subscribed: Counter[str]) -> None:
        if isinstance(change, ListChanged):
            wanted = self._lists
        else:
            # The URI may identify a part of the resource (MCP 2025-11-25, server/resources, "Subscriptions").
            wanted = change.uri in self._resources or bool(self._resources and not subscribed[change.uri])
        if not wanted or self._overflown:
            return
        self._overflown = len(self._waiting) >= MOST and change not in self._waiting
        if not self._overflown:
            self._waiting[change] = None
        self._wake.set()

    def end(self) -> None:
        self.ended = True
        self._wake.set()

    def __aiter__(self) -> _Backlog:
        return self

    async def __anext__(self) -> Change:
        import anyio

        while not self._waiting:
            if self._overflown:
                raise _make_overflow_error()
            if self.ended:
                raise StopAsyncIteration
            if self._wake.is_set():
                self._wake = anyio.Event()
            with anyio.move_on_after(_QUIET) as waiting:
                await self._wake.wait()
            if waiting.cancelled_caught and not await _is_alive(self._client):
                self.end()
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change


async def _is_alive(client: UntypedClient) -> bool:
    """Ping the server, and return whether the connection is open (MCP 2025-11-25, basic/utilities/ping)."""
    from mcp_types import CONNECTION_CLOSED, EmptyResult, PingRequest
    from pydantic import ValidationError

    from ..rpc.mcp_error import MCPError, convert

    try:
        await client.session.send_request(PingRequest(), EmptyResult, request_read_timeout_seconds=_QUIET)
    except ValidationError:  # even an invalid response shows that the connection is open
        return True
    except Exception as raised:
        error = convert(raised)
        if not isinstance(error, MCPError):
            raise
        return error.code != CONNECTION_CLOSED
    return True


@asynccontextmanager
async def _listen(
    session: Session, options: Options, lists: bool, resources: Sequence[str]
) -> AsyncGenerator[AsyncIterator[Change], None]:
    """Listen with one `subscriptions/listen` request (MCP 2026-07-28, basic/utilities/subscriptions)."""
    from ..rpc.client import RpcClient

    client = session.client
    if isinstance(client, RpcClient):
        from .change_stream import ChangeStream

        listening = ChangeStream(client, lists, resources)
        try:
            with clean_raised(), session.in_flight.request(options.timeout):
                await listening.start()
            yield listening
        finally:
            listening.stop()
        return
    async with _listen_by_sdk(client, session, options, lists, resources) as subscribed:
        yield subscribed


@asynccontextmanager
async def _listen_by_sdk(
    client: Any, session: Session, options: Options, lists: bool, resources: Sequence[str]
) -> AsyncGenerator[_SubscriptionEvents, None]:
    from mcp.client.subscriptions import SubscriptionLost, listen
    from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

    from ..rpc.mcp_error import MCPError, convert
    from ..rpc.wrapped import WrappedClient, find_session

    start = partial(listen, find_session(client.wrapped)) if isinstance(client, WrappedClient) else client.listen
    async with AsyncExitStack() as stack:
        try:
            with clean_raised(), session.in_flight.request(options.timeout):
                subscription = await stack.enter_async_context(
                    start(
                        tools_list_changed=lists,
                        prompts_list_changed=lists,
                        resources_list_changed=lists,
                        resource_subscriptions=list(resources),
                    )
                )
        except SubscriptionLost as lost:
            raise MCPError(code=CONNECTION_CLOSED, message=str(lost)) from lost
        except TimeoutError as late:
            raise MCPError(code=REQUEST_TIMEOUT, message="the server did not acknowledge in time") from late
        except Exception as raised:
            error = convert(raised)
            if error is raised:
                raise
            raise error from None
        yield _SubscriptionEvents(subscription)


class _SubscriptionEvents:
    """An asynchronous iterator that converts the SDK's events to changes (MCP 2026-07-28 and later)."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def __aiter__(self) -> _SubscriptionEvents:
        return self

    async def __anext__(self) -> Change:
        from mcp.client.subscriptions import SubscriptionLost
        from mcp_types import CONNECTION_CLOSED

        from ..rpc.mcp_error import MCPError, convert

        try:
            return _read_event(await anext(self._subscription))
        except SubscriptionLost as lost:
            why = convert(lost.__cause__) if isinstance(lost.__cause__, Exception) else None
            if isinstance(why, MCPError) and why.code == CONNECTION_CLOSED:
                raise StopAsyncIteration from None
            if isinstance(why, MCPError):
                raise why from None
            raise MCPError(code=CONNECTION_CLOSED, message=str(lost)) from None


def _make_silent_error() -> Exception:
    from mcp_types import METHOD_NOT_FOUND

    from ..rpc.mcp_error import MCPError

    message = (
        "this server does not report changed resources (it has no method `resources/subscribe`); a generated server "
        "does if its manifest has `resources` or `resourceTemplates`, or `server: {capabilities: {resources: true}}`"
    )
    return MCPError(code=METHOD_NOT_FOUND, message=message)


def _make_overflow_error() -> Exception:
    from mcp_types import INTERNAL_ERROR

    from ..rpc.mcp_error import MCPError

    return MCPError(code=INTERNAL_ERROR, message=f"more than {MOST} changes are queued; subscribe again, then reread")


def _read_notification(message: IncomingMessage) -> Change | None:
    from mcp_types import (
        PromptListChangedNotification,
        ResourceListChangedNotification,
        ResourceUpdatedNotification,
        ToolListChangedNotification,
    )

    match message:
        case ToolListChangedNotification():
            return ListChanged("tools")
        case PromptListChangedNotification():
            return ListChanged("prompts")
        case ResourceListChangedNotification():
            return ListChanged("resources")
        case ResourceUpdatedNotification(params=params):
            return ResourceUpdated(params.uri)
        case _:
            return None


def _read_event(event: Any) -> Change:
    from mcp.client.subscriptions import (
        PromptsListChanged,
        ResourcesListChanged,
        ToolsListChanged,
    )

    match event:
        case ToolsListChanged():
            return ListChanged("tools")
        case PromptsListChanged():
            return ListChanged("prompts")
        case ResourcesListChanged():
            return ListChanged("resources")
        case _:
            return ResourceUpdated(event.uri)
