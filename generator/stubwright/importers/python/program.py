"""A program that imports a Python file, reports its server object, and serves it on stdio.

It runs in the project's own interpreter, possibly without stubwright, so it imports only the standard library.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib
import inspect
import json
import re
import sys
import textwrap
import traceback
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

_KINDS = {
    ("fastmcp.server.server", "FastMCP"): "fastmcp",
    ("mcp.server.fastmcp.server", "FastMCP"): "mcp",
    ("mcp.server.mcpserver.server", "MCPServer"): "mcp",
}
"""The server classes, with their distributions."""

_FROM_REQUEST = ("get_context", "get_http_request", "get_http_headers", "get_access_token")
"""FastMCP functions that return parts of the current request."""

_ALL = "*"
"""Marks unknown uses of a `Context`: it is passed to other code, or the source code is unavailable."""

_USUAL = ("mcp", "server", "app")
"""Names that `fastmcp run` and `mcp run` search for."""


def main(file: str, name: str, report: str) -> None:
    """Write a description of the server object to `report` and serve it."""
    path = Path(file).resolve()
    root, dotted = locate(path)
    sys.path[0] = str(root)  # replaces this program's folder; its modules could shadow others
    if root != path.parent:
        sys.path.append(str(path.parent))  # so that sibling modules can be imported by their short names
    server = None
    with contextlib.redirect_stdout(sys.stderr):
        try:
            module = importlib.import_module(dotted)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - user code
            failure = {"raised": _format(error, path), "missing_key": _get_key(error)}
        else:
            server, failure = _find(module, path, name)
    Path(report).write_text(json.dumps(failure), "utf-8")
    if server is None:
        sys.exit(1)
    server.run(transport="stdio")


def locate(path: Path) -> tuple[Path, str]:
    """Return a file's import root, and its dotted module name."""
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder, names = folder.parent, [folder.name, *names]
    if path.stem == "__init__":
        del names[-1]
    return folder, ".".join(names)


def _format(error: BaseException, path: Path) -> list[str]:
    """Return a traceback without the frames of this program and of Python's import system."""
    trace = error.__traceback__
    while trace is not None and Path(trace.tb_frame.f_code.co_filename) != path:
        trace = trace.tb_next
    lines = [*traceback.format_tb(trace), *traceback.format_exception_only(type(error), error)]
    return "".join(lines).rstrip().split("\n")


def _get_key(error: BaseException) -> str | None:
    # The missing key can be the name of an environment variable.
    key = error.args[0] if isinstance(error, KeyError) and error.args else None
    return key if isinstance(key, str) else None


def _find(module: Any, path: Path, name: str) -> tuple[Any, dict[str, Any]]:
    there = Path(getattr(module, "__file__", None) or "/").resolve()
    if there != path:
        return None, {"shadowed": str(there)}
    kind_of = {each: _find_kind(value) for each, value in vars(module).items()}
    kinds = {each: kind for each, kind in kind_of.items() if kind is not None}
    name = name or next((each for each in _USUAL if each in kinds), "")
    if not name and len(kinds) == 1:
        [name] = kinds
    if name not in kinds:
        other = type(getattr(module, name)).__name__ if hasattr(module, name) else None
        return None, {"servers": list(kinds), "other": other}
    server, distribution = getattr(module, name), kinds[name]
    return server, {
        "name": name,
        "distribution": distribution,
        "version": metadata.version(distribution),
        "sdk": metadata.version("mcp"),
        "prefix": sys.prefix,
        "module": module.__name__,
        "loaded": sorted({each.partition(".")[0] for each in sys.modules}),
        "root": str(locate(path)[0]),
        "contexts": {tool.name: uses for tool in _list_tools(server) if (uses := _list_uses(tool)) is not None},
        "elsewhere": sorted(_list_elsewhere(server)),
        "protected": _is_protected(server),
    }


def _find_kind(value: object) -> str | None:
    for each in type(value).__mro__:
        if (kind := _KINDS.get((each.__module__, each.__name__))) is not None:
            return kind
    return None


def _is_protected(server: Any) -> bool:
    # FastMCP stores `auth` on the server, the SDK in the server's settings.
    return any(getattr(each, "auth", None) is not None for each in (server, getattr(server, "settings", None)))


def _list_uses(holder: Any) -> list[str] | None:
    """Return the `Context` members that a function uses, or None if the function does not access its request."""
    function = _get_function(holder)
    names = {each.name for each in _list_parameters(function) if _is_context(each)}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # generated code, a builtin, or a callable object
        return [_ALL] if names else None
    uses = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            uses.add(node.attr)
        elif isinstance(node, ast.Call) and (called := _name_called(node)) in _FROM_REQUEST:
            uses.add(_ALL if called == "get_context" else called)
    attributes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
    if any(id(node) not in attributes for node in loads):
        uses.add(_ALL)
    return sorted(uses) if uses or names else None


def _get_function(holder: Any) -> Any:
    function = inspect.unwrap(getattr(holder, "fn", None) or (lambda: None))
    if (
        getattr(function, "__globals__", {}).get("__name__", "").startswith("fastmcp.")
    ):  # a wrapper that hides the parameters
        inner = inspect.getclosurevars(function).nonlocals.get("fn", function)
        return inspect.unwrap(inner) if callable(inner) else function
    return function


def _list_elsewhere(server: Any) -> Iterable[str]:
    """Yield the names of resources, templates and prompts that use the current request."""
    for holder in _list_others(server):
        if _list_uses(holder):
            yield str(getattr(holder, "name", None) or holder)


def _list_parameters(function: Any) -> Iterable[inspect.Parameter]:
    return inspect.signature(function).parameters.values() if callable(function) else ()


def _is_context(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter receives the `Context`, by its type or as a FastMCP dependency."""
    return (
        re.search(r"Context\b", _name(parameter.annotation)) is not None
        or "CurrentContext" in type(parameter.default).__name__
    )


def _name_called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _name(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None) or repr(annotation)


def _list_tools(server: Any) -> Iterable[Any]:
    """Return the tools with their functions, from any version of FastMCP or the SDK."""
    manager = getattr(server, "_tool_manager", None)
    if hasattr(server, "get_tools"):  # FastMCP 2
        tools = asyncio.run(server.get_tools())
    elif manager is not None:  # the SDK's, whose `list_tools` returns the wire format
        tools = manager.list_tools()
    else:
        tools = asyncio.run(server.list_tools())
    return list(tools.values()) if isinstance(tools, Mapping) else tools


def _list_others(server: Any) -> Iterable[Any]:
    for manager, held in (("resource", "_resources"), ("resource", "_templates"), ("prompt", "_prompts")):
        yield from getattr(getattr(server, f"_{manager}_manager", None), held, {}).values()
    kept = getattr(getattr(server, "_local_provider", None), "_components", {})  # FastMCP 3 and later
    yield from (each for key, each in kept.items() if not key.startswith("tool:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
