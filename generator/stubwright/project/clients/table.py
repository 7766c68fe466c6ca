"""A table of MCP clients, with their configuration files and file formats.

Each row cites the client's documentation. This module reads and writes no files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

Form: TypeAlias = Literal["json", "jsonc", "toml"]
"""A file format: JSON, JSON with comments and trailing commas, or TOML."""

Scope: TypeAlias = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client.

    Attributes:
        name: The name on the command line.
        title: The product name.
        form: The format of the client's files; `jsonc` if the client accepts comments.
        key: The key that contains servers in the client's files.
        user: The user's file, by `sys.platform`. `~` is the home folder, and `${NAME:DEFAULT}` an environment variable
            with its default.
        project: The project's file, relative to the project's folder; None for clients without project files.
        sources: The documentation pages for the client's files.
        more: Fields in the client's entries besides `command`, `args` and `env`.
        expands: The substrings that the client expands in its file, such as `${NAME}`; None for no expansion.
        then: What the user must do to load a new server.
    """

    name: str
    title: str
    form: Form
    key: str
    user: Mapping[str, str]
    project: str | None
    sources: tuple[str, ...]
    more: Mapping[str, str]
    expands: re.Pattern[str] | None
    then: str

    def find_file(self, scope: Scope, folder: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
        """Return the configuration file; None if the client does not support this scope.

        Args:
            scope: The scope of its servers.
            folder: The project's folder.
            environment: The environment for expanding variables.
        """
        if scope == "project":
            return None if self.project is None else folder / self.project
        return _path(self.user.get(sys.platform, self.user["linux"]), environment)


def _path(template: str, environment: Mapping[str, str]) -> Path:
    """Expand a template of `Client.user`."""

    def expand(match: re.Match[str]) -> str:
        return environment.get(match[1]) or match[2]

    return Path(re.sub(r"\$\{(\w+):([^}]*)\}", expand, template)).expanduser()


def _use_everywhere(path: str) -> Mapping[str, str]:
    return {"darwin": path, "linux": path, "win32": path}


def _settings(path: str) -> Mapping[str, str]:
    """Return the path to an application's settings, by operating system."""
    return {
        "darwin": f"~/Library/Application Support/{path}",
        "linux": f"${{XDG_CONFIG_HOME:~/.config}}/{path}",
        "win32": f"${{APPDATA:~/AppData/Roaming}}/{path}",
    }


_BRACED: Final = re.compile(r"\$\{")
_DOLLAR: Final = re.compile(r"\$\{?\w")
_STDIO: Final = {"type": "stdio"}

CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client(
            "claude",
            "Claude Desktop",
            "json",
            "mcpServers",
            _settings("Claude/claude_desktop_config.json"),
            None,
            ("https://modelcontextprotocol.io/docs/develop/connect-local-servers",),
            {},
            None,
            "quit and reopen Claude Desktop",
        ),
        Client(
            "claude-code",
            "Claude Code",
            "json",
            "mcpServers",
            _use_everywhere("${CLAUDE_CONFIG_DIR:~}/.claude.json"),
            ".mcp.json",
            ("https://code.claude.com/docs/en/mcp", "https://code.claude.com/docs/en/settings"),
            _STDIO,
            _BRACED,
            "restart Claude Code; `/mcp` lists its servers",
        ),
        Client(
            "codex",
            "Codex",
            "toml",
            "mcp_servers",
            _use_everywhere("${CODEX_HOME:~/.codex}/config.toml"),
            ".codex/config.toml",
            ("https://developers.openai.com/codex/mcp", "https://developers.openai.com/codex/config-advanced"),
            {},
            None,
            "restart Codex; `/mcp` lists its servers",
        ),
        Client(
            "cursor",
            "Cursor",
            "jsonc",
            "mcpServers",
            _use_everywhere("~/.cursor/mcp.json"),
            ".cursor/mcp.json",
            ("https://cursor.com/docs/mcp",),
            _STDIO,
            _BRACED,
            "enable it in Cursor's settings, under MCP",
        ),
        Client(
            "gemini",
            "Gemini CLI",
            "jsonc",
            "mcpServers",
            _use_everywhere("~/.gemini/settings.json"),
            ".gemini/settings.json",
            (
                "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
                "https://geminicli.com/docs/cli/configuration",
            ),
            {},
            _DOLLAR,
            "restart Gemini CLI; `/mcp` lists its servers",
        ),
        Client(
            "vscode",
            "VS Code",
            "jsonc",
            "servers",
            _settings("Code/User/mcp.json"),
            ".vscode/mcp.json",
            (
                "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
                "https://code.visualstudio.com/docs/configure/settings#_settings-file-locations",
            ),
            _STDIO,
            _BRACED,
            "start it with the command `MCP: List Servers`",
        ),
        Client(
            "windsurf",
            "Windsurf",
            "jsonc",
            "mcpServers",
            _use_everywhere("~/.codeium/windsurf/mcp_config.json"),
            None,
            ("https://docs.windsurf.com/windsurf/cascade/mcp",),
            {},
            _BRACED,
            "press the refresh button in the MCP panel",
        ),
        Client(
            "zed",
            "Zed",
            "jsonc",
            "context_servers",
            {
                "darwin": "~/.config/zed/settings.json",
                "linux": "${XDG_CONFIG_HOME:~/.config}/zed/settings.json",
                "win32": "${APPDATA:~/AppData/Roaming}/Zed/settings.json",
            },
            None,
            ("https://zed.dev/docs/ai/mcp", "https://zed.dev/docs/configuring-zed"),
            {"source": "custom"},
            None,
            "open the agent panel's settings: a green dot shows that the server is running",
        ),
    )
}
"""All clients, by name on the command line."""
