"""An official SDK server that lists tools according to the client's capabilities, and asks the client while listing.

With `--silent`, it does not ask.
"""

from __future__ import annotations

import sys

import anyio
import mcp
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NEEDED = {
    "sample": types.ClientCapabilities(sampling=types.SamplingCapability()),
    "form": types.ClientCapabilities(elicitation=types.ElicitationCapability(form=types.FormElicitationCapability())),
    "url": types.ClientCapabilities(elicitation=types.ElicitationCapability(url=types.UrlElicitationCapability())),
    "roots": types.ClientCapabilities(roots=types.RootsCapability()),
}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


async def answers(context: ServerRequestContext[None]) -> str:
    """Return the client's answers to all questions."""
    session = context.session
    form = await session.elicit_form("Who?", SCHEMA, context.request_id)
    url = await session.elicit_url("Sign in.", "https://example.com", "1", context.request_id)
    roots = await session.list_roots()
    message = types.SamplingMessage(role="user", content=types.TextContent(text="Hi."))
    try:
        await session.create_message([message], max_tokens=9, related_request_id=context.request_id)
    except mcp.MCPError as error:
        return f"{form.action}, {url.action}, {len(roots.roots)} roots, {error.code}"
    return "sampled"


async def list_tools(
    context: ServerRequestContext[None], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    is_asking = context.session.can_send_request and "--silent" not in sys.argv
    told = await answers(context) if is_asking else "nothing asked"
    names = [name for name, needed in NEEDED.items() if context.session.check_client_capability(needed)]
    tools = [types.Tool(name=name, description=told, input_schema={"type": "object"}) for name in ("all", *names)]
    return types.ListToolsResult(tools=tools)


async def main() -> None:
    server: Server[None] = Server("choosy", version="1", on_list_tools=list_tools)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
