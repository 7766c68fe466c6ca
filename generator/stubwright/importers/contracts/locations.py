"""The location of a contract's server, without secrets, in the key `x-contract`.

Unlike a comment, a key is covered by the digest, and diagnostics can point at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.importers.contracts import secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KEY: Final = "x-contract"


@dataclass(frozen=True, slots=True)
class Location:
    """A server location: a URL, a command, or a file with its lists.

    Attributes:
        url: The URL, or an empty string.
        headers: The names of required headers.
        command: The command and its arguments.
        env: The names of required environment variables; the command or URL contains `${NAME}` in place of a value.
        file: A manifest or a saved list, relative to the folder in which it was locked.
    """

    url: str = ""
    headers: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    file: str = ""

    @classmethod
    def from_url(cls, url: str, headers: Mapping[str, str], variables: Mapping[str, str]) -> Location:
        """Return the location of an HTTP server; the values of `variables` in the URL are hidden."""
        shown = secrets.hide_in_url(secrets.put_names(url.partition("#")[0], variables))
        env = tuple(sorted(name for name in variables if f"${{{name}}}" in shown))
        return cls(url=shown, headers=tuple(sorted(headers)), env=env)

    @classmethod
    def from_command(cls, words: Sequence[str], variables: Mapping[str, str]) -> Location:
        """Return the location of a stdio server; the values of `variables` in the command are hidden."""
        return cls(command=secrets.hide_in_command(words, variables), env=tuple(sorted(variables)))

    @classmethod
    def parse(cls, value: Any) -> Location | None:
        """Parse the location in a contract; return None if it is invalid."""
        if not isinstance(value, dict) or sum(bool(value.get(key)) for key in ("url", "command", "file")) != 1:
            return None
        texts = [value.get(key, "") for key in ("url", "file")]
        lists = [value.get(key, []) for key in ("headers", "command", "env")]
        if not all(isinstance(text, str) for text in texts):
            return None
        if not all(isinstance(words, list) and all(isinstance(word, str) for word in words) for words in lists):
            return None
        headers, command, env = map(tuple, lists)
        return cls(texts[0], headers, command, env, texts[1])

    @property
    def label(self) -> str:
        """The server's name in messages."""
        return self.url or self.file or " ".join(self.command)

    @property
    def is_complete(self) -> bool:
        """True if no secret is hidden, so the server can be reached again."""
        return not any(secrets.HIDDEN in text for text in (self.url, *self.command))

    def to_value(self) -> dict[str, Any]:
        """Return the non-empty fields as the value of `x-contract`."""
        fields: dict[str, Any] = {
            "url": self.url,
            "headers": list(self.headers),
            "command": list(self.command),
            "env": list(self.env),
            "file": self.file,
        }
        return {key: value for key, value in fields.items() if value}
