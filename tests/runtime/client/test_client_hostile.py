"""Generated clients with hostile servers: each call ends with an error that names the cause."""

from __future__ import annotations

import gzip
import json
import logging
import resource
import sys
import zlib
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import mcp
import mcp_types
import pytest

import amounts
import hostile
from hostile import HANDSHAKE, STATELESS, Attacker, Said, events, fill_id, listen
from stubwright_runtime.client.core.errors import InvalidResult, ResultTooLarge
from stubwright_runtime.client.features.drift import DriftError
from stubwright_runtime.client.features.live import list_prompts, list_resource_templates, list_resources, list_tools
from stubwright_runtime.client.features.primitives import PrimitivesBinding
from stubwright_runtime.client.rpc.connection import RpcConnection
from stubwright_runtime.client.transports.bounds import Bound, Bounds, TooLargeError
from stubwright_runtime.client.transports.events import EventParser
from stubwright_runtime.client.transports.http import HttpTransport
from stubwright_runtime.client.transports.replies import HttpClient, HttpRequest, Reply
from stubwright_runtime.models.base import Model
from stubwright_runtime.package import Package, Tool

pytestmark = pytest.mark.anyio

ERAS: Final = (HANDSHAKE, STATELESS)
TRANSPORTS: Final = ("stdio", "http", "events")

_BOUND: Final = 60.0
"""Seconds after which a call of a test is given up; a client that waits so long waits for ever."""

_STRAY: Final = 0.05
"""Seconds that the client gives a server whose answer may still come."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def processes_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave little time to processes that will not end by themselves, which talk meanwhile."""
    monkeypatch.setattr("stubwright_runtime.client.transports.process._GRACE", 0.1)


class RenderOutput(Model):
    area: float
    label: str | None = None


PACKAGE = Package("shapes_mcp", tools=[Tool("render"), Tool("ping")])
PACKAGE.manifest = {
    "stubwright": 1,
    "server": {"name": "shapes", "version": "1"},
    "formats": "annotate",
    "tools": [
        {
            "name": "render",
            "inputSchema": {"type": "object"},
            "outputSchema": {
                "type": "object",
                "properties": {"area": {"type": "number", "minimum": 0}, "label": {"type": "string"}},
                "required": ["area"],
            },
        },
        {"name": "ping", "inputSchema": {"type": "object"}},
    ],
}


class ShapeClient(PrimitivesBinding):
    _package = PACKAGE

    async def render(self) -> RenderOutput:
        return await self._call("render", {}, RenderOutput)

    async def ping(self) -> list[mcp_types.ContentBlock]:
        return await self._call_content("ping", {})


KINDS: Final[dict[str, Callable[[ShapeClient], Awaitable[Any]]]] = {
    "tools/call": lambda client: client.render(),
    "resources/read": lambda client: client._read("file:///a"),
    "prompts/get": lambda client: client._prompt("p", {}),
    "completion/complete": lambda client: client._complete("prompt", "p", "a", "v", None),
    "tools/list": list_tools,
    "resources/list": list_resources,
    "resources/templates/list": list_resource_templates,
    "prompts/list": list_prompts,
}


def _deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def _result(text: str) -> str:
    return f'{{"jsonrpc":"2.0","id":$ID,"result":{text}}}'


def _error(text: str) -> str:
    return f'{{"jsonrpc":"2.0","id":$ID,"error":{text}}}'


RESULTS: Final[dict[str, str]] = {
    "an unknown content type": '{"content":[{"type":"hologram","data":"x"}]}',
    "content that is a number": '{"content":5,"contents":5,"messages":5,"completion":5,"tools":5,"prompts":5,'
    '"resources":5,"resourceTemplates":5}',
    "content of numbers": '{"content":[5],"contents":[5],"messages":[5],"completion":{"values":5},"tools":[5],'
    '"prompts":[5],"resources":[5],"resourceTemplates":[5]}',
    "isError: null": '{"content":[],"isError":null}',
    "isError: a text": '{"content":[],"isError":"perhaps"}',
    "structuredContent: a number": '{"content":[],"structuredContent":5}',
    "structuredContent: a list": '{"content":[],"structuredContent":[1]}',
    "structuredContent: null": '{"content":[],"structuredContent":null}',
    "structuredContent that breaks the schema": '{"content":[],"structuredContent":{"area":-1}}',
    "structuredContent with NaN": '{"content":[],"structuredContent":{"area":NaN}}',
    "structuredContent with 1e999": '{"content":[],"structuredContent":{"area":1e999}}',
    "a huge number": f'{{"content":[],"structuredContent":{{"area":{"9" * 5000}}}}}',
    "a number beyond a double": f'{{"content":[],"structuredContent":{{"area":{"9" * 400}}}}}',
    "deep nesting": f'{{"content":[],"structuredContent":{_deep(150)}}}',
    "deeper nesting": f'{{"content":[],"structuredContent":{_deep(400)}}}',
    "much too deep nesting": f'{{"content":[],"structuredContent":{_deep(20_000)}}}',
    "deep text": json.dumps({"content": [{"type": "text", "text": "[" * 50_000}]}),
    "deep JSON in a text": json.dumps({"content": [{"type": "text", "text": '{"a":' * 900 + "1" + "}" * 900}]}),
    "keys that come twice": '{"content":[],"content":5,"contents":[],"contents":5,"messages":[],"messages":5,'
    '"completion":{},"completion":5,"tools":[],"tools":5,"prompts":[],"prompts":5,"resources":[],"resources":5,'
    '"resourceTemplates":[],"resourceTemplates":5}',
    "half a surrogate pair": '{"content":[{"type":"text","text":"\\ud83d"}],"structuredContent":{"a":"\\ud83d"}}',
    "an empty object": "{}",
    "_meta: a number": '{"content":[],"_meta":5,"contents":[],"messages":[],"completion":{"values":[]},"tools":[],'
    '"prompts":[],"resources":[],"resourceTemplates":[]}',
    "a ttl without an end": '{"content":[],"ttlMs":1e999,"contents":[],"tools":[],"prompts":[],"resources":[],'
    '"resourceTemplates":[],"messages":5,"completion":5}',
    "resultType: unknown": '{"resultType":"perhaps","content":[]}',
    "resultType: a number": '{"resultType":5,"content":[]}',
    "questions of no kind": '{"resultType":"input_required","inputRequests":{"a":{"method":"b"}}}',
    "questions: a number": '{"resultType":"input_required","inputRequests":5}',
    "a question that nobody answers": '{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}',
    "nextCursor: a number": '{"content":5,"nextCursor":5,"tools":[],"prompts":[],"resources":[],"resourceTemplates":[],'
    '"contents":5,"messages":5,"completion":5}',
    "pages that go round": '{"content":5,"nextCursor":"a","tools":[],"prompts":[],"resources":[],'
    '"resourceTemplates":[],"contents":5,"messages":5,"completion":5}',
}
"""Invalid results for every kind of request, by their fault."""

MESSAGES: Final[dict[str, str]] = {
    **{name: _result(text) for name, text in RESULTS.items()},
    "a result that is a number": _result("5"),
    "a result that is null": _result("null"),
    "a result that is a list": _result("[]"),
    "no result": '{"jsonrpc":"2.0","id":$ID}',
    "no version": '{"id":$ID,"result":{}}',
    "another version": '{"jsonrpc":"1.0","id":$ID,"result":{}}',
    "an error without a code": _error('{"message":"no"}'),
    "an error without a message": _error('{"code":-32000}'),
    "an error whose code is a text": _error('{"code":"bad","message":"no"}'),
    "an error whose code is huge": _error(f'{{"code":{"9" * 30},"message":"no"}}'),
    "an error whose message is an object": _error('{"code":-32000,"message":{}}'),
    "an error that is a text": _error('"no"'),
    "an error that is null": _error("null"),
    "an error about a revision": _error('{"code":-32022,"message":"no","data":5}'),
    "an error about headers": _error('{"code":-32020,"message":"no","data":5}'),
    "an error about a URL": _error('{"code":-32042,"message":"no","data":{"elicitations":5}}'),
    "a result and an error": '{"jsonrpc":"2.0","id":$ID,"result":5,"error":5}',
    "a result and a method": '{"jsonrpc":"2.0","id":$ID,"result":{},"method":5}',
    "a batch": '[{"jsonrpc":"2.0","id":$ID,"result":{}}]',
    "half a message": _result('{"content":['),
    "a byte that is not UTF-8": _result('{"content":[{"type":"text","text":"\xff"}]}'),
    "an overlong byte": _result('{"content":[{"type":"text","text":"\xc0\xaf"}]}'),
    "a NUL byte": _result('{"content":[{"type":"text","text":"\0"}]}'),
}
"""What answers the request, but is wrong."""

STRAYS: Final[dict[str, str]] = {
    "another number": '{"jsonrpc":"2.0","id":777,"result":{"content":[]}}',
    "a number as a text": '{"jsonrpc":"2.0","id":"x","result":{"content":[]}}',
    "a number that is a fraction": '{"jsonrpc":"2.0","id":1.5,"result":{}}',
    "an error with the number null": '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
    "an error without a number": '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
    "a notification": '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
    "a notification of no kind": '{"jsonrpc":"2.0","method":"notifications/5","params":{"a":5}}',
    "progress of no kind": '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID}}',
    "a request": '{"jsonrpc":"2.0","id":$ID,"method":"ping"}',
    "a request of no kind": '{"jsonrpc":"2.0","id":$ID,"method":"sampling/createMessage","params":{"messages":5}}',
    "a method that is a number": '{"jsonrpc":"2.0","id":9,"method":5}',
    "a batch of nothing": "[]",
    "a batch with a number": '[{"jsonrpc":"2.0","id":$ID,"result":{}},5]',
    "a number": "5",
    "a text": '"x"',
    "null": "null",
    "no JSON": "<html>hello</html>",
    "nothing": "",
    "bytes": "\xff\xfe\x00",
}
"""Messages without a matching request id: over stdio, the response may still arrive before the timeout."""


async def _outcome(asked: Awaitable[Any]) -> BaseException | None:
    """What a call raises."""
    with anyio.fail_after(_BOUND):
        try:
            await asked
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - which it is, the test looks at
            return error
    return None


def _turns() -> Iterator[Any]:
    """Each transport, era and method, where one transport of each method in an era is not `long`.

    These are chosen so that each transport has methods of each third of the answers.
    """
    for (transport, name), (era, revision), (number, method) in product(
        enumerate(TRANSPORTS), enumerate(ERAS), enumerate(KINDS)
    ):
        case = (name, revision, method)
        yield case if (number // 3 + era) % len(TRANSPORTS) == transport else amounts.mark_long(case)


@pytest.mark.parametrize(("transport", "era", "method"), amounts.sample([*_turns()], 3))
async def test_each_answer_is_a_result_or_an_error_of_its_own_call(
    transport: str, era: str, method: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All answers come to each method in each era; transports take turns, so that each brings each answer to a few."""
    caplog.set_level(logging.CRITICAL + 1)
    wrong = {}
    turn = TRANSPORTS.index(transport) + [*KINDS].index(method)
    answers = [*{**MESSAGES, **STRAYS}.items()][turn % len(TRANSPORTS) :: len(TRANSPORTS)]
    attacker = Attacker(transport, era, method, tmp_path)
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            for name, said in answers:
                attacker.say(said.encode("latin-1"))
                is_stray = transport == "stdio" and name in STRAYS
                asked = KINDS[method](client.with_options(timeout=_STRAY if is_stray else _BOUND))
                error = await _outcome(asked)
                if not _is_told(error) or (_is_late(error) and not is_stray):
                    wrong[name] = repr(error)
                if error is None and name not in HARMLESS:
                    wrong[name] = "a result"
                other = client.render() if method != "tools/call" else client._prompt("other", {})
                if (error := await _outcome(other)) is None or not _is_unknown(error):
                    wrong[f"what comes after {name}"] = repr(error)
    assert wrong == {}


_UNADDRESSED: Final = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error\\nof something"}}'


@pytest.mark.parametrize("era", ERAS)
async def test_an_error_that_names_no_request_is_the_reason_only_if_no_answer_comes(era: str, tmp_path: Path) -> None:
    attacker = Attacker("stdio", era, "tools/call", tmp_path)
    answer = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"area":2},"resultType":"complete"}}'
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            attacker.say(f"{_UNADDRESSED}\n{answer}".encode())
            assert (await client.render()).area == 2
            attacker.say(_UNADDRESSED.encode())
            error = await _outcome(client.with_options(timeout=_STRAY).render())
            assert _is_late(error)
            assert str(error).endswith("; it sent an error without a request ID: Parse error of something")
            attacker.say(b"")
            error = await _outcome(client.with_options(timeout=_STRAY).render())
            assert _is_late(error)
            assert "names no request" not in str(error)


def _is_told(error: BaseException | None) -> bool:
    return error is None or isinstance(error, InvalidResult | mcp.MCPError)


def _is_late(error: BaseException | None) -> bool:
    return isinstance(error, mcp.MCPError) and error.code == mcp_types.REQUEST_TIMEOUT


def _is_unknown(error: BaseException | None) -> bool:
    return isinstance(error, mcp.MCPError) and error.code == mcp_types.METHOD_NOT_FOUND


HARMLESS: Final = {
    "a number beyond a double",  # JSON has them, and Python
    "a ttl without an end",  # it is ignored before 2026-07-28
}


_WHOLE: Final[dict[str, dict[str, Any]]] = {
    "tools/call": {"content": [], "structuredContent": {"area": 2}},
    "resources/read": {"contents": []},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": []}},
    "tools/list": {"tools": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": []},
}
"""A result of each kind, without its `resultType`."""


@pytest.mark.parametrize(("transport", "era", "method"), amounts.sample([*_turns()], 9))
async def test_a_result_of_an_unknown_kind_is_none(transport: str, era: str, method: str, tmp_path: Path) -> None:
    attacker = Attacker(transport, era, method, tmp_path)
    whole = {**_WHOLE[method], "ttlMs": 0, "cacheScope": "private"}
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            for kind in ("complete", "perhaps"):
                attacker.say(_result(json.dumps({"resultType": kind, **whole})).encode())
                if era == HANDSHAKE or kind == "complete":
                    await KINDS[method](client)  # older revisions have no such key, and others are left aside
                else:
                    with pytest.raises(mcp.MCPError, match="its resultType is 'perhaps'"):
                        await KINDS[method](client)


async def test_a_list_of_an_unknown_kind_is_not_compared(tmp_path: Path) -> None:
    attacker = Attacker("stdio", STATELESS, "tools/list", tmp_path)
    attacker.say(_result('{"resultType":"perhaps","tools":[],"ttlMs":0,"cacheScope":"private"}').encode())
    with attacker.target() as target, pytest.raises(DriftError, match="its resultType is 'perhaps'"):
        async with ShapeClient.connect(target, timeout=_BOUND, drift="error"):
            pass


@pytest.mark.parametrize(
    ("transport", "method", "era"),
    amounts.sample([*product(TRANSPORTS, ["initialize", "server/discover"], ERAS)], 3),
)
async def test_an_odd_opening_is_an_error(
    transport: str, method: str, era: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    wrong = {}

    async def opened(attacker: Attacker) -> None:
        with attacker.target() as target:
            async with ShapeClient.connect(target, timeout=1) as client:
                await client._prompt("other", {})

    async def attempted(number: int, name: str, said: str) -> None:
        attacker = Attacker(transport, era, method, tmp_path / str(number))
        attacker.say(said.encode("latin-1"))
        error = await _outcome(opened(attacker))
        if not isinstance(error, mcp.MCPError):
            wrong[name] = repr(error)

    async with anyio.create_task_group() as tasks:  # the client waits until the timeout for most of them
        for number, (name, said) in enumerate(OPENINGS.items()):
            tasks.start_soon(attempted, number, name, said)
    assert wrong == {}


OPENINGS: Final[dict[str, str]] = {
    "another revision": _result(
        '{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"a","version":"1"}}'
    ),
    "revisions of no kind": _result('{"supportedVersions":5,"protocolVersion":5,"capabilities":5,"serverInfo":5}'),
    "an empty object": _result("{}"),
    "half a message": _result("{"),
    "bytes that are not UTF-8": _result('{"protocolVersion":"\xff"}'),
    "a notification": STRAYS["a notification"],
    "an error about a revision": _error('{"code":-32022,"message":"no","data":{"supported":["2099-01-01"]}}'),
}


# --- HTTP that is not what it should be --------------------------------------------------------------------------


def _once(*pieces: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter(pieces)


def _whole(body: bytes, status: int = 200, media: str = "application/json", **more: str) -> Said:
    return Said(_once(body), status, {"Content-Type": media, **{name.replace("_", "-"): more[name] for name in more}})


HTTP: Final[dict[str, Said]] = {
    "204": Said(_once(), 204, {}),
    "202": Said(_once(), 202, {}),
    **{f"{status}": _whole(b"no", status, "text/plain") for status in (400, 401, 403, 404, 429, 500, 503)},
    **{f"{status} with JSON": _whole(b'{"a":1}', status) for status in (400, 404, 500)},
    "500 with bytes": _whole(b"\xff\xfe", 500),
    "404 with an error": _whole(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}', 404),
    "no content type": Said(_once(b"{}"), 200, {}),
    "HTML": _whole(b"<html>", media="text/html"),
    "JSON that is called HTML": _whole(b'{"jsonrpc":"2.0","id":1,"result":{}}', media="text/html"),
    "an event stream that is none": _whole(b"{}", media="text/event-stream"),
    "an event stream that ends": Said(_once(b"data: {", b'"a"'), headers=events(), is_cut=True),
    "an event stream that is not UTF-8": Said(_once(b"data: \xff\n\n"), headers=events()),
    "an event of no kind": Said(_once(b"event: other\ndata: {}\n\n"), headers=events()),
    "an event stream that comes again": Said(_once(b"retry: 1\nid: 1\ndata:\n\n"), headers=events()),
    "a retry of no length": Said(_once(b"retry: %b\nid: 1\ndata:\n\n" % (b"9" * 400)), headers=events()),
    "a body that is cut": Said(_once(b'{"jsonrpc":"2.0",'), is_cut=True),
    "a body that is not compressed": _whole(b"{}", Content_Encoding="gzip"),
    "a body that is half compressed": _whole(gzip.compress(b"{}" * 999)[:-9], Content_Encoding="gzip"),
    "a body that is compressed ten times": _whole(b"{}", Content_Encoding=", ".join(["gzip"] * 10)),
    "a redirect to itself": _whole(b"", 307, Location="/mcp"),
    "a redirect to another host": _whole(b"", 307, Location="http://localhost.invalid/"),
    "a redirect to no URL": _whole(b"", 307, Location="http://["),
    "a redirect to no domain": _whole(b"", 307, Location="//%xn--99999999"),
    "a redirect to a file": _whole(b"", 302, Location="file:///etc/passwd"),
    "a redirect with a long body": Said(lambda: iter(lambda: b"x" * 65536, None), 307, {"Location": "/mcp"}),
}


@pytest.mark.parametrize(("era", "name"), amounts.sample([*product(ERAS, HTTP)], 13))
async def test_each_response_is_an_error_of_its_own_call(era: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    with listen(era, lambda method, _: HTTP[name] if method == "tools/call" else None) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND) as client:
            error = await _outcome(client.with_options(timeout=_BOUND).render())
            assert isinstance(error, mcp.MCPError), repr(error)
            if name != "a retry of no length":  # the SDK's own loop ends there, and with it the connection
                assert _is_unknown(await _outcome(client._prompt("other", {})))


UNREADABLE: Final[dict[str, tuple[str, str]]] = {
    "a list": ("[1]", "it is a JSON list, not a JSON-RPC message"),
    "an empty list": ("[]", "it is a JSON list, not a JSON-RPC message"),
    "a text": ('"x"', "it is a JSON string, not a JSON-RPC message"),
    "a number": ("5", "it is a JSON number, not a JSON-RPC message"),
    "a fraction": ("1.5", "it is a JSON number, not a JSON-RPC message"),
    "true": ("true", "it is a JSON boolean, not a JSON-RPC message"),
    "null": ("null", "it is JSON null, not a JSON-RPC message"),
    "another API": ('{"hello":"world"}', "it is a JSON object with neither a result nor an error"),
    "no result": ('{"jsonrpc":"2.0","id":$ID}', "it is a JSON object with neither a result nor an error"),
    "no JSON": ("<html>", "it is not JSON: expected value at line 1 column 1"),
    "half": ('{"a":', "it is not JSON: EOF while parsing a value at line 1 column 5"),
    "half of a pair": (
        '{"jsonrpc":"2.0","id":$ID,"result":{"a":["\\ud83d\\ude00",{"name":"odd \\ud83d"}],"b":"\\ud83d"}}',
        "`result.a[1].name` of `odd \ufffd` contains a lone surrogate, which is not a character",
    ),
    "half of a pair in a key": (
        '{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"odd","_meta":{"\\udc00":1}}]}}',
        "a key of `result.tools[0]._meta` of `odd` contains a lone surrogate, which is not a character",
    ),
    "no version": ('{"id":$ID,"result":{}}', "it is not a valid JSON-RPC response: jsonrpc: Field required"),
    "a result that is a number": (
        '{"jsonrpc":"2.0","id":$ID,"result":5}',
        "it is not a valid JSON-RPC response: result: Input should be an object",
    ),
    "an error that is a text": (
        '{"jsonrpc":"2.0","id":$ID,"error":"no"}',
        "it is not a valid JSON-RPC response: error: Input should be an object",
    ),
}


@pytest.mark.parametrize(
    ("transport", "era", "name"),
    amounts.sample([*product(["http", "events"], ERAS, UNREADABLE)], 8),
)
async def test_what_is_no_message_is_named_in_a_sentence(transport: str, era: str, name: str, tmp_path: Path) -> None:
    said, told = UNREADABLE[name]
    attacker = Attacker(transport, era, "tools/call", tmp_path)
    attacker.say(said.encode())
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            error = await _outcome(client.ping())
            assert isinstance(error, mcp.MCPError)
            assert (error.code, error.message) == (
                mcp_types.PARSE_ERROR,
                f"the server's response cannot be read: {told}",
            )
            assert _is_unknown(await _outcome(client._prompt("other", {})))


@pytest.mark.parametrize(
    "name",
    ["no result", "no version", "a result that is a number", "an error that is a text", "half of a pair"],
)
async def test_what_is_no_message_is_named_by_a_process_alike(name: str, tmp_path: Path) -> None:
    said, told = UNREADABLE[name]
    attacker = Attacker("stdio", HANDSHAKE, "tools/call", tmp_path)
    attacker.say(said.encode())
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            error = await _outcome(client.ping())
            assert str(error) == f"the server's response cannot be read: {told}"


async def test_a_body_of_nothing_is_named() -> None:
    with listen(HANDSHAKE, lambda method, _: _whole(b"") if method == "tools/call" else None) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND) as client:
            with pytest.raises(mcp.MCPError, match=r"^the server's response cannot be read: it is empty$"):
                await client.ping()


async def test_events_of_other_kinds_need_no_message() -> None:
    def answer(method: str, number: Any) -> Said | None:
        if method != "tools/call":
            return None
        result = hostile.response(number, {"content": []})
        return Said(_once(b"event: other\ndata: 5\n\ndata: " + result + b"\n\n"), headers=events())

    with listen(HANDSHAKE, answer) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND) as client:
            assert await client.ping() == []


# --- how much is read --------------------------------------------------------------------------------------------

_MOST: Final = 1 << 20


def _peak() -> int:
    """The most bytes that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _forever(piece: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter(lambda: piece, None)


@cache
def _bomb() -> bytes:
    """Two hundred megabytes of spaces, as two hundred kilobytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(b" " * (1 << 24)) for _ in range(12)) + packer.flush()


_JSON: Final = {"Content-Type": "application/json"}
_GZIP: Final = {**_JSON, "Content-Encoding": "gzip"}

FLOODS: Final[dict[str, Callable[[], Said]]] = {
    "a body without an end": lambda: Said(_forever(b" " * 65536)),
    "an error without an end": lambda: Said(_forever(b" " * 65536), 500),
    "a text without an end": lambda: Said(_forever(b" " * 65536), 500, {"Content-Type": "text/plain"}),
    "an event without an end": lambda: Said(_forever(b"data: " + b"x" * 65530), headers=events()),
    "an event of many lines": lambda: Said(_forever(b"data: x\n" * 8192), headers=events()),
    "a bomb": lambda: Said(_once(_bomb()), headers=_GZIP),
    "a bomb in an error": lambda: Said(_once(_bomb()), 500, _GZIP),
    "a bomb in an event": lambda: Said(_once(_bomb()), headers={**events(), "Content-Encoding": "gzip"}),
    "a bomb in a bomb": lambda: Said(
        _once(gzip.compress(_bomb())), headers={**_JSON, "Content-Encoding": "gzip, gzip"}
    ),
}


@pytest.mark.parametrize(("era", "name"), amounts.sample([*product(ERAS, FLOODS)], 4))
async def test_no_more_is_read_than_may_be(era: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    said = FLOODS[name]()
    with listen(era, lambda method, _: said if method == "tools/call" else None) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND, max_result_bytes=_MOST) as client:
            before = _peak()
            error = await _outcome(client.render())
            if name == "a text without an end":  # which are not read
                assert isinstance(error, mcp.MCPError)
                assert not _is_late(error)
            else:
                assert isinstance(error, ResultTooLarge)
                assert (error.tool, error.limit) == ("render", _MOST)
                assert error.size > _MOST
            assert _peak() - before < 100 << 20
            assert _is_unknown(await _outcome(client._prompt("other", {})))


@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
@pytest.mark.usefixtures("processes_are_ended")
async def test_a_line_without_an_end_ends_the_connection(era: str, tmp_path: Path) -> None:
    attacker = Attacker("stdio", era, "tools/call", tmp_path)
    attacker.say(hostile.ENDLESS + b"x" * 65536)
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND, max_result_bytes=_MOST) as client:
            before = _peak()
            error = await _outcome(client.render())
            assert isinstance(error, ResultTooLarge)
            assert (error.tool, error.limit, error.size > _MOST) == ("render", _MOST, True)
            error = await _outcome(client.render())
            assert isinstance(error, mcp.MCPError)
            assert (error.code, error.message) == (
                mcp_types.CONNECTION_CLOSED,
                "the server's response has more than 1,048,576 bytes",
            )
            assert _peak() - before < 100 << 20


@pytest.mark.parametrize("era", ERAS)
async def test_a_process_that_ends_ends_the_call(era: str, tmp_path: Path) -> None:
    attacker = Attacker("stdio", era, "tools/call", tmp_path)
    attacker.say(hostile.ENDING)
    with attacker.target() as target:
        async with ShapeClient.connect(target) as client:
            error = await _outcome(client.render())
            assert isinstance(error, mcp.MCPError)
            assert error.code == mcp_types.CONNECTION_CLOSED


@pytest.mark.parametrize(("transport", "era"), amounts.sample([*product(TRANSPORTS, ERAS)], 2))
async def test_large_results_come_as_far_as_the_call_allows(transport: str, era: str, tmp_path: Path) -> None:
    text = "x" * (3 << 19)
    attacker = Attacker(transport, era, "tools/call", tmp_path)
    attacker.say(_result(json.dumps({"resultType": "complete", "content": [{"type": "text", "text": text}]})).encode())
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            (block,) = await client.ping()
            assert block.type == "text"
            assert block.text == text
            error = await _outcome(client.with_options(max_result_bytes=1 << 19).ping())
            assert isinstance(error, ResultTooLarge)
            assert (error.tool, error.limit) == ("ping", 1 << 19)
            assert 1 << 19 < error.size < 2 << 20
            told = f"the result of 'ping' has at least {error.size:,} bytes, but max_result_bytes is 524,288"
            assert str(error) == told
            assert len(await client.ping()) == 1
        async with ShapeClient.connect(target, timeout=_BOUND, max_result_bytes=1 << 19) as client:
            assert len(await client.with_options(max_result_bytes=None).ping()) == 1


@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
async def test_a_stream_may_be_long_where_its_events_are_short(era: str) -> None:
    """The size of an event counts: an honest server may report progress for days."""
    progress = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%b"}}\r\n\r\n'
    pieces = [progress % (b"x" * 50_000), b": still there\n\n"] * 60

    def answer(method: str, number: Any) -> Said | None:
        if method != "tools/call":
            return None
        result = fill_id(_result('{"resultType":"complete","content":[]}').encode(), number)
        return Said(_once(*pieces, b"data: " + result + b"\n\n"), headers=events())

    with listen(era, answer) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND, max_result_bytes=100_000) as client:
            assert await client.ping() == []


FOREIGN = '{"jsonrpc":"2.0","id":99,"result":{"resultType":"complete","content":[{"type":"text","text":"forged"}]}}'


STREAMS: Final = (
    "data: $SAID\n\n",
    "event: message\r\ndata:$SAID\r\n\r\n",
    ": still there\n\ndata: $SAID\r\r",
    "\ufeffdata: $SAID\n\n",
    'data: {"jsonrpc":"2.0","method":"notifications/x"}\n\ndata: $SAID\n\n',
    "data: $SAID",
    "id: 1\nretry: 1\ndata:\n\n$RESUMED",
    None,
)
FORGED: Final = (
    FOREIGN,
    FOREIGN.replace("99", '"99"'),
    f'[{{"jsonrpc":"2.0","method":"notifications/x"}},{FOREIGN}]',
    FOREIGN.replace('"id"', '"method":1,"id"'),
    FOREIGN.replace('"result":{', '"error":{"code":1,"message":"forged"},"more":{'),
)


@pytest.mark.parametrize(("era", "said", "stream"), amounts.sample([*product(ERAS, FORGED, STREAMS)], 10))
async def test_an_answer_to_something_else_is_refused_alike(era: str, said: str, stream: str | None) -> None:
    """As JSON, in a stream with any line endings, at its end, and in the rest of a cut stream."""

    def answer(method: str, number: Any) -> Said | None:
        if method == "GET":
            return Said(_once(f"data: {said}\n\n".encode()), headers=events())
        if method != "tools/call":
            return None
        if stream is None:
            return _whole(said.encode())
        pieces = stream.replace("$SAID", said).replace("$RESUMED", "").encode()
        return Said(_once(*(pieces[at : at + 7] for at in range(0, len(pieces), 7))), headers=events())

    with listen(era, answer) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND) as client:
            error = await _outcome(client.with_options(timeout=_BOUND).ping())
    assert isinstance(error, mcp.MCPError), repr(error)
    told = "the server responded to a different request"
    assert (error.code, error.message) == (mcp_types.INVALID_REQUEST, told)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_message_of_a_batch_is_read(transport: str, tmp_path: Path) -> None:
    """MCP 2025-03-26, basic, "Batching": implementations MUST support receiving them."""
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":%s}}'
    told: list[float] = []
    attacker = Attacker(transport, HANDSHAKE, "tools/call", tmp_path)
    result = _result('{"content":[{"type":"text","text":"pong"}]}')
    steps = ", ".join(progress % number for number in (1, "1" + 400 * "0", "NaN", 2))  # what is no float is skipped
    attacker.say(f"[{steps}, {result}]".encode())
    with attacker.target() as target:
        async with ShapeClient.connect(
            target, timeout=_BOUND, on_progress=lambda done, *_: told.append(done)
        ) as client:
            for _ in range(2):
                [block] = await client.ping()
                assert getattr(block, "text", None) == "pong"
    assert told == [1, 2] * 2


_TOO_MANY: Final = json.dumps([{"jsonrpc": "2.0", "method": "notifications/x"}] * 1001).encode()
_TOLD: Final = (
    "the server's response cannot be read: it is a batch of 1,001 messages, "
    "but a client accepts at most 1,000 per batch"
)


@pytest.mark.parametrize("method", ["initialize", "tools/call"])
@pytest.mark.parametrize("transport", ["http", "events"])
async def test_a_batch_of_too_many_messages_is_named(transport: str, method: str, tmp_path: Path) -> None:
    attacker = Attacker(transport, HANDSHAKE, method, tmp_path)
    attacker.say(_TOO_MANY)
    with attacker.target() as target, pytest.raises(mcp.MCPError) as raised:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            await client.ping()
    assert (raised.value.code, raised.value.message) == (mcp_types.PARSE_ERROR, _TOLD)


async def test_a_batch_of_too_many_messages_of_a_process_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    attacker = Attacker("stdio", HANDSHAKE, "tools/call", tmp_path)
    attacker.say(_TOO_MANY)
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            assert _is_late(await _outcome(client.with_options(timeout=0.5).ping()))
    assert "message: it is a batch of 1,001 messages, but a client accepts at most 1,000 per batch" in caplog.text


async def _answer_nothing(_key: object, method: str, _params: object) -> dict[str, Any]:
    raise AssertionError(method)


async def _hear_nothing(_method: str, _params: object) -> None:
    """Ignore notifications."""


async def test_a_batch_keeps_the_headers_of_its_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is in them, and a server may answer `initialize` in a batch."""
    sessions: list[str | None] = []

    async def answer(_client: HttpClient, request: HttpRequest) -> Reply:
        sessions.append(request.headers.get("mcp-session-id"))
        headers = {"content-type": "application/json", "mcp-session-id": "s"}
        return Reply.wrap(httpx2.Response(200, headers=headers, content=b'[{"jsonrpc":"2.0","id":1,"result":{}}]'))

    monkeypatch.setattr(HttpClient, "send", answer)
    transport = HttpTransport("http://localhost/mcp", {}, Bounds(None))
    connection = RpcConnection(transport, Bounds(None), _answer_nothing, _hear_nothing)
    await connection.open()
    assert await connection.request("initialize", key=1) == {}
    await connection.request("ping", key=1)
    await connection.close()
    assert sessions == [None, "s", "s"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_result_whose_optional_fields_are_null_is_read(era: str) -> None:
    content = [{"type": "text", "text": "pong", "annotations": None, "_meta": None}]
    result = {"content": content, "structuredContent": None, "isError": None, "_meta": None}

    def answer(method: str, number: Any) -> Said | None:
        return _whole(hostile.response(number, result)) if method == "tools/call" else None

    with listen(era, answer) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND) as client:
            [block] = await client.ping()
    assert getattr(block, "text", None) == "pong"


STARTS: Final = ("data: ", ": hello\n\ndata: ", "event: message\r\ndata: ", None)


@pytest.mark.parametrize(("era", "start", "size"), amounts.sample([*product(ERAS, STARTS, [1, 2, 3, 7, 1000])], 6))
async def test_a_byte_order_mark_is_no_part_of_an_answer(era: str, start: str | None, size: int) -> None:
    """Neither of a stream, in whatever pieces it comes, nor of JSON; but a text keeps its own."""
    content = [{"type": "text", "text": "\ufeffpong"}]

    def answer(method: str, number: Any) -> Said | None:
        if method != "tools/call":
            return None
        message = {"jsonrpc": "2.0", "id": number, "result": {"resultType": "complete", "content": content}}
        said = json.dumps(message, ensure_ascii=False)
        if start is None:
            return _whole(f"\ufeff{said}".encode())
        stream = f"\ufeff{start}{said}\n\n".encode()
        return Said(_once(*(stream[at : at + size] for at in range(0, len(stream), size))), headers=events())

    with listen(era, answer) as (url, _):
        async with ShapeClient.connect(url, timeout=_BOUND) as client:
            [block] = await client.with_options(timeout=_BOUND, sanitize="none").ping()
    assert getattr(block, "text", None) == "\ufeffpong"


@pytest.mark.long
@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
@pytest.mark.usefixtures("processes_are_ended")
async def test_a_flood_ends_with_the_time_of_the_call(
    era: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that talks and does not listen: nothing waits for it to take that the call was given up."""
    attacker = Attacker("stdio", era, "tools/call", tmp_path)
    attacker.say(hostile.ENDLESS + b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n')
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            for _ in range(2):
                error = await _outcome(client.with_options(timeout=0.2).ping())
                assert isinstance(error, mcp.MCPError)
                assert error.code == mcp_types.REQUEST_TIMEOUT
    assert "transport write blocked" not in caplog.text


@pytest.mark.parametrize("cut", range(1, 6))
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"])
def test_the_end_of_an_event_may_be_cut_anywhere(end: bytes, cut: int) -> None:
    events = EventParser(Bounds(100), Bound(100))
    found = 0
    stream = (b"data: " + b"x" * 80 + end) * 20
    for at in range(0, len(stream), cut):
        found += len(events.feed(stream[at : at + cut]))
    assert found == 20
    assert events.finish() is None
    events.feed(b"data: 5")
    last = events.finish()
    assert last is not None
    assert last.data == b"5"
    events.feed(b"x" * 96)
    with pytest.raises(TooLargeError, match="more than 100 bytes"):
        events.feed(b"x" * 5)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_very_many_wrong_entries_cost_no_more_than_a_few(transport: str, tmp_path: Path) -> None:
    """pydantic reports each wrong entry in some kilobytes: 400 kB would become 500 MB."""
    attacker = Attacker(transport, HANDSHAKE, "tools/call", tmp_path)
    attacker.say(_result(f'{{"content":[{"5," * 200_000}5]}}').encode())
    with attacker.target() as target:
        async with ShapeClient.connect(target, timeout=_BOUND) as client:
            before = _peak()
            error = await _outcome(client.ping())
            assert isinstance(error, mcp.MCPError)
            assert error.code == mcp_types.PARSE_ERROR
            assert _peak() - before < 150 << 20


@pytest.mark.parametrize("options", [{"max_result_bytes": 0}, {"max_result_bytes": -1}, {"max_result_bytes": 1.5}])
def test_a_bound_is_a_number_of_bytes(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="max_result_bytes must be a positive number of bytes"):
        ShapeClient.connect("http://localhost/mcp", **options)
