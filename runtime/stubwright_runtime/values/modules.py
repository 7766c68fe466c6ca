"""Finds modules that are already imported, without importing any."""

from __future__ import annotations

import os
import sys
from sys import modules
from typing import Any, Final

_PROVIDERS: Final = ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER")
"""The environment variables that configure OpenTelemetry."""

_IS_CONFIGURED: Final = any(os.environ.get(name) for name in _PROVIDERS)
"""True if the environment configures OpenTelemetry."""

_NO_OPS: Final = ("opentelemetry.trace", "opentelemetry.metrics")
"""The modules that define no-op providers."""


def find_loaded(name: str) -> Any:
    """Return an imported module, or `None` if it is not imported or another thread is importing it."""
    module = sys.modules.get(name)
    return None if module is None or getattr(module.__spec__, "_initializing", False) else module


def is_observed() -> bool:
    """Return whether OpenTelemetry is configured in code or by the environment."""
    if _IS_CONFIGURED:
        return True
    if "opentelemetry.trace" not in modules and "opentelemetry.metrics" not in modules:
        return False
    trace, metrics = find_loaded("opentelemetry.trace"), find_loaded("opentelemetry.metrics")
    return (trace is not None and _records(trace.get_tracer_provider())) or (
        metrics is not None and _records(metrics.get_meter_provider())
    )


def _records(provider: object) -> bool:
    return not type(provider).__module__.startswith(_NO_OPS)
