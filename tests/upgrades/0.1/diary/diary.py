"""A diary that lives as long as its server, with a summary by the client's model."""

from __future__ import annotations

import diary_mcp._runtime.revisions
from diary_mcp import (
    Context,
    DiaryHandlers,
    Question,
    ResourceContents,
    SummarizeInput,
    WriteInput,
    changes,
    list_tools,
)
from diary_mcp._runtime.errors import ToolError
from diary_notes import LEVELS, Notes

WATCHERS = (Question, changes, list_tools, diary_mcp._runtime.revisions)


class Diary(DiaryHandlers):
    """Keeps what is written in a list."""

    def __init__(self) -> None:
        self.notes = Notes()

    async def write(self, args: WriteInput, ctx: Context) -> str:
        if not args.text.strip():
            raise ToolError("there is nothing to write")
        self.notes.add(args.text)
        await ctx.resources.updated("diary://today")
        await ctx.log(LEVELS[0], "written")
        return "written"

    async def summarize(self, args: SummarizeInput, ctx) -> str:
        if not ctx.can("sampling"):
            return "\n".join(self.notes.entries)
        context = ctx
        roots = await context.roots() if context.can("roots") else []
        answer = await context.sample(f"Sum up for {len(roots)} folders: {self.notes.entries}", max_tokens=100)
        return str(answer.content)

    def read_today(self, ctx: Context) -> ResourceContents:
        return "\n".join(self.notes.entries)
