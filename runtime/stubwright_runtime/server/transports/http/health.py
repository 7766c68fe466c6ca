"""Health checks: liveness and readiness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

    from ....package import Package
    from ...app.core import Core


def make_routes(core: Core) -> list[Route]:
    """Return the routes for `/livez` and `/readyz`, which respond with 200 or 503."""
    is_closed = _needs_state(core.package)

    async def answer_livez(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def answer_readyz(_request: Request) -> JSONResponse:
        has_state = await core.store.check()
        is_ready = core.lifespan.is_entered and (has_state or not is_closed)
        body: dict[str, Any] = {
            "status": "ready" if is_ready else "not ready",
            "state": "there" if has_state else "lost",
        }
        return JSONResponse(body, 200 if is_ready else 503)

    return [Route("/livez", answer_livez, methods=["GET"]), Route("/readyz", answer_readyz, methods=["GET"])]


def _needs_state(package: Package) -> bool:
    """Return whether the server rejects calls while the store is unavailable (`onStateLoss: closed`)."""
    policies: list[dict[str, Any]] = [tool.policy for tool in package.tools.values()]
    is_closed = any(policy.get("rateLimit") and policy.get("onStateLoss") != "open" for policy in policies)
    return is_closed or package.has_handles or package.has_tasks
