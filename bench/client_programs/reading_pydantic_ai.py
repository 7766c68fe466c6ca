"""pydantic-ai's `MCPToolset`, with the schemas for an OpenAI model."""

from __future__ import annotations

from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import RunContext, RunUsage
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
from reading import Report, main


async def _look(command: list[str], report: Report) -> None:
    toolset: MCPToolset[Any] = MCPToolset(StdioTransport(command[0], command[1:]), tool_error_behavior="error")
    async with toolset:
        tools = await toolset.get_tools(RunContext(deps=None, model=TestModel(), usage=RunUsage()))
        schemas = {
            name: OpenAIJsonSchemaTransformer(tool.tool_def.parameters_json_schema).walk()
            for name, tool in tools.items()
        }

        async def read(name: str) -> Any:
            return await toolset.direct_call_tool(name, {})

        await report(schemas, read)


main(_look)
