"""All that generated code imports: the interface between it and this runtime, whose number is `lazy.API`.

A name that is added here needs no other number; one that goes, or means something else, does. Each is loaded when it is
first used, so that a client imports no server, and a server no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import lazy as lazy

if TYPE_CHECKING:
    from .answers import Accepted as Accepted
    from .answers import Cancelled as Cancelled
    from .answers import Declined as Declined
    from .client.binding import Binding as Binding
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
    from .client.paging import paged as paged
    from .client.primitives import PrimitivesBinding as PrimitivesBinding
    from .client.questions import Question as Question
    from .client.responses import CallResponse as CallResponse
    from .client.responses import Responses as Responses
    from .client.responses import responding as responding
    from .client.subscriptions import ListChanged as ListChanged
    from .client.subscriptions import ResourceUpdated as ResourceUpdated
    from .client.subscriptions import changes as changes
    from .client.task_errors import TaskCancelled as TaskCancelled
    from .client.task_errors import TaskExpired as TaskExpired
    from .client.task_errors import TasksUnsupported as TasksUnsupported
    from .client.task_states import ToolTaskState as ToolTaskState
    from .client.tasks import Tasks as Tasks
    from .client.tasks import ToolTask as ToolTask
    from .client.tasks import started as started
    from .client.tasks import starting as starting
    from .errors import ToolError as ToolError
    from .maps import Map as Map
    from .maps import OpenModel as OpenModel
    from .model import Model as Model
    from .model import Nullable as Nullable
    from .model import Root as Root
    from .package import Package as Package
    from .package import Tool as Tool
    from .primitives import Prompt as Prompt
    from .primitives import Resource as Resource
    from .primitives import Template as Template
    from .server.asgi import package_app as package_app
    from .server.audit import Audit as Audit
    from .server.audit import CallRecord as CallRecord
    from .server.completion import Completing as Completing
    from .server.content import audio as audio
    from .server.content import embedded as embedded
    from .server.content import image as image
    from .server.content import link as link
    from .server.content import text as text
    from .server.context import Context as Context
    from .server.elicitation import Ask as Ask
    from .server.handler_check import optional as optional
    from .server.handles import CallHandles as CallHandles
    from .server.handles import Handle as Handle
    from .server.handles import Handles as Handles
    from .server.handles import StaleHandle as StaleHandle
    from .server.handles import TooManyHandles as TooManyHandles
    from .server.handles import UnknownHandle as UnknownHandle
    from .server.main import main as main
    from .server.options import AppOptions as AppOptions
    from .server.options import ServerOptions as ServerOptions
    from .server.prompts import Messages as Messages
    from .server.prompts import assistant as assistant
    from .server.prompts import user as user
    from .server.resources import ResourceContents as ResourceContents
    from .server.returns import Content as Content
    from .server.returns import MaybeAwaitable as MaybeAwaitable
    from .server.returns import Reply as Reply
    from .server.returns import Returns as Returns
    from .server.sdk import PackageServer as PackageServer
    from .server.sdk import build_server as build_server
    from .state.budget import BudgetExceeded as BudgetExceeded
    from .state.store import StateLost as StateLost
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            ".answers": ("Accepted", "Cancelled", "Declined"),
            ".client.binding": ("Binding",),
            ".client.deviation": ("DeviatingResult",),
            ".client.drift": ("DriftError", "DriftWarning"),
            ".client.errors": ("CallRefused", "InvalidResult", "ResultTooLarge", "ToolFailed"),
            ".client.live": ("list_prompts", "list_resource_templates", "list_resources", "list_tools"),
            ".client.options": ("OMIT", "CallEvent", "Omit"),
            ".client.paging": ("EndlessPages", "paged"),
            ".client.primitives": ("PrimitivesBinding",),
            ".client.questions": ("Question",),
            ".client.responses": ("CallResponse", "Responses", "responding"),
            ".client.subscriptions": ("ListChanged", "ResourceUpdated", "changes"),
            ".client.task_errors": ("TaskCancelled", "TaskExpired", "TasksUnsupported"),
            ".client.task_states": ("ToolTaskState",),
            ".client.tasks": ("Tasks", "ToolTask", "started", "starting"),
            ".errors": ("ToolError",),
            ".maps": ("Map", "OpenModel"),
            ".model": ("Model", "Nullable", "Root"),
            ".package": ("Package", "Tool"),
            ".primitives": ("Prompt", "Resource", "Template"),
            ".server.asgi": ("package_app",),
            ".server.audit": ("Audit", "CallRecord"),
            ".server.completion": ("Completing",),
            ".server.content": ("audio", "embedded", "image", "link", "text"),
            ".server.context": ("Context",),
            ".server.elicitation": ("Ask",),
            ".server.handler_check": ("optional",),
            ".server.handles": ("CallHandles", "Handle", "Handles", "StaleHandle", "TooManyHandles", "UnknownHandle"),
            ".server.main": ("main",),
            ".server.options": ("AppOptions", "ServerOptions"),
            ".server.prompts": ("Messages", "assistant", "user"),
            ".server.resources": ("ResourceContents",),
            ".server.returns": ("Content", "MaybeAwaitable", "Reply", "Returns"),
            ".server.sdk": ("PackageServer", "build_server"),
            ".state.budget": ("BudgetExceeded",),
            ".state.store": ("StateLost",),
        },
    )
