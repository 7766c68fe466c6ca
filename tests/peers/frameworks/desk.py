"""The server that the agents call, and the calls that their models make.

Takes nothing from a framework; runs with the packages of the runtime.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
from typing import Any, Final

import stubwright_runtime as runtime

PNG: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
READS: Final = {"annotations": {"readOnlyHint": True}}
TICKET: Final = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "title": {"type": "string"}, "tags": {"type": "array"}},
    "required": ["id", "title", "tags"],
}
INPUT: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^T-[0-9]+$", "description": "The ticket's id."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        "since": {"type": "string", "format": "date"},
        "status": {"enum": ["open", "closed"]},
    },
    "required": ["id"],
    "additionalProperties": False,
}


def _input(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


MANIFEST: Final[dict[str, Any]] = {
    "stubwright": 1,
    "server": {"name": "desk", "version": "1"},
    "python": {"formats": "rich"},
    "tools": [
        {"name": "get_ticket", "description": "Get it.", "inputSchema": INPUT, "outputSchema": TICKET, **READS},
        {"name": "find.ticket", "description": "Find it.", "inputSchema": _input(title={"type": "string"}), **READS},
        {"name": "draw", "description": "Draw it.", "inputSchema": {"type": "object"}, **READS},
        {
            "name": "upload",
            "description": "Keep a file.",
            "inputSchema": _input(data={"type": "string", "contentEncoding": "base64"}),
            "annotations": {"readOnlyHint": False, "destructiveHint": False},
        },
        {
            "name": "configure",
            "description": "Configure it.",
            "inputSchema": _input(config={"type": "string"}, self={"type": "string"}),
            **READS,
        },
        {"name": "delete", "description": "Delete it.", "inputSchema": _input(id={"type": "string"})},
    ],
}

CALLS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "structured": ("get_ticket", {"id": "T-1"}),
    "refused by the contract": ("get_ticket", {"id": "1", "limit": 0}),
    "failed": ("find_ticket", {"title": "Lunch"}),
    "image": ("draw", {}),
    "base64": ("upload", {"data": base64.b64encode(b"seven..").decode()}),
}
"""The calls of a model, by the part of `as_tools` that they test."""

DELETE: Final = ("delete", {"id": "T-1"})


class Desk:
    """The handlers; they note what was deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def get_ticket(self, args: Any, _ctx: Any) -> Any:
        return {"id": args.id, "title": "Café", "tags": ["a", None]}

    async def find_ticket(self, args: Any, _ctx: Any) -> str:
        raise runtime.ToolError(f"no ticket is called {args.title}; look for another")

    async def draw(self, _args: Any, _ctx: Any) -> Any:
        return [runtime.text("a drawing"), runtime.image(PNG, "image/png")]

    async def upload(self, args: Any, _ctx: Any) -> str:
        return f"{len(args.data)} bytes: {args.data!r}"

    async def configure(self, args: Any, _ctx: Any) -> str:
        return json.dumps(args.model_dump(mode="json", by_alias=True))

    async def delete(self, args: Any, _ctx: Any) -> str:
        self.deleted.append(args.id)
        return f"{args.id} is deleted"


def connect(desk: Desk, **options: Any) -> Any:
    """Connect the client of the package `desk_mcp` to its server."""
    package = importlib.import_module("desk_mcp")
    return package.DeskClient.connect(package.build_server(desk), **options)


def say(report: dict[str, Any]) -> None:
    """Print what happened, for the test."""
    os.write(1, json.dumps(report).encode())
