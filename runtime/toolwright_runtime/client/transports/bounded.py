"""The SDK's transports to servers that may be broken or hostile, with the bounds of what is read.

Takes a URL or a command; gives a transport that is not open yet, for `Guarded`.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from .lines import ENCODING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from typing import TextIO

    import httpx2
    from mcp import StdioServerParameters
    from mcp.client import Transport

    from .bounds import Bounds


def over_http(
    url: str,
    headers: Mapping[str, str],
    bounds: Bounds,
    seen: Callable[[httpx2.Response], Awaitable[None]] | None = None,
    auth: httpx2.Auth | None = None,
) -> Transport:
    """A Streamable HTTP transport.

    Args:
        url: The endpoint.
        headers: HTTP headers of every request.
        bounds: Of what is read, after decoding: a body, or an event of a stream.
        seen: Is told of each response before its body is read.
        auth: Authorizes each request.
    """
    from mcp.client.streamable_http import streamable_http_client

    from .http import NetworkClient

    @asynccontextmanager
    async def transport() -> AsyncGenerator[Any, None]:
        async with NetworkClient(headers, bounds, auth) as network:
            if seen is not None:
                network.event_hooks["response"].append(seen)
            # By itself the SDK takes events of 1 MiB, but JSON of any size; here both are the network's to bound.
            async with streamable_http_client(url, http_client=network, max_sse_event_size=None) as streams:
                yield streams

    return transport()


def over_stdio(process: StdioServerParameters, log: TextIO | None = None) -> Transport:
    """A stdio transport. Its lines are bounded where `Guarded` is given the bounds.

    Args:
        process: What to start.
        said: Where the process's standard error goes; by default to that of this one.
    """
    from mcp.client.stdio import stdio_client

    return stdio_client(process.model_copy(update={"encoding": ENCODING}), errlog=sys.stderr if log is None else log)
