"""An agent of the OpenAI Agents SDK, on a model that is scripted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from frameworks.desk import CALLS, DELETE, Desk, connect, say
from stubwright_runtime import as_tools

Calls = dict[str, tuple[str, dict[str, Any]]]


class Scripted(Model):  # type: ignore[misc]
    """A model that makes calls, and then ends the run."""

    def __init__(self, calls: Calls) -> None:
        self._turns: list[list[Any]] = [
            [
                ResponseFunctionToolCall(type="function_call", name=name, arguments=json.dumps(given), call_id=label)
                for label, (name, given) in calls.items()
            ],
            [
                ResponseOutputMessage(
                    id="m",
                    type="message",
                    role="assistant",
                    status="completed",
                    content=[ResponseOutputText(type="output_text", text="done", annotations=[])],
                )
            ],
        ]

    async def get_response(self, *_args: Any, **_options: Any) -> ModelResponse:
        return ModelResponse(output=self._turns.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_options: Any) -> Any:
        raise NotImplementedError


def agent(calls: Calls, tools: list[Any]) -> Any:
    """An agent whose model makes these calls."""
    return Agent(name="desk", model=Scripted(calls), tools=tools)


def read(result: Any) -> dict[str, Any]:
    """What a model reads of each call."""
    outputs = [item for item in result.to_input_list() if item.get("type") == "function_call_output"]
    return {item["call_id"]: _read_output(item["output"]) for item in outputs}


def _read_output(output: Any) -> dict[str, Any]:
    parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
    text = "\n".join(part["text"] for part in parts if part["type"] == "input_text")
    urls = [part["image_url"] for part in parts if part["type"] == "input_image"]
    media = [url.removeprefix("data:").split(";base64,") for url in urls]
    return {"text": text, "is_error": text.startswith("Error: "), "media": media}


async def main() -> None:
    """Run the agents."""
    set_tracing_disabled(True)
    desk = Desk()
    async with connect(desk) as client:
        tools = as_tools(client, "openai-agents")
        names = {tool.name: [tool.params_json_schema, tool.description, tool.needs_approval] for tool in tools}
        result = await Runner.run(agent(CALLS, tools), "go")
        report = {"tools": names, "calls": read(result), "said": result.final_output}
        options = {"config": ("configure", {"config": "c", "self": "s"})}
        report["calls"] |= read(await Runner.run(agent(options, tools), "go"))
        for label in ("denied", "approved"):
            asking = agent({"delete": DELETE}, tools)
            result = await Runner.run(asking, "go")
            (asked,) = result.interruptions
            state = result.to_state()
            if label == "approved":
                state.approve(asked)
            else:
                state.reject(asked)
            result = await Runner.run(asking, state)
            report[label] = [read(result)["delete"]["text"], [*desk.deleted]]
    async with connect(desk, confirm=lambda _name, _arguments: False) as client:
        result = await Runner.run(agent({"delete": DELETE}, as_tools(client, "openai-agents")), "go")
        report["confirm"] = read(result)["delete"]
    say(report)


asyncio.run(main())
