"""Complete call responses, which are also returned, instead of an exception, if the tool failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    overload,
)

from pydantic import BaseModel

from .calls import call_content, call_model
from .content import ToolContent, check_result
from .errors import ToolFailed

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

    from ...package import Package, Tool
    from .binding import Binding

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_Output = TypeVar("_Output", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class CallResponse(Generic[T_co]):
    """A tool's complete response.

    Attributes:
        model: The value that the client's method returns: the output model, the content if the tool has no
            `outputSchema`, or `None` if the tool failed.
        result: The MCP result, with sanitized content (see `sanitize`).
    """

    model: T_co | None
    result: CallToolResult

    @property
    def content(self) -> list[ContentBlock]:
        """The content blocks; with an `outputSchema`, the first is usually the model's JSON."""
        return self.result.content

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks, or the error message if the tool failed."""
        return "\n".join(block.text for block in self.content if block.type == "text")

    @property
    def structured(self) -> Any:
        """The `structuredContent` as JSON, even if the tool has no `outputSchema`; `None` if absent."""
        return self.result.structured_content

    @property
    def meta(self) -> Mapping[str, Any]:
        """The result's `_meta`; empty if absent."""
        return self.result.meta or {}

    @property
    def is_error(self) -> bool:
        """True if the tool returned `isError`."""
        return self.result.is_error

    def parse(self) -> T_co:
        """Return the value that the client's method returns.

        Raises:
            ToolFailed: The tool returned `isError`.
        """
        if self.is_error:
            raise ToolFailed(self.result)
        return cast("T_co", self.model)  # a result without an error has a model, which may itself be None


class Responses:
    """The base class for a client's `with_raw_response`. The methods return `CallResponse`s."""

    _package: ClassVar[Package]

    def __init__(self, client: Binding) -> None:
        self._session, _, self._options = client.__stubwright__

    async def _call_tool(self, tool: Tool, arguments: Mapping[str, object]) -> CallResponse[Any]:
        output = tool.Output
        if output is None:
            return await self._respond(tool, call_content(self._session, self._options, tool, arguments, None))
        return await self._respond(tool, call_model(self._session, self._options, tool, arguments, None, output))

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, object],
        output: type[_Output],
        extra: Mapping[str, object] | None = None,
    ) -> CallResponse[_Output]:
        tool = self._package.tools[name]
        return await self._respond(tool, call_model(self._session, self._options, tool, arguments, extra, output))

    async def _call_content(
        self, name: str, arguments: Mapping[str, object], extra: Mapping[str, object] | None = None
    ) -> CallResponse[ToolContent]:
        tool = self._package.tools[name]
        return await self._respond(tool, call_content(self._session, self._options, tool, arguments, extra))

    async def _respond(self, tool: Tool, call: Awaitable[tuple[T, CallToolResult]]) -> CallResponse[T]:
        try:
            return CallResponse(*await call)
        except ToolFailed as failed:
            return CallResponse(None, check_result(tool, failed.result, self._options.sanitize)[0])


class ResponseMethod(Generic[P, T]):
    """A descriptor for a tool's method in a response class."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[object]) -> ResponseMethod[P, T]: ...

    @overload
    def __get__(
        self, instance: Responses, owner: type[object]
    ) -> Callable[P, Coroutine[Any, Any, CallResponse[T]]]: ...

    def __get__(
        self, instance: Responses | None, owner: type[object]
    ) -> ResponseMethod[P, T] | Callable[P, Coroutine[Any, Any, CallResponse[T]]]:
        """Return the bound method, which takes the same arguments but returns a `CallResponse`."""
        if instance is None:
            return self
        method: Callable[..., Coroutine[Any, Any, Any]] = self._method
        return partial(method, instance)


class SharedMethod(Generic[P, T]):
    """A descriptor that shares a method of the full client with a toolset client."""

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[object]) -> SharedMethod[P, T]: ...

    @overload
    def __get__(self, instance: Binding, owner: type[object]) -> Callable[P, T]: ...

    def __get__(self, instance: Binding | None, owner: type[object]) -> SharedMethod[P, T] | Callable[P, T]:
        """Return the full client's method, bound to the toolset client."""
        return self if instance is None else partial(self._method, instance)


def sharing(method: Callable[Concatenate[Any, P], T]) -> SharedMethod[P, T]:
    """Wrap a client class's tool method for a toolset client class."""
    return SharedMethod(method)


def responding(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> ResponseMethod[P, T]:
    """Wrap a client class's tool method for its response class."""
    return ResponseMethod(method)
