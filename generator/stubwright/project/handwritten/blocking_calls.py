"""Finds calls that block the event loop in `async def` handler methods.

Recognizes blocking functions in the standard library and requests by their imports. Nested `def` and `lambda` are
ignored, because they might run in a thread.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from stubwright.diagnostics import Diagnostic
from stubwright.project.handwritten import scopes, syntax_tree
from stubwright.project.handwritten.syntax_tree import Function, Module

_IN_A_THREAD: Final = "asyncio.to_thread({}, …)"
_PROGRAM: Final = "asyncio.create_subprocess_exec(…)"
_SHELL: Final = "asyncio.create_subprocess_shell(…)"

INSTEAD: Final[Mapping[str, str]] = {
    "time.sleep": "asyncio.sleep(…)",
    "socket.create_connection": "asyncio.open_connection(…)",
    "socket.getaddrinfo": "asyncio.get_running_loop().getaddrinfo(…)",
    **dict.fromkeys((f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output")), _PROGRAM),
    **dict.fromkeys(("os.system", "subprocess.getoutput", "subprocess.getstatusoutput"), _SHELL),
    **dict.fromkeys(
        (
            *("os.wait", "os.waitpid", "socket.gethostbyname", "socket.gethostbyaddr"),
            *("urllib.request.urlopen", "urllib.request.urlretrieve"),
            *(f"requests.{verb}" for verb in ("request", "get", "head", "options", "post", "put", "patch", "delete")),
        ),
        _IN_A_THREAD,
    ),
}
"""Blocking functions, each with its asynchronous replacement."""


def find_blocking(module: Module, methods: Iterable[Function], handlers: Collection[str]) -> Iterator[Diagnostic]:
    """Yield the calls in `async def` methods that block the event loop.

    Args:
        module: The handwritten module.
        methods: The methods of its class.
        handlers: The names of handler methods, which can also be plain functions.
    """
    known = scopes.find_meanings(module.syntax)
    for method in methods:
        if not isinstance(method, ast.AsyncFunctionDef) or syntax_tree.is_dunder(method.name):
            continue
        for function, name in _calls(method, known):
            remedy = f"write `await {INSTEAD[name].format(name)}` instead"
            if method.name in handlers:
                remedy = f"write the handler as a plain `def {method.name}`, which runs in a thread, or {remedy}"
            written = ast.unparse(function)
            if function.lineno != function.end_lineno:
                written = written.rpartition(".")[2]
            at = module.find_span(function.end_lineno, function.end_col_offset, written)
            yield Diagnostic("SW430", f"`{name}` blocks the event loop, so no other call is processed", at, remedy)


def _calls(function: ast.AsyncFunctionDef, around: Mapping[str, str]) -> Iterator[tuple[ast.expr, str]]:
    known = scopes.find_meanings_inside(function, around)
    for statement in function.body:
        yield from _below(statement, known)


def _below(node: ast.AST, known: Mapping[str, str]) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.FunctionDef() | ast.Lambda():
            return
        case ast.AsyncFunctionDef():
            yield from _calls(node, known)
            return
        case ast.Call(func=function):
            name = scopes.find_meaning(function, known)
            if name is not None and name in INSTEAD:
                yield function, name
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from _below(child, known)
