"""The page that says what a package's `_runtime/` is: a line for each module, in the words of its docstring."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from toolwright import package_data
from toolwright.codegen.features import RUNTIME, runtime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolwright import ir

_PAGE = """\
# The runtime of this package

Copied by toolwright, as it is in every package that it generates; ordinary Python that imports nothing of toolwright.
Do not edit it: `toolwright generate` writes it again, with what the manifest needs and no more.

{needs}

| module | what it is for |
|---|---|
{rows}
"""


def readme(manifest: ir.Manifest, used: Sequence[str], requirements: Sequence[str]) -> str:
    """The page, in Markdown, of a package that uses these features and needs these distributions."""
    there = {*runtime(manifest, used)}
    modules = [module for feature in used for module in RUNTIME[feature] if module in there]
    rows = "\n".join(f"| `{module}.py` | {_summary(module)} |" for module in modules)
    return _PAGE.format(needs=needs(requirements), rows=rows)


def needs(requirements: Sequence[str]) -> str:
    """The line of the page that says what must be installed, by which the next run knows whether that changed."""
    return f"It needs {', '.join(f'`{one}`' for one in requirements)}."


@cache
def _summary(module: str) -> str:
    """The first paragraph of a module's docstring, as one line of a table."""
    text = ast.get_docstring(ast.parse((package_data.RUNTIME / f"{module}.py").read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
