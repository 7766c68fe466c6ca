"""The SDK's servers: the low-level one, which generated servers build on, and those that clients can connect to."""

from mcp.server import MCPServer as MCPServer
from mcp.server.lowlevel import NotificationOptions as NotificationOptions
from mcp.server.lowlevel import Server as Server
from mcp.server.models import InitializationOptions as InitializationOptions
