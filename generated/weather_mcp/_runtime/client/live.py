# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""What a connected server offers now, whatever was compiled, and what changes there.

Takes a client; gives the protocol's own objects. These are functions, so that no tool's method can be in their way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .subscriptions import Change, ListChanged, ResourceUpdated

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp_types import Prompt, Resource, ResourceTemplate, Tool

    from .binding import Binding

__all__ = [
    "Change",
    "ListChanged",
    "ResourceUpdated",
    "changes",
    "list_prompts",
    "list_resource_templates",
    "list_resources",
    "list_tools",
]


def changes(
    client: Binding, *, lists: bool = True, resources: Sequence[str] = ()
) -> AbstractAsyncContextManager[AsyncIterator[Change], bool | None]:
    """Listen for the length of an `async with` block for what changes on the server.

    The block is given an asynchronous iterator of `ListChanged` and `ResourceUpdated`. A change that comes again
    before it was looked at comes once. The iterator ends where the connection ends, or where the server ends the
    subscription; it raises `mcp.MCPError` where changes were lost, for instance because more than a thousand wait.

    Args:
        client: A connected client.
        lists: Whether to hear of changes of the lists of tools, prompts and resources.
        resources: The URIs of the resources whose changes to hear of.

    Raises:
        mcp.MCPError: The server refuses, does not answer in time, or is gone.
        TypeError: `resources` is one string.
        ValueError: There is nothing to listen for.
    """
    return client._listening.changes(client._exchange, client._options, lists=lists, resources=resources)


async def list_tools(client: Binding) -> list[Tool]:
    """All tools that the server has now.

    Raises:
        mcp.MCPError: As for a tool; also where the list has no end.
    """
    pages = client._exchange.pages(client.raw.list_tools, client._options)
    return [tool async for page in pages for tool in page.tools]


async def list_prompts(client: Binding) -> list[Prompt]:
    """All prompts that the server has now; raises as `list_tools`."""
    pages = client._exchange.pages(client.raw.list_prompts, client._options)
    return [prompt async for page in pages for prompt in page.prompts]


async def list_resources(client: Binding) -> list[Resource]:
    """All resources that the server has now; raises as `list_tools`."""
    pages = client._exchange.pages(client.raw.list_resources, client._options)
    return [resource async for page in pages for resource in page.resources]


async def list_resource_templates(client: Binding) -> list[ResourceTemplate]:
    """All resource templates that the server has now; raises as `list_tools`."""
    pages = client._exchange.pages(client.raw.list_resource_templates, client._options)
    return [template async for page in pages for template in page.resource_templates]
