"""Loads the trusted certificate authorities once an hour for all HTTP clients, which takes 20 ms or more."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .errors import SettingError

if TYPE_CHECKING:
    import ssl

_SECONDS: Final = 3600
"""Seconds before they are loaded again, because they may be updated."""


def share_tls_context() -> ssl.SSLContext:
    """Return the shared TLS context of clients.

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
    except OSError as error:  # includes ssl.SSLError
        if not (file := os.environ.get("SSL_CERT_FILE")):
            raise
        why = error.strerror if type(error).__module__ == "builtins" else "it contains no PEM certificate"
        raise SettingError(f"SSL_CERT_FILE is {file!r}, which cannot be used: {why}") from None


@lru_cache(maxsize=1)
def _share_context(_file: str | None, _folder: str | None, _age: float) -> ssl.SSLContext:
    return make_tls_context()
