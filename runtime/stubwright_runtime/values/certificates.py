"""The certificate authorities that this machine trusts, read once for all clients of HTTP.

Reading them takes 20 milliseconds and more, also for clients that never speak TLS.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def share_tls_context() -> ssl.SSLContext:
    """Return the TLS context of clients: that of httpx2, which heeds `SSL_CERT_FILE` and `SSL_CERT_DIR`."""
    return _make_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=1)
def _make_context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()
