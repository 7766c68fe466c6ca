"""The client's `MCPError`: it needs no SDK, and `except mcp.MCPError` catches it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import mcp
import pytest
from mcp_types import ErrorData

from stubwright_runtime import MCPError
from stubwright_runtime.client.core.connect_errors import NotFound
from stubwright_runtime.client.rpc.mcp_error import convert


@pytest.mark.parametrize("error", [MCPError(-32602, "no", {"a": 1}), NotFound("http://localhost", "is missing")])
def test_the_class_of_the_sdk_catches_it(error: MCPError) -> None:
    with pytest.raises(mcp.MCPError) as raised:
        raise error
    caught: object = raised.value
    assert caught is error
    assert type(copy.copy(error)) is type(pickle.loads(pickle.dumps(error))) is type(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_its_text_is_safe_to_show() -> None:
    error = MCPError(-32602, "a\x1b[31mb")
    assert (str(error), error.message) == ("a\ufffd[31mb", "a\x1b[31mb")


def test_errors_of_the_sdk_are_converted() -> None:
    converted = convert(mcp.MCPError(-1, "no", [1]))
    assert isinstance(converted, MCPError)
    assert (converted.code, converted.message, converted.data) == (-1, "no", [1])
    assert converted.error == ErrorData(code=-1, message="no", data=[1])
    assert convert(converted) is converted
    other = ValueError()
    assert convert(other) is other


_PROGRAM = """
import asyncio, sys
from stubwright_runtime import MCPError
from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.package import Package

class Client(Binding):
    _package = Package("test")

Client._package.__dict__["manifest"] = {}

async def main(target):
    try:
        async with Client.connect(target):
            pass
    except MCPError as error:
        print(type(error).__name__)

asyncio.run(main("http://127.0.0.1:9/mcp"))
asyncio.run(main([sys.executable, "-c", "raise SystemExit(3)"]))
print([name for name in sys.modules if name.partition(".")[0] == "mcp"])
"""


def test_a_url_and_a_command_need_no_sdk() -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.split("\n") == ["Unreachable", "ServerExited", "[]", ""], ran.stderr
