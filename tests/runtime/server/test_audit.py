"""The audit log: one line for each call, for any input, any outcome, and any state of the file."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import FrozenInstanceError
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import httpx2
import mcp
import mcp_types as types
import pytest
from conftest import ROOT
from mcp.client.stdio import stdio_client
from mcp.server.auth.provider import AccessToken

import amounts
import forked
import prompt_ends
from packages import generate, imported, manifest, tool
from serving import asgi
from stubwright_runtime.server.observability.trace_context import read_trace_id

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")
SECRET = "hunter22-secret"
SURE = {"ask": {"sure": {"message": "Sure?", "schema": {"type": "object", "properties": {}}}}}
TOOLS = [
    tool("ok", {"x": {"type": "integer"}, "pw": {"type": "string"}}, stubwright={"policy": {"redact": ["/pw"]}}),
    tool("says_no"),
    tool("breaks"),
    tool("waits"),
    tool("rare", stubwright={"policy": {"rateLimit": "1/hour"}}),
    tool("admin", stubwright={"policy": {"scopes": ["admin"]}}),
    tool("asks", stubwright=SURE),
]
HANDLERS = """
    import asyncio
    from audited_mcp import ToolError

    class Handlers:
        async def ok(self, args, ctx):
            return "fine\\x1b[2J" if args.x == 7 else "fine"

        async def says_no(self, args, ctx):
            raise ToolError("no")

        async def breaks(self, args, ctx):
            raise ValueError("internals")

        async def waits(self, args, ctx):
            await asyncio.sleep(60)

        async def rare(self, args, ctx):
            return "once"

        async def admin(self, args, ctx):
            return "root"

        async def asks(self, args, ctx):
            return type(await ctx.ask.sure()).__name__
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    generate(folder, manifest(TOOLS, name="audited", audit={"arguments": True}))
    (folder / "handwritten.py").write_text(textwrap.dedent(HANDLERS))
    return folder


@pytest.fixture(scope="module")
def package(project: Path) -> Iterator[ModuleType]:
    with imported(project, "audited_mcp") as module:
        yield module


@pytest.fixture(scope="module")
def handlers(package: ModuleType) -> Any:
    assert package is not None
    return import_module("handwritten").Handlers


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def logged(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """Wait until this is in the log."""
    with anyio.fail_after(60):
        while text not in caplog.text:  # noqa: ASYNC110 - another thread writes it
            await asyncio.sleep(0.01)


def command(project: Path, *options: str) -> list[str]:
    return [*forked.interpreter(), "-m", "audited_mcp", "--handlers", "handwritten:Handlers", *options]


@asynccontextmanager
async def connected(kind: str, era: str, project: Path, package: Any, audit: Path, **more: Any) -> AsyncIterator[Any]:
    """A client over a transport; when the block has ended, all is written."""
    if kind == "stdio":
        program, *arguments = command(project, "--audit", str(audit))
        parameters = mcp.StdioServerParameters(command=program, args=arguments, cwd=project)
        async with mcp.Client(stdio_client(parameters), mode=era, **more) as client:
            yield client
    else:
        app = package.asgi_app(import_module("handwritten").Handlers(), audit=audit)
        with asgi(app) as url:
            async with mcp.Client(f"{url}/mcp", mode=era, **more) as client:
                yield client


async def refused(client: mcp.Client, name: str, arguments: Any = None) -> types.ErrorData:
    with pytest.raises(mcp.MCPError) as raised:
        await client.call_tool(name, arguments)
    return raised.value.error


@pytest.mark.parametrize(("era", "kind"), amounts.sample(product(ERAS, ["stdio", "http"]), 3))
async def test_each_call_is_a_line(kind: str, era: str, project: Path, package: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    info = types.Implementation(name="a client", version="7")
    async with connected(kind, era, project, package, path, client_info=info) as client:
        await client.call_tool("ok", {"x": 1, "pw": SECRET})
        await client.call_tool("ok", {"x": "one"})
        await client.call_tool("says_no", {})
        broken = await client.call_tool("breaks", {})
        await client.call_tool("rare", {})
        await client.call_tool("rare", {})
        await refused(client, "nobody")
        await refused(client, "admin")
        with anyio.move_on_after(0.3):
            await client.call_tool("waits", {})
        await client.call_tool("ok", {"x": 2})

    found = lines(path)
    order = {line["id"]: (line["tool"], line["outcome"], line["reason"]) for line in found}
    assert sorted(order.values(), key=str) == sorted(
        [
            ("ok", "completed", None),
            ("ok", "invalid", "input_schema"),
            ("says_no", "tool_error", "tool_error"),
            ("breaks", "failed", "internal_error"),
            ("rare", "completed", None),
            ("rare", "limited", "rate_limit"),
            ("nobody", "denied", "unknown_tool"),
            ("admin", "denied", "scope"),
            ("waits", "cancelled", "cancelled"),
            ("ok", "completed", None),
        ],
        key=str,
    )
    assert len(order) == len(found)  # each has an id of its own
    first = found[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])
    assert (first["server"], first["server_version"], first["transport"]) == ("audited", "1", kind)
    assert re.fullmatch("[0-9a-f]{16}", first["manifest"])
    assert first["revision"] == ("2026-07-28" if era != "legacy" else "2025-11-25")
    assert (first["principal"], first["subject"]) == (
        ("local", "local") if kind == "stdio" else ("anonymous", "anonymous")
    )
    assert (first["client"], first["client_version"]) == ("a client", "7")
    assert first["keys"] == ["x", "pw"]
    assert first["arguments"] == {"x": 1, "pw": "[redacted]"}
    assert first["argument_bytes"] == len(json.dumps({"x": 1, "pw": SECRET}))
    assert first["result_bytes"] == len(b'{"content":[{"type":"text","text":"fine"}]}')
    assert 0 < first["duration_ms"] < 10_000
    assert "arguments" not in found[1]  # their meaning is unknown
    failed = next(line for line in found if line["tool"] == "breaks")
    assert failed["reference"] == failed["id"]
    assert failed["id"] in broken.content[0].text
    assert SECRET not in path.read_text()


@pytest.mark.parametrize("era", ERAS)
async def test_hostile_names_are_one_line_and_short(era: str, package: Any, handlers: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    odd = "\n{}\r\x1b[2J\u2028\u202e\x00"
    async with mcp.Client(package.build_server(handlers(), audit=path), mode=era) as client:
        await refused(client, odd * 10_000)
        await client.call_tool("ok", {f"{odd}{number}" * 1000: 1 for number in range(99)})
    text = path.read_bytes()
    assert text.count(b"\n") == 2
    assert text.isascii()
    assert len(text) < 100_000
    named, keyed = lines(path)
    assert (len(named["tool"]), named["outcome"], named["reason"]) == (200, "denied", "unknown_tool")
    assert "\n" not in named["tool"]
    assert (len(keyed["keys"]), keyed["key_count"], max(map(len, keyed["keys"]))) == (50, 99, 200)


@pytest.mark.parametrize("era", ERAS)
async def test_malformed_parameters_are_recorded(era: str, package: Any, handlers: Any) -> None:
    records: list[Any] = []
    async with mcp.Client(package.build_server(handlers(), audit=records.append), mode=era) as client:
        for params in ({"name": 7}, {"name": "ok", "arguments": "text"}, {}):
            request = types.Request[Any, str](method="tools/call", params=params)
            with pytest.raises(mcp.MCPError):
                await client.session.send_request(request, types.CallToolResult)
    assert [(each.tool, each.outcome, each.reason) for each in records] == [
        (None, "invalid", "parameters"),
        ("ok", "invalid", "parameters"),
        (None, "invalid", "parameters"),
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_that_waits_is_no_line_of_its_own(era: str, package: Any, handlers: Any) -> None:
    records: list[Any] = []

    async def agree(context: Any, params: Any) -> types.ElicitResult:
        assert records == []
        return types.ElicitResult(action="accept", content={})

    server = package.build_server(handlers(), audit=records.append)
    async with mcp.Client(server, mode=era, elicitation_callback=agree) as client:
        assert not (await client.call_tool("asks", {})).is_error
    async with mcp.Client(server, mode=era) as client:  # no client can answer
        if era == "legacy":
            assert (await client.call_tool("asks", {})).is_error
        else:
            await refused(client, "asks")
    assert [(each.tool, each.outcome, each.reason) for each in records] == [
        ("asks", "completed", None),
        ("asks", "failed", "client_capability"),
    ]


async def test_a_state_that_nobody_sealed_is_recorded(package: Any, handlers: Any) -> None:
    records: list[Any] = []
    async with mcp.Client(package.build_server(handlers(), audit=records.append), mode="2026-07-28") as client:
        params = types.CallToolRequestParams(name="asks", arguments={}, request_state="mine")
        with pytest.raises(mcp.MCPError):
            await client.session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
    assert [(each.outcome, each.reason) for each in records] == [("invalid", "request_state")]


async def test_what_is_switched_off_is_recorded(package: Any, handlers: Any) -> None:
    records: list[Any] = []
    server = package.build_server(handlers(), audit=records.append)
    await server.tools.disable("ok")
    async with mcp.Client(server) as client:
        await refused(client, "ok")
    assert [(each.tool, each.outcome, each.reason) for each in records] == [("ok", "denied", "switched_off")]


@pytest.mark.parametrize("era", ERAS)
async def test_a_failure_before_the_handler_is_recorded_and_not_told(
    era: str, package: Any, handlers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    records: list[Any] = []
    server = package.build_server(handlers(), audit=records.append)
    tools = import_module("stubwright_runtime.server.methods.tools")

    def fail(*_: object) -> None:
        raise RuntimeError("internals")

    monkeypatch.setattr(tools, "repair_unicode", fail)
    async with mcp.Client(server, mode=era) as client:
        told = await refused(client, "ok", {"any": 1})
    (record,) = records
    assert (record.outcome, record.reason, record.reference) == ("failed", "internal_error", record.id)
    assert told.message == f"Internal error (reference {record.id})"
    assert f"tools/call failed (reference {record.id})" in caplog.text


class Verifier:
    async def verify_token(self, token: str) -> AccessToken | None:
        if not token.startswith("good"):
            return None
        claims = {"iss": "https://auth.example.com"}
        return AccessToken(token=token, client_id="app", subject="ada", scopes=token.split("-")[1:], claims=claims)


def test_what_is_refused_over_http_is_recorded(tmp_path: Path) -> None:
    auth = {
        "issuer": "https://auth.example.com",
        "audience": "https://guarded.example.com",
        "requiredScopes": ["use"],
        "onMissing": "challenge",
    }
    value = manifest(
        [tool("admin", {"x": {}}, stubwright={"policy": {"scopes": ["admin"]}})], name="guarded", auth=auth
    )
    generate(tmp_path, value)
    path = tmp_path / "audit.jsonl"

    class Handlers:
        async def admin(self, args: Any, ctx: Any) -> str:
            return "root"

    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "admin", "arguments": {"x": 1}}}
    with ExitStack() as opened:
        package = opened.enter_context(imported(tmp_path, "guarded_mcp"))
        url = opened.enter_context(asgi(package.asgi_app(Handlers(), token_verifier=Verifier(), audit=path)))
        for token, status in ((None, 401), ("wrong", 401), ("good", 403), ("good-use", 403)):
            headers = {"MCP-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream"}
            if token is not None:
                headers["Authorization"] = f"Bearer {token}"
            assert httpx2.post(f"{url}/mcp", json=body, headers=headers).status_code == status
    found = [(one["outcome"], one["reason"], one["tool"], one["keys"], one["subject"]) for one in lines(path)]
    assert found == [
        ("denied", "unauthenticated", None, [], None),
        ("denied", "unauthenticated", None, [], None),
        ("denied", "insufficient_scope", "admin", ["x"], "ada"),
        ("denied", "insufficient_scope", "admin", ["x"], "ada"),
    ]
    last = lines(path)[-1]
    assert (last["issuer"], last["oauth_client"]) == ("https://auth.example.com", "app")
    assert (last["principal"], last["transport"]) == ("token", "http")
    assert "wrong" not in path.read_text()


async def test_values_are_there_only_where_the_manifest_says_so(tmp_path: Path) -> None:
    generate(tmp_path, manifest([tool("ok", {"x": {}})], name="quiet"))
    records: list[Any] = []

    class Handlers:
        async def ok(self, args: Any, ctx: Any) -> str:
            return "fine"

    with imported(tmp_path, "quiet_mcp") as package:
        async with mcp.Client(package.build_server(Handlers(), audit=records.append)) as client:
            await client.call_tool("ok", {"x": SECRET})
        assert [(each.keys, each.arguments) for each in records] == [(("x",), None)]
        with pytest.raises(FrozenInstanceError):
            records[0].tool = "other"
        assert isinstance(records[0], package.CallRecord)


async def test_both_lines_of_a_task_have_what_was_sent(tmp_path: Path) -> None:
    keep = tool(
        "keep",
        {"owner": {"type": "string"}, "x": {"type": "integer"}},
        execution={"taskSupport": "optional"},
        stubwright={"bind": {"owner": {"env": "OWNER"}}},
    )
    generate(tmp_path, manifest([keep], name="bound", audit={"arguments": True}))
    source = "class Handlers:\n    async def keep(self, args, ctx):\n        return args.owner\n"
    (tmp_path / "bound_handlers.py").write_text(source)
    path = tmp_path / "audit.jsonl"
    words = [*forked.interpreter(), "-m", "bound_mcp", "--handlers", "bound_handlers:Handlers", "--audit", str(path)]
    with imported(tmp_path, "bound_mcp") as package:
        environment = {"PYTHONPATH": str(tmp_path), "OWNER": "ann"}
        async with package.BoundClient.connect(words, env=environment) as client:
            [kept] = await (await client.tasks.keep(x=7))
            assert kept.text == "ann"
            await client.keep(x=7)
    found = lines(path)
    assert len({one["id"] for one in found[:2]}) == 1
    for one in found:
        assert (one["keys"], one["key_count"], one["arguments"]) == (["x"], 1, {"x": 7})
        assert one["argument_bytes"] == len('{"x": 7}')


async def test_what_was_cleaned_is_counted(package: Any, handlers: Any) -> None:
    records: list[Any] = []
    async with mcp.Client(package.build_server(handlers(), audit=records.append)) as client:
        await client.call_tool("ok", {"x": 7})
        await client.call_tool("ok", {"x": 8})
        with pytest.raises(mcp.MCPError):
            await client.call_tool("unknown")
    assert [(each.tool, each.cleaned) for each in records] == [("ok", 1), ("ok", 0), ("unknown", 0)]


async def test_large_arguments_are_left_out(package: Any, handlers: Any) -> None:
    records: list[Any] = []
    async with mcp.Client(package.build_server(handlers(), audit=records.append)) as client:
        await client.call_tool("ok", {"more": "x" * 70_000})
    assert [(each.keys, each.arguments, each.argument_bytes > 70_000) for each in records] == [(("more",), None, True)]


async def test_a_hook_that_raises_fails_no_call_and_is_told_once(
    package: Any, handlers: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(record: Any) -> None:
        raise OSError("no disk")

    async with mcp.Client(package.build_server(handlers(), audit=hook)) as client:
        for _ in range(3):
            assert not (await client.call_tool("ok", {})).is_error
    told = [record.getMessage() for record in caplog.records if "audit" in record.getMessage()]
    assert [re.sub("reference .*", "", line) for line in told] == [
        "the audit hook failed (",
        "the audit hook failed 2 more times",
    ]


async def test_a_slow_hook_holds_no_call_up(package: Any, handlers: Any, caplog: pytest.LogCaptureFixture) -> None:
    records: list[Any] = []
    is_called, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hook(record: Any) -> None:
        loop.call_soon_threadsafe(is_called.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(60)
        records.append(record)

    server = package.build_server(handlers())
    recorder = import_module("stubwright_runtime.server.observability.audit")
    server.core.recorder = recorder.Recorder(package.TOOLS["ok"].package, recorder.AuditHook(hook), waiting=3)
    server.core.instrumentation._recorder = server.core.recorder
    async with mcp.Client(server) as client:
        await client.call_tool("ok", {})
        with anyio.fail_after(60):
            await is_called.wait()  # one is with the hook
        for _ in range(10):
            await client.call_tool("ok", {})
        assert records == []
        await anyio.to_thread.run_sync(server.core.recorder.flush, 0.01)
        assert "the server stopped before 4 audit records were written" in caplog.text
        go_on.set()
        await anyio.to_thread.run_sync(server.core.recorder.flush)
        await client.call_tool("ok", {})
        await anyio.to_thread.run_sync(server.core.recorder.flush)
    assert len(records) == 1 + 3 + 1
    assert "7 audit records were lost" in caplog.text


# The file.


@pytest.fixture
def sink(package: Any) -> Any:
    assert package is not None
    return import_module("stubwright_runtime.server.observability.audit_file").AuditFile


async def test_a_new_file_is_its_owners_alone_and_is_appended_to(package: Any, handlers: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(2):
        async with mcp.Client(package.build_server(handlers(), audit=str(path))) as client:
            await client.call_tool("ok", {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(lines(path)) == 2


async def test_a_file_that_was_rotated_is_opened_again(package: Any, handlers: Any, tmp_path: Path) -> None:
    path, old = tmp_path / "audit.jsonl", tmp_path / "audit.1"
    server = package.build_server(handlers(), audit=path)
    async with mcp.Client(server) as client:
        await client.call_tool("ok", {"x": 1})
        server.core.recorder.flush()
        path.rename(old)
        await client.call_tool("ok", {"x": 2})
        server.core.recorder.flush()
        path.unlink()
        await client.call_tool("ok", {"x": 3})
    assert [one["arguments"] for one in lines(old)] == [{"x": 1}]
    assert [one["arguments"] for one in lines(path)] == [{"x": 3}]


async def test_a_folder_that_is_gone_is_told_once_and_nothing_is_lost(
    package: Any, handlers: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "audit.jsonl"
    server = package.build_server(handlers(), audit=path)
    async with mcp.Client(server) as client:
        await client.call_tool("ok", {"x": 1})
        server.core.recorder.flush()
        shutil.rmtree(folder)
        for number in (2, 3):
            await client.call_tool("ok", {"x": number})
        await logged("cannot write", caplog)
        folder.mkdir()
    assert [one["arguments"] for one in lines(path)] == [{"x": 2}, {"x": 3}]
    told = [record.getMessage() for record in caplog.records if "audit records" in record.getMessage()]
    assert len(told) == 2
    assert f"cannot write audit records to {path}: No such file or directory" in told[0]
    assert told[1].endswith("again; 0 were lost")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
async def test_a_full_disk_is_told_once_and_a_line_says_what_was_lost(
    package: Any, handlers: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"
    path.symlink_to("/dev/full")
    server = package.build_server(handlers())
    audit = import_module("stubwright_runtime.server.observability.audit")
    files = import_module("stubwright_runtime.server.observability.audit_file")
    recorder = audit.Recorder(package.TOOLS["ok"].package, files.AuditFile(path), waiting=2)
    server.core.recorder = server.core.instrumentation._recorder = recorder
    async with mcp.Client(server) as client:
        await client.call_tool("ok", {"x": 0})
        await logged("No space left on device", caplog)  # the file that cannot be written
        for number in range(1, 6):
            await client.call_tool("ok", {"x": number})
        path.unlink()
        await anyio.to_thread.run_sync(recorder.flush)
    *found, last = sorted(lines(path), key=lambda one: "lost" in one)
    assert [one["arguments"]["x"] for one in found] == [0, 1, 2]
    assert (last["lost"], set(last)) == (3, {"time", "lost"})
    told = [record.getMessage() for record in caplog.records if "audit records" in record.getMessage()]
    assert len(told) == 2
    assert "No space left on device" in told[0]
    assert told[1].endswith("again; 3 were lost")


async def test_a_line_that_was_cut_begins_anew_in_a_new_file(
    sink: Any, package: Any, handlers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    records: list[Any] = []
    async with mcp.Client(package.build_server(handlers(), audit=records.append)) as client:
        for number in range(2):
            await client.call_tool("ok", {"x": number})
    made, write = sink(path), os.write
    first = len(import_module("stubwright_runtime.server.observability.audit_file").format_line(records[0]))
    cut = iter([first + 10])

    def short(descriptor: int, data: bytes) -> int:
        if (room := next(cut, None)) is None:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:room])

    monkeypatch.setattr(os, "write", short)
    assert not made.write(records, 0)
    monkeypatch.undo()
    path.rename(tmp_path / "old")
    assert made.write((), 0)
    assert [one["arguments"] for one in lines(path)] == [{"x": 1}]


# The trace of the caller.

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize(
    ("in_meta", "header", "trace"),
    [
        (TRACEPARENT, None, TRACE),
        (None, TRACEPARENT, TRACE),
        (f"00-{'1' * 32}-{'2' * 16}-00", TRACEPARENT, "1" * 32),
        ("none", TRACEPARENT, TRACE),
        (7, None, None),
        (None, None, None),
    ],
)
async def test_a_record_has_the_trace_of_the_caller(
    in_meta: object, header: str | None, trace: str | None, package: Any, handlers: Any, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    meta = ENVELOPE if in_meta is None else {**ENVELOPE, "traceparent": in_meta}
    params = {"name": "ok", "arguments": {}, "_meta": meta}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "ok",
        **({} if header is None else {"traceparent": header}),
    }
    with asgi(package.asgi_app(handlers(), audit=path)) as url:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        assert httpx2.post(f"{url}/mcp", json=body, headers=headers).status_code == 200
    assert [line["trace"] for line in lines(path)] == [trace]


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        (TRACEPARENT, TRACE),
        (TRACEPARENT.replace("00-", "01-", 1) + "-more", TRACE),
        (TRACEPARENT + "-more", None),
        (TRACEPARENT + "\n", None),
        (TRACEPARENT.replace("00-", "ff-", 1), None),
        (TRACEPARENT.replace(TRACE, "0" * 32), None),
        (TRACEPARENT.replace("b7ad6b7169203331", "0" * 16), None),
        (TRACEPARENT.upper(), None),
        (None, None),
    ],
)
async def test_a_traceparent_is_read_as_w3c_specifies_it(text: object, trace: str | None) -> None:
    assert read_trace_id(text) == trace


# The command.


@pytest.mark.parametrize(
    ("number", "kind"), amounts.sample(product([signal.SIGTERM, signal.SIGINT], ["stdio", "http"]), 3)
)
def test_all_is_written_when_the_server_is_stopped(
    kind: str, number: signal.Signals, project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    options = ["--audit", str(path), *(["--http", "127.0.0.1:0"] if kind == "http" else [])]
    pipe = subprocess.PIPE
    server = subprocess.Popen(command(project, *options), cwd=project, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with server:
        url = ""
        while kind == "http" and "startup complete" not in (said := server.stderr.readline().decode()):
            url = next(iter(re.findall(r"serving (http://\S+)", said)), url)
        for x in range(20):
            params = {"name": "ok", "arguments": {"x": x}, "_meta": meta}
            body = {"jsonrpc": "2.0", "id": x + 1, "method": "tools/call", "params": params}
            if kind == "stdio":
                server.stdin.write(json.dumps(body).encode() + b"\n")
                assert b'"fine"' in server.stdout.readline()
            else:
                headers = {
                    "Accept": "application/json, text/event-stream",
                    "MCP-Protocol-Version": "2026-07-28",
                    "Mcp-Method": "tools/call",
                    "Mcp-Name": "ok",
                }
                assert httpx2.post(url, json=body, headers=headers).status_code == 200
        server.send_signal(number)
        assert server.wait(60) in (0, -number)
    assert [one["arguments"]["x"] for one in lines(path)] == [*range(20)]


def test_standard_error_is_a_file_too(project: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    said = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ok", "arguments": {}}},
    ]
    text = "".join(json.dumps(one) + "\n" for one in said)
    done = subprocess.run(
        command(project, "--audit", "-"), cwd=project, input=text, capture_output=True, text=True, timeout=60
    )
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("{")]
    assert (json.loads(line)["tool"], json.loads(line)["client"]) == ("ok", "c")
    assert '"time"' not in done.stdout


def test_the_page_names_the_reasons_of_tasks(tmp_path: Path) -> None:
    task = {"execution": {"taskSupport": "optional"}}
    tools = [tool("plain"), tool("slow", {"text": {"type": "string"}}, **task)]
    generate(tmp_path, manifest(tools, name="kept", storage={"maxBytesPerPrincipal": "8KiB", "maxBytes": "64KiB"}))
    source = """
        import asyncio

        class Handlers:
            async def plain(self, args, ctx):
                return "fine"

            async def slow(self, args, ctx):
                await asyncio.sleep(60)
    """
    (tmp_path / "kept_handlers.py").write_text(textwrap.dedent(source))
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    calls = [("plain", {}), ("slow", {"text": "x" * 10_000}), ("slow", {})]
    said: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number, (name, arguments) in enumerate(calls, 2):
        params = {"name": name, "arguments": arguments, "task": {}}
        said.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    words = ["-m", "kept_mcp", "--handlers", "kept_handlers:Handlers", "--audit", "audit.jsonl", "--grace", "0"]
    text = "".join(json.dumps(one) + "\n" for one in said)
    subprocess.run(
        [*forked.interpreter(), *words], cwd=tmp_path, input=text, capture_output=True, text=True, timeout=60
    )
    found = {(one["outcome"], one["reason"]) for one in lines(tmp_path / "audit.jsonl") if one["reason"] is not None}
    assert found == {("invalid", "task_support"), ("limited", "storage"), ("cancelled", "stopped")}
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    for outcome, reason in found:
        [row] = re.findall(rf"^\| `{outcome}` \| (.*) \|$", page, re.MULTILINE)
        assert f"`{reason}`" in row


@pytest.mark.parametrize(("where", "reason"), [("nowhere/a", "No such file or directory"), (".", "Is a directory")])
def test_a_file_that_cannot_be_opened_is_an_error_at_the_start(where: str, reason: str, project: Path) -> None:
    done = subprocess.run(
        command(project, "--audit", where), cwd=project, input="", capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (
        2,
        f"audited_mcp: cannot write to --audit {where!r}: {reason}\n",
    )


@pytest.mark.long
async def test_no_record_is_lost_of_many_at_once(package: Any, handlers: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    server = package.build_server(handlers(), audit=path)
    async with mcp.Client(server, mode="2026-07-28") as client, anyio.create_task_group() as tasks:
        for number in range(500):
            tasks.start_soon(client.call_tool, "ok", {"x": number})
    found = lines(path)
    assert sorted(one["arguments"]["x"] for one in found) == [*range(500)]
    assert len({one["id"] for one in found}) == 500
