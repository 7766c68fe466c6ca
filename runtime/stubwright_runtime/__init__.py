"""The runtime of generated servers and clients, and the names that users import.

Each name is imported on first use. Generated packages export the same objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import lazy

if TYPE_CHECKING:
    from .client.agents.skills import Skill as Skill
    from .client.agents.skills import SkillError as SkillError
    from .client.agents.skills import SkillFile as SkillFile
    from .client.agents.skills import get_skill as get_skill
    from .client.agents.skills import list_skills as list_skills
    from .client.agents.skills import read_skill as read_skill
    from .client.agents.tools import as_tools as as_tools
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
    from .client.features.changes import ListChanged as ListChanged
    from .client.features.changes import ResourceUpdated as ResourceUpdated
    from .client.features.drift import DriftError as DriftError
    from .client.features.drift import DriftWarning as DriftWarning
    from .client.features.live import list_prompts as list_prompts
    from .client.features.live import list_resource_templates as list_resource_templates
    from .client.features.live import list_resources as list_resources
    from .client.features.live import list_tools as list_tools
    from .client.features.questions import Question as Question
    from .client.features.subscriptions import changes as changes
    from .client.features.tool_pages import EndlessPages as EndlessPages
    from .client.rpc.mcp_error import MCPError as MCPError
    from .client.rpc.mcp_error import UrlElicitationRequired as UrlElicitationRequired
    from .client.tasks.calls import ToolTask as ToolTask
    from .client.tasks.errors import TaskCancelled as TaskCancelled
    from .client.tasks.errors import TaskExpired as TaskExpired
    from .client.tasks.errors import TasksUnsupported as TasksUnsupported
    from .client.tasks.states import ToolTaskState as ToolTaskState
    from .errors import ToolError as ToolError
    from .lazy import IncompatibleRuntimeError as IncompatibleRuntimeError
    from .mcp.elicitation_answers import Accepted as Accepted
    from .mcp.elicitation_answers import Cancelled as Cancelled
    from .mcp.elicitation_answers import Declined as Declined
    from .projection.codecs import ProjectionError as ProjectionError
    from .server.calls.around import HandlerCall as HandlerCall
    from .server.calls.around import Proceed as Proceed
    from .server.core.access_tokens import AccessToken as AccessToken
    from .server.core.access_tokens import TokenVerifier as TokenVerifier
    from .server.core.task_engine import TaskEngine as TaskEngine
    from .server.core.task_engine import TaskWork as TaskWork
    from .server.features.context import Context as Context
    from .server.features.handles import Handle as Handle
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
    from .server.methods.completion import Completing as Completing
    from .server.observability.audit import CallRecord as CallRecord
    from .state.budget import BudgetExceeded as BudgetExceeded
    from .state.store import StateLost as StateLost
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            ".mcp.elicitation_answers": ("Accepted", "Cancelled", "Declined"),
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
            ".client.agents.tools": ("as_tools",),
            ".client.core.deviation": ("DeviatingResult",),
            ".client.features.drift": ("DriftError", "DriftWarning"),
            ".client.core.errors": ("CallRefused", "InvalidResult", "ResultTooLarge", "ToolFailed"),
            ".client.features.live": ("list_prompts", "list_resource_templates", "list_resources", "list_tools"),
            ".client.rpc.mcp_error": ("MCPError", "UrlElicitationRequired"),
            ".client.core.options": ("OMIT", "CallEvent", "Omit"),
            ".client.features.tool_pages": ("EndlessPages",),
            ".client.features.questions": ("Question",),
            ".client.core.responses": ("CallResponse",),
            ".client.core.content": ("ToolContent",),
            ".client.features.changes": ("ListChanged", "ResourceUpdated"),
            ".client.agents.skills": (
                "Skill",
                "SkillError",
                "SkillFile",
                "get_skill",
                "list_skills",
                "read_skill",
            ),
            ".client.features.subscriptions": ("changes",),
            ".client.tasks.errors": ("TaskCancelled", "TaskExpired", "TasksUnsupported"),
            ".client.tasks.states": ("ToolTaskState",),
            ".client.tasks.calls": ("ToolTask",),
            ".errors": ("ToolError",),
            ".lazy": ("IncompatibleRuntimeError",),
            ".projection.codecs": ("ProjectionError",),
            ".server.observability.audit": ("CallRecord",),
            ".server.calls.around": ("HandlerCall", "Proceed"),
            ".server.methods.completion": ("Completing",),
            ".server.handlers.content": ("Content", "ResourceContents", "audio", "embedded", "image", "link", "text"),
            ".server.core.access_tokens": ("AccessToken", "TokenVerifier"),
            ".server.features.context": ("Context",),
            ".server.features.handles": ("Handle", "StaleHandle", "TooManyHandles", "UnknownHandle"),
            ".server.features.paging": ("PageRequest",),
            ".server.handlers.messages": ("Messages", "assistant", "user"),
            ".server.handlers.returns": ("MaybeAwaitable", "Reply", "Returns"),
            ".state.budget": ("BudgetExceeded",),
            ".state.store": ("StateLost",),
            ".server.core.task_engine": ("TaskEngine", "TaskWork"),
        },
    )
