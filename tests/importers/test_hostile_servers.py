"""`stubwright import mcp` ends with a reason when servers send too much, too slowly or without end."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import amounts
import forked
import hostile
from command_line import stubwright
from hostile import HANDSHAKE, STATELESS, Said, listen, response
from stubwright.importers.limits import Deadline, TooSlowError

ERAS: Final = (HANDSHAKE, STATELESS)

_MUCH: Final = "sends too much: the server"
_START: Final = 6  # seconds; enough to start a process on a busy machine
_SLOW: Final = "within 1 s"

_TOOL: Final = {"name": "go", "inputSchema": {"type": "object"}}
_EVENTS: Final = {"Content-Type": "text/event-stream"}
_GZIP: Final = {"Content-Type": "application/json", "Content-Encoding": "gzip"}


def _forever(piece: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter(lambda: piece, None)


def _slowly() -> Iterator[bytes]:
    while True:
        yield b" "
        time.sleep(0.2)


def _in_turns(cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return each case with each era. Only one era of each case, which alternates, is not `long`."""
    return [
        (era, *case) if index % len(ERAS) == turn else amounts.mark_long((era, *case))
        for index, case in enumerate(cases)
        for turn, era in enumerate(ERAS)
    ]


def _pages(number: Any) -> Said:
    page = {"tools": [_TOOL], "nextCursor": str(next(_CURSORS)), "resultType": "complete"}
    return Said(lambda: iter((response(number, page),)))


def _slow_pages(number: Any) -> Said:
    time.sleep(0.2)
    return _pages(number)


_CURSORS: Final = count()

SAYINGS: Final[dict[str, tuple[Callable[[Any], Said], str]]] = {
    "a body without an end": (lambda _: Said(_forever(b" " * 65536)), _MUCH),
    "an error without an end": (lambda _: Said(_forever(b" " * 65536), 500), _MUCH),
    "an event without an end": (lambda _: Said(_forever(b"data: " + b"x" * 65530), headers=_EVENTS), _MUCH),
    "events without an end": (
        lambda _: Said(_forever(b"data: {}\n\n" * 6553), headers=_EVENTS),
        "it is a JSON object with neither a result nor an error",
    ),
    "comments without an end": (lambda _: Said(_forever(b": x\n\n" * 6553), headers=_EVENTS), _MUCH),
    "a bomb": (lambda _: Said(lambda: iter((gzip.compress(b" " * (16 << 20)),)), headers=_GZIP), _MUCH),
    "bytes that are not UTF-8": (
        lambda _: Said(lambda: iter((b'{"\xff',))),
        "it is not JSON: EOF while parsing a string",
    ),
    "a body that never ends": (lambda _: Said(_slowly), _SLOW),
    "an event that never ends": (lambda _: Said(_slowly, headers=_EVENTS), _SLOW),
    "pages that never end": (_slow_pages, _SLOW),
}


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
def test_pages_without_an_end_end(era: str, tmp_path: Path) -> None:
    """The limit itself has a test of the client."""
    _check_end_over_http(era, _pages, "with a list that has more than 1000 pages", tmp_path)


@pytest.mark.parametrize("verb", ["call", *amounts.sample(["list", "inspect", "lock", "import mcp"], 1)])
@pytest.mark.parametrize(
    ("limit", "answer", "told"),
    [
        ("--timeout 1", _slow_pages, r"(respond|complete its lists) within [01](\.\d)? s( \(\d page.*)?; .*timeout"),
        ("--max-pages 3", _pages, r"more than 3 pages \(3 pages with 3 entries were read\).* --max-pages"),
        ("--max-bytes 2KiB", _pages, r"sent more than 2,048 bytes.* \(\d+ pages with \d+ entries .* --max-bytes"),
    ],
    ids=["time", "pages", "bytes"],
)
def test_each_command_bounds_pages_without_an_end(
    verb: str, limit: str, answer: Callable[[Any], Said], told: str, tmp_path: Path
) -> None:
    words = {"call": ["go"], "inspect": ["--revision", "2025-11-25"], "lock": ["-o", "-"], "import mcp": ["-o", "-"]}
    with listen(HANDSHAKE, lambda method, number: answer(number) if method == "tools/list" else None) as (url, _):
        done = stubwright(*verb.split(), url, *words.get(verb, ()), *limit.split(), cwd=tmp_path)
    assert done.returncode != 0
    assert re.search(told, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_inspect_has_one_time_limit_for_all_revisions(tmp_path: Path) -> None:
    started = time.monotonic()
    with listen(HANDSHAKE, lambda method, number: _slow_pages(number) if method == "tools/list" else None) as (
        url,
        _,
    ):
        done = stubwright("inspect", url, "--timeout", "1", cwd=tmp_path)
    assert "not requested within 1 s; allow more time with --timeout" in done.stderr
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(("era", "name"), amounts.sample(list(_in_turns([(name,) for name in SAYINGS])), 4))
def test_what_has_no_end_over_http_ends(era: str, name: str, tmp_path: Path) -> None:
    _check_end_over_http(era, *SAYINGS[name], tmp_path)


def _check_end_over_http(era: str, answer: Callable[[Any], Said], said: str, tmp_path: Path) -> None:
    seconds = ("--timeout", "1") if said == _SLOW else ()
    with listen(era, lambda method, number: answer(number) if method == "tools/list" else None) as (url, _):
        done = stubwright("import", "mcp", url, "--max-bytes", "256KiB", "-o", "m.yaml", *seconds, cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m.yaml").exists()


@pytest.mark.parametrize(
    ("era", "said", "told"),
    amounts.sample(
        list(
            _in_turns(
                [
                    (hostile.ENDLESS + b"x" * 65536, _MUCH),
                    (b'{"jsonrpc":"2.0","id":$ID,"result":{"tools":"\xff"}}', "it contains bytes that are not UTF-8"),
                    (b"\xff", f"did not respond within {_START} s; allow more time with --timeout; it sent a"),
                    (
                        b'{"jsonrpc":"2.0","id":$ID,"result":5}',
                        "it is not a valid JSON-RPC response: result: Input should be an object",
                    ),
                ]
            )
        ),
        1,
    ),
)
def test_what_has_no_end_over_stdio_ends(era: str, said: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "said").write_bytes(said)
    server = (*forked.interpreter(), hostile.__file__, era, "tools/list", "said")
    seconds = ("--timeout", str(_START)) if "did not respond" in told else ()
    done = stubwright("import", "mcp", "--max-bytes", "256KiB", "-o", "m.yaml", *seconds, "--", *server, cwd=tmp_path)
    assert done.returncode == 1
    assert told in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m.yaml").exists()


@pytest.mark.long
def test_the_time_is_for_the_whole(tmp_path: Path) -> None:
    """A list that arrives immediately takes several seconds to check."""
    tools = [{**_TOOL, "name": f"tool_{number}"} for number in range(20_000)]
    (tmp_path / "said").write_bytes(response("$ID", {"tools": tools}).replace(b'"$ID"', b"$ID"))
    server = (*forked.interpreter(), hostile.__file__, HANDSHAKE, "tools/list", "said")
    done = stubwright("import", "mcp", "-o", "m.yaml", "--timeout", "1", "--", *server, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "1 s" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m.yaml").exists()


def test_a_server_may_say_more_where_it_is_let(tmp_path: Path) -> None:
    big = {**_TOOL, "description": "x" * (2 << 20)}
    said = json.dumps({"tools": [big]}).encode()
    (tmp_path / "said").write_bytes(b'{"jsonrpc":"2.0","id":$ID,"result":%b}' % said)
    server = (*forked.interpreter(), hostile.__file__, HANDSHAKE, "tools/list", "said")
    for size, status in (("1MiB", 1), ("3MiB", 0)):
        done = stubwright("import", "mcp", "-o", "m.json", "--max-bytes", size, "--", *server, cwd=tmp_path)
        assert done.returncode == status, done.stderr
    assert (tmp_path / "m.json").exists()


@pytest.mark.parametrize("size", ["", "0", "-1", "1MB", "MiB", "1.5MiB"])
def test_a_size_has_a_unit_or_is_bytes(size: str, tmp_path: Path) -> None:
    done = stubwright("import", "mcp", "http://localhost/mcp", f"--max-bytes={size}", cwd=tmp_path)
    assert done.returncode == 2
    assert f"`{size}` is not a size; expected one such as 64MiB" in done.stderr


def test_a_deadline_ends_what_computes_and_nothing_else() -> None:
    def compute() -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:  # noqa: BLE001 - what catches all must not catch the end
                continue

    with pytest.raises(TooSlowError, match=r"it takes longer than 0\.2 s"), Deadline(0.2).enforce():
        compute()
    with pytest.raises(KeyError), Deadline(60).enforce():
        raise KeyError
    early = Deadline(0.001)
    time.sleep(0.01)
    with pytest.raises(TooSlowError), early.enforce():
        time.sleep(5)
