"""Creates HTTP clients with the certificates and the proxies of the environment.

They use `DirectTransport` if httptools is installed and no proxies are set; otherwise httpx2's own transport.
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
    """Return a client that does not follow redirects.

    Args:
        timeout: The timeouts of httpx2, each for one step, such as to connect or to read the next bytes.
        context: The TLS context; by default the shared context.
        transport: The transport; by default a new `DirectTransport` if possible.
        options: Further arguments of `httpx2.AsyncClient`.

    Raises:
        SettingError: A proxy or the certificates of the environment cannot be used.
    """
    context = context or share_tls_context()
    transport = transport or make_direct_transport(context)
    return httpx2.AsyncClient(timeout=timeout, verify=context, transport=transport, **options)


def make_direct_transport(context: ssl.SSLContext | None = None) -> DirectTransport | None:
    """Return a transport without httpx2's connections; `None` if the environment has proxies, or without httptools.

    Raises:
        SettingError: A proxy or the certificates of the environment cannot be used.
    """
    if check_proxies():
        return None
    try:
        from .transport import DirectTransport
    except ImportError:  # without httptools, from the extra `server`
        return None
    return DirectTransport(context or share_tls_context())
