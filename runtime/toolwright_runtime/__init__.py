"""What servers and clients that toolwright generated run on, and the names of it that users import.

Each is loaded when it is first used. Generated packages export the same objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import lazy

if TYPE_CHECKING:
    from .answers import Accepted as Accepted
    from .answers import Cancelled as Cancelled
    from .answers import Declined as Declined
    from .client.deviation import DeviatingResult as DeviatingResult
    from .client.drift import DriftError as DriftError
    from .client.drift import DriftWarning as DriftWarning
    from .client.errors import CallRefused as CallRefused
    from .client.errors import InvalidResult as InvalidResult
    from .client.errors import ResultTooLarge as ResultTooLarge
    from .client.errors import ToolFailed as ToolFailed
    from .client.live import list_prompts as list_prompts
    from .client.live import list_resource_templates as list_resource_templates
    from .client.live import list_resources as list_resources
    from .client.live import list_tools as list_tools
    from .client.options import OMIT as OMIT
    from .client.options import CallEvent as CallEvent
    from .client.options import Omit as Omit
    from .client.paging import EndlessPages as EndlessPages
    from .client.questions import Question as Question
    from .client.responses import CallResponse as CallResponse
    from .client.subscriptions import ListChanged as ListChanged
    from .client.subscriptions import ResourceUpdated as ResourceUpdated
    from .client.subscriptions import changes as changes
    from .client.task_errors import TaskCancelled as TaskCancelled
    from .client.task_errors import TaskExpired as TaskExpired
    from .client.task_errors import TasksUnsupported as TasksUnsupported
    from .client.task_states import ToolTaskState as ToolTaskState
    from .client.tasks import ToolTask as ToolTask
    from .errors import ToolError as ToolError
    from .lazy import IncompatibleRuntimeError as IncompatibleRuntimeError
    from .server.audit import CallRecord as CallRecord
    from .server.completion import Completing as Completing
    from .server.content import audio as audio
    from .server.content import embedded as embedded
    from .server.content import image as image
    from .server.content import link as link
    from .server.content import text as text
    from .server.context import Context as Context
    from .server.handles import Handle as Handle
    from .server.handles import StaleHandle as StaleHandle
    from .server.handles import TooManyHandles as TooManyHandles
    from .server.handles import UnknownHandle as UnknownHandle
    from .server.prompts import Messages as Messages
    from .server.prompts import assistant as assistant
    from .server.prompts import user as user
    from .server.resources import ResourceContents as ResourceContents
    from .server.returns import Content as Content
    from .server.returns import MaybeAwaitable as MaybeAwaitable
    from .server.returns import Reply as Reply
    from .server.returns import Returns as Returns
    from .state.budget import BudgetExceeded as BudgetExceeded
    from .state.store import StateLost as StateLost
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            ".answers": ("Accepted", "Cancelled", "Declined"),
            ".client.deviation": ("DeviatingResult",),
            ".client.drift": ("DriftError", "DriftWarning"),
            ".client.errors": ("CallRefused", "InvalidResult", "ResultTooLarge", "ToolFailed"),
            ".client.live": ("list_prompts", "list_resource_templates", "list_resources", "list_tools"),
            ".client.options": ("OMIT", "CallEvent", "Omit"),
            ".client.paging": ("EndlessPages",),
            ".client.questions": ("Question",),
            ".client.responses": ("CallResponse",),
            ".client.subscriptions": ("ListChanged", "ResourceUpdated", "changes"),
            ".client.task_errors": ("TaskCancelled", "TaskExpired", "TasksUnsupported"),
            ".client.task_states": ("ToolTaskState",),
            ".client.tasks": ("ToolTask",),
            ".errors": ("ToolError",),
            ".lazy": ("IncompatibleRuntimeError",),
            ".server.audit": ("CallRecord",),
            ".server.completion": ("Completing",),
            ".server.content": ("audio", "embedded", "image", "link", "text"),
            ".server.context": ("Context",),
            ".server.handles": ("Handle", "StaleHandle", "TooManyHandles", "UnknownHandle"),
            ".server.prompts": ("Messages", "assistant", "user"),
            ".server.resources": ("ResourceContents",),
            ".server.returns": ("Content", "MaybeAwaitable", "Reply", "Returns"),
            ".state.budget": ("BudgetExceeded",),
            ".state.store": ("StateLost",),
        },
    )
