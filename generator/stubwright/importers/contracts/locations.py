"""The location of the server of a contract, without a secret.

It is in the contract under the key `x-contract`. A key, unlike a comment, is covered by the digest, has a place for
messages, and may hold any text; the manifest's schema leaves keys that begin with `x-` to others.
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
    """The way to a server: by its URL, its command, or the file of its lists.

    Attributes:
        url: Its URL; empty if there is none.
        headers: The names of the headers that it needs.
        command: The words of its command.
        env: The names of the variables that the command needs; in it, and in a URL, `${NAME}` represents their values.
        file: A manifest or a saved list, from the folder where it was locked.
    """

    url: str = ""
    headers: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    file: str = ""

    @classmethod
    def from_url(cls, url: str, headers: Mapping[str, str], variables: Mapping[str, str]) -> Location:
        """Return the location of a server over HTTP, with the variables that its URL was made of."""
        shown = secrets.hide_in_url(secrets.put_names(url.partition("#")[0], variables))
        env = tuple(sorted(name for name in variables if f"${{{name}}}" in shown))
        return cls(url=shown, headers=tuple(sorted(headers)), env=env)

    @classmethod
    def from_command(cls, words: Sequence[str], variables: Mapping[str, str]) -> Location:
        """Return the location of a server on stdio, with the variables that the user named."""
        return cls(command=secrets.hide_in_command(words, variables), env=tuple(sorted(variables)))

    @classmethod
    def parse(cls, value: Any) -> Location | None:
        """Return the location that a contract names; None if it is none."""
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
        """The name of the server for people."""
        return self.url or self.file or " ".join(self.command)

    @property
    def is_complete(self) -> bool:
        """True if nothing was hidden, so that it refers to the server again."""
        return not any(secrets.HIDDEN in text for text in (self.url, *self.command))

    def to_value(self) -> dict[str, Any]:
        """Return the location's fields in a contract, without empty ones."""
        fields: dict[str, Any] = {
            "url": self.url,
            "headers": list(self.headers),
            "command": list(self.command),
            "env": list(self.env),
            "file": self.file,
        }
        return {key: value for key, value in fields.items() if value}
