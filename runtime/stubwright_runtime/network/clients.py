"""Creates HTTP clients, with certificates and proxies from the environment.

Clients use `DirectTransport` if httptools is installed and no proxy is set, otherwise httpx2's own transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from .certificates import share_tls_context
from .errors import check_proxies

if TYPE_CHECKING:
    import ssl

    from .transport import DirectTransport


def make_http_client(
    timeout: httpx2.Timeout | float,
    context: ssl.SSLContext | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    **options: Any,
) -> httpx2.AsyncClient:
    """Create a client that does not follow redirects.

    Args:
        timeout: The httpx2 timeouts, each for one step, such as connecting or reading the next bytes.
        context: The TLS context; by default, `share_tls_context()`.
        transport: The transport; by default, a new `DirectTransport`, or httpx2's if `make_direct_transport` returns
            `None`.
        options: Other arguments for `httpx2.AsyncClient`.

    Raises:
        SettingError: A proxy or certificate setting in the environment is invalid.
    """
    context = context or share_tls_context()
    transport = transport or make_direct_transport(context)
    return httpx2.AsyncClient(timeout=timeout, verify=context, transport=transport, **options)


def make_direct_transport(context: ssl.SSLContext | None = None) -> DirectTransport | None:
    """Create a transport with its own connection pool. Return `None` if a proxy is set or httptools is not installed.

    Raises:
        SettingError: A proxy or certificate setting in the environment is invalid.
    """
    if check_proxies():
        return None
    try:
        from .transport import DirectTransport
    except ImportError:  # httptools, from the extra `server`, is not installed
        return None
    return DirectTransport(context or share_tls_context())
