"""Where the scope of a request over HTTP holds what the direct path knows of it, for the SDK's half of the server."""

from __future__ import annotations

from typing import Final

HANDED_OVER: Final = "toolwright.run"
"""The run of a request that was handed over."""

WANTS: Final = "toolwright.wants"
"""What the session of a request wants to hear."""
