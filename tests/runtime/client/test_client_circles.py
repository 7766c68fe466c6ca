"""What is left of calls that fail, once the caller has dropped the exception: nothing in a circle of references."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import mcp
import mcp_types
import pytest

from circles import none_left
from packages import generate, imported, manifest, tool
from serving import asgi
from stubwright_runtime.client.core.errors import ResultTooLarge, ToolFailed
from stubwright_runtime.client.transports.bounds import Bound
from stubwright_runtime.server.core.building import build_core
from stubwright_runtime.server.transports.http.asgi import asgi_app


class Handlers:
    async def fail(self, args: Any, ctx: Any) -> str:
        if args.how == "tool":
            raise ValueError
        if args.how == "protocol":
            raise mcp.MCPError(code=-32000, message="no")
        if args.how == "late":
            await asyncio.sleep(60)
        return "x" * 10_000


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("circles")
    tools = [tool("fail", {"how": {"type": "string"}})]
    with imported(folder, generate(folder, manifest(tools, name="failing"))) as module:
        yield module


@pytest.mark.parametrize(
    ("how", "error"),
    [("tool", ToolFailed), ("protocol", mcp.MCPError), ("late", mcp.MCPError), ("large", ResultTooLarge)],
)
def test_calls_that_fail(how: str, error: type[Exception], package: ModuleType) -> None:
    async def use(url: str) -> None:
        timeout = 1 if how == "late" else 60
        async with package.FailingClient.connect(url, timeout=timeout, max_result_bytes=5000) as client:
            with none_left(Bound, mcp_types.CallToolRequestParams):
                with pytest.raises(error) as caught:
                    await client.fail(how=how)
                del caught
                await asyncio.sleep(0.1)

    with asgi(asgi_app(build_core(package.TOOLS["fail"].package, Handlers()))) as url:
        asyncio.run(use(f"{url}/mcp"))
