"""LangChain's adapters, with the schemas for an OpenAI model."""

from __future__ import annotations

from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from reading import Report, main


async def _look(command: list[str], report: Report) -> None:
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}

        async def read(name: str) -> Any:
            message = await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": {}})
            return message.artifact["structured_content"]

        schemas = {name: convert_to_openai_tool(tool)["function"]["parameters"] for name, tool in tools.items()}
        await report(schemas, read)


main(_look)
