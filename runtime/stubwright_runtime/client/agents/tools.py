"""The tools of a connected client as tool objects of a framework that runs agents.

A framework is imported when tools for it are requested, and none is a dependency.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...extras import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.binding import Binding

Framework: TypeAlias = Literal["pydantic-ai", "langchain", "openai-agents"]

_REQUIREMENTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "pydantic-ai": ("pydantic_ai", ".for_pydantic_ai", "pydantic-ai-slim>=2.68"),
    "langchain": ("langchain_core", ".for_langchain", "langchain-core>=1.8"),
    "openai-agents": ("agents", ".for_openai_agents", "openai-agents>=0.24"),
}
"""The package of each framework, our module for it, and the oldest release that was tried."""


def as_tools(client: Binding, framework: Framework) -> list[Any]:
    """Return the tools of a connected client as the tool objects of a framework that runs agents.

    A model gets the schema of `tools/list`, and reads the result as JSON or content. A tool that fails, and a call
    that `confirm` refuses, are errors that the model reads, so the run continues. If the client has no `confirm`, the
    framework asks a person before each call of a dangerous tool; see `connect` for which ones those are.

    Args:
        client: A client, inside its `async with` block; a client of a toolset gives the tools of the toolset.
        framework: The framework: `pydantic-ai` (returns `pydantic_ai.Tool`), `langchain`
            (`langchain_core.tools.StructuredTool`) or `openai-agents` (`agents.FunctionTool`).

    Raises:
        ValueError: The framework is not one of these.
        MissingExtraError: The framework is not installed, or too old; it is an `ImportError`.
    """
    if framework not in _REQUIREMENTS:
        raise ValueError(f"there are no tools for {framework!r}; there are some for {', '.join(_REQUIREMENTS)}")
    package, module, requirement = _REQUIREMENTS[framework]
    try:
        importlib.import_module(package)
        tools: list[Any] = importlib.import_module(module, __package__).make_tools(client)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        words = f"as_tools(client, {framework!r}) needs another package: install {requirement!r}"
        raise MissingExtraError(words, name=error.name) from error
    return tools
