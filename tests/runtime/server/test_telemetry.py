"""OpenTelemetry attributes of servers and clients, by the semantic conventions for MCP.

The tables have the requirement levels of `model/mcp/` in github.com/open-telemetry/semantic-conventions-genai.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import anyio
import mcp
import mcp_types as types
import pytest
from mcp.server.lowlevel import Server
from mcp_types.methods import SPEC_CLIENT_METHODS, SPEC_CLIENT_NOTIFICATION_METHODS
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import prompt_ends
from packages import generate, imported, manifest, tool
from processes import start_process
from serving import serve
from stubwright_runtime.observability.telemetry import is_method

ends_are_prompt = prompt_ends.ends_are_prompt

SECRET = "hunter22-secret"
VALUE = manifest(
    [
        tool("ok", {"x": {"type": "integer"}, "pw": {"type": "string"}}, stubwright={"policy": {"redact": ["/pw"]}}),
        tool("says_no"),
        tool("breaks", {"pw": {"type": "string"}}, stubwright={"policy": {"redact": ["/pw"]}}),
        tool("waits"),
        tool("pays", stubwright={"policy": {"once": {"key": "all"}}}),
    ],
    name="traced",
    resources=[{"uri": "note://one", "name": "one", "stubwright": {"text": "One."}}],
    prompts=[{"name": "hello", "stubwright": {"messages": [{"role": "user", "text": "Hello"}]}}],
    audit={"arguments": True},
)
HANDLERS = """
    import asyncio, atexit, json, os, sys
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from traced_mcp import ToolError

    SPANS, READER = InMemorySpanExporter(), InMemoryMetricReader()
    PROVIDER = TracerProvider()
    PROVIDER.add_span_processor(SimpleSpanProcessor(SPANS))
    trace.set_tracer_provider(PROVIDER)
    metrics.set_meter_provider(MeterProvider([READER]))

    @atexit.register
    def dump():
        data = READER.get_metrics_data()
        with open(os.environ["TRACED"], "w") as file:
            spans = [json.loads(span.to_json()) for span in SPANS.get_finished_spans()]
            told = {"spans": spans, "metrics": None if data is None else json.loads(data.to_json())}
            json.dump({**told, "modules": [*sys.modules]}, file)

    class Handlers:
        async def ok(self, args, ctx):
            return f"got {args.pw}"

        async def says_no(self, args, ctx):
            raise ToolError("no")

        async def breaks(self, args, ctx):
            raise ValueError(f"internals of {args.pw}")

        async def waits(self, args, ctx):
            await asyncio.sleep(60)

        async def pays(self, args, ctx):
            return "paid"
"""

Kind = Literal["stdio", "http"]
Era = Literal["legacy", "2026-07-28"]
BOTH = [(kind, era) for kind in ("stdio", "http") for era in ("legacy", "2026-07-28")]


@dataclass(frozen=True)
class Row:
    """An attribute, its requirement level, and why it is not given where it never is."""

    name: str
    level: Literal["required", "conditional", "recommended", "opt-in"]
    never: str | None = None


COMMON = (
    Row("mcp.method.name", "required"),
    Row("error.type", "conditional"),
    Row("gen_ai.prompt.name", "conditional"),
    Row("gen_ai.tool.name", "conditional"),
    Row("rpc.response.status_code", "conditional"),
    Row("gen_ai.operation.name", "recommended"),
    Row("jsonrpc.protocol.version", "recommended", "only when it is not 2.0, which it always is"),
    Row("mcp.protocol.version", "recommended"),
    Row("network.transport", "recommended"),
    Row("network.protocol.name", "recommended"),
)
OF_SPANS = (
    *COMMON,
    Row("jsonrpc.request.id", "conditional"),
    Row("mcp.resource.uri", "conditional"),
    Row("gen_ai.prompt.variable", "opt-in", "prompts have no redaction yet"),
)
REPLAYED = Row("stubwright.replayed", "conditional")
SERVER = (
    *OF_SPANS,
    REPLAYED,
    Row("network.protocol.version", "recommended"),
    Row("mcp.session.id", "recommended"),
    Row("client.address", "recommended"),
    Row("client.port", "recommended"),
    Row("gen_ai.tool.call.arguments", "opt-in"),
    Row("gen_ai.tool.call.result", "opt-in"),
)
OF_CLIENTS = (
    Row("server.address", "recommended"),
    Row("server.port", "recommended"),
    Row("network.protocol.version", "recommended", "when applicable: the SDK's transport does not tell it"),
)
CLIENT = (
    *OF_SPANS,
    *OF_CLIENTS,
    Row("mcp.session.id", "recommended", "the SDK's transport keeps it"),
    Row("gen_ai.tool.call.arguments", "opt-in", "a client knows no `audit` of its server"),
    Row("gen_ai.tool.call.result", "opt-in", "a client knows no `audit` of its server"),
)
URI = Row("mcp.resource.uri", "opt-in", "it would be one of many")
METRICS: Mapping[str, tuple[Row, ...]] = {
    "mcp.server.operation.duration": (*COMMON, REPLAYED, Row("network.protocol.version", "recommended"), URI),
    "mcp.client.operation.duration": (*COMMON, *OF_CLIENTS, URI),
    "mcp.server.session.duration": (
        Row("error.type", "conditional", "a server sees a session end, and not why"),
        Row("jsonrpc.protocol.version", "recommended", "only when it is not 2.0, which it always is"),
        Row("mcp.protocol.version", "recommended"),
        Row("network.transport", "recommended"),
        Row("network.protocol.name", "recommended"),
        Row("network.protocol.version", "recommended"),
    ),
    "mcp.client.session.duration": (
        Row("error.type", "conditional"),
        Row("jsonrpc.protocol.version", "recommended", "only when it is not 2.0, which it always is"),
        Row("mcp.protocol.version", "recommended"),
        Row("network.transport", "recommended"),
        Row("network.protocol.name", "recommended"),
        *OF_CLIENTS,
    ),
}
BOUNDARIES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    generate(folder, VALUE)
    (folder / "telling.py").write_text(textwrap.dedent(HANDLERS))
    return folder


@pytest.fixture(scope="module")
def package(project: Path) -> Iterator[ModuleType]:
    with imported(project, "traced_mcp") as module:
        yield module


@pytest.fixture(scope="module")
def here() -> Iterator[tuple[InMemorySpanExporter, InMemoryMetricReader]]:
    """Collect the telemetry of this process, which has one provider, and stop recording after these tests."""
    spans = InMemorySpanExporter()
    reader = InMemoryMetricReader({Histogram: AggregationTemporality.DELTA})
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    assert trace.get_tracer_provider() is provider
    yield spans, reader
    spans.shutdown()  # otherwise it records the spans of all later tests, including a test of memory


@dataclass
class Seen:
    """The telemetry of one run of a client with a server in another process."""

    kind: Kind
    era: Era
    client: list[dict[str, Any]]
    server: list[dict[str, Any]]
    metrics: dict[str, list[dict[str, Any]]]
    modules: list[str]
    port: int | None

    @property
    def revision(self) -> str:
        return "2025-11-25" if self.era == "legacy" else "2026-07-28"


@contextmanager
def over(kind: Kind, project: Path, dump: Path) -> Iterator[tuple[Any, int | None]]:
    """What to connect to, and its port."""
    command = [sys.executable, "-m", "traced_mcp", "--handlers", "telling:Handlers"]
    if kind == "stdio":
        yield command, None
        return
    environment = {**os.environ, "TRACED": str(dump)}
    with start_process(
        [*command, "--http", "127.0.0.1:0"],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as server:
        assert server.stderr is not None
        url = ""
        while "startup complete" not in (said := server.stderr.readline().decode()):
            assert said
            url = found[0] if (found := re.findall(r"http://\S+", said)) else url
        yield url, int(url.split(":")[2].split("/")[0])
        server.terminate()
        server.wait(60)


EACH = [BOTH[0], BOTH[3], *(pytest.param(both, marks=pytest.mark.long) for both in BOTH[1:3])]
"""Each transport and each era once; `make long` has the others."""


@pytest.fixture(scope="module", params=EACH, ids=lambda pair: "-".join(pair))
def seen(
    request: pytest.FixtureRequest,
    project: Path,
    package: Any,
    here: tuple[InMemorySpanExporter, InMemoryMetricReader],
    tmp_path_factory: pytest.TempPathFactory,
) -> Seen:
    kind, era = request.param
    dump = tmp_path_factory.mktemp("told") / "told.json"
    spans, reader = here
    spans.clear()
    reader.get_metrics_data()
    with over(kind, project, dump) as (target, port):
        more = {"env": {"TRACED": str(dump)}, "cwd": project} if kind == "stdio" else {}
        anyio.run(calls, package, target, era, more)
    told = json.loads(dump.read_text())
    ours = reader.get_metrics_data()
    assert ours is not None
    return Seen(
        kind,
        era,
        [json.loads(span.to_json()) for span in spans.get_finished_spans()],
        told["spans"],
        {**points(told["metrics"]), **points(json.loads(ours.to_json()))},
        told["modules"],
        port,
    )


async def calls(package: Any, target: Any, era: Era, more: Mapping[str, Any]) -> None:
    """What is done in each run."""
    connection = package.TracedClient.connect(target, drift="warn", **more)
    connection._client.mode = era
    async with connection as client:
        with trace.get_tracer("test").start_as_current_span("outer"):
            await client.ok(x=1, pw=SECRET)
        await client.pays()
        await client.pays()
        with pytest.raises(package.ToolFailed):
            await client.says_no()
        with pytest.raises(package.ToolFailed):
            await client.breaks(pw=SECRET)
        unknown = types.CallToolRequestParams(name="nobody" + "\n" * 500)
        with pytest.raises(mcp.MCPError):
            await client.raw.session.send_request(types.CallToolRequest(params=unknown), types.CallToolResult)
        with pytest.raises(mcp.MCPError):
            await client.with_options(timeout=0.3).waits()
        await client.raw.read_resource("note://one")
        await client.raw.get_prompt("hello")


def points(data: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        metric["name"]: [{**point, "unit": metric["unit"]} for point in metric["data"]["data_points"]]
        for resource in data["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }


def named(spans: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (span,) = [span for span in spans if span["name"] == name]
    return span


def expected(seen: Seen, method: str, **more: Any) -> dict[str, Any]:
    network = {"network.transport": "pipe"} if seen.kind == "stdio" else {"network.transport": "tcp"}
    if seen.kind == "http":
        network["network.protocol.name"] = "http"
    return {"mcp.method.name": method, "mcp.protocol.version": seen.revision, **network, **more}


def test_a_stored_result_is_marked(seen: Seen) -> None:
    spans = [span["attributes"] for span in seen.server if span["name"] == "tools/call pays"]
    assert [attributes.get("stubwright.replayed") for attributes in spans] == [None, True]


TOOL = {"gen_ai.operation.name": "execute_tool"}
REQUESTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "tools/call ok": ("tools/call", {**TOOL, "gen_ai.tool.name": "ok"}),
    "tools/call says_no": ("tools/call", {**TOOL, "gen_ai.tool.name": "says_no", "error.type": "tool_error"}),
    "tools/call breaks": ("tools/call", {**TOOL, "gen_ai.tool.name": "breaks", "error.type": "tool_error"}),
    "resources/read": ("resources/read", {"mcp.resource.uri": "note://one"}),
    "prompts/get hello": ("prompts/get", {"gen_ai.prompt.name": "hello"}),
    "tools/list": ("tools/list", {}),
    "initialize": ("initialize", {}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_span_of_a_server_has_each_attribute(seen: Seen, name: str) -> None:
    if name == "initialize" and seen.era != "legacy":
        assert [span for span in seen.server if span["name"] == name] == []
        return
    method, more = REQUESTS[name]
    span = named(seen.server, name)
    attributes = dict(span["attributes"])
    assert span["kind"] == "SpanKind.SERVER"
    assert attributes.pop("jsonrpc.request.id").isdecimal()
    if seen.kind == "http":
        assert attributes.pop("client.address") == "127.0.0.1"
        assert attributes.pop("client.port") > 0
        assert attributes.pop("network.protocol.version") == "1.1"
        if seen.era == "legacy" and method != "initialize":
            assert len(attributes.pop("mcp.session.id")) == 16
    if name == "tools/call ok":
        assert json.loads(attributes.pop("gen_ai.tool.call.arguments")) == {"x": 1, "pw": "[redacted]"}
        assert "got [redacted]" in attributes.pop("gen_ai.tool.call.result")
    else:
        attributes.pop("gen_ai.tool.call.arguments", None)
    assert attributes == expected(seen, method, **more)
    assert (span["status"]["status_code"] == "ERROR") == ("error.type" in more)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_span_of_a_client_has_each_attribute(seen: Seen, name: str) -> None:
    if name == "initialize" and seen.era != "legacy":
        assert [span for span in seen.client if span["name"] == name] == []
        return
    method, more = REQUESTS[name]
    span = named(seen.client, name)
    attributes = dict(span["attributes"])
    assert span["kind"] == "SpanKind.CLIENT"
    assert attributes.pop("jsonrpc.request.id").isdecimal()
    if seen.kind == "http":
        assert (attributes.pop("server.address"), attributes.pop("server.port")) == ("127.0.0.1", seen.port)
    assert attributes == expected(seen, method, **more)
    assert (span["status"]["status_code"] == "ERROR") == ("error.type" in more)


def test_each_request_has_one_span_on_each_side(seen: Seen) -> None:
    calls = [span for span in seen.server if span["name"] == "tools/call ok"]
    assert len(calls) == 1
    (outer,) = [span for span in seen.client if span["name"] == "outer"]
    (client,) = [span for span in seen.client if span["name"] == "tools/call ok"]
    assert client["parent_id"] == outer["context"]["span_id"]
    assert calls[0]["parent_id"] == client["context"]["span_id"]  # by `_meta`
    assert calls[0]["context"]["trace_id"] == outer["context"]["trace_id"]


def test_plain_messages_are_answered_without_the_sdk(seen: Seen) -> None:
    assert seen.modules
    assert "mcp" not in seen.modules


def test_the_span_of_a_session_is_counted_once(seen: Seen) -> None:
    sessions = seen.metrics.get("mcp.server.session.duration", [])
    assert sum(point["count"] for point in sessions) == (1 if seen.era == "legacy" else 0)
    for name in ("initialize", "notifications/initialized"):
        assert len([span for span in seen.server if span["name"] == name]) == (1 if seen.era == "legacy" else 0)


def test_all_methods_of_the_protocol_are_known() -> None:
    methods = SPEC_CLIENT_METHODS | SPEC_CLIENT_NOTIFICATION_METHODS
    assert [name for name in methods if not is_method(name)] == []
    assert not is_method("tools/invented")


def test_an_unknown_tool_names_no_span_and_no_metric(seen: Seen) -> None:
    (span,) = [span for span in seen.server if span["attributes"].get("rpc.response.status_code") == "-32602"]
    assert span["name"] == "tools/call"
    assert len(span["attributes"]["gen_ai.tool.name"]) == 200
    assert "\n" not in span["attributes"]["gen_ai.tool.name"]
    assert span["attributes"]["error.type"] == "-32602"
    (point,) = [
        point
        for point in seen.metrics["mcp.server.operation.duration"]
        if point["attributes"].get("error.type") == "-32602"
    ]
    assert point["attributes"] == expected(
        seen,
        "tools/call",
        **TOOL,
        **{"error.type": "-32602", "rpc.response.status_code": "-32602"},
        **({"network.protocol.version": "1.1"} if seen.kind == "http" else {}),
    )


def test_a_call_that_is_given_up_says_so(seen: Seen) -> None:
    span = named(seen.server, "tools/call waits")
    assert span["attributes"]["error.type"] == "cancelled"
    assert span["status"]["status_code"] == "ERROR"
    told = {point["attributes"].get("error.type") for point in seen.metrics["mcp.client.operation.duration"]}
    assert told & {"cancelled", "timeout"}


@pytest.mark.parametrize("name", METRICS)
def test_the_metrics_have_each_attribute(seen: Seen, name: str) -> None:
    if name == "mcp.server.session.duration" and seen.era != "legacy":
        assert name not in seen.metrics  # there are no sessions
        return
    rows = {row.name: row for row in METRICS[name]}
    found = seen.metrics[name]
    assert {point["unit"] for point in found} == {"s"}
    for point in found:
        assert point["explicit_bounds"] == BOUNDARIES
        assert point["sum"] >= 0
        assert set(point["attributes"]) <= set(rows)
        for attribute in {row.name for row in rows.values() if row.level == "required"}:
            assert point["attributes"][attribute]
        assert point["attributes"]["network.transport"] == ("pipe" if seen.kind == "stdio" else "tcp")
        assert point["attributes"]["mcp.protocol.version"]
    given = {key for point in found for key in point["attributes"]}
    assert given.isdisjoint(row.name for row in rows.values() if row.never)
    if "operation" in name:
        (point,) = [point for point in found if point["attributes"].get("gen_ai.tool.name") == "says_no"]
        assert (point["count"], point["attributes"]["error.type"]) == (1, "tool_error")


@pytest.mark.parametrize("side", ["server", "client"])
def test_the_table_has_every_attribute(seen: Seen, side: str) -> None:
    rows = SERVER if side == "server" else CLIENT
    spans = [span for span in getattr(seen, side) if span["kind"] == f"SpanKind.{side.upper()}"]
    given = {key for span in spans for key in span["attributes"]}
    assert given <= {row.name for row in rows}
    assert given.isdisjoint(row.name for row in rows if row.never)
    over_http = {"network.protocol.name", "network.protocol.version", "client.address", "client.port"}
    over_http |= {"server.address", "server.port", "mcp.session.id"}
    wanted = {row.name for row in rows if not row.never}
    if seen.kind == "stdio":
        wanted -= over_http
    if seen.era != "legacy":
        wanted -= {"mcp.session.id"}
    assert given == wanted


def test_no_secret_is_told(seen: Seen) -> None:
    assert SECRET not in json.dumps([seen.client, seen.server, seen.metrics])
    assert "internals" not in json.dumps([seen.client, seen.server, seen.metrics])


def test_what_a_server_echoes_in_an_error_is_no_secret_of_a_span(
    package: Any, here: tuple[InMemorySpanExporter, InMemoryMetricReader]
) -> None:
    async def echo(ctx: Any, params: Any) -> types.CallToolResult:
        raise mcp.MCPError(types.INVALID_PARAMS, f"no {params.arguments['pw']} here")

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    async def call(url: str) -> str:
        async with package.TracedClient.connect(url, drift="ignore") as client:
            with pytest.raises(mcp.MCPError) as raised:
                await client.ok(pw=SECRET)
        return str(raised.value)

    spans, _ = here
    spans.clear()
    with serve(Server("echo", on_call_tool=echo, on_list_tools=list_tools)) as url:
        told = anyio.run(call, url)
    found = [span.to_json() for span in spans.get_finished_spans()]
    assert told == "no [redacted] here"
    assert any("no [redacted] here" in span for span in found)
    ours = [span for span in found if "tools/call ok" in span and "CLIENT" in span]
    assert ours
    assert SECRET not in "".join(ours)
