"""Calls public servers' tools, raw and through typed clients, and compares the results."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import task_wire
from corpus import Call, Echo
from instances import same

STATELESS = "2026-07-28"


async def check_raw(module: Any, todo: Sequence[Call]) -> list[str]:
    """Return the faults in a server's raw responses to these calls."""
    echo = Echo(module)
    wrong: list[str] = []
    tasks: dict[str, Any] = {"extensions": {task_wire.EXTENSION: {}}}  # some tools run only as tasks
    async with task_wire.in_memory(module.build_server(echo), STATELESS, tasks) as wire:
        for call in todo:
            echo.call = call
            answer = await wire("tools/call", name=call.tool, arguments=call.arguments)
            if "taskId" in answer:
                answer = (await wire.until(answer["taskId"], "completed"))["result"]
            text = answer["content"][-1]["text"] if "content" in answer else str(answer["error"])
            wrong += differences(call, text, answer.get("structuredContent"))
    return wrong


def differences(call: Call, text: str, result: Any) -> list[str]:
    """Return the differences between a call and its result: in the echo (its last text) and the structured content."""
    shown = f"{call.tool}({json.dumps(call.arguments)[:300]})"
    if not text.startswith('{"') and text != "{}":
        return [f"{shown} was refused: {text[:300]}"]
    if not same(json.loads(text), call.arguments):
        return [f"{shown} came as {text[:300]}"]
    if call.has_result and not same(result, call.result):
        return [f"{shown} gave {json.dumps(result)[:300]} for {json.dumps(call.result)[:300]}"]
    return []


def wire_names(model: Any) -> dict[str, str]:
    """Return the fields of a model by their wire names."""
    return {info.alias or name: name for name, info in model.model_fields.items()}


async def check_typed(module: Any, client: Any, todo: Sequence[Call]) -> list[str]:
    """Return the faults in the requests and results of a typed client."""
    echo = Echo(module)
    wrong = []
    async with client.connect(module.build_server(echo)) as connected:
        for call in todo:
            echo.call, echo.seen = call, None
            method = getattr(connected, module.TOOLS[call.tool].method)
            arguments = keywords(module.TOOLS[call.tool].Input, method, call)
            try:
                given = await method(**arguments)
            except module.ToolFailed as error:  # also if there is no result for the tool
                wrong += differences(call, error.result.content[-1].text, call.result)
            else:
                modelled = isinstance(given, BaseModel)
                text = json.dumps(echo.seen) if modelled else given[-1].text
                wrong += differences(call, text, given.model_dump(mode="json") if modelled else None)
    return wrong


def keywords(model: Any, method: Any, call: Call) -> dict[str, Any]:
    """Return a call's arguments for a client method: Python names, with values of their Python types."""
    fields = wire_names(model)
    parameters = inspect.signature(method).parameters.keys()
    assert parameters >= {*fields.values()}, call.tool
    assert parameters - {*fields.values()} <= {"extra", "extra_"}, call.tool  # additional properties of an open schema
    values = model.model_validate(call.arguments)
    return {fields[wire]: getattr(values, fields[wire]) for wire in call.arguments}


def output(command: Sequence[str], folder: Path) -> str:
    """Return the output of a program that must succeed."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout
