"""Builds a server from a package and handlers, and checks both before startup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...state.store import MEMORY
from ...state.stores import store_at
from ..core.principal import make_local
from ..execution.threads import THREADS, Threads
from . import check, required_features
from .composition import list_features
from .core import Core
from .optional_features import add_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...package import Package
    from ..core.task_engine import TaskEngine
    from ..observability.audit import Audit


def build_core(
    package: Package,
    handlers: object,
    *,
    state: str = MEMORY,
    local_scopes: Sequence[str] = (),
    audit: Audit | None = None,
    threads: int = THREADS,
    toolsets: Sequence[str] = (),
    tasks: TaskEngine | None = None,
) -> Core:
    """Return the core of a server, with the tools that are in all `toolsets`.

    See `build_server` for the other arguments.
    """
    required_features.check(package)
    pool = Threads(threads)
    store = store_at(state, package)
    server_features = package.replace_features(list_features(package))
    present = check.NoHandlers() if handlers is None else handlers
    check.check(
        package.manifest["server"]["name"],
        [method for feature in server_features for method in feature.list_required_methods()],
        present,
    )
    recorder = None
    if audit is not None:
        from ..observability.instrumentation import make_recorder

        recorder = make_recorder(package, audit)
    return Core(
        package,
        add_calls(package, present, store),
        server_features,
        make_local(local_scopes),
        store,
        recorder,
        pool,
        toolsets,
        tasks,
    )
