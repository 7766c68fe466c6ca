"""Loads handlers and task engines from `module:name`; mistakes are a `StartError` of one line."""

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
"""The option for a task engine."""


class StartError(Exception):
    """A failure to start, with a message of one line and an exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        """Create the error."""
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class HandlerLocation:
    """The location of the handlers of a package.

    Attributes:
        path: `module:name`; `None` if not given.
        package: The package.
        option: The option or environment variable that sets the path.
    """

    path: str | None
    package: Package
    option: str = "--handlers"

    def load(self) -> object:
        """Return the handlers at `module:name`, imported from the working directory or `sys.path`.

        Python's `-P` option excludes the working directory. A class is instantiated, and a factory
        function is called. The result is `None` if there is no path and no handlers are needed.

        Raises:
            StartError: The handlers cannot be imported or created.
        """
        from .composition import list_features  # not needed for mistakes in the command line

        def find_needed() -> list[HandlerMethod]:  # called lazily: `build_core` checks objects
            return [method for feature in list_features(self.package) for method in feature.list_required_methods()]

        if self.path is None:
            if all(method.is_optional for method in find_needed()):
                return None
            sign = " " if self.option.startswith("-") else "="
            raise StartError(f"no handlers given; name them, such as {self.option}{sign}weather:Weather")
        handlers = _find(self.path, self.option, "weather:Weather")
        is_class = isinstance(handlers, type)
        if is_class and (reason := check.explain_abstract(find_needed(), handlers)):
            raise StartError(reason)
        if is_class or (callable(handlers) and not any(hasattr(handlers, method.name) for method in find_needed())):
            try:
                return handlers()
            except Exception as error:  # noqa: BLE001 - any of them is told with its place
                refuse(f"{self.path} cannot be called", error)
        if handlers is None:
            raise StartError(f"{self.path} is None")
        return handlers


def load_engine(path: str, server: str) -> TaskEngine:
    """Create the task engine of a server with the class or function at `module:name`.

    Raises:
        StartError: The class or function does not exist, or does not return a task engine.
    """
    make = _find(path, _TASKS, "engines:Queue")
    if not callable(make):
        raise StartError(f"{_TASKS} is {path!r}, which must be a class or a function that makes a task engine")
    try:
        engine = make(server)
    except Exception as error:  # noqa: BLE001 - any of them is told with its place
        refuse(f"{_TASKS}: {path} cannot be called with the server's name", error)
    if lacking := [name for name in ("submit", "run", "stop") if not callable(getattr(engine, name, None))]:
        raise StartError(f"{_TASKS}: {path} does not make a task engine; the object lacks {', '.join(lacking)}")
    return cast("TaskEngine", engine)


def _find(path: str, option: str, example: str) -> Any:
    """Return the object at `module:name`. Raises StartError."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise StartError(f"{option} is {path!r}; it must be MODULE:NAME, such as {example}")
    if not sys.flags.safe_path and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    value: Any = _import(module)
    for step in name.split("."):
        if not hasattr(value, step):
            near = get_close_matches(step, dir(value), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise StartError(f"{module!r} has no {name!r}{hint}")
        value = getattr(value, step)
    return value


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Otherwise the module exists, and a module that it imports is missing.
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            looked = "sys.path" if sys.flags.safe_path else f"{Path.cwd()} and in sys.path"
            raise StartError(f"there is no module {error.name!r}; looked in {looked}") from None
        refuse(f"{name} cannot be imported", error)
    except Exception as error:  # noqa: BLE001 - any of them is told with its place
        refuse(f"{name} cannot be imported", error)


def refuse(what: str, error: Exception, status: int = 2) -> NoReturn:
    """Report a failure with the last line and place of its traceback; the traceback is logged at the debug level.

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
