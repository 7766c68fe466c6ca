"""The certificates that clients of HTTP trust are read once, and anew where the environment names others."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from stubwright_runtime.client.transports.http import NetworkClient
from stubwright_runtime.values import certificates


def test_clients_share_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    first = certificates.share_tls_context()
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", pytest.fail)
    assert certificates.share_tls_context() is first
    NetworkClient({})


def test_a_file_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usual = certificates.share_tls_context()
    with monkeypatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
        with pytest.raises(FileNotFoundError):
            certificates.share_tls_context()
    assert certificates.share_tls_context() is usual
    assert usual.verify_mode is ssl.CERT_REQUIRED
    assert usual.check_hostname
