"""A stdio server that responds from a file with a tool list and a structured result for each tool.

    python canned.py FILE

Does not validate, so that an invalid result reaches the client. Requires only Python.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Respond to each request on standard input."""
    document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer = _answer(message["method"], message.get("params") or {}, document)
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


def _answer(method: str, params: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "canned", "version": "1"}}
        return {"result": {"protocolVersion": "2025-11-25", **about}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": document["tools"]}}
    if method == "tools/call":
        value = document["results"][params["name"]]
        return {"result": {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}}
    return {"error": {"code": -32601, "message": f"there is no method {method}"}}


main()
