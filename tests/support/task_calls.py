"""Calls to tools that run as tasks, over HTTP with 2026-07-28."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx2


async def asked(http: httpx2.AsyncClient, url: str, method: str, **params: Any) -> dict[str, Any]:
    """Return the response to a 2026-07-28 request for a tool or a task, repeating a lost read."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": params.get("name") or params["taskId"],
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    while True:
        try:
            response = await http.post(url, json=body, headers=headers)
            break
        except httpx2.TransportError:
            if method != "tasks/get":  # it is unknown whether it took effect
                raise
            await asyncio.sleep(0.05)
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        [text] = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    said: dict[str, Any] = json.loads(text)
    return said


async def begun(http: httpx2.AsyncClient, url: str, name: str, number: int, seconds: float) -> str:
    """Call a tool, and return its task's ID."""
    said = await asked(http, url, "tools/call", name=name, arguments={"number": number, "seconds": seconds})
    assert said["result"]["resultType"] == "task"
    return str(said["result"]["taskId"])


async def wait_for_end(http: httpx2.AsyncClient, url: str, task: str, patience: float = 60) -> dict[str, Any]:
    """Wait until a task has finished, and return it with its result."""
    end = time.monotonic() + patience
    while True:
        answer = await asked(http, url, "tasks/get", taskId=task)
        assert "result" in answer, answer
        said: dict[str, Any] = answer["result"]
        if said["status"] in ("completed", "failed", "cancelled"):
            return said
        assert time.monotonic() < end, said
        await asyncio.sleep(0.05)
