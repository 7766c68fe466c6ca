"""APIs with client certificates: each gets its own, others none, and a server without a certificate does not start."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import mcp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import forked
import openapi_documents
from packages import generate, imported, manifest, tool
from stubwright_runtime.http.calls import make_context

NAMES = {"certificateEnv": "S_CERTIFICATE", "keyEnv": "S_KEY"}


class Authority:
    """An authority, and the certificates that it gives; their files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign("authority", self._key, None)
        self.file = folder / "authority.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, password: str | None = None) -> tuple[str, str]:
        """Return the paths of a certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        encryption: Any = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        files[0].write_bytes(self._sign(name, key, self.certificate).public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))
        return str(files[0]), str(files[1])

    def _sign(self, name: str, key: Any, issuer: x509.Certificate | None) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if issuer is None else issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if issuer is not None:
            above = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(above, critical=False)
        else:
            usage = x509.KeyUsage(
                *(False, False, False, False, False),
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            )
            builder = builder.add_extension(usage, critical=True)
        return builder.sign(self._key, hashes.SHA256())


class _Who(BaseHTTPRequestHandler):
    """Answers with the name in the client's certificate; null without one."""

    def do_GET(self) -> None:
        shown: Any = self.connection.getpeercert()
        name = dict(pair for (pair,) in shown["subject"])["commonName"] if shown else None
        body = json.dumps({"who": name}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def api(authority: Authority, wants: ssl.VerifyMode) -> Iterator[str]:
    """An API by HTTPS that wants a certificate of the authority, or takes one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("api"))
    context.load_verify_locations(authority.file)
    context.verify_mode = wants
    server = HTTPServer(("127.0.0.1", 0), _Who)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


def package(folder: Path, **apis: Any) -> str:
    tools = [tool(name, {}, stubwright={"http": {"api": name, "url": "/"}}) for name in apis]
    return generate(folder, manifest(tools, apis=apis))


async def ask(module: Any, *names: str) -> list[Any]:
    """Return each API's information about its client, over one server, or the text of an error."""
    async with mcp.Client(module.build_server(None)) as client:
        answers = [await client.call_tool(name, {}) for name in names]
    texts = [str(getattr(answer.content[0], "text", None)) for answer in answers]
    return [text if answer.is_error else json.loads(text)["who"] for text, answer in zip(texts, answers, strict=True)]


def test_each_api_gets_its_own_certificate_and_others_none(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        certificate, key = authority.issue(name, password=name if name == "two" else None)
        monkeypatch.setenv(f"S_{name.upper()}", certificate)
        monkeypatch.setenv(f"S_{name.upper()}_KEY", key)
    monkeypatch.setenv("S_PASSWORD", "two")
    with api(authority, ssl.CERT_REQUIRED) as strict, api(authority, ssl.CERT_OPTIONAL) as lax:
        one = {"certificateEnv": "S_ONE", "keyEnv": "S_ONE_KEY"}
        two = {"certificateEnv": "S_TWO", "keyEnv": "S_TWO_KEY", "passwordEnv": "S_PASSWORD"}
        name = package(
            tmp_path,
            one={"baseUrl": strict, "clientCertificate": one},
            two={"baseUrl": lax, "clientCertificate": two},
            none={"baseUrl": lax},
            lacking={"baseUrl": strict, "retries": 0},
        )
        with imported(tmp_path, name) as module:
            said = asyncio.run(ask(module, "one", "two", "none", "lacking"))
    assert said[:3] == ["one", "two", None]
    assert said[3].startswith("The API at 127.0.0.1")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"S_KEY": ""}, "the client certificate for stock requires S_KEY, which is not set"),
        ({"S_CERTIFICATE": "/nowhere.pem"}, r"cannot be used \(S_CERTIFICATE and S_KEY\): No such file or directory"),
        ({"S_CERTIFICATE": "{key}"}, "the client certificate for stock cannot be used"),
        ({"S_KEY": "{other}"}, "the client certificate for stock cannot be used"),
        ({"S_BASE": "http://127.0.0.1:1"}, "the API stock has a client certificate, but its base URL is not HTTPS"),
    ],
)
def test_a_certificate_that_cannot_be_shown_is_told_at_the_start(
    change: dict[str, str], why: str, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.issue("stock")
    other = authority.issue("other")[1]
    given = {name: value.format(key=key, other=other) for name, value in change.items()}
    variables = {"S_CERTIFICATE": certificate, "S_KEY": key, **given}
    stock = {"baseUrl": "https://127.0.0.1:1", "baseUrlEnv": "S_BASE", "clientCertificate": NAMES}
    with pytest.raises(ValueError, match=why):
        make_context("stock", stock, variables)
    if "S_KEY" in change:
        name = package(tmp_path, stock=stock)
        done = subprocess.run(
            [*forked.interpreter(), "-m", name],
            env={**os.environ, **variables, "PYTHONPATH": str(tmp_path)},
            input="",
            capture_output=True,
            text=True,
        )
        assert (done.returncode, "client certificate for stock" in done.stderr) == (1, True), done.stderr


def test_without_a_certificate_the_api_is_called_all_the_same(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with api(authority, ssl.CERT_OPTIONAL) as lax:
        name = package(tmp_path, stock={"baseUrl": lax, "clientCertificate": NAMES})
        with imported(tmp_path, name) as module:
            assert asyncio.run(ask(module, "stock")) == [None]
    assert "S_CERTIFICATE is not set: the API stock is called without a client certificate" in caplog.text


def test_a_password_that_is_needed_is_not_asked_for(authority: Authority) -> None:
    certificate, key = authority.issue("stock", password="secret")
    with pytest.raises(ValueError, match="cannot be used"):
        make_context(
            "stock",
            {"baseUrl": "https://h.example", "clientCertificate": NAMES},
            {"S_CERTIFICATE": certificate, "S_KEY": key},
        )


def test_mutual_tls_of_a_document_is_imported(tmp_path: Path) -> None:
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Stock", "version": "1"},
        "servers": [{"url": "https://h.example"}],
        "security": [{"tls": [], "key": []}],
        "components": {
            "securitySchemes": {
                "tls": {"type": "mutualTLS"},
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            }
        },
        "paths": {
            "/x": {"get": {"operationId": "get"}},
            "/y": {"get": {"operationId": "all", "security": [{"tls": []}]}},
        },
    }
    (api,) = openapi_documents.imported(tmp_path, document).manifest["apis"].values()
    assert api["clientCertificate"] == {
        "certificateEnv": "STOCK_CLIENT_CERTIFICATE",
        "keyEnv": "STOCK_CLIENT_KEY",
    }
    assert set(api["auth"]) == {"key"}
