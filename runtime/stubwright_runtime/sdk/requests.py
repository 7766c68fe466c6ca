"""The SDK's middleware: what it passes on with each request."""

from mcp.server.context import CallNext as CallNext
from mcp.server.context import HandlerResult as HandlerResult
from mcp.server.context import ServerRequestContext as ServerRequestContext
from mcp.server.session import ServerSession as ServerSession
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER as MCP_SESSION_ID_HEADER
