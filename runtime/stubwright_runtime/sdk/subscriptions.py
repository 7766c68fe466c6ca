"""The SDK's subscriptions: the bus of events, and the handler of `subscriptions/listen` (MCP 2026-07-28)."""

from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY as SUBSCRIPTION_ID_META_KEY
from mcp.server.subscriptions import InMemorySubscriptionBus as InMemorySubscriptionBus
from mcp.server.subscriptions import ListenHandler as ListenHandler
from mcp.server.subscriptions import PromptsListChanged as PromptsListChanged
from mcp.server.subscriptions import ResourcesListChanged as ResourcesListChanged
from mcp.server.subscriptions import ResourceUpdated as ResourceUpdated
from mcp.server.subscriptions import ServerEvent as ServerEvent
from mcp.server.subscriptions import ToolsListChanged as ToolsListChanged
