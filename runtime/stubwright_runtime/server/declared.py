"""The modules of `policy`, `tasks` and `http` that a manifest needs; this is the only place that knows them.

Takes a package; gives the objects that its manifest declares. Modules that the manifest does not need are not imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .core.steps import Step, check_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..package import Package, Tool
    from ..policy.scopes import Scopes
    from ..state.store import Store
    from ..tasks.service import Tasks
    from .core.core import Core
    from .core.exchange import Middleware
    from .observability.audit import Recorder

_LIMITS: Final = frozenset({"concurrency", "maxResultBytes", "timeout"})


def get_scopes(package: Package) -> Scopes | None:
    """Return the scopes of the package's entries; `None` if none needs scopes."""
    if not package.has_scopes:
        return None
    from ..policy.scopes import Scopes

    return Scopes(package)


def get_tasks(package: Package, store: Store, recorder: Recorder | None) -> Tasks | None:
    """Return the task service; `None` if no tool has `taskSupport`."""
    if not package.has_tasks:
        return None
    from ..tasks.service import Tasks

    return Tasks(package, store, recorder)


def list_task_methods(core: Core) -> Sequence[Middleware]:
    """Return the middleware that answers task requests, if the server has tasks."""
    if core.tasks is None:
        return ()
    from ..tasks.methods import Methods

    return (Methods(core, core.tasks),)


def list_limits(package: Package) -> Sequence[Step]:
    """Return the steps that bound the time of a call, the size of its result, and the number of calls at once."""
    limits: list[Step] = []
    if not package.policies.isdisjoint(_LIMITS):
        from ..policy.limits import Limits

        limits.append(Limits())
    if package.has_result_budget:
        from ..policy.result_budget import ResultBudget

        limits.append(ResultBudget())  # inside the others, so that `maxResultBytes` applies to the shortened result
    return limits


def list_steps(package: Package, store: Store, limits: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps of a call on the way to its tool.

    Args:
        package: The package.
        store: The store of rates.
        limits: The result of `list_limits`; the runs of tasks go through these too.
    """
    if "rateLimit" in package.policies:
        from ..policy.rates import Rates

        yield Rates(store)
    yield check_size
    yield from limits
    if any(tool.extension.get("bind") for tool in package.tools.values()):
        from ..policy.claims import set_arguments

        yield set_arguments


def add_calls(package: Package, handlers: object) -> object:
    """Return the handlers together with those of tools that are HTTP calls."""
    if not package.has_calls:
        return handlers
    from ..http.calls import bind

    return bind(package, handlers)


def takes_misfits(handlers: object, tool: Tool) -> bool:
    """Tell whether a tool is an HTTP call that is sent even if the schema refuses it (`input: lenient`)."""
    if not tool.takes_misfits:
        return False
    if not tool.is_bound:  # of a mock, which makes no call and takes what the server takes
        return True
    from ..http.calls import Handlers

    return isinstance(handlers, Handlers) and handlers.takes_misfits(tool)


def keep_misfits(values: Mapping[str, Any]) -> object:
    """Return the arguments of a call that is sent although the schema refuses them, in place of a model."""
    from ..http.calls import Misfits

    return Misfits(values)
