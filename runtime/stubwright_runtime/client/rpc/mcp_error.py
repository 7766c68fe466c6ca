"""The exception for protocol errors.

When the SDK is loaded, its `MCPError` becomes a base class, so that `except mcp.MCPError` works, too.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from mcp_types import ElicitRequestURLParams, ErrorData
from pydantic import ValidationError

from ...values.modules import find_loaded
from ...values.terminal import replace_controls

_SDK: Final = "mcp.shared.exceptions"


class _Base(Exception):
    """The base class until the SDK is loaded; Python cannot replace `Exception` in `__bases__`."""


class MCPError(_Base):
    """A protocol error of the server, or of a failed connection.

    Attributes:
        error: The code, the message and the data (JSON-RPC 2.0, section 5.1).
    """

    error: ErrorData

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        """Create an error.

        Args:
            code: The JSON-RPC code.
            message: The text.
            data: Additional data.
        """
        if _SDK in sys.modules:
            _adopt_base()
        super().__init__(code, message, data)
        self.error = (
            ErrorData(code=code, message=message) if data is None else ErrorData(code=code, message=message, data=data)
        )

    @property
    def code(self) -> int:
        """The JSON-RPC code."""
        return self.error.code

    @property
    def message(self) -> str:
        """The text."""
        return self.error.message

    @property
    def data(self) -> Any:
        """The additional data; `None` without."""
        return self.error.data

    @classmethod
    def from_error_data(cls, error: ErrorData) -> MCPError:
        """Return an exception for an error response."""
        return MCPError(error.code, error.message, error.data)

    def __str__(self) -> str:
        """Return the text without control characters; `message` is unchanged."""
        return replace_controls(self.message)


class UrlElicitationRequired(MCPError):
    """The request requires a person to visit URLs first (MCP 2025-11-25, client/elicitation).

    Attributes:
        elicitations: The URLs, with their reasons.
    """

    elicitations: list[ElicitRequestURLParams]

    @classmethod
    def from_error(cls, error: MCPError) -> UrlElicitationRequired | None:
        """Return the exception for an error response, or `None` if it contains no URLs."""
        data: Any = error.data
        given: Any = data.get("elicitations") if isinstance(data, dict) else None
        if not isinstance(given, list) or not given:
            return None
        typed = cls(error.code, error.message, error.data)
        try:
            typed.elicitations = [ElicitRequestURLParams.model_validate(each) for each in given]
        except ValidationError:
            return None
        return typed


def _adopt_base() -> None:
    """Make the SDK's class a base of `MCPError`; version 1 of the SDK has another class."""
    base = _find_sdk_class("MCPError")
    if base is not None and MCPError.__bases__ == (_Base,):
        MCPError.__bases__ = (base,)


def _find_sdk_class(name: str) -> type[Exception] | None:
    """Return an exception class of the SDK, or `None` if the SDK is not loaded, or lacks it."""
    return getattr(find_loaded(_SDK), name, None)


def convert(error: Exception) -> Exception:
    """Return an `MCPError` for an exception of the SDK's class (version 1: `McpError`), or the same exception."""
    if isinstance(error, MCPError):
        return error
    if type(error) not in (_find_sdk_class("MCPError"), _find_sdk_class("McpError")):
        return error
    given: ErrorData = getattr(error, "error")  # noqa: B009 - the class is not imported here
    return MCPError.from_error_data(given).with_traceback(error.__traceback__)
