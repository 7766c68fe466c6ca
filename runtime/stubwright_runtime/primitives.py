"""A package's other primitives: resources, resource templates and prompts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .package import make_stem


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource.

    Attributes:
        uri: Its URI.
        method: The handler method that reads it. `None` if the manifest has the content.
    """

    uri: str
    _: KW_ONLY
    method: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """One resource template.

    Attributes:
        uri: The URI template (RFC 6570).
        method: The handler method that reads its resources.
        stem: The prefix of its class names. By default the method in PascalCase.
        completes: The handler method for variables that the manifest does not complete.
    """

    uri: str
    _: KW_ONLY
    method: str
    stem: str = ""
    completes: str | None = None

    def __post_init__(self) -> None:
        """Set the defaults."""
        object.__setattr__(self, "stem", self.stem or make_stem(self.method))

    @property
    def params_name(self) -> str:
        """The class name for its variables."""
        return f"{self.stem}Params"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    Attributes:
        name: The wire name.
        method: The handler method that returns its messages. `None` if the manifest has them.
        stem: The prefix of its class names. By default the method in PascalCase.
        completes: The handler method for arguments that the manifest does not complete.
    """

    name: str
    _: KW_ONLY
    method: str | None = None
    stem: str = ""
    completes: str | None = None

    def __post_init__(self) -> None:
        """Set the defaults."""
        object.__setattr__(self, "stem", self.stem or make_stem(self.method or ""))

    @property
    def args_name(self) -> str:
        """The class name for its arguments."""
        return f"{self.stem}Args"
