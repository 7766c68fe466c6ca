"""Generated packages with tools that call a fake API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fake_api import Answer, Asked, FakeApi, api
from packages import generate, imported, manifest, tool


@dataclass
class Running:
    """A generated package with tools that call a fake API."""

    package: ModuleType
    api: FakeApi

    def call(self, name: str, handlers: object = None, state: str = "memory://", **arguments: Any) -> Any:
        """Call a tool with any arguments, and return the result."""

        async def go() -> Any:
            server = self.package.build_server(handlers, state=state)
            async with self.package.SampleClient.connect(server) as client:
                return await client.raw.call_tool(name, arguments)

        return asyncio.run(go())

    def schemas(self) -> dict[str, Any]:
        """Return the listed input schemas, by tool."""

        async def go() -> dict[str, Any]:
            async with self.package.SampleClient.connect(self.package.build_server()) as client:
                return {tool.name: tool.input_schema for tool in (await client.raw.list_tools()).tools}

        return asyncio.run(go())

    def text(self, name: str, **arguments: Any) -> str:
        """Return the text of a result."""
        (block,) = self.call(name, **arguments).content
        return str(block.text)

    def refused(self, name: str, **arguments: Any) -> str:
        """Return the text of an error result."""
        result = self.call(name, **arguments)
        assert result.is_error, result
        return str(result.content[0].text)


@contextmanager
def run_package(
    folder: Path, tools: Sequence[Mapping[str, Any]], answer: Callable[[Asked], Answer], **said: Any
) -> Iterator[Running]:
    with api(answer) as fake:
        apis = {"fake": {"baseUrl": fake.url + "/v1", "baseUrlEnv": "FAKE_URL", **said}}
        package = generate(folder, manifest(tools, apis=apis))
        with imported(folder, package) as module:
            yield Running(module, fake)


def called(name: str, properties: Mapping[str, Any], http: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return tool(name, properties, stubwright={"http": {"api": "fake", **http}}, **more)
