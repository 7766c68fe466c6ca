"""The business logic of the help desk; everything else is generated from `specs/helpdesk.yaml`.

Tickets are in SQLite: in the file that `HELPDESK_DB` names, else in memory. No handler waits for anything while it is
in a transaction, so that one connection serves all.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from mcp_types import EmbeddedResource

from helpdesk_mcp import (
    AddCommentInput,
    AssignTicketInput,
    AttachFileInput,
    Attachment,
    CloseTicketContext,
    CloseTicketInput,
    CloseTicketResolutionAnswer,
    Comment,
    Completing,
    Context,
    CreateTicketInput,
    GetStatisticsInput,
    GetStatisticsOutput,
    GetTicketInput,
    HelpdeskHandlers,
    ListTicketsInput,
    ListTicketsOutput,
    Messages,
    Person,
    PromptDraftReplyArgs,
    ReadAttachmentParams,
    ReadTicketParams,
    Reply,
    Ticket,
    ToolError,
    embedded,
    link,
    user,
)
from helpdesk_mcp import GetStatisticsOutputByAssignee as Load

SCHEMA = Path(__file__).with_suffix(".sql").read_text("utf-8")


class Helpdesk(HelpdeskHandlers):
    """Keeps tickets in a database."""

    async def __aenter__(self) -> None:
        self.db = sqlite3.connect(os.environ.get("HELPDESK_DB", ":memory:"))
        self.db.executescript(SCHEMA)

    async def __aexit__(self, *_: object) -> None:
        self.db.close()

    async def create_ticket(self, args: CreateTicketInput, ctx: Context) -> Reply[Ticket]:
        sql = "INSERT INTO ticket (subject, description, priority, reporter) VALUES (?, ?, ?, ?) RETURNING id"
        with self.db:
            row = (args.subject, args.description, args.priority, args.reporter.model_dump_json())
            [(key,)] = self.db.execute(sql, row)
        return Reply(self.ticket(key), [link(f"desk://tickets/{key}", f"ticket {key}", title=args.subject)])

    async def get_ticket(self, args: GetTicketInput, ctx: Context) -> Ticket:
        return self.ticket(args.id)

    async def list_tickets(self, args: ListTicketsInput, ctx: Context) -> ListTicketsOutput:
        sql = """SELECT id, json FROM ticket_json
            WHERE id > ? AND status = ifnull(?, status) AND priority = ifnull(?, priority) ORDER BY id LIMIT ?"""
        rows = self.db.execute(sql, (int(args.cursor or 0), args.status, args.priority, args.limit + 1)).fetchall()
        page = rows[: args.limit]
        return ListTicketsOutput(
            tickets=[Ticket.model_validate_json(text) for _, text in page],
            next_cursor=str(page[-1][0]) if len(rows) > len(page) else None,
        )

    async def add_comment(self, args: AddCommentInput, ctx: Context) -> Comment:
        self.ticket(args.id)
        with self.db:
            row = (args.id, args.author.model_dump_json(), args.text)
            [(key,)] = self.db.execute("INSERT INTO comment (ticket, author, text) VALUES (?, ?, ?) RETURNING id", row)
        [(text,)] = self.db.execute("SELECT json FROM comment_json WHERE id = ?", (key,))
        return Comment.model_validate_json(text)

    async def assign_ticket(self, args: AssignTicketInput, ctx: Context) -> Ticket:
        assignee = args.assignee.model_dump_json() if args.assignee else None
        with self.db:
            self.db.execute("UPDATE ticket SET assignee = ? WHERE id = ?", (assignee, args.id))
        return self.ticket(args.id)

    async def attach_file(self, args: AttachFileInput, ctx: Context) -> Reply[Attachment]:
        if isinstance(args.content, str):
            raise ToolError("content is not base64.")
        self.ticket(args.id)
        place = (args.id, args.name)
        with self.db:
            row = (*place, args.media_type, args.content)
            self.db.execute("INSERT OR REPLACE INTO attachment VALUES (?, ?, ?, ?)", row)
        [(text,)] = self.db.execute("SELECT json FROM attachment_json WHERE ticket = ? AND name = ?", place)
        attachment = Attachment.model_validate_json(text)
        uri = str(attachment.uri)
        return Reply(attachment, [link(uri, args.name, mime_type=args.media_type, size=len(args.content))])

    async def close_ticket(self, args: CloseTicketInput, ctx: CloseTicketContext) -> Ticket:
        if self.ticket(args.id).status == "closed":
            raise ToolError(f"Ticket {args.id} is closed already.")
        resolution = args.resolution
        if resolution is None:
            answer = await ctx.ask.resolution()
            if not isinstance(answer, CloseTicketResolutionAnswer):
                raise ToolError(f"Ticket {args.id} stays open: nobody said how it was solved.")
            resolution = answer.resolution
        with self.db:
            sql = "UPDATE ticket SET status = 'closed', resolution = ? WHERE id = ?"
            self.db.execute(sql, (resolution, args.id))
        return self.ticket(args.id)

    async def get_statistics(self, args: GetStatisticsInput, ctx: Context) -> GetStatisticsOutput:
        made = GetStatisticsOutput(total=0, by_status={}, by_priority={}, by_assignee={})
        sql = "SELECT status, priority, assignee, created FROM ticket ORDER BY created"
        for status, priority, assignee, created in self.db.execute(sql):
            made.total += 1
            counts = [made.by_status, made.by_priority.setdefault(priority, {})]
            if assignee:
                person = Person.model_validate_json(assignee)
                load = Load(name=person.name, oldest=created, by_status={})
                counts.append(made.by_assignee.setdefault(person.email, load).by_status)
            for each in counts:
                each[status] = each.get(status, 0) + 1
        return made

    async def read_ticket(self, args: ReadTicketParams, ctx: Context) -> str | None:
        return self.find(args.id)

    async def read_attachment(self, args: ReadAttachmentParams, ctx: Context) -> EmbeddedResource | None:
        sql = "SELECT media_type, content FROM attachment WHERE ticket = ? AND name = ?"
        for media_type, content in self.db.execute(sql, (args.id, args.name)):
            return embedded(f"desk://tickets/{args.id}/attachments/{args.name}", blob=content, mime_type=media_type)
        return None

    async def prompt_draft_reply(self, args: PromptDraftReplyArgs, ctx: Context) -> Messages:
        ticket = self.ticket(args.id)
        uri, text = f"desk://tickets/{ticket.id}", ticket.model_dump_json()
        return [
            user(f"Draft a {args.tone or 'friendly'} answer to {ticket.reporter.name}."),
            user(embedded(uri, text=text, mime_type="application/json")),
        ]

    async def complete_read_ticket(self, args: Completing, ctx: Context) -> list[str]:
        return [str(key) for (key,) in self.db.execute("SELECT id FROM ticket ORDER BY id")]

    complete_prompt_draft_reply = complete_read_ticket

    def find(self, key: int | str) -> str | None:
        """A ticket as JSON."""
        row: tuple[str] | None = self.db.execute("SELECT json FROM ticket_json WHERE id = ?", (key,)).fetchone()
        return row[0] if row else None

    def ticket(self, key: int | str) -> Ticket:
        """A ticket, which has to be there."""
        text = self.find(key)
        if text is None:
            raise ToolError(f"There is no ticket {key}.")
        return Ticket.model_validate_json(text)
