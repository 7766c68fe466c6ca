"""Renders the `dev` page: forms for tools, resources and prompts, results, calls, changes, and the log.

The page's script calls the server directly, so that it shows the same results as any other client.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stubwright import __version__, naming
from stubwright.docs import page as docs
from stubwright.docs import tables, views
from stubwright_runtime.mcp import revisions, vocabulary
from stubwright_runtime.mcp.parameter_headers import list_mirrored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller's identity, if the manifest has `auth`.

    Attributes:
        issuer: The manifest's issuer.
        issues: True if this run issues tokens, and the server accepts no others.
        subject: The subject of the first token.
        scopes: All scopes in the manifest.
        chosen: The scopes in the first token.
        claims: Additional claims in the first token.
    """

    issuer: str
    issues: bool
    subject: str
    scopes: tuple[str, ...]
    chosen: tuple[str, ...]
    claims: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A rendered page, its documentation, and a digest of its content, which reveals that an open page is outdated."""

    text: str
    docs: str
    digest: str


def render(
    manifest: ir.Manifest,
    source: Mapping[str, Any],
    *,
    url: str,
    identity: Identity | None,
    last: int,
) -> Page:
    """Render a run's page.

    Args:
        source: The manifest as written.
        url: The server's URL.
        identity: The caller; None if the server requires no token.
        last: The number of the last event before this page.
    """
    entries = [*_list_tools(manifest), *_list_primitives(manifest)]
    view = views.view(manifest, source)
    digest = hashlib.sha256(repr((view, entries)).encode(errors="backslashreplace")).hexdigest()[:16]
    parts = urlsplit(url)
    data = {
        "name": view.name,
        "version": __version__,
        "revision": revisions.REVISIONS[-1],
        "url": url,
        "digest": digest,
        "last": last,
        "entries": entries,
        "bounds": tables.BOUNDS,
        "client": _name_client(manifest),
        "auth": None if identity is None else asdict(identity),
    }
    policy = f"connect-src 'self' {parts.scheme}://{parts.netloc}; img-src data:; media-src data:"
    text = docs.render_page("workbench", view, policy=policy, data=data)
    return Page(text, docs.render(view), digest)


def _name_client(manifest: ir.Manifest) -> Mapping[str, str] | None:
    if "client" not in manifest.emit:
        return None
    return {"module": manifest.package, "name": naming.name_client_class(manifest.stem)}


def _list_tools(manifest: ir.Manifest) -> Iterator[dict[str, Any]]:
    for tool in manifest.tools:
        schema = tool.definition["inputSchema"]
        yield {
            "id": f"tool-{tool.names.method}",
            "key": tool.name,
            "verb": "Call",
            "method": "tools/call",
            "destructive": tool.annotations.get("destructiveHint") is True,
            "schema": schema,
            "completes": [],
            "headers": [{"path": list(mirrored.path), "header": mirrored.name} for mirrored in list_mirrored(schema)],
            "examples": [{"name": example.name, "input": json.dumps(example.input)} for example in tool.examples],
        }


def _list_primitives(manifest: ir.Manifest) -> Iterator[dict[str, Any]]:
    for section, primitives in manifest.primitives.items():
        for primitive in primitives:
            is_prompt = section is vocabulary.PROMPTS
            yield {
                "id": views.make_id(primitive),
                "key": primitive.key,
                "verb": "Get" if is_prompt else "Read",
                "method": "prompts/get" if is_prompt else "resources/read",
                "destructive": False,
                "schema": _make_argument_schema(primitive),
                "completes": primitive.completed,
                "headers": [],
                "examples": [],
            }


def _make_argument_schema(primitive: ir.Primitive) -> dict[str, Any]:
    """Return a schema for a prompt's arguments, which are strings (server/prompts), or for a template's variables."""
    text = {"type": "string"}
    arguments = primitive.arguments or ()
    return {
        "type": "object",
        "properties": {
            argument.name: {
                **({"type": "array", "items": text} if argument.many else text),
                **({"description": argument.description} if argument.description else {}),
            }
            for argument in arguments
        },
        "required": [argument.name for argument in arguments if argument.required],
    }
