"""The certificate authorities that this machine trusts, read once an hour for all clients of HTTP.

Reading them takes 20 milliseconds and more, also for clients that never speak TLS.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .errors import SettingError

if TYPE_CHECKING:
    import ssl

_SECONDS: Final = 3600
"""After this time they are read again: a machine renews them while its servers run."""


def share_tls_context() -> ssl.SSLContext:
    """Return the TLS context of clients, which all of them share.

    Raises:
        SettingError: The file that `SSL_CERT_FILE` names cannot be read, or contains no certificate.
    """
    age = time.monotonic() // _SECONDS
    return _share_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), age)


def make_tls_context() -> ssl.SSLContext:
    """Return a new TLS context for clients, made by httpx2, which respects `SSL_CERT_FILE` and `SSL_CERT_DIR`.

    Raises:
        SettingError: The file that `SSL_CERT_FILE` names cannot be read, or contains no certificate.
    """
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # also of OpenSSL, whose words for a file without certificates are longer
        if not (file := os.environ.get("SSL_CERT_FILE")):
            raise
        why = error.strerror if type(error).__module__ == "builtins" else "it holds no certificate in PEM"
        raise SettingError(f"SSL_CERT_FILE is {file!r}, which cannot be used: {why}") from None


@lru_cache(maxsize=1)
def _share_context(_file: str | None, _folder: str | None, _age: float) -> ssl.SSLContext:
    return make_tls_context()
