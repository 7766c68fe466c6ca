"""Limits a result's tokens (`budget.result`): shortens plain text and replaces other large results with an error.

Structured content is never cut: a partial value may violate the `outputSchema`, and the text must match it (MCP
2025-11-25, server/tools, "Structured Content"). JSON text is not cut either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..server.core.outcomes import Outcome, refuse
from ..values import tokens

if TYPE_CHECKING:
    from ..package import Tool
    from ..server.core.request import Handle, Request

_AMOUNTS: Final = frozenset(
    {"count", "first", "limit", "maxcount", "maxitems", "maxlines", "maxresults", "pagesize", "perpage", "take", "top"}
)
"""Names of arguments that limit the number of results, in lower case, without `_` and `-`."""

_FILTERS: Final = frozenset(
    {"columns", "depth", "fields", "filter", "lines", "q", "query", "search", "select", "where"}
)
"""Names of arguments that filter results."""

_PLACES: Final = frozenset({"after", "continuationtoken", "cursor", "offset", "page", "pagetoken", "skip", "start"})
"""Names of arguments that set the first result; suggested only together with a limit."""

_JSON_STARTS: Final = ("{", "[")


def limit_result(tool: Tool, call_next: Handle) -> Handle:
    """Wrap a tool's handler to shorten or replace results that exceed the tool's budget."""
    budget = tool.result_budget
    if budget is None:
        return call_next
    most = budget

    async def call(request: Request) -> Outcome:
        outcome = await call_next(request)
        # A task's budget applies when the task runs.
        if request.begin is not None or outcome.status not in ("completed", "tool_error"):
            return outcome
        size = measure(outcome.result)
        return outcome if size <= most else _shorten(tool, outcome, size, most)

    return call


def _shorten(tool: Tool, outcome: Outcome, size: int, most: int) -> Outcome:
    if outcome.status == "tool_error":
        end = f"… (the rest is omitted: the message was about {size:,} tokens; the limit is {most:,})"
        return replace(outcome, result={**outcome.result, "content": _cut_error(outcome.result, most, end)})
    content = _cut_lines(outcome.result, tool, size, most)
    if content is not None:
        return replace(outcome, result={**outcome.result, "content": content})
    return refuse(
        f"The result of {tool.name} is too large: about {size:,} tokens; the limit is {most:,}. "
        f"The call was carried out, and only its result is omitted. {_advise(tool)}",
        "limited",
        "result_size",
    )


def measure(result: Mapping[str, Any]) -> int:
    """Estimate the number of tokens in a result.

    Clients pass either the text or the structured content to a model, so the larger one counts. Images and audio do not
    count, because their number of tokens does not depend on their size in bytes.
    """
    structured = result.get("structuredContent")
    return tokens.estimate(
        max(sum(map(count_characters, result["content"])), 0 if structured is None else len(_write(structured)))
    )


def count_characters(block: Mapping[str, Any]) -> int:
    """Return the number of characters in a content block that a model reads."""
    match block["type"]:
        case "text":
            return len(block["text"])
        case "image" | "audio":
            return 0
        case "resource":
            return len(_write({key: value for key, value in block["resource"].items() if key != "blob"}))
        case _:
            return len(_write(block))


def _write(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut_lines(result: Mapping[str, Any], tool: Tool, size: int, most: int) -> list[dict[str, Any]] | None:
    """Return the content with as many lines of its text as fit, and a note about the omitted lines.

    Return `None` if the content cannot be cut or no line fits.
    """
    content: Sequence[dict[str, Any]] = result["content"]
    texts = [block["text"] for block in content if block["type"] == "text"]
    if "structuredContent" in result or any(map(_is_json, texts)):
        return None
    lines = sum(map(_count_lines, texts))

    def write_note(left_out: int) -> str:
        return (
            f"[{left_out:,} of {lines:,} lines are omitted: the result was about {size:,} tokens; the limit is "
            f"{most:,}. The call was carried out. {_advise(tool)}]"
        )

    kept, left_out, at = [], 0, 0
    # The note is longest if all lines are omitted.
    room = _find_room(content, most) - len(write_note(lines))
    for block in content:
        if block["type"] != "text":
            kept.append(block)
        elif left_out:
            left_out += _count_lines(block["text"])
        elif len(block["text"]) <= room:
            kept.append(block)
            room -= len(block["text"])
        else:
            whole = block["text"][: block["text"].rfind("\n", 0, max(room, 0)) + 1]
            left_out = _count_lines(block["text"]) - whole.count("\n")
            kept.append({**block, "text": whole})
            at = len(kept) - 1
    if left_out in (0, lines):
        return None
    kept[at] = {**kept[at], "text": kept[at]["text"] + write_note(left_out)}
    return kept


def _cut_error(result: Mapping[str, Any], most: int, end: str) -> list[dict[str, Any]]:
    """Return a tool error's content with the start of its text. Unlike results, error text can be cut within a line."""
    room = max(_find_room(result["content"], most) - len(end), 0)
    text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
    others = [block for block in result["content"] if block["type"] != "text"]
    return [{"type": "text", "text": text[:room] + end}, *others]


def _find_room(content: Sequence[Mapping[str, Any]], most: int) -> int:
    return tokens.fit(most) - sum(count_characters(block) for block in content if block["type"] != "text")


def _count_lines(text: str) -> int:
    return len(text.split("\n")) - text.endswith("\n")


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(_JSON_STARTS):
        return False
    try:
        json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _advise(tool: Tool) -> str:
    """Return a sentence on how to get a smaller result. Suggest repeating the call only if the tool is idempotent."""
    hints: Mapping[str, Any] = tool.definition.get("annotations") or {}
    names = ", ".join(f"`{name}`" for name in _list_narrowing(tool.definition["inputSchema"]))
    if hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True:
        return f"Call it again and request less{f', with {names}' if names else ''}."
    less = f" To get less next time, use {names}." if names else ""
    return f"Do not call it again only to read the rest: that would carry it out again.{less}"


def _list_narrowing(schema: Mapping[str, Any]) -> Iterator[str]:
    plain = {name: name.lower().replace("_", "").replace("-", "") for name in schema.get("properties") or ()}
    has_amount = not _AMOUNTS.isdisjoint(plain.values())
    for names in (_AMOUNTS, _FILTERS, _PLACES if has_amount else frozenset[str]()):
        yield from (name for name, word in plain.items() if word in names)
