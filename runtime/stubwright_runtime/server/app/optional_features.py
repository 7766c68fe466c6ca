"""Imports the modules of `policy`, `tasks` and `http` that a manifest needs, and no others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ..calls.pipeline import Steps, limit_arguments, refuse_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...package import Package, Tool
    from ...policy.scopes import Scopes
    from ...state.store import Store
    from ...tasks.methods import Methods
    from ...tasks.service import Tasks
    from ..calls.results import Results
    from ..core.feature import ServerContext
    from ..core.outcomes import Outcome
    from ..core.request import Handle, Request, Wrap
    from ..core.task_engine import TaskEngine
    from ..observability.audit import Recorder
    from .core import Core

_LIMITS: Final = frozenset({"concurrency", "maxResultBytes", "timeout"})


def get_scopes(package: Package) -> Scopes | None:
    """Return the scopes that a package's primitives require; `None` if none require scopes."""
    if not package.has_scopes:
        return None
    from ...policy.scopes import Scopes

    return Scopes(package)


def get_tasks(
    package: Package, store: Store, recorder: Recorder | None, engine: TaskEngine | None = None
) -> Tasks | None:
    """Return the server's task service; `None` if no tool has `taskSupport`."""
    if not package.has_tasks:
        return None
    from ...tasks.service import Tasks

    return Tasks(package, store, recorder, engine)


async def manage_tasks(package: Package, store: Store, engine: TaskEngine | None, again: str | None) -> None:
    """Run the `tasks` command; see `tasks.abandoned.manage`."""
    from ...tasks.abandoned import manage

    await manage(package, store, engine, again)


def make_task_methods(core: Core) -> Methods | None:
    """Return the handlers of the `tasks/…` methods; `None` if the server has no tasks."""
    if core.tasks is None:
        return None
    from ...tasks.methods import Methods

    return Methods(core, core.listeners, core.tasks)


def make_steps(package: Package, server: ServerContext, results: Results) -> Steps:
    """Return the steps that a manifest's policies and settings add to tool calls."""
    return Steps(
        [*_list_admission(package, server)],
        [*_list_limits(package)],
        [*_list_binding(package, server)],
        [*_list_preparation(package, server, results)],
    )


def _list_admission(package: Package, server: ServerContext) -> Iterator[Wrap]:
    if "rateLimit" in package.policies:
        from ...policy.rates import Rates

        yield Rates(server.store).wrap
    yield limit_arguments


def _list_limits(package: Package) -> Iterator[Wrap]:
    if not package.policies.isdisjoint(_LIMITS):
        from ...policy.limits import Limits

        yield Limits().wrap
    if package.has_result_budget:
        from ...policy.result_budget import limit_result

        yield limit_result  # innermost, so that `maxResultBytes` applies to the shortened result


def _list_binding(package: Package, server: ServerContext) -> Iterator[Wrap]:
    if package.omits_nulls:
        from ..calls.nulls import NullOmission

        yield NullOmission(server.log).wrap
    if any(tool.bound for tool in package.tools.values()):
        from ...policy.claims import set_arguments

        yield set_arguments


def _list_preparation(package: Package, server: ServerContext, results: Results) -> Iterator[Wrap]:
    if "once" in package.policies:
        from ...policy.once import IdempotentCalls

        # Outermost: a repeated call needs no second confirmation, and its handles may no longer exist.
        yield IdempotentCalls(server.store, partial(refuse_error, results)).wrap
    if any(tool.is_paginated for tool in package.tools.values()):
        from ..features.paging import Cursors

        yield Cursors(server).wrap
    if package.has_handles:
        from ..features.handles import HandleRegistry

        yield HandleRegistry(server, results.refuse_invalid_result).wrap
    if "confirm" in package.policies:
        from ..features.confirmation import require_confirmation

        yield require_confirmation
    if package.has_tasks:
        # Innermost, so that invalid or unconfirmed calls do not start a task.
        yield _begin_tasks


def _begin_tasks(tool: Tool, call_next: Handle) -> Handle:
    if tool.task_support == "forbidden":
        return call_next

    async def call(request: Request) -> Outcome:
        return await (call_next if request.begin is None else request.begin)(request)

    return call


def add_calls(package: Package, handlers: object, store: Store) -> object:
    """Return the handlers, extended with a method for each tool that calls an HTTP API."""
    if not package.has_calls:
        return handlers
    from ...http.calls import bind

    return bind(package, handlers, store)
