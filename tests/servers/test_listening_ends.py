"""Subscriptions get a response when their server stops, over stdio and HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from conftest import ROOT

import amounts
import forked
from processes import start_process

STOPS: Final = ("SIGTERM", "SIGINT", "SIGHUP")
META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
LISTEN: Final = {
    "jsonrpc": "2.0",
    "id": "heard",
    "method": "subscriptions/listen",
    "params": {"_meta": META, "notifications": {"toolsListChanged": True}},
}
COMMAND: Final = ("-m", "weather_mcp")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "generated"), str(ROOT / "examples")])}


@pytest.mark.parametrize("ending", amounts.sample([*STOPS, "the end of input"], 2))
def test_on_standard_input_and_output(ending: str) -> None:
    with start_process(
        [*forked.interpreter(), *COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(LISTEN).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["method"] == "notifications/subscriptions/acknowledged"
        if ending in STOPS:
            process.send_signal(getattr(signal, ending))
        else:
            process.stdin.close()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        assert (answer["id"], answer["result"]["resultType"]) == ("heard", "complete")
        assert process.wait(60) == 0


@pytest.mark.parametrize("ending", amounts.sample(STOPS, 1))
def test_over_http(ending: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as err,
        start_process(
            [*forked.interpreter(), *COMMAND, "--http", "127.0.0.1:0"], stderr=err, env=environment()
        ) as process,
    ):
        while "serving http" not in log.read_text():
            assert process.poll() is None
            time.sleep(0.02)
        url = log.read_text().partition("serving ")[2].split()[0]
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "subscriptions/listen",
        }
        with httpx2.stream("POST", url, json=LISTEN, headers=headers, timeout=60) as response:
            events = (json.loads(line[5:]) for line in response.iter_lines() if line.startswith("data:"))
            assert next(events)["method"] == "notifications/subscriptions/acknowledged"
            process.send_signal(getattr(signal, ending))
            answer: dict[str, Any] = next(events)
        assert (answer["id"], answer["result"]["resultType"]) == ("heard", "complete")
        assert process.wait(60) == 0
