"""How a server's process is asked to stop, and how it ends while a handler is at work in a thread.

Nobody can stop a thread: where one would keep the process alive, `end_without_threads` does not return.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from typing import Final

from ...observability.logs import log

_GRACE: Final = 1.0  # seconds


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that ask for a stop: SIGINT, SIGTERM, and SIGHUP unless it is ignored, as `nohup` has it."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return signal.SIGINT, signal.SIGTERM
    return signal.SIGINT, signal.SIGTERM, hangup


def end_without_threads() -> None:
    """Give all threads a second to end; if one does not, end the process with status 0.

    Python itself would wait for it, however long it takes, while whoever asked for the stop waits, too.
    """
    deadline = time.monotonic() + _GRACE
    threads = [
        thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()
    ]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        log().warning("a handler is still running in a thread; exiting without waiting for it")
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
