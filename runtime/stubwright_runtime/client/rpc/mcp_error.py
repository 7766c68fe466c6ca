"""The exception for protocol errors.

Once the SDK is loaded, its `MCPError` becomes a base class so that `except mcp.MCPError` also works.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from mcp_types import URL_ELICITATION_REQUIRED, ElicitRequestURLParams, ErrorData
from pydantic import ValidationError

from ...values.modules import find_loaded
from ...values.terminal import replace_controls

_SDK: Final = "mcp.shared.exceptions"


class _Base(Exception):
    """The base class of `MCPError` until the SDK is loaded. Python cannot replace `Exception` in `__bases__`."""


class MCPError(_Base):
    """A protocol error from the server, or an error from a failed connection.

    Attributes:
        error: The code, message and data (JSON-RPC 2.0, section 5.1).
    """

    error: ErrorData

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        """Create an error from a JSON-RPC code, a message, and additional data."""
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
        """The error message, as the server sent it."""
        return self.error.message

    @property
    def data(self) -> Any:
        """The additional data, or `None`."""
        return self.error.data

    @classmethod
    def from_error_data(cls, error: ErrorData) -> MCPError:
        """Create an exception from an error response."""
        return MCPError(error.code, error.message, error.data)

    def __str__(self) -> str:
        """Return the message without control characters; `message` is unchanged."""
        return replace_controls(self.message)


class UrlElicitationRequired(MCPError):
    """The request requires a person to visit URLs first (MCP 2025-11-25, client/elicitation).

    Attributes:
        elicitations: The URLs to visit, with the server's reasons.
    """

    elicitations: list[ElicitRequestURLParams]

    @classmethod
    def from_error(cls, error: MCPError) -> UrlElicitationRequired | None:
        """Create the exception from an error response, or return `None` if the response contains no URLs."""
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
    """Make the SDK's exception class a base of `MCPError`. Version 1 of the SDK names that class differently."""
    base = _find_sdk_class("MCPError")
    if base is not None and MCPError.__bases__ == (_Base,):
        MCPError.__bases__ = (base,)


def _find_sdk_class(name: str) -> type[Exception] | None:
    return getattr(find_loaded(_SDK), name, None)


def convert(error: Exception) -> Exception:
    """Convert the SDK's exception (version 1: `McpError`) to an `MCPError`; return any other exception unchanged.

    An `MCPError` with URLs that a person must visit becomes a `UrlElicitationRequired`.
    """
    if type(error) in (_find_sdk_class("MCPError"), _find_sdk_class("McpError")):
        given: ErrorData = getattr(error, "error")  # noqa: B009 - the class is not imported here
        error = MCPError.from_error_data(given).with_traceback(error.__traceback__)
    if type(error) is MCPError and error.code == URL_ELICITATION_REQUIRED:
        return UrlElicitationRequired.from_error(error) or error
    return error
