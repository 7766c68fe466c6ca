from typing import TYPE_CHECKING

import diary_mcp._runtime.server.context
from diary_mcp import (
    Contents,
    Context,
    DiaryHandlers,
    Entry,
    Gives,
    Question,
    ReadInput,
    ReadOutput,
    WriteInput,
    WriteInputPlace,
    WriteInputPlaces,
    __doc__,
    models,
)
from diary_mcp._runtime.errors import ToolError
from diary_mcp._runtime.server.context import LogLevel as Level
from diary_mcp.models import Entri, shared
from diary_mcp.models.read import ReadOutput as Output
from stubwright_runtime import Completing, Harness, generated

import diary_notes
from diary_more import *

if TYPE_CHECKING:
    from diary_mcp import OnlyForTypes

try:
    from diary_mcp import Contents as Handled
except ImportError:
    Handled = object


class Diary(DiaryHandlers):
    def write(self, args: WriteInput, ctx: Context) -> str:
        from diary_mcp import Written

        return "written"

    def read(self, args: ReadInput, ctx: Context) -> ReadOutput: ...

    def read_today(self, ctx: Context) -> Gives[Contents]: ...
