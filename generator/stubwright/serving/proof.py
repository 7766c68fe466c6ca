"""Checks that a generated server can start: imports the package and the handlers, without serving.

    python -P proof.py FOLDER PACKAGE [MODULE:NAME]

It is a separate program, because each check needs a new interpreter to import changed modules. On failure, it describes
the error on standard error and exits with 2. On success, it creates the file `made` in the folder, because handlers can
exit with any status or prevent the exit. If importing takes several seconds, it writes the current stack to the file
`stack`. It does not import the compiler.
"""

from __future__ import annotations

import importlib
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, Final

_SLOW: Final = 3
"""Seconds after which it writes its stack, before the caller reads it."""


def main() -> None:
    """Create the server and its marker file. Raises SystemExit if that fails."""
    folder, name, path = Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
    registry: Any = importlib.import_module(f"{name}.registry")
    loading: Any = importlib.import_module("stubwright_runtime.server.app.loader")
    checking: Any = importlib.import_module("stubwright_runtime.server.app.check")
    server: Any = importlib.import_module("stubwright_runtime.server.package_server")
    package = registry.PACKAGE
    timer = threading.Timer(_SLOW, _write_stack, (folder / "stack", threading.get_ident(), loading.__file__))
    timer.daemon = True
    timer.start()
    try:
        server.build_server(package, loading.HandlerLocation(path or package.handlers, package).load())
    except (loading.StartError, checking.HandlersError) as error:
        sys.stderr.write(f"{name}: {error}\n")
        sys.exit(2)
    timer.cancel()
    (folder / "made").touch()


def _write_stack(file: Path, thread: int, loader: str) -> None:
    """Write the stack of the thread that runs the handlers to `file`, without the frames above the module `loader`."""
    frames = traceback.extract_stack(sys._current_frames()[thread])
    start = max((number for number, frame in enumerate(frames, 1) if frame.filename == loader), default=0)
    theirs = [frame for frame in frames[start:] if "importlib" not in frame.filename]
    file.write_text("".join(traceback.format_list(theirs)), "utf-8", "backslashreplace")


if __name__ == "__main__":
    main()
