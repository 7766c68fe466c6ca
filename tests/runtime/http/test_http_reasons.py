"""Errors of API calls: the reasons that callers receive, and the parts of a response that they must not receive."""

from __future__ import annotations

import json
import logging
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from starlette.responses import Response

import amounts
import prompt_ends
from fake_api import Answer, Asked
from http_tools import called, run_package
from tls import make_certificate

ends_are_prompt = prompt_ends.ends_are_prompt

TOKEN: Final = 'se"cret/töken+1'
AUTH: Final[dict[str, Any]] = {
    "auth": {"t": {"type": "apiKey", "in": "query", "name": "key", "env": "T_TOKEN"}},
    "security": [["t"]],
}
TOOLS: Final = [
    called("get", {}, {"url": "/x"}),
    called("post", {}, {"method": "POST", "url": "/x"}),
]
HAPPENED: Final = " The request may have taken effect; check before you send it again."


@contextmanager
def port(answer: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port that answers each connection with these bytes, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                try:
                    connection = connection if tls is None else tls.wrap_socket(connection, server_side=True)
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.close()
                except OSError:
                    continue

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def refused(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch, tool: str = "get") -> str:
    with run_package(folder, TOOLS, lambda _: "", retries=0) as there:
        monkeypatch.setenv("FAKE_URL", url)
        return there.refused(tool)


def test_a_host_that_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = refused(tmp_path, "http://user:hidden@nowhere.invalid", monkeypatch)
    assert text == "The API at nowhere.invalid cannot be reached: unknown host."
    (logged,) = [line for line in caplog.messages if "failed" in line]
    assert logged.endswith(f" failed: {text}")
    assert "hidden" not in logged


def test_a_port_where_nothing_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("get", "post"):
        (tmp_path / tool).mkdir()
        text = refused(tmp_path / tool, "http://127.0.0.1:1", monkeypatch, tool)
        assert text == "The API at 127.0.0.1:1 cannot be reached: connection refused."


def test_a_certificate_that_nobody_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with port(b"", make_certificate(tmp_path)[0]) as number:
        text = refused(tmp_path, f"https://localhost:{number}", monkeypatch)
    assert text.startswith(f"The API at localhost:{number} cannot be reached: its certificate is not valid: self")


@pytest.mark.parametrize("answer", amounts.sample([b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"], 1))
def test_what_was_cut_off_may_have_happened(answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with port(answer) as number:
        for tool, end in (("get", ""), ("post", HAPPENED)):
            (tmp_path / tool).mkdir()
            text = refused(tmp_path / tool, f"http://127.0.0.1:{number}", monkeypatch, tool)
            assert text.startswith(f"The API at 127.0.0.1:{number} did not finish its response: ")
            assert text.endswith(f".{end}")
            assert ("may have taken effect" in text) == (tool == "post")


def test_a_call_that_took_too_long_may_have_happened(tmp_path: Path) -> None:
    waiting = threading.Event()

    def answer(_: Asked) -> Answer:
        waiting.wait(5)
        return ""

    with run_package(tmp_path, TOOLS, answer, timeout="200ms", retries=0) as there:
        late = r"The API at 127\.0\.0\.1:\d+ did not respond within 0\.2 seconds\."
        assert re.fullmatch(late, there.refused("get"))
        assert re.fullmatch(late + re.escape(HAPPENED), there.refused("post"))
        waiting.set()


def test_what_came_of_a_post_is_read_where_the_api_says(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.path == "/v1/made":
            return f"{asked.method} {asked.headers.get('content-type')} {asked.body.decode()}"
        return Response("", 303, {"Location": "/v1/made"})

    tools = [called("post", {"a": {}}, {"method": "POST", "url": "/x", "body": "arguments"})]
    with run_package(tmp_path, tools, answer) as there:
        assert there.text("post", a=1) == "GET None "


def test_each_request_is_in_the_log_of_debugging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("T_TOKEN", "geheim1")
    caplog.set_level(logging.DEBUG, "sample_mcp")
    with run_package(tmp_path, TOOLS, lambda _: Response("no", 404), **AUTH) as there:
        there.refused("post")
        (line,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("POST")]
        host = there.api.url.removeprefix("http://")
    assert line.startswith(f"POST http://{host}/v1/x: 404 Not Found in 0.")
    assert "geheim1" not in caplog.text


ECHOES: Final[dict[str, tuple[bytes, str]]] = {
    "JSON": (json.dumps({"a": [TOKEN], TOKEN: 1}).encode(), "application/json"),
    "JSON as it is": (json.dumps({"a": f"x {TOKEN} y"}, ensure_ascii=False).encode(), "application/json"),
    "JSON with escapes for all": (
        ('{"a":"' + "".join(f"\\u{ord(char):04x}" for char in TOKEN) + '"}').encode(),
        "application/json",
    ),
    "a text": (f"you are {TOKEN}".encode(), "text/plain"),
    "a URL in a text": (f"<a href='/x?key={quote(TOKEN, '')}'>".encode(), "text/html"),
    "another file": (TOKEN.encode(), "application/octet-stream"),
}


@pytest.mark.parametrize("echo", amounts.sample(list(ECHOES), 4))
@pytest.mark.parametrize("output", [None, {"type": "object"}], ids=["content", "structured"])
def test_no_caller_sees_our_credentials(
    output: Any, echo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T_TOKEN", TOKEN)
    body, media = ECHOES[echo]
    more: dict[str, Any] = {} if output is None else {"outputSchema": output}
    lenient = {} if output is None else {"output": "lenient"}
    tools = [called("get", {}, {"url": "/x", **lenient}, **more)]
    with run_package(tmp_path, tools, lambda _: Response(body, media_type=media), **AUTH) as there:
        said = there.call("get")
    shown = said.model_dump_json()
    if media == "application/octet-stream":
        import base64

        blob = next(block.resource.blob for block in said.content if block.type == "resource")
        assert base64.b64decode(blob) == b"[redacted]"
        return
    assert "ret/t" not in json.dumps(json.loads(shown), ensure_ascii=False)
    assert quote(TOKEN, "") not in shown
    assert "[redacted]" in shown


@pytest.mark.parametrize(
    "media",
    amounts.sample(
        [
            *(
                "application/yaml",
                "application/x-yaml",
                "application/x-ndjson",
                "application/jsonl",
                "application/toml",
            ),
            *("application/openapi+yaml", "application/sql", "application/graphql"),
        ],
        3,
    ),
)
def test_texts_come_as_texts(media: str, tmp_path: Path) -> None:
    body = "a: 1\nb: [ü]\n"
    with run_package(tmp_path, TOOLS, lambda _: Response(body.encode(), media_type=media)) as there:
        assert there.text("get") == body


@pytest.mark.parametrize(("output", "is_error"), [("strict", True), ("lenient", False)])
def test_a_number_that_no_double_holds(output: str, is_error: bool, tmp_path: Path) -> None:
    tools = [called("get", {}, {"url": "/x", "output": output}, outputSchema={"type": "object"})]
    answer = Response('{"a": 1e400}', media_type="application/json")
    with run_package(tmp_path, tools, lambda _: answer) as there:
        result = there.call("get")
    assert result.is_error is is_error
    said = result.content[0].text if is_error else result.meta["io.stubwright/output"]["violations"][0]["message"]
    assert said == "The API returned 200 OK with the number 1e400, which is too large."
    if not is_error:
        assert result.content[0].text == '{"a": 1e400}'
