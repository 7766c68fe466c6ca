"""Runs Prism, which mocks the API of an OpenAPI document and reports invalid requests.

It is a Node program, which `npx` fetches; later runs start its entry file with the same Node. It is an independent
judge: a third party wrote it, and it only reads the document.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import Response

from fake_api import Asked, api

PRISM = "@stoplight/prism-cli@5.14.2"
CRASHED = "CRASHED"
"""Our code for a request at which Prism's process ends; it is started again."""

_FETCH = ("npx", "-y", "-p", "node@22", "-p", PRISM, "-c", "command -v node && command -v prism")
_LISTENING = re.compile(r"Prism is listening on http://\S+:(\d+)")
_PROBLEM = "https://stoplight.io/prism/errors#"
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "date", "accept-encoding"})


class NotRunError(Exception):
    """Prism cannot be had, or did not start."""


@dataclass(frozen=True, slots=True)
class Prism:
    """The fetched Prism: the program, and the Node that runs it."""

    node: Path
    entry: Path


@dataclass(frozen=True, slots=True)
class Violation:
    """What Prism finds wrong in one place of a request, such as `request.query.limit`."""

    place: str
    code: str
    message: str

    @property
    def is_of_answer(self) -> bool:
        """Whether it is Prism's own answer that is wrong."""
        return self.place.split(".")[0] == "response"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why Prism did not answer as the document says: its own code, such as `UNPROCESSABLE_ENTITY`."""

    status: int
    code: str
    detail: str
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A request, the status of the answer, and why Prism refused it, where it did."""

    asked: Asked
    status: int
    refusal: Refusal | None


@dataclass
class Judge:
    """Prism behind an API that records requests and Prism's responses: clients call `url`."""

    url: str
    judged: list[Judged]


def fetch() -> Prism:
    """Fetch Prism, where it is not there yet.

    Raises:
        NotRunError: It cannot be had.
    """
    if shutil.which(_FETCH[0]) is None:
        raise NotRunError("there is no npx, with which Prism is fetched and run")
    done = subprocess.run(_FETCH, capture_output=True, text=True)
    if done.returncode:
        raise NotRunError(f"npx cannot fetch Prism:\n{done.stderr}")
    node, entry = done.stdout.split()
    return Prism(Path(node), Path(entry).resolve())


@contextmanager
def judging(prism: Prism, document: Path, log: Path, seconds: float = 120) -> Iterator[Judge]:
    """Prism for a document, while the body runs.

    Args:
        prism: Prism.
        document: The OpenAPI document.
        log: The file for what Prism prints.
        seconds: How long it may take to start.

    Raises:
        NotRunError: It does not start.
    """
    running = _Running(prism, document, log, seconds)
    judged: list[Judged] = []

    def forward(asked: Asked) -> Response:
        try:
            given, body = running.ask(asked)
        except (OSError, http.client.HTTPException) as error:
            running.start()
            judged.append(Judged(asked, 502, Refusal(502, CRASHED, repr(error), ())))
            return Response(status_code=502)
        judged.append(Judged(asked, given.status, refusal(given.status, body)))
        back = {name: value for name, value in given.getheaders() if name.lower() not in _OWN_HEADERS}
        return Response(body, given.status, back)

    try:
        running.start()
        with api(forward) as recording:
            yield Judge(recording.url, judged)
    finally:
        running.stop()


class _Running:
    """Prism's process for a document."""

    def __init__(self, prism: Prism, document: Path, log: Path, seconds: float) -> None:
        # Prism chooses a free port: a port found in advance may be occupied before it starts.
        mock = ("mock", "--errors", "--port", "0", str(document))
        self._port = 0
        self._command = [str(prism.node), str(prism.entry), *mock]
        self._log = log
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Prism, or restart it after its end."""
        self.stop()
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        end = time.monotonic() + self._seconds
        while time.monotonic() < end and self._process.poll() is None:
            if listening := _LISTENING.search(self._log.read_text("utf-8", "replace")):
                self._port = int(listening[1])
                return
            time.sleep(0.05)
        said = self._log.read_text("utf-8", "replace")
        raise NotRunError(f"Prism did not start within {self._seconds:.0f} s:\n{said[-3000:]}")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def ask(self, asked: Asked) -> tuple[http.client.HTTPResponse, bytes]:
        """Return the response to an unmodified request, and its body."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        target = asked.path + (f"?{asked.query}" if asked.query else "")
        headers = {name: value for name, value in asked.headers.items() if name not in _OWN_HEADERS}
        try:
            connection.request(asked.method, target, asked.body or None, headers)
            given = connection.getresponse()
            return given, given.read()
        finally:
            connection.close()


def refusal(status: int, body: bytes) -> Refusal | None:
    """Return Prism's problem document; an empty text for a mocked response of any status."""
    try:
        problem = json.loads(body)
    except ValueError:
        return None
    if not isinstance(problem, Mapping) or not str(problem.get("type", "")).startswith(_PROBLEM):
        return None
    violations = tuple(_violation(each) for each in problem.get("validation") or ())
    return Refusal(status, str(problem["type"]).removeprefix(_PROBLEM), str(problem.get("detail", "")), violations)


def _violation(said: Mapping[str, Any]) -> Violation:
    return Violation(".".join(map(str, said["location"])), str(said.get("code", "")), str(said["message"]))
