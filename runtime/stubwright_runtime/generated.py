"""The interface for generated code, versioned by `lazy.API`.

Removing a name or changing its meaning changes the version. Each name is imported on first use, so that clients do not
import the server and servers do not import the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import lazy as lazy

if TYPE_CHECKING:
    from .client.core.binding import Binding as Binding
    from .client.core.connect_errors import ConnectError as ConnectError
    from .client.core.connect_errors import Forbidden as Forbidden
    from .client.core.connect_errors import NotFound as NotFound
    from .client.core.connect_errors import NotMCP as NotMCP
    from .client.core.connect_errors import ServerExited as ServerExited
    from .client.core.connect_errors import ServerNotFound as ServerNotFound
    from .client.core.connect_errors import SessionLost as SessionLost
    from .client.core.connect_errors import Unauthorized as Unauthorized
    from .client.core.connect_errors import Unreachable as Unreachable
    from .client.core.content import ToolContent as ToolContent
    from .client.core.deviation import DeviatingResult as DeviatingResult
    from .client.core.errors import CallRefused as CallRefused
    from .client.core.errors import InvalidResult as InvalidResult
    from .client.core.errors import ResultTooLarge as ResultTooLarge
    from .client.core.errors import ToolFailed as ToolFailed
    from .client.core.options import OMIT as OMIT
    from .client.core.options import CallEvent as CallEvent
    from .client.core.options import Omit as Omit
    from .client.core.responses import CallResponse as CallResponse
    from .client.core.responses import Responses as Responses
    from .client.core.responses import responding as responding
    from .client.core.responses import sharing as sharing
    from .client.features.changes import ListChanged as ListChanged
    from .client.features.changes import ResourceUpdated as ResourceUpdated
    from .client.features.drift import DriftError as DriftError
    from .client.features.drift import DriftWarning as DriftWarning
    from .client.features.live import list_prompts as list_prompts
    from .client.features.live import list_resource_templates as list_resource_templates
    from .client.features.live import list_resources as list_resources
    from .client.features.live import list_tools as list_tools
    from .client.features.primitives import PrimitivesBinding as PrimitivesBinding
    from .client.features.questions import Question as Question
    from .client.features.subscriptions import changes as changes
    from .client.features.tool_pages import EndlessPages as EndlessPages
    from .client.features.tool_pages import PagedBy as PagedBy
    from .client.features.tool_pages import paged as paged
    from .client.rpc.mcp_error import MCPError as MCPError
    from .client.tasks.calls import Tasks as Tasks
    from .client.tasks.calls import ToolTask as ToolTask
    from .client.tasks.calls import started as started
    from .client.tasks.calls import starting as starting
    from .client.tasks.errors import TaskCancelled as TaskCancelled
    from .client.tasks.errors import TaskExpired as TaskExpired
    from .client.tasks.errors import TasksUnsupported as TasksUnsupported
    from .client.tasks.states import ToolTaskState as ToolTaskState
    from .errors import ToolError as ToolError
    from .mcp.elicitation_answers import Accepted as Accepted
    from .mcp.elicitation_answers import Cancelled as Cancelled
    from .mcp.elicitation_answers import Declined as Declined
    from .models.base import Model as Model
    from .models.base import Nullable as Nullable
    from .models.base import Root as Root
    from .models.maps import Map as Map
    from .models.maps import OpenModel as OpenModel
    from .package import Package as Package
    from .package import Tool as Tool
    from .primitives import Prompt as Prompt
    from .primitives import Resource as Resource
    from .primitives import Template as Template
    from .server.calls.around import HandlerCall as HandlerCall
    from .server.calls.around import Proceed as Proceed
    from .server.example_tests import Examples as Examples
    from .server.features.context import Context as Context
    from .server.features.context import PerCall as PerCall
    from .server.features.elicitation import Ask as Ask
    from .server.features.handles import CallHandles as CallHandles
    from .server.features.handles import Handle as Handle
    from .server.features.handles import Handles as Handles
    from .server.features.handles import HandleT as HandleT
    from .server.features.handles import NameT as NameT
    from .server.features.handles import StaleHandle as StaleHandle
    from .server.features.handles import TooManyHandles as TooManyHandles
    from .server.features.handles import UnknownHandle as UnknownHandle
    from .server.features.paging import PageRequest as PageRequest
    from .server.handlers.content import Content as Content
    from .server.handlers.content import ResourceContents as ResourceContents
    from .server.handlers.content import audio as audio
    from .server.handlers.content import embedded as embedded
    from .server.handlers.content import image as image
    from .server.handlers.content import link as link
    from .server.handlers.content import text as text
    from .server.handlers.messages import Messages as Messages
    from .server.handlers.messages import assistant as assistant
    from .server.handlers.messages import user as user
    from .server.handlers.returns import MaybeAwaitable as MaybeAwaitable
    from .server.handlers.returns import Reply as Reply
    from .server.handlers.returns import Returns as Returns
    from .server.main import main as main
    from .server.methods.completion import Completing as Completing
    from .server.observability.audit import Audit as Audit
    from .server.observability.audit import CallRecord as CallRecord
    from .server.options import AppOptions as AppOptions
    from .server.options import ServerOptions as ServerOptions
    from .server.package_server import PackageServer as PackageServer
    from .server.package_server import build_server as build_server
    from .server.transports.http.asgi import package_app as package_app
    from .state.budget import BudgetExceeded as BudgetExceeded
    from .state.store import StateLost as StateLost
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            ".mcp.elicitation_answers": ("Accepted", "Cancelled", "Declined"),
            ".client.core.binding": ("Binding",),
            ".client.core.connect_errors": (
                "ConnectError",
                "Forbidden",
                "NotFound",
                "NotMCP",
                "ServerExited",
                "ServerNotFound",
                "SessionLost",
                "Unauthorized",
                "Unreachable",
            ),
            ".client.core.deviation": ("DeviatingResult",),
            ".client.features.drift": ("DriftError", "DriftWarning"),
            ".client.core.errors": ("CallRefused", "InvalidResult", "ResultTooLarge", "ToolFailed"),
            ".client.features.live": ("list_prompts", "list_resource_templates", "list_resources", "list_tools"),
            ".client.rpc.mcp_error": ("MCPError",),
            ".client.core.options": ("OMIT", "CallEvent", "Omit"),
            ".client.features.tool_pages": ("EndlessPages", "PagedBy", "paged"),
            ".client.features.primitives": ("PrimitivesBinding",),
            ".client.features.questions": ("Question",),
            ".client.core.responses": ("CallResponse", "Responses", "responding", "sharing"),
            ".client.core.content": ("ToolContent",),
            ".client.features.changes": ("ListChanged", "ResourceUpdated"),
            ".client.features.subscriptions": ("changes",),
            ".client.tasks.errors": ("TaskCancelled", "TaskExpired", "TasksUnsupported"),
            ".client.tasks.states": ("ToolTaskState",),
            ".client.tasks.calls": ("Tasks", "ToolTask", "started", "starting"),
            ".errors": ("ToolError",),
            ".models.maps": ("Map", "OpenModel"),
            ".models.base": ("Model", "Nullable", "Root"),
            ".package": ("Package", "Tool"),
            ".primitives": ("Prompt", "Resource", "Template"),
            ".server.transports.http.asgi": ("package_app",),
            ".server.observability.audit": ("Audit", "CallRecord"),
            ".server.calls.around": ("HandlerCall", "Proceed"),
            ".server.methods.completion": ("Completing",),
            ".server.handlers.content": ("Content", "ResourceContents", "audio", "embedded", "image", "link", "text"),
            ".server.features.context": ("Context", "PerCall"),
            ".server.features.elicitation": ("Ask",),
            ".server.example_tests": ("Examples",),
            ".server.features.handles": (
                "CallHandles",
                "Handle",
                "HandleT",
                "Handles",
                "NameT",
                "StaleHandle",
                "TooManyHandles",
                "UnknownHandle",
            ),
            ".server.features.paging": ("PageRequest",),
            ".server.main": ("main",),
            ".server.handlers.messages": ("Messages", "assistant", "user"),
            ".server.handlers.returns": ("MaybeAwaitable", "Reply", "Returns"),
            ".server.options": ("AppOptions", "ServerOptions"),
            ".server.package_server": ("PackageServer", "build_server"),
            ".state.budget": ("BudgetExceeded",),
            ".state.store": ("StateLost",),
        },
    )
