"""Loads the trusted certificate authorities for all HTTP clients.

Loading takes at least 20 ms, so it is repeated only once an hour.
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
"""Seconds after which the authorities are loaded again, since the files can change."""


def share_tls_context() -> ssl.SSLContext:
    """Return the TLS context that all HTTP clients share.

    Raises:
        SettingError: The file in `SSL_CERT_FILE` cannot be read, or contains no certificate.
    """
    age = time.monotonic() // _SECONDS
    return _share_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), age)


def make_tls_context() -> ssl.SSLContext:
    """Create a client TLS context with httpx2, which reads `SSL_CERT_FILE` and `SSL_CERT_DIR`.

    Raises:
        SettingError: The file in `SSL_CERT_FILE` cannot be read, or contains no certificate.
    """
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # includes ssl.SSLError
        if not (file := os.environ.get("SSL_CERT_FILE")):
            raise
        why = error.strerror if type(error).__module__ == "builtins" else "it contains no PEM certificate"
        raise SettingError(f"cannot use SSL_CERT_FILE={file!r}: {why}") from None


@lru_cache(maxsize=1)
def _share_context(_file: str | None, _folder: str | None, _age: float) -> ssl.SSLContext:
    return make_tls_context()
