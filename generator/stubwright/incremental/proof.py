"""Tests in a separate process that generated models can be imported and built, without writing them to disk."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import GenericAlias, ModuleType
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import SchemaError

_MISTAKES = (
    *(AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(RuntimeError, SchemaError, SyntaxError, TypeError, ValueError),
)
"""The exceptions that Python and pydantic raise for an invalid class."""


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """A module in `models`, the class that cannot be built ("" if the module cannot be imported), and the reason."""

    module: str
    name: str
    why: str


def build(package: str, sources: Mapping[str, bytes], modules: Sequence[str]) -> list[BuildFailure]:
    """Import a package's modules and build their models.

    Args:
        package: The package's name.
        sources: Its Python files, keyed by path.
        modules: The module names within `models`.

    Returns:
        The failures, in module order.
    """
    failures: list[BuildFailure] = []
    with _importable(package, sources):
        classes: dict[type[BaseModel], str] = {}
        for module in modules:
            try:
                imported = importlib.import_module(f"{package}.models.{module}")
            except _MISTAKES as error:
                failures.append(BuildFailure(module, "", _message(error)))
            else:
                classes |= dict.fromkeys(_list_models(imported), module)
        failures += _find_build_failures(classes)
        failures += [
            BuildFailure(module, cls.__name__, why)
            for cls, module in classes.items()
            for why in _list_missing_defaults(cls)
        ]
    return failures


def _list_models(module: ModuleType) -> Iterator[type[BaseModel]]:
    for each in vars(module).values():
        if isinstance(each, type) and issubclass(each, BaseModel) and each.__module__ == module.__name__:
            yield each


def _find_build_failures(classes: Mapping[type[BaseModel], str]) -> list[BuildFailure]:
    """Build all models together, so that each model is built only once. Return the failures."""
    every: Any = GenericAlias(tuple, tuple(classes))
    try:
        TypeAdapter(every).rebuild(raise_errors=True)  # pydantic would otherwise postpone classes with undefined names
    except _MISTAKES as error:
        alone = [
            BuildFailure(module, cls.__name__, why) for cls, module in classes.items() for why in _explain_failure(cls)
        ]
        return alone or [BuildFailure(next(iter(classes.values())), "", _message(error))]
    return []


def _explain_failure(cls: type[BaseModel]) -> Iterator[str]:
    try:
        cls.model_rebuild()
    except _MISTAKES as error:
        yield _message(error)


def _list_missing_defaults(cls: type[BaseModel]) -> Iterator[str]:
    for name, field in cls.model_fields.items():
        try:
            field.get_default(call_default_factory=True, validated_data={})
        except _MISTAKES as error:
            yield f"the default of `{name}`: {_message(error)}"


def _message(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


@contextmanager
def _importable(package: str, sources: Mapping[str, bytes]) -> Iterator[None]:
    """Make a package importable from its sources during the block."""
    finder = _Sources(package, sources)
    forget(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        forget(package)


def forget(package: str) -> None:
    """Remove a package's modules from the import system."""
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]


class _Sources(MetaPathFinder, InspectLoader):
    def __init__(self, package: str, sources: Mapping[str, bytes]) -> None:
        self._package = package
        self._sources = sources

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self._package or self._file(fullname) is None:
            return None
        return spec_from_loader(fullname, self)

    def get_source(self, fullname: str) -> str:
        return self._sources[self._file(fullname) or ""].decode()

    def is_package(self, fullname: str) -> bool:
        return str(self._file(fullname)).endswith("__init__.py")

    def _file(self, fullname: str) -> str | None:
        path = fullname.partition(".")[2].replace(".", "/")
        return next((file for file in (f"{path}.py", f"{path}/__init__.py".lstrip("/")) if file in self._sources), None)
