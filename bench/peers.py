"""Environments for the programs that the benchmarks compare."""

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
_READY = "ready"  # marks a complete installation
_UV = Path(__file__).parents[1] / ".venv" / "uv" / "bin" / "uv"


class NotThereError(Exception):
    """A peer cannot be installed."""


def has_fastmcp() -> bool:
    """Return whether the environment with FastMCP exists."""
    return (_FOLDER / _READY).exists()


def fastmcp() -> Path:
    """Return the Python interpreter in an environment with FastMCP, creating it if necessary.

    Raises:
        NotThereError: It cannot be created.
    """
    return environment(_FOLDER, _FASTMCP)


def framework(name: str) -> Path:
    """Return the Python interpreter in an environment with an agent framework and this checkout's runtime.

    Raises:
        NotThereError: It cannot be created.
    """
    root = Path(__file__).parents[1]
    return environment(root / "build" / "frameworks" / name, *_FRAMEWORKS[name], "--editable", str(root / "runtime"))


def environment(folder: Path, *requirements: str) -> Path:
    """Return the Python interpreter in an environment with these requirements, which its first user creates.

    Raises:
        NotThereError: It cannot be created.
    """
    python, ready = folder / "bin" / "python", folder / _READY
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if ready.exists():
            return python
        if not _UV.is_file():
            raise NotThereError("uv is not installed in .venv/uv; run `make .venv/uv/ready`")
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
