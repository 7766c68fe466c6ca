"""The business logic of the help desk; everything else is generated from `specs/helpdesk.yaml`.

Tickets are in SQLite, in the file in `HELPDESK_DB` or in memory. Handlers never await inside a transaction, so that
they can share one connection.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import helpdesk_mcp as desk

SCHEMA = Path(__file__).with_suffix(".sql").read_text("utf-8")


class Helpdesk(desk.HelpdeskHandlers):
    """Stores tickets in a database."""

    async def __aenter__(self) -> None:
        self.db = sqlite3.connect(os.environ.get("HELPDESK_DB", ":memory:"))
        self.db.executescript(SCHEMA)

    async def __aexit__(self, *_: object) -> None:
        self.db.close()

    async def create_ticket(self, args: desk.CreateTicketInput, ctx: desk.Context) -> desk.Reply[desk.Ticket]:
        sql = "INSERT INTO ticket (subject, description, priority, reporter) VALUES (?, ?, ?, ?) RETURNING id"
        with self.db:
            row = (args.subject, args.description, args.priority, args.reporter.model_dump_json())
            [(key,)] = self.db.execute(sql, row)
        return desk.Reply(self.ticket(key), [desk.link(f"desk://tickets/{key}", f"ticket {key}", title=args.subject)])

    async def get_ticket(self, args: desk.GetTicketInput, ctx: desk.Context) -> desk.Ticket:
        return self.ticket(args.id)

    async def list_tickets(self, args: desk.ListTicketsInput, ctx: desk.Context) -> desk.ListTicketsOutput:
        sql = """SELECT id, json FROM ticket_json
            WHERE id > ? AND status = ifnull(?, status) AND priority = ifnull(?, priority) ORDER BY id LIMIT ?"""
        rows = self.db.execute(sql, (int(args.cursor or 0), args.status, args.priority, args.limit + 1)).fetchall()
        page = rows[: args.limit]
        return desk.ListTicketsOutput(
            tickets=[desk.Ticket.model_validate_json(text) for _, text in page],
            next_cursor=str(page[-1][0]) if len(rows) > len(page) else None,
        )

    async def add_comment(self, args: desk.AddCommentInput, ctx: desk.Context) -> desk.Comment:
        self.ticket(args.id)
        with self.db:
            row = (args.id, args.author.model_dump_json(), args.text)
            [(key,)] = self.db.execute("INSERT INTO comment (ticket, author, text) VALUES (?, ?, ?) RETURNING id", row)
        [(text,)] = self.db.execute("SELECT json FROM comment_json WHERE id = ?", (key,))
        return desk.Comment.model_validate_json(text)

    async def assign_ticket(self, args: desk.AssignTicketInput, ctx: desk.Context) -> desk.Ticket:
        assignee = args.assignee.model_dump_json() if args.assignee else None
        with self.db:
            self.db.execute("UPDATE ticket SET assignee = ? WHERE id = ?", (assignee, args.id))
        return self.ticket(args.id)

    async def attach_file(self, args: desk.AttachFileInput, ctx: desk.Context) -> desk.Reply[desk.Attachment]:
        self.ticket(args.id)
        row = (args.id, args.name, args.media_type, args.content)
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO attachment VALUES (?, ?, ?, ?)", row)
        [(text,)] = self.db.execute("SELECT json FROM attachment_json WHERE ticket = ? AND name = ?", row[:2])
        file = desk.Attachment.model_validate_json(text)
        return desk.Reply(file, [desk.link(str(file.uri), file.name, mime_type=file.media_type, size=file.size)])

    async def close_ticket(self, args: desk.CloseTicketInput, ctx: desk.CloseTicketContext) -> desk.Ticket:
        if self.ticket(args.id).status == "closed":
            raise desk.ToolError(f"Ticket {args.id} is closed already.")
        resolution = args.resolution
        if resolution is None:
            answer = await ctx.ask.resolution()
            if not isinstance(answer, desk.CloseTicketResolutionAnswer):
                raise desk.ToolError(f"Ticket {args.id} stays open: nobody said how it was solved.")
            resolution = answer.resolution
        with self.db:
            self.db.execute("UPDATE ticket SET status = 'closed', resolution = ? WHERE id = ?", (resolution, args.id))
        return self.ticket(args.id)

    async def get_statistics(self, args: desk.GetStatisticsInput, ctx: desk.Context) -> desk.GetStatisticsOutput:
        statistics = desk.GetStatisticsOutput(total=0, by_status={}, by_priority={}, by_assignee={})
        sql = "SELECT status, priority, assignee, created FROM ticket ORDER BY created"
        for status, priority, assignee, created in self.db.execute(sql):
            statistics.total += 1
            counts = [statistics.by_status, statistics.by_priority.setdefault(priority, {})]
            if assignee:
                person = desk.Person.model_validate_json(assignee)
                idle = desk.Load(name=person.name, oldest=created, by_status={})
                counts.append(statistics.by_assignee.setdefault(person.email, idle).by_status)
            for each in counts:
                each[status] = each.get(status, 0) + 1
        return statistics

    async def read_ticket(self, args: desk.ReadTicketParams, ctx: desk.Context) -> str | None:
        return self.find(args.id)

    async def read_attachment(self, args: desk.ReadAttachmentParams, ctx: desk.Context) -> desk.ResourceContents:
        sql = "SELECT media_type, content FROM attachment WHERE ticket = ? AND name = ?"
        for media_type, content in self.db.execute(sql, (args.id, args.name)):
            uri = f"desk://tickets/{args.id}/attachments/{args.name}"
            return desk.embedded(uri, blob=content, mime_type=media_type)
        return None

    async def prompt_draft_reply(self, args: desk.PromptDraftReplyArgs, ctx: desk.Context) -> desk.Messages:
        ticket = self.ticket(args.id)
        uri, text = f"desk://tickets/{ticket.id}", ticket.model_dump_json()
        return [
            desk.user(f"Draft a {args.tone or 'friendly'} answer to {ticket.reporter.name}."),
            desk.user(desk.embedded(uri, text=text, mime_type="application/json")),
        ]

    async def complete_read_ticket(self, args: desk.Completing, ctx: desk.Context) -> list[str]:
        return [str(key) for (key,) in self.db.execute("SELECT id FROM ticket ORDER BY id")]

    complete_prompt_draft_reply = complete_read_ticket

    def find(self, key: int | str) -> str | None:
        """A ticket as JSON."""
        row: tuple[str] | None = self.db.execute("SELECT json FROM ticket_json WHERE id = ?", (key,)).fetchone()
        return row[0] if row else None

    def ticket(self, key: int | str) -> desk.Ticket:
        """A ticket. Raises ToolError if it does not exist."""
        text = self.find(key)
        if text is None:
            raise desk.ToolError(f"There is no ticket {key}.")
        return desk.Ticket.model_validate_json(text)
