"""What stubwright is compared with, in environments of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from filelock import FileLock

_FOLDER = Path(__file__).parent / ".venv"
_FASTMCP = "fastmcp>=4.1"
_FRAMEWORKS = {
    "pydantic-ai": ["pydantic-ai-slim>=2.20"],
    "langchain": ["langchain>=1.5"],
    "openai-agents": ["openai-agents>=0.24"],
    "langchain-mcp-adapters": ["langchain-mcp-adapters>=0.3.2", "langchain-core"],
    "autogen-ext": ["autogen-ext[mcp]>=0.7.5", "autogen-agentchat", "mcp<2"],
    "mcp-1": ["mcp>=1.30,<2"],
    "fastmcp": [_FASTMCP],
}
_READY = "ready"  # a file that says that all is installed
_UV = Path(__file__).parents[1] / ".venv" / "uv" / "bin" / "uv"


class NotThereError(Exception):
    """A peer cannot be had."""


def has_fastmcp() -> bool:
    """Tell whether the environment with FastMCP was made."""
    return (_FOLDER / _READY).exists()


def fastmcp() -> Path:
    """The Python of the environment that has FastMCP; it is made where it is not there yet.

    Raises:
        NotThereError: It cannot be made.
    """
    return environment(_FOLDER, _FASTMCP)


def framework(name: str) -> Path:
    """The Python of an environment that has a framework for agents, and the runtime of this checkout.

    Raises:
        NotThereError: It cannot be made.
    """
    root = Path(__file__).parents[1]
    return environment(root / "build" / "frameworks" / name, *_FRAMEWORKS[name], "--editable", str(root / "runtime"))


def environment(folder: Path, *requirements: str) -> Path:
    """The Python of an environment that has what is required, made by the first process that asks for it.

    Raises:
        NotThereError: It cannot be made.
    """
    python, ready = folder / "bin" / "python", folder / _READY
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if ready.exists():
            return python
        if not _UV.is_file():
            raise NotThereError("there is no uv in .venv/uv; `make .venv/uv/ready` installs it")
        print(f"installing {requirements[0]} into {folder.name}", file=sys.stderr)
        for command in (
            ["venv", "--clear", "--python", sys.executable, str(folder)],
            ["pip", "install", "--python", str(python), *requirements],
        ):
            done = subprocess.run([str(_UV), "--quiet", *command], capture_output=True, text=True)
            if done.returncode:
                raise NotThereError(f"{requirements[0]} cannot be installed into {folder}:\n{done.stderr}")
        ready.touch()
    return python
