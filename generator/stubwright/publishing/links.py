"""Formats links and commands that install a server in clients, as Markdown."""

from __future__ import annotations

import base64
import json
import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stubwright.project import launch
from stubwright.project.variables import list_variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright import ir
    from stubwright.publishing.settings import Publication


def list_links(manifest: ir.Manifest, publication: Publication) -> Iterator[str]:
    """Yield Markdown lines for installing the server from its URL or, without one, from its distribution."""
    name = str(manifest.server["name"])
    variables = [variable.name for variable in list_variables(manifest.document)]
    if publication.url:
        entry: dict[str, Any] = {"type": "http", "url": publication.url}
        words = ["claude", "mcp", "add", "--transport", "http", name, publication.url]
    elif publication.is_indexed:
        entry = {"command": "uvx", "args": [publication.distribution, *launch.grant(publication.scopes)]}
        if variables:
            entry["env"] = {variable: f"<{variable}>" for variable in variables}
        passed = [word for variable in variables for word in ("--env", f"{variable}=<{variable}>")]
        words = ["claude", "mcp", "add", name, *passed, "--", "uvx", *entry["args"]]
    else:
        return
    compact = json.dumps(entry, separators=(",", ":"))
    encoded = quote(base64.b64encode(compact.encode()).decode(), safe="")
    yield f"- [Add to Cursor](https://cursor.com/en/install-mcp?name={quote(name)}&config={encoded})"
    address = f"https://vscode.dev/redirect/mcp/install?name={quote(name)}&config={quote(compact, safe='')}"
    yield f"- [Add to VS Code]({address})"
    yield f"- Claude Code: `{shlex.join(words)}`"
