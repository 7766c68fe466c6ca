"""Loads handlers and task engines from `module:name`, and raises a one-line `StartError` on failure."""

from __future__ import annotations

import importlib
import sys
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from ...observability.logs import log
from ...values.json import is_group
from . import check

if TYPE_CHECKING:
    from ...package import Package
    from ..core.feature import HandlerMethod
    from ..core.task_engine import TaskEngine

_TASKS: Final = "--tasks"
"""The command-line option that selects a task engine."""


class StartError(Exception):
    """The server cannot start: a one-line message and an exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class HandlerLocation:
    """The location of a package's handlers in Python modules.

    Attributes:
        path: `module:name`; `None` if the user set no path.
        package: The package whose methods the handlers implement.
        option: The option or environment variable that sets the path, for messages.
    """

    path: str | None
    package: Package
    option: str = "--handlers"

    def load(self) -> object:
        """Import the handlers at `module:name` from the working directory or `sys.path`.

        A class is instantiated, and a factory function is called. Python's `-P` option excludes the working directory.
        Return `None` if the path is not set and the package requires no handler methods.

        Raises:
            StartError: The handlers cannot be imported or created.
        """
        from .composition import list_features  # not needed to report command-line errors

        def find_needed() -> list[HandlerMethod]:  # importing features is slow; `build_core` checks instances
            return [method for feature in list_features(self.package) for method in feature.list_required_methods()]

        if self.path is None:
            if all(method.is_optional for method in find_needed()):
                return None
            sign = " " if self.option.startswith("-") else "="
            raise StartError(f"no handlers specified; set them, for example with {self.option}{sign}weather:Weather")
        handlers = _find(self.path, self.option, "weather:Weather")
        is_class = isinstance(handlers, type)
        if is_class and (reason := check.explain_abstract(find_needed(), handlers)):
            raise StartError(reason)
        if is_class or (callable(handlers) and not any(hasattr(handlers, method.name) for method in find_needed())):
            try:
                return handlers()
            except Exception as error:  # noqa: BLE001 - `refuse` reports every failure with its location
                refuse(f"cannot call {self.path}", error)
        if handlers is None:
            raise StartError(f"{self.path} is None")
        return handlers


def load_engine(path: str, server: str) -> TaskEngine:
    """Create a task engine: call the class or function at `module:name` with the server's name.

    Raises:
        StartError: The class or function does not exist, raises, or does not return a task engine.
    """
    make = _find(path, _TASKS, "engines:Queue")
    if not callable(make):
        raise StartError(f"{_TASKS} must be a class or function that returns a task engine; {path!r} is neither")
    try:
        engine = make(server)
    except Exception as error:  # noqa: BLE001 - `refuse` reports every failure with its location
        refuse(f"{_TASKS}: cannot call {path} with the server's name", error)
    if lacking := [name for name in ("submit", "run", "stop") if not callable(getattr(engine, name, None))]:
        raise StartError(f"{_TASKS}: {path} does not return a task engine; the object lacks {', '.join(lacking)}")
    return cast("TaskEngine", engine)


def _find(path: str, option: str, example: str) -> Any:
    """Return the object at `module:name`, or raise StartError."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise StartError(f"{option} must be MODULE:NAME, such as {example}, not {path!r}")
    if not sys.flags.safe_path and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    value: Any = _import(module)
    for step in name.split("."):
        if not hasattr(value, step):
            near = get_close_matches(step, dir(value), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise StartError(f"module {module!r} has no attribute {name!r}{hint}")
        value = getattr(value, step)
    return value


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Any other name is a missing module that this module imports.
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            looked = "sys.path" if sys.flags.safe_path else f"{Path.cwd()} and in sys.path"
            raise StartError(f"no module {error.name!r} in {looked}") from None
        refuse(f"{name} cannot be imported", error)
    except Exception as error:  # noqa: BLE001 - `refuse` reports every failure with its location
        refuse(f"{name} cannot be imported", error)


def refuse(what: str, error: Exception, status: int = 2) -> NoReturn:
    """Report an exception's last traceback line and location; log the full traceback at debug level.

    Raises:
        StartError: Always.
    """
    log().debug("%s", what, exc_info=error)
    cause: BaseException = error
    while is_group(cause):  # a task group wraps even a single exception
        cause = cause.exceptions[0]
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(cause.__traceback__)]
    if isinstance(cause, SyntaxError):
        places.append((cause.filename or "", cause.lineno))
    theirs = [f" ({file}:{line})" for file, line in places if file and file != __file__]
    message = traceback.format_exception_only(cause)[-1].strip()
    raise StartError(f"{what}: {message}{theirs[-1] if theirs else ''}", status) from None
