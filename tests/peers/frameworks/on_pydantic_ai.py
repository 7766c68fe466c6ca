"""An agent of Pydantic AI, on its `FunctionModel`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from frameworks.desk import CALLS, DELETE, Desk, connect, say
from stubwright_runtime import as_tools


def scripted(calls: dict[str, tuple[str, dict[str, Any]]]) -> Callable[[list[ModelMessage], AgentInfo], ModelResponse]:
    """A model that makes these calls, and then ends the run."""

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(name, given, tool_call_id=label) for label, (name, given) in calls.items()])

    return answer


def read(messages: list[ModelMessage]) -> dict[str, Any]:
    """What a model reads of each call."""
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return {
        part.tool_call_id: {
            "text": part.model_response_str(wrap_if_error=False),
            "is_error": part.outcome == "failed",
            "media": [[file.media_type, file.base64] for file in part.files if isinstance(file, BinaryContent)],
        }
        for part in parts
    }


async def main() -> None:
    """Run the agents."""
    desk = Desk()
    async with connect(desk) as client:
        tools = as_tools(client, "pydantic-ai")
        names = {
            tool.name: [tool.function_schema.json_schema, tool.description, tool.requires_approval] for tool in tools
        }
        run = await Agent(FunctionModel(scripted(CALLS)), tools=tools).run("go")
        report = {"tools": names, "calls": read(run.all_messages()), "said": run.output}
        options = {"config": ("configure", {"config": "c", "self": "s"})}
        run = await Agent(FunctionModel(scripted(options)), tools=tools).run("go")
        report["calls"] |= read(run.all_messages())

        agent = Agent(FunctionModel(scripted({"delete": DELETE})), tools=tools, output_type=[str, DeferredToolRequests])
        for label, answer in (("denied", False), ("approved", True)):
            asked = await agent.run("go")
            assert isinstance(asked.output, DeferredToolRequests)
            results = DeferredToolResults(approvals={call.tool_call_id: answer for call in asked.output.approvals})
            run = await agent.run(message_history=asked.all_messages(), deferred_tool_results=results)
            report[label] = [read(run.new_messages())["delete"]["text"], [*desk.deleted]]
    async with connect(desk, confirm=lambda _name, _arguments: False) as client:
        tools = as_tools(client, "pydantic-ai")
        run = await Agent(FunctionModel(scripted({"delete": DELETE})), tools=tools).run("go")
        report["confirm"] = read(run.all_messages())["delete"]
    say(report)


asyncio.run(main())
