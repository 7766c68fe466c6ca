"""Formats a tool's result as text and JSON, and writes the files in it."""

from __future__ import annotations

import base64
import errno
import json
import mimetypes
import os
import re
from typing import TYPE_CHECKING, Any, Final

from stubwright.project.files import disk
from stubwright_runtime.values.terminal import replace_controls, to_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_KIB: Final = 1024
_KEY: Final = re.compile(r'^( *)("(?:[^"\\]|\\.)*")(?=:)', re.MULTILINE)


def show(result: Mapping[str, Any], *, color: bool = False) -> str:
    """Format a result as text: structured content as JSON, text blocks, and one line for each other block.

    Args:
        result: The result as JSON, with wire names as keys.
        color: True to color the keys of structured content.
    """
    lines: list[str] = []
    structured = result.get("structuredContent")
    if structured is not None:
        text = replace_controls(to_json(structured))
        lines.append(_KEY.sub("\\1\x1b[36m\\2\x1b[0m", text) if color else text)
    for block in result.get("content") or ():
        if block["type"] != "text":
            lines.append(_describe(block))
        elif structured is None or not _is_mirror(block["text"], structured):
            lines.append(replace_controls(block["text"]))
    return "\n".join(lines) + "\n" if lines else ""


def to_json(value: Any) -> str:
    """Format a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def iterate_files(result: Mapping[str, Any], tool: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each image, audio and file in a result; names are unique."""
    for number, block in enumerate(result.get("content") or (), 1):
        source = block.get("resource") if block["type"] == "resource" else block
        if not isinstance(source, dict) or block["type"] not in ("image", "audio", "resource"):
            continue
        media = str(source.get("mimeType") or "").partition(";")[0]
        data = source.get("data", source.get("blob"))
        content = str(source.get("text", "")).encode() if data is None else base64.b64decode(data)
        ending = mimetypes.guess_extension(media) or (".txt" if data is None else ".bin")
        yield f"{_file_name(tool)}-{number}{ending}", content


def save(result: Mapping[str, Any], tool: str, folder: Path) -> list[Path]:
    """Write a result's files to `folder`, creating it if it is missing; never replace an existing file.

    Raises:
        OSError: A file already exists or cannot be written.
    """
    written = []
    for name, content in iterate_files(result, tool):
        path = folder / name
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        disk.write(path, content)
        written.append(path)
    return written


def _is_mirror(text: str, structured: Any) -> bool:
    """Return whether a text block repeats the structured content (MCP 2025-06-18, server/tools, "Structured Content").

    FastMCP and the Python SDK wrap a non-object value in an object with the key `result`. The text contains only the
    value, and each item of a list has a text block of its own.
    """
    parts = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        value = structured["result"]
        parts += [value, *(value if isinstance(value, list) else ())]
    try:
        return text in parts or json.loads(text) in parts
    except (ValueError, RecursionError):
        return False


def _describe(block: Mapping[str, Any]) -> str:
    if block["type"] == "resource_link":
        return to_one_line(f"[link: {block['uri']} ({block.get('title') or block['name']})]")
    if block["type"] == "resource":
        resource = block["resource"]
        if "text" in resource:
            return replace_controls(str(resource["text"]))
        return to_one_line(f"[file: {resource['uri']}, {_size(resource.get('blob', ''))}]")
    return to_one_line(f"[{block['type']}: {block.get('mimeType')}, {_size(block.get('data', ''))}]")


def _size(data: str) -> str:
    size = len(data) * 3 // 4 - data.count("=")
    return f"{size:,} bytes" if size < _KIB else f"{size / _KIB:,.1f} KiB"


def _file_name(tool: str) -> str:
    # The server chose the name, so it must not lead outside the folder.
    return "".join(char if (char.isalnum() and char.isascii()) or char in "-_" else "-" for char in tool)[:64]
