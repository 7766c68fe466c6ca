"""A package's other primitives: resources, resource templates and prompts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .package import make_stem


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a generated package.

    Attributes:
        uri: The URI.
        method: The handler method that reads the resource, or `None` if the manifest contains the content.
    """

    uri: str
    _: KW_ONLY
    method: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A resource template of a generated package.

    Attributes:
        uri: The URI template (RFC 6570).
        method: The handler method that reads the template's resources.
        stem: The prefix of the template's class names. By default the method in PascalCase.
        completes: The handler method that completes the variables for which the manifest lists no values.
    """

    uri: str
    _: KW_ONLY
    method: str
    stem: str = ""
    completes: str | None = None

    def __post_init__(self) -> None:
        """Derive the stem if it is omitted."""
        object.__setattr__(self, "stem", self.stem or make_stem(self.method))

    @property
    def params_name(self) -> str:
        """The name of the class for the template's variables."""
        return f"{self.stem}Params"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of a generated package.

    Attributes:
        name: The wire name.
        method: The handler method that returns the messages, or `None` if the manifest contains them.
        stem: The prefix of the prompt's class names. By default the method in PascalCase.
        completes: The handler method that completes the arguments for which the manifest lists no values.
    """

    name: str
    _: KW_ONLY
    method: str | None = None
    stem: str = ""
    completes: str | None = None

    def __post_init__(self) -> None:
        """Derive the stem if it is omitted."""
        object.__setattr__(self, "stem", self.stem or make_stem(self.method or ""))

    @property
    def args_name(self) -> str:
        """The name of the class for the prompt's arguments."""
        return f"{self.stem}Args"
