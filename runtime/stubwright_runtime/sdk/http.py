"""The SDK's Streamable HTTP: sessions, event stores, and the metadata of a protected resource."""

from mcp.server.auth.routes import build_resource_metadata_url as build_resource_metadata_url
from mcp.server.auth.routes import create_protected_resource_routes as create_protected_resource_routes
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER as MCP_SESSION_ID_HEADER
from mcp.server.streamable_http import EventCallback as EventCallback
from mcp.server.streamable_http import EventMessage as EventMessage
from mcp.server.streamable_http import EventStore as EventStore
from mcp.server.streamable_http import StreamableHTTPServerTransport as StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp as StreamableHTTPASGIApp
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager as StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware as TransportSecurityMiddleware
from mcp.server.transport_security import TransportSecuritySettings as TransportSecuritySettings
