"""Lists the current tools, prompts and resources of a connected server.

The module has functions instead of client methods, because methods could collide with tool names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_types import Prompt, Resource, ResourceTemplate, Tool

    from ..core.binding import Binding


async def list_tools(client: Binding) -> list[Tool]:
    """Return the server's current tools.

    Raises:
        MCPError: A request failed, or the list never ends.
    """
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_tools, options)
    return [tool async for page in pages for tool in page.tools]


async def list_prompts(client: Binding) -> list[Prompt]:
    """Return the server's current prompts; raises the same exceptions as `list_tools`."""
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_prompts, options)
    return [prompt async for page in pages for prompt in page.prompts]


async def list_resources(client: Binding) -> list[Resource]:
    """Return the server's current resources; raises the same exceptions as `list_tools`."""
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_resources, options)
    return [resource async for page in pages for resource in page.resources]


async def list_resource_templates(client: Binding) -> list[ResourceTemplate]:
    """Return the server's current resource templates; raises the same exceptions as `list_tools`."""
    session, _, options = client.__stubwright__
    pages = session.fetch_pages(client.raw.list_resource_templates, options)
    return [template async for page in pages for template in page.resource_templates]
