"""The SDK's authorization: access tokens and the principal of a request (MCP 2025-11-25, basic/authorization)."""

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware as AuthContextMiddleware
from mcp.server.auth.middleware.auth_context import auth_context_var as auth_context_var
from mcp.server.auth.middleware.auth_context import get_access_token as get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser as AuthenticatedUser
from mcp.server.auth.middleware.bearer_auth import authorization_context as authorization_context
from mcp.server.auth.provider import AccessToken as AccessToken
from mcp.server.auth.provider import TokenVerifier as TokenVerifier
from mcp.server.auth.provider import principal_components as principal_components
from mcp.server.auth.routes import build_resource_metadata_url as build_resource_metadata_url
from mcp.server.auth.routes import create_protected_resource_routes as create_protected_resource_routes
