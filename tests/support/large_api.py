"""A realistic document of 500 operations: ten operations for each of 50 kinds of records."""

from __future__ import annotations

from typing import Any

_FIRST = ("customer", "invoice", "payment", "contract", "order", "product", "supplier", "employee", "project", "ticket")
_SECOND = ("", "note", "label", "address", "history")
_ACTIONS = ("archive", "restore", "copy", "lock", "unlock")
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def document(*, changed: bool = False) -> dict[str, Any]:
    """Return the document; `changed` adds a field and a filter, makes a field required, and removes a value."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for kind in [f"{one}{'_' if two else ''}{two}" for one in _FIRST for two in _SECOND]:
        title = "".join(part.title() for part in kind.split("_"))
        schemas[title] = _record(kind)
        schemas[f"{title}Page"] = {
            "type": "object",
            "required": ["data"],
            "properties": {
                "data": {"type": "array", "items": {"$ref": f"#/components/schemas/{title}"}},
                "next_cursor": {"type": "string"},
            },
        }
        paths |= _paths(kind, title)
    if changed:
        schemas["Invoice"]["properties"]["due"] = {"type": "string", "format": "date"}
        del schemas["Customer"]["properties"]["status"]["enum"][1]
        schemas["Customer"]["required"].append("contact")
        paths["/customers"]["get"]["parameters"].append({"name": "since", "in": "query", "schema": {"type": "string"}})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Acme", "version": "2" if changed else "1"},
        "servers": [{"url": "https://api.acme.example/v1"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _record(kind: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["name"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "name": {"type": "string", "description": f"What the {kind} is called."},
            "status": {"enum": ["open", "waiting", "closed"]},
            "contact": {"type": "string", "description": "Whom to ask."},
            "notes": {"type": "array", "items": {"type": "string"}},
        },
    }


def _paths(kind: str, title: str) -> dict[str, Any]:
    record = {"application/json": {"schema": {"$ref": f"#/components/schemas/{title}"}}}
    page = {"application/json": {"schema": {"$ref": f"#/components/schemas/{title}Page"}}}

    def said(name: str, summary: str, content: Any = record, **more: Any) -> dict[str, Any]:
        answer = {"200": {"description": "OK", **({"content": content} if content else {})}}
        return {"operationId": f"{name}_{kind}", "tags": [f"{kind}s"], "summary": summary, "responses": answer, **more}

    body = {"requestBody": {"required": True, "content": record}}
    query = [{"name": "cursor", "in": "query", "schema": {"type": "string"}}]
    query += [{"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 100}}]
    one = {
        "parameters": [_ID],
        "get": said("get", f"One {kind}."),
        "put": said("update", f"Change a {kind}.", **body),
        "delete": said("delete", f"Delete a {kind}.", None),
    }
    every = {
        "get": said("list", f"All {kind}s, page by page.", page, parameters=query),
        "post": said("create", f"Make a {kind}.", **body),
    }
    actions = {
        f"/{kind}s/{{id}}/{action}": {"parameters": [_ID], "post": said(action, f"{action.title()} a {kind}.")}
        for action in _ACTIONS
    }
    return {f"/{kind}s": every, f"/{kind}s/{{id}}": one, **actions}
