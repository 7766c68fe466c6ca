"""The tools, prompts and resources that a connected server has now, whatever was compiled.

These are functions, so that they cannot collide with a tool's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_types import Prompt, Resource, ResourceTemplate, Tool

    from ..core.binding import Binding


async def list_tools(client: Binding) -> list[Tool]:
    """Return all tools that the server has now.

    Raises:
        MCPError: As for a tool; also where the list has no end.
    """
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_tools, options)
    return [tool async for page in pages for tool in page.tools]


async def list_prompts(client: Binding) -> list[Prompt]:
    """Return all prompts that the server has now; raises as `list_tools`."""
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_prompts, options)
    return [prompt async for page in pages for prompt in page.prompts]


async def list_resources(client: Binding) -> list[Resource]:
    """Return all resources that the server has now; raises as `list_tools`."""
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_resources, options)
    return [resource async for page in pages for resource in page.resources]


async def list_resource_templates(client: Binding) -> list[ResourceTemplate]:
    """Return all resource templates that the server has now; raises as `list_tools`."""
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_resource_templates, options)
    return [template async for page in pages for template in page.resource_templates]
