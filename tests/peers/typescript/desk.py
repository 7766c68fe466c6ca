"""The handlers of the server that the TypeScript test calls."""

from __future__ import annotations

import asyncio

from desk_mcp import (
    Context,
    DeleteNotesInput,
    DeskHandlers,
    ListNotesContext,
    ListNotesInput,
    ListNotesOutput,
    ListNotesOutputNotes,
    PromptSummaryArgs,
    ReadNoteParams,
    ToolError,
    WaitInput,
)


class Desk(DeskHandlers):
    """Five notes, which nobody can delete."""

    async def list_notes(self, args: ListNotesInput, ctx: ListNotesContext) -> ListNotesOutput:
        """Return two notes and the position of the next."""
        start = int(ctx.page.position or 0)
        end = min(start + ctx.page.size, 5)
        notes = [ListNotesOutputNotes(id=number) for number in range(start, end)]
        return ListNotesOutput(notes=notes, nextCursor=str(end) if end < 5 else None)

    async def delete_notes(self, args: DeleteNotesInput, ctx: Context) -> str:
        """Refuse."""
        raise ToolError(f"{len(args.ids)} notes are locked")

    async def wait(self, args: WaitInput, ctx: Context) -> str:
        """Report progress, and wait for the end of the call."""
        await ctx.progress(1, 2, "waiting")
        await asyncio.Event().wait()
        return "never"

    async def read_note(self, args: ReadNoteParams, ctx: Context) -> str:
        """Return a note."""
        return f"note {args.id}"

    async def prompt_summary(self, args: PromptSummaryArgs, ctx: Context) -> str:
        """Return the prompt."""
        return f"Summarize note {args.id}."
