"""Converts a connected client's tools to an agent framework's tool objects; the framework is imported on demand."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...extras import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.binding import Binding

Framework: TypeAlias = Literal["pydantic-ai", "langchain", "openai-agents"]

_REQUIREMENTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "pydantic-ai": ("pydantic_ai", ".for_pydantic_ai", "pydantic-ai-slim>=2.20"),
    "langchain": ("langchain_core", ".for_langchain", "langchain-core>=1.8"),
    "openai-agents": ("agents", ".for_openai_agents", "openai-agents>=0.24"),
}
"""Each framework's package, our module for it, and the oldest tested release."""


def as_tools(client: Binding, framework: Framework) -> list[Any]:
    """Convert a connected client's tools to an agent framework's tool objects.

    The model gets the schema from `tools/list`, and the result as JSON or content. If a tool fails, or `confirm`
    declines a call, the model gets the error and the run continues. If the client has no `confirm`, the framework asks
    a person before each call of a dangerous tool, as `connect` defines it.

    Args:
        client: A client inside its `async with` block. A toolset client has only the toolset's tools.
        framework: The framework: `pydantic-ai` (returns `pydantic_ai.Tool`), `langchain`
            (`langchain_core.tools.StructuredTool`) or `openai-agents` (`agents.FunctionTool`).

    Raises:
        ValueError: The framework is not one of these.
        MissingExtraError: The framework is not installed or is too old. This is a subclass of `ImportError`.
    """
    if framework not in _REQUIREMENTS:
        raise ValueError(f"unknown framework {framework!r}; supported frameworks: {', '.join(_REQUIREMENTS)}")
    package, module, requirement = _REQUIREMENTS[framework]
    try:
        importlib.import_module(package)
        tools: list[Any] = importlib.import_module(module, __package__).make_tools(client)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        words = f"as_tools(client, {framework!r}) requires another package; install {requirement!r}"
        raise MissingExtraError(words, name=error.name) from error
    return tools
