"""The header `Retry-After` of HTTP (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import time
from datetime import UTC


def parse_retry_after(text: str | None) -> float | None:
    """Return the seconds that a `Retry-After` header asks to wait, at least 0; None if it is missing or invalid.

    Args:
        text: The header: a number of seconds, or a date of HTTP.
    """
    text = (text or "").strip()
    if text.isdecimal() and len(text) < 9:
        return float(text)
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # all dates of HTTP are in GMT (RFC 9110, section 5.6.7)
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
