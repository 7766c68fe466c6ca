"""Client messages in both eras, and handlers that respond to them, for tests of the direct path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
MORE: dict[str, Any] = {
    "resources": [{"uri": "docs://a", "name": "a", "stubwright": {"text": "A"}}],
    "resourceTemplates": [{"uriTemplate": "docs://each/{name}", "name": "each"}],
    "prompts": [
        {"name": "hello", "arguments": [{"name": "who"}], "stubwright": {"messages": [{"text": "Hello {{who}}"}]}}
    ],
    "pageSize": 3,
}


class Handlers:
    async def add(self, args: Any, ctx: Any) -> Any:
        return {"sum": (args.model_extra or {}).get("a", 0)} if not hasattr(args, "a") else {"sum": args.a}

    async def say(self, args: Any, ctx: Any) -> str:
        return str(getattr(args, "text", None))

    async def fail(self, args: Any, ctx: Any) -> str:
        from stubwright_runtime import ToolError

        raise ToolError("no") if args.how == "tool" else RuntimeError("secret")

    async def talk(self, args: Any, ctx: Any) -> str:
        await ctx.progress(1, 2, "half")
        await ctx.log(args.level or "info", {"said": "this"})
        return f"{ctx.revision} {ctx.can('elicitation')} {ctx.principal}"

    async def sure(self, args: Any, ctx: Any) -> str:
        return "done"

    async def mirror(self, args: Any, ctx: Any) -> str:
        return str(args.place)

    async def read_each(self, args: Any, ctx: Any) -> str:
        return f"each {args.name}"


def request(number: Any, method: str, params: Mapping[str, Any] | None, *, stateless: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    if stateless:
        params = {**(params or {}), "_meta": {**META, **(params or {}).get("_meta", {})}}
    return message if params is None else {**message, "params": deepcopy(dict(params))}


CLIENTS: Sequence[Mapping[str, Any]] = (
    {"name": "test", "version": "1"},
    {"name": "test", "version": "1", "title": "T", "description": "D", "websiteUrl": "https://example.com"},
    {"name": "test", "version": "1", "icons": [{"src": "https://example.com/a.png", "sizes": ["48x48"]}]},
)
CAPABILITIES: Sequence[Mapping[str, Any]] = (
    {},
    {"roots": {"listChanged": True}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}},
    {"experimental": {"a": {"b": 1}}, "tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}}},
    {"extensions": {"io.example/x": {"y": [1]}}},
)


def handshake(revision: str) -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": {"elicitation": {}}, "clientInfo": META[_INFO]}
    return {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}


_INFO = "io.modelcontextprotocol/clientInfo"
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def usual(message: Mapping[str, Any], revision: str, session: str | None) -> list[tuple[str, str]]:
    params = message.get("params") or {}
    headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", revision),
    ]
    if revision == "2026-07-28":
        headers.append(("mcp-method", message["method"]))
        name = params.get("uri" if message["method"] == "resources/read" else "name")
        headers += [("mcp-name", name)] if isinstance(name, str) and message["method"] in _NAMED else []
    return headers if session is None else [*headers, ("mcp-session-id", session)]


_NAMED = ("tools/call", "prompts/get", "resources/read")
