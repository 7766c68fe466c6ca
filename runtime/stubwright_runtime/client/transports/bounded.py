"""The SDK's transport over HTTP to servers that may be broken or hostile, with the bounds of what is read.

Takes a URL; gives a transport that is not open yet, for `SafeTransport`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ...values.network_errors import SettingError, check_proxies

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import httpx2
    from mcp.client import Transport

    from .bounds import Bounds
    from .refusals import Refusals


def connect_http(
    url: str,
    headers: Mapping[str, str],
    bounds: Bounds,
    refusals: Refusals,
    auth: httpx2.Auth | None = None,
) -> Transport:
    """Return a Streamable HTTP transport.

    Args:
        url: The endpoint.
        headers: HTTP headers of every request.
        bounds: Of what is read, after decoding: a body, or an event of a stream.
        refusals: Where it is noted why a request has no answer.
        auth: Authorizes each request.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from ..core.connect_errors import Unreachable
    from .http import NetworkClient
    from .refusals import hide_secrets

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Any, None]:
        try:
            check_proxies()
            client = NetworkClient(headers, bounds, auth, refusals)
        except SettingError as error:
            raise Unreachable(hide_secrets(httpx2.Request("GET", url)), f"cannot be reached: {error}") from None
        # By itself the SDK takes events of 1 MiB, but JSON of any size; here both are the network's to bound.
        async with (
            client as network,
            streamable_http_client(url, http_client=network, max_sse_event_size=None) as streams,
        ):
            yield streams

    return connect()
