"""Error codes, and the exception for protocol errors (JSON-RPC 2.0, 5.1; MCP 2026-07-28), without the SDK."""

from __future__ import annotations

from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CONNECTION_CLOSED: Final = -32000
REQUEST_TIMEOUT: Final = -32001
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042


UNWRITABLE: Final = "The message cannot be written as JSON"
"""The error message for results with values that are not JSON."""


class ProtocolError(Exception):
    """A request fails with a protocol error. The message is for the client."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        """Create an error from its JSON-RPC code, message and data."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


INVALID_STATE: Final = "invalid_request_state"
"""The `reason` in the error data for an invalid `requestState`."""


def refuse_state() -> ProtocolError:
    """Return the error for an invalid `requestState`, without details that would help to forge one."""
    return ProtocolError(INVALID_PARAMS, "Invalid or expired requestState", {"reason": INVALID_STATE})
