"""Prints the tools of an MCP server as an agent framework's own MCP client passes them to a model.

    python framework_tools.py FRAMEWORK COMMAND

FRAMEWORK is a target's name, and COMMAND a stdio server's command as a JSON list. Prints the name, the
description and the schema of each tool. Runs in the framework's environment, and does not call a model.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

Tool: TypeAlias = "tuple[str, str | None, Any]"


async def _read_pydantic_ai(command: list[str]) -> list[Tool]:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import RunContext, RunUsage
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.test import TestModel

    toolset: Any = MCPToolset(StdioTransport(command[0], command[1:]))
    async with toolset:
        tools = await toolset.get_tools(RunContext(deps=None, model=TestModel(), usage=RunUsage()))
    definitions = [tool.tool_def for tool in tools.values()]
    return [(each.name, each.description, each.parameters_json_schema) for each in definitions]


async def _read_langchain(command: list[str]) -> list[Tool]:
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"s": {"transport": "stdio", "command": command[0], "args": command[1:]}})
    return _functions(convert_to_openai_tool(tool)["function"] for tool in await client.get_tools())


async def _read_openai_agents(command: list[str]) -> list[Tool]:
    from agents import Agent, RunContextWrapper
    from agents.mcp import MCPServerStdio, MCPUtil

    async with MCPServerStdio({"command": command[0], "args": command[1:]}) as server:
        context: Any = RunContextWrapper(None)
        tools: list[Any] = await MCPUtil.get_function_tools(server, False, context, Agent("a"))
    return [(tool.name, tool.description, tool.params_json_schema) for tool in tools]


async def _read_google_adk(command: list[str]) -> list[Tool]:
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from mcp import StdioServerParameters

    server = StdioServerParameters(command=command[0], args=command[1:])
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=30))
    request = LlmRequest()
    request.append_tools(await toolset.get_tools())
    await toolset.close()
    declarations = [each for tool in request.config.tools or [] for each in tool.function_declarations or []]
    return [(each.name, each.description, each.parameters_json_schema) for each in declarations]


async def _read_llama_index(command: list[str]) -> list[Tool]:
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    tools = await McpToolSpec(BasicMCPClient(command[0], args=command[1:])).to_tool_list_async()
    return _functions(tool.metadata.to_openai_tool(skip_length_check=True)["function"] for tool in tools)


async def _read_smolagents(command: list[str]) -> list[Tool]:
    from mcp import StdioServerParameters
    from smolagents import MCPClient
    from smolagents.models import get_tool_json_schema

    with MCPClient(StdioServerParameters(command=command[0], args=command[1:]), structured_output=True) as tools:
        return _functions(get_tool_json_schema(tool)["function"] for tool in tools)


async def _read_strands(command: list[str]) -> list[Tool]:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client
    from strands.tools.mcp import MCPClient

    with MCPClient(lambda: stdio_client(StdioServerParameters(command=command[0], args=command[1:]))) as client:
        specs = [tool.tool_spec for tool in client.list_tools_sync()]
    return [(each["name"], each["description"], each["inputSchema"]["json"]) for each in specs]


async def _read_agno(command: list[str]) -> list[Tool]:
    from agno.tools.mcp import MCPTools

    async with MCPTools(shlex.join(command), timeout_seconds=30) as toolkit:
        return _functions(tool.to_dict() for tool in toolkit.functions.values())


async def _read_autogen(command: list[str]) -> list[Tool]:
    from autogen_ext.tools.mcp import StdioServerParams, mcp_server_tools

    server = StdioServerParams(command=command[0], args=command[1:], read_timeout_seconds=30)
    return _functions(tool.schema for tool in await mcp_server_tools(server))


async def _read_semantic_kernel(command: list[str]) -> list[Tool]:
    from semantic_kernel import Kernel
    from semantic_kernel.connectors.ai.function_calling_utils import kernel_function_metadata_to_function_call_format
    from semantic_kernel.connectors.mcp import MCPStdioPlugin

    async with MCPStdioPlugin(name="s", command=command[0], args=command[1:], load_prompts=False) as plugin:
        functions = Kernel().add_plugin(plugin).functions.values()
        return _functions(
            kernel_function_metadata_to_function_call_format(each.metadata)["function"] for each in functions
        )


async def _read_crewai(command: list[str]) -> list[Tool]:
    from crewai import Agent
    from crewai.mcp import MCPServerStdio
    from crewai.utilities.agent_utils import convert_tools_to_openai_schema

    agent = Agent(role="r", goal="g", backstory="b", llm="openai/gpt-4o")
    tools = await asyncio.to_thread(agent.get_mcp_tools, [MCPServerStdio(command=command[0], args=command[1:])])
    return _functions(each["function"] for each in convert_tools_to_openai_schema(tools)[0])


def _functions(functions: Iterable[dict[str, Any]]) -> list[Tool]:
    return [(each["name"], each.get("description"), each.get("parameters")) for each in functions]


READERS: dict[str, Callable[[list[str]], Awaitable[list[Tool]]]] = {
    "pydantic-ai": _read_pydantic_ai,
    "langchain": _read_langchain,
    "openai-agents": _read_openai_agents,
    "google-adk": _read_google_adk,
    "llama-index": _read_llama_index,
    "smolagents": _read_smolagents,
    "strands": _read_strands,
    "agno": _read_agno,
    "autogen": _read_autogen,
    "semantic-kernel": _read_semantic_kernel,
    "crewai": _read_crewai,
}


async def _main(framework: str, command: str) -> None:
    print(json.dumps(await READERS[framework](json.loads(command))))


asyncio.run(_main(*sys.argv[1:]))
