"""Tasks in Redis: worked at by many processes, of which some die."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from packages import generate, manifest, tool
from server_process import Process

pytestmark = pytest.mark.anyio

WHOLE = os.environ.get("TOOLWRIGHT_WHOLE_TASKS") == "1"
NUMBER, DEATHS = (1000, 20) if WHOLE else (200, 4)
"""Tasks, and workers that are killed while these run."""

SECONDS = {"seconds": {"type": "number"}, "number": {"type": "integer"}}
TASK = {"execution": {"taskSupport": "optional"}}
MANIFEST = manifest(
    [
        tool("again", SECONDS, annotations={"idempotentHint": True}, **TASK, toolwright={"task": {"most": 10000}}),
        tool("once", SECONDS, **TASK, toolwright={"task": {"most": 10000}}),
        tool("block", SECONDS, **TASK),
    ],
    name="process",
)

HANDLERS = """
import asyncio, os, time

def note(kind, args):
    with open("log", "a") as log:
        log.write(f"{kind} {args.number} {os.getpid()}\\n")

class Work:
    async def again(self, args, ctx):
        note("again", args)
        await asyncio.sleep(args.seconds)
        return f"did {args.number}"

    async def once(self, args, ctx):
        note("once", args)
        await asyncio.sleep(args.seconds)
        return f"did {args.number}"

    def block(self, args, ctx):
        note("block", args)
        time.sleep(args.seconds)
        return f"did {args.number}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    generate(tmp_path, MANIFEST)
    (tmp_path / "work.py").write_text(HANDLERS)
    return tmp_path


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Process]]:
    with ExitStack() as ending:

        def started(state: str, *options: str) -> Process:
            process = Process(project, *options, "--handlers", "work:Work", "--state", state)
            ending.callback(process.kill)
            return process

        yield started


def served(start: Callable[..., Process], state: str, *options: str) -> tuple[Process, str]:
    process = start(state, "--http", "127.0.0.1:0", *options)
    return process, process.url()


def worker(start: Callable[..., Process], state: str) -> Process:
    process = start(state, "worker")
    process.await_log("working at tasks")
    return process


async def asked(http: httpx2.AsyncClient, url: str, method: str, **params: Any) -> dict[str, Any]:
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
    response = await http.post(url, json=body, headers=headers)
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        [text] = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    said: dict[str, Any] = json.loads(text)
    return said


async def begun(http: httpx2.AsyncClient, url: str, name: str, number: int, seconds: float) -> str:
    said = await asked(http, url, "tools/call", name=name, arguments={"number": number, "seconds": seconds})
    assert said["result"]["resultType"] == "task"
    return str(said["result"]["taskId"])


async def ended(http: httpx2.AsyncClient, url: str, task: str, patience: float = 60) -> dict[str, Any]:
    end = time.monotonic() + patience
    while True:
        said = (await asked(http, url, "tasks/get", taskId=task))["result"]
        if said["status"] in ("completed", "failed", "cancelled"):
            return dict(said)
        assert time.monotonic() < end, said
        await asyncio.sleep(0.3)


def runs(project: Path) -> Counter[str]:
    return Counter(" ".join(line.split()[:2]) for line in (project / "log").read_text().splitlines())


async def test_workers_that_die_lose_no_task(project: Path, start: Callable[..., Process], redis_url: str) -> None:
    chance = random.Random(1)
    servers = [served(start, redis_url, "--workers", "0")[1] for _ in range(2)]
    workers = [worker(start, redis_url) for _ in range(3)]

    async def kill() -> None:
        for _ in range(DEATHS):
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            victim = workers.pop(chance.randrange(len(workers)))
            victim.popen.send_signal(signal.SIGKILL)
            workers.append(await asyncio.to_thread(worker, start, redis_url))

    async with httpx2.AsyncClient(timeout=60) as http:
        killing = asyncio.create_task(kill())
        places = asyncio.Semaphore(16)

        async def one(number: int) -> tuple[str, dict[str, Any]]:
            kind = chance.choice(["again", "once"])
            await asyncio.sleep(chance.uniform(0, DEATHS))
            async with places:
                task = await begun(http, chance.choice(servers), kind, number, chance.uniform(0.005, 0.5))
            await asyncio.sleep(2)
            async with places:
                return f"{kind} {number}", await ended(http, chance.choice(servers), task)

        results = dict(await asyncio.gather(*(one(number) for number in range(NUMBER))))
        await killing
    counts = runs(project)
    assert len(results) == NUMBER
    for name, said in results.items():
        kind, number = name.split()
        if said["status"] == "completed":
            assert said["result"]["content"] == [{"type": "text", "text": f"did {number}"}]
        else:
            assert (kind, said["status"]) == ("once", "failed")
            assert "died" in said["error"]["message"]
        assert counts[name] >= 1
        assert kind == "again" or counts[name] == 1
    assert any(said["status"] == "failed" for said in results.values()), "nobody died at work"
