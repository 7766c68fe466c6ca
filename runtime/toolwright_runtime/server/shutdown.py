"""How a server's process ends while a handler is at work in a thread, which cannot be stopped.

Takes nothing and gives nothing; where a thread would keep the process alive, it does not come back.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import Final

from ..logs import logger

_LOG: Final = logger(__name__)
_GRACE: Final = 1.0  # seconds


def end_without_threads() -> None:
    """Give all threads a second to end; if one does not, end the process with status 0.

    Python itself would wait for it, however long it takes, while whoever asked for the stop waits, too.
    """
    deadline = time.monotonic() + _GRACE
    threads = [one for one in threading.enumerate() if not one.daemon and one is not threading.current_thread()]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        _LOG.warning("a handler is still at work in a thread; ending without it")
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
