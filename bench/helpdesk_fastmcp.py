"""The help desk of `specs/helpdesk.yaml`, written with FastMCP for comparison by `helpdesk.py`.

    python bench/helpdesk_fastmcp.py

Stores its tickets in the tables of `examples/helpdesk.sql`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.prompts import Message
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.server.dependencies import get_context
from fastmcp.server.lifespan import lifespan
from fastmcp.tools import ToolResult
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field

SCHEMA = (Path(__file__).parents[1] / "examples" / "helpdesk.sql").read_text("utf-8")
READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = types.ToolAnnotations(destructive_hint=False, open_world_hint=False)

Status = Annotated[
    Literal["open", "waiting", "closed"], Field(description="Waiting means that the reporter has to answer")
]
Priority = Literal["low", "normal", "high", "urgent"]
Id = Annotated[int, Field(ge=1, description="The ticket's number")]
Text = Annotated[str, Field(min_length=1)]
Counts = dict[str, int]


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Text
    email: str = Field(pattern=r"^[^@\s]+@[^@\s]+$")


class Comment(BaseModel):
    author: Person
    at: datetime
    text: str


class Attachment(BaseModel):
    name: str
    media_type: str
    size: int = Field(description="In bytes")
    uri: str = Field(description="The resource to read it from")


class Ticket(BaseModel):
    id: Id
    subject: str
    description: str
    status: Status
    priority: Priority
    reporter: Person
    assignee: Person | None = Field(description="Who works on it")
    created: datetime
    resolution: str | None = Field(description="How it was solved; null until it is closed")
    comments: list[Comment]
    attachments: list[Attachment]


class Page(BaseModel):
    tickets: list[Ticket]
    next_cursor: str | None = Field(description="Where the next page begins; null on the last one")


class Load(BaseModel):
    name: str
    oldest: datetime
    by_status: Counts


class Statistics(BaseModel):
    total: int
    by_status: Counts
    by_priority: dict[str, Counts]
    by_assignee: dict[str, Load] = Field(description="By email")


class Resolution(BaseModel):
    resolution: Text


@lifespan
async def database(server: FastMCP[Any]) -> AsyncIterator[dict[str, Any]]:
    db = sqlite3.connect(os.environ.get("HELPDESK_DB", ":memory:"))
    db.executescript(SCHEMA)
    yield {"db": db}
    db.close()


mcp = FastMCP(
    "helpdesk",
    version="1.0.0",
    instructions="Look for a ticket that exists before you create one. Only people close tickets; you may propose it.",
    lifespan=database,
)


def connection(ctx: Context) -> sqlite3.Connection:
    db: sqlite3.Connection = ctx.lifespan_context["db"]
    return db


def find(ctx: Context, key: int | str) -> str | None:
    sql = "SELECT json FROM ticket_json WHERE id = ?"
    row: tuple[str] | None = connection(ctx).execute(sql, (key,)).fetchone()
    return row[0] if row else None


def existing(ctx: Context, key: int | str) -> Ticket:
    text = find(ctx, key)
    if text is None:
        raise ToolError(f"There is no ticket {key}.")
    return Ticket.model_validate_json(text)


def linked(model: BaseModel, link: types.ResourceLink) -> ToolResult:
    return ToolResult([model.model_dump_json(), link], structured_content=model)


@mcp.tool(annotations=ADDS, output_schema=Ticket.model_json_schema())
async def create_ticket(
    subject: Annotated[str, Field(min_length=1, max_length=120)],
    description: Annotated[str, Field(min_length=1, description="What happened, and what was expected")],
    reporter: Person,
    ctx: Context,
    priority: Priority = "normal",
) -> ToolResult:
    """Report a problem."""
    sql = "INSERT INTO ticket (subject, description, priority, reporter) VALUES (?, ?, ?, ?) RETURNING id"
    with connection(ctx) as db:
        [(key,)] = db.execute(sql, (subject, description, priority, reporter.model_dump_json()))
    link = types.ResourceLink(type="resource_link", uri=f"desk://tickets/{key}", name=f"ticket {key}", title=subject)
    return linked(existing(ctx, key), link)


@mcp.tool(annotations=READS)
async def get_ticket(id: Id, ctx: Context) -> Ticket:
    """Get a ticket with its comments and attachments."""
    return existing(ctx, id)


@mcp.tool(annotations=READS)
async def list_tickets(
    ctx: Context,
    status: Status | None = None,
    priority: Priority | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    cursor: Annotated[
        str | None, Field(pattern=r"^[0-9]{1,18}$", description="`next_cursor` of the page before")
    ] = None,
) -> Page:
    """List tickets, oldest first, in pages."""
    sql = """SELECT id, json FROM ticket_json
        WHERE id > ? AND status = ifnull(?, status) AND priority = ifnull(?, priority) ORDER BY id LIMIT ?"""
    rows = connection(ctx).execute(sql, (int(cursor or 0), status, priority, limit + 1)).fetchall()
    page = rows[:limit]
    return Page(
        tickets=[Ticket.model_validate_json(text) for _, text in page],
        next_cursor=str(page[-1][0]) if len(rows) > len(page) else None,
    )


@mcp.tool(annotations=ADDS)
async def add_comment(id: Id, author: Person, text: Text, ctx: Context) -> Comment:
    """Add a comment to a ticket."""
    existing(ctx, id)
    sql = "INSERT INTO comment (ticket, author, text) VALUES (?, ?, ?) RETURNING id"
    with connection(ctx) as db:
        [(key,)] = db.execute(sql, (id, author.model_dump_json(), text))
    [(found,)] = db.execute("SELECT json FROM comment_json WHERE id = ?", (key,))
    return Comment.model_validate_json(found)


@mcp.tool(annotations=types.ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False))
async def assign_ticket(id: Id, ctx: Context, assignee: Person | None = None) -> Ticket:
    """Assign a ticket to a person; without `assignee`, to no one."""
    with connection(ctx) as db:
        text = assignee.model_dump_json() if assignee else None
        db.execute("UPDATE ticket SET assignee = ? WHERE id = ?", (text, id))
    return existing(ctx, id)


@mcp.tool(
    annotations=types.ToolAnnotations(idempotent_hint=True, open_world_hint=False),
    output_schema=Attachment.model_json_schema(),
)
async def attach_file(
    id: Id,
    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=100)],
    content: Annotated[Base64Bytes, Field(max_length=1400000)],
    ctx: Context,
    media_type: str = "application/octet-stream",
) -> ToolResult:
    """Attach a file to a ticket; it replaces a file of the same name."""
    existing(ctx, id)
    with connection(ctx) as db:
        db.execute("INSERT OR REPLACE INTO attachment VALUES (?, ?, ?, ?)", (id, name, media_type, content))
    [(text,)] = db.execute("SELECT json FROM attachment_json WHERE ticket = ? AND name = ?", (id, name))
    made = Attachment.model_validate_json(text)
    link = types.ResourceLink(type="resource_link", uri=made.uri, name=name, mime_type=media_type, size=made.size)
    return linked(made, link)


@mcp.tool(annotations=types.ToolAnnotations(destructive_hint=True, open_world_hint=False))
async def close_ticket(id: Id, ctx: Context, resolution: Text | None = None) -> Ticket:
    """Close a ticket. The user is asked for permission, and for the resolution if you do not know it."""
    leave = await ctx.elicit(f"Close ticket {id}?", bool)
    if leave.action != "accept" or not leave.data:
        raise ToolError("The user refused.")
    if existing(ctx, id).status == "closed":
        raise ToolError(f"Ticket {id} is closed already.")
    if resolution is None:
        answer = await ctx.elicit("How was it solved?", Resolution)
        if answer.action != "accept":
            raise ToolError(f"Ticket {id} stays open: nobody said how it was solved.")
        resolution = answer.data.resolution
    with connection(ctx) as db:
        db.execute("UPDATE ticket SET status = 'closed', resolution = ? WHERE id = ?", (resolution, id))
    return existing(ctx, id)


@mcp.tool(annotations=READS)
async def get_statistics(ctx: Context) -> Statistics:
    """Count tickets by status, by priority and status, and by assignee."""
    made = Statistics(total=0, by_status={}, by_priority={}, by_assignee={})
    sql = "SELECT status, priority, assignee, created FROM ticket ORDER BY created"
    for status, priority, assignee, created in connection(ctx).execute(sql):
        made.total += 1
        counts = [made.by_status, made.by_priority.setdefault(priority, {})]
        if assignee:
            person = Person.model_validate_json(assignee)
            idle = Load(name=person.name, oldest=created, by_status={})
            counts.append(made.by_assignee.setdefault(person.email, idle).by_status)
        for each in counts:
            each[status] = each.get(status, 0) + 1
    return made


@mcp.resource("desk://guide", title="How we work", mime_type="text/markdown")
def guide() -> str:
    return "Urgent tickets are answered within an hour, others within a day."


@mcp.resource("desk://tickets/{id}", name="ticket", mime_type="application/json")
async def read_ticket(id: str, ctx: Context) -> str:
    """A ticket as JSON."""
    text = find(ctx, id)
    if text is None:
        raise ResourceError(f"There is no ticket {id}.")
    return text


@mcp.resource("desk://tickets/{id}/attachments/{name}", name="attachment")
async def read_attachment(id: str, name: str, ctx: Context) -> ResourceResult:
    """An attached file."""
    sql = "SELECT media_type, content FROM attachment WHERE ticket = ? AND name = ?"
    for media_type, content in connection(ctx).execute(sql, (id, name)):
        return ResourceResult([ResourceContent(content, mime_type=media_type)])
    raise ResourceError(f"There is no attachment {name}.")


@mcp.prompt
def triage() -> str:
    """Sort the open tickets."""
    return "List the open tickets and propose a priority and an assignee for each."


@mcp.prompt
async def draft_reply(id: str, ctx: Context, tone: str = "friendly") -> list[Message]:
    """Draft an answer to the reporter of a ticket."""
    ticket = existing(ctx, id)
    uri, text = f"desk://tickets/{ticket.id}", ticket.model_dump_json()
    resource = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
    return [
        Message(f"Draft a {tone} answer to {ticket.reporter.name}."),
        Message(types.EmbeddedResource(type="resource", resource=resource)),
    ]


@mcp.completion
async def complete(
    ref: types.PromptReference | types.ResourceTemplateReference,
    argument: types.CompletionArgument,
    context: types.CompletionContext | None,
) -> list[str]:
    options: list[str] = []
    if isinstance(ref, types.PromptReference) and ref.name == "draft_reply" and argument.name == "tone":
        options = ["friendly", "formal"]
    elif argument.name == "id":
        found = connection(get_context()).execute("SELECT id FROM ticket ORDER BY id")
        options = [str(key) for (key,) in found]
    return [option for option in options if option.startswith(argument.value)]


if __name__ == "__main__":
    mcp.run(show_banner=False)
