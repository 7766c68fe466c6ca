"""An agent of LangChain, on a chat model that is scripted."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from frameworks.desk import CALLS, DELETE, Desk, connect, say
from stubwright_runtime import as_tools


class Scripted(FakeMessagesListChatModel):  # type: ignore[misc]
    """A model that makes calls, and then ends the run."""

    def bind_tools(self, tools: Any, **_options: Any) -> Any:
        for tool in tools:
            convert_to_openai_tool(tool)
        return self


def script(calls: dict[str, tuple[str, dict[str, Any]]]) -> Scripted:
    """A model that makes these calls."""
    asked = [{"name": name, "args": given, "id": label, "type": "tool_call"} for label, (name, given) in calls.items()]
    return Scripted(responses=[AIMessage("", tool_calls=asked), AIMessage("done")])


def read(state: Any) -> dict[str, Any]:
    """What a model reads of each call."""
    return {
        message.tool_call_id: {
            "text": message.text,
            "is_error": message.status == "error",
            "media": [
                [block["mime_type"], block["base64"]] for block in message.content_blocks if block["type"] == "image"
            ],
        }
        for message in state["messages"]
        if isinstance(message, ToolMessage)
    }


async def main() -> None:
    """Run the agents."""
    desk = Desk()
    start = {"messages": [{"role": "user", "content": "go"}]}
    async with connect(desk) as client:
        tools = as_tools(client, "langchain")
        names = {}
        for tool in tools:
            function = convert_to_openai_tool(tool)["function"]
            names[tool.name] = [function["parameters"], tool.description, tool.metadata["requires_approval"]]
        state = await create_agent(script(CALLS), tools).ainvoke(start)
        report = {"tools": names, "calls": read(state), "said": state["messages"][-1].text}
        options = {"config": ("configure", {"_config": "c", "_self": "s"})}
        report["calls"] |= read(await create_agent(script(options), tools).ainvoke(start))

        asking = HumanInTheLoopMiddleware({tool.name: True for tool in tools if tool.metadata["requires_approval"]})
        for label, answer in (("denied", "reject"), ("approved", "approve")):
            agent = create_agent(script({"delete": DELETE}), tools, middleware=[asking], checkpointer=InMemorySaver())
            place: Any = {"configurable": {"thread_id": label}}
            asked = await agent.ainvoke(start, place)
            assert asked["__interrupt__"]
            state = await agent.ainvoke(Command(resume={"decisions": [{"type": answer}]}), place)
            report[label] = [read(state)["delete"]["text"], [*desk.deleted]]
    async with connect(desk, confirm=lambda _name, _arguments: False) as client:
        state = await create_agent(script({"delete": DELETE}), as_tools(client, "langchain")).ainvoke(start)
        report["confirm"] = read(state)["delete"]
    say(report)


asyncio.run(main())
