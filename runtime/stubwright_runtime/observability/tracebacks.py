"""Formats tracebacks of handler exceptions without the runtime's frames."""

from __future__ import annotations

import traceback
from itertools import groupby
from pathlib import Path
from typing import Final

_RUNTIME: Final = f"{Path(__file__).parents[1]}"


def format_folded(error: BaseException) -> str:
    """Format the traceback of an exception and its causes, with one line per group of runtime frames.

    A traceback that ends in the runtime is not folded, because the bug may be in the runtime.
    """
    formatted = traceback.TracebackException.from_exception(error)
    waiting = [formatted]
    while waiting:
        part = waiting.pop()
        part.stack = _fold(part.stack)
        waiting += [each for each in (part.__cause__, part.__context__, *(part.exceptions or ())) if each is not None]
    return "".join(formatted.format()).rstrip("\n")


def _fold(stack: traceback.StackSummary) -> traceback.StackSummary:
    if not stack or _is_internal(stack[-1]):
        return stack
    folded = _FoldedStack()
    for is_internal, run in groupby(stack, _is_internal):
        frames = [*run]
        folded += [_FoldedFrames(len(frames))] if is_internal else frames
    return folded


def _is_internal(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_RUNTIME)


class _FoldedFrames(traceback.FrameSummary):
    """A placeholder for consecutive runtime frames."""

    def __init__(self, count: int) -> None:
        super().__init__(_RUNTIME, None, "", lookup_line=False)
        self.count = count


class _FoldedStack(traceback.StackSummary):
    def format_frame_summary(self, frame_summary: traceback.FrameSummary, **options: bool) -> str:
        if isinstance(frame_summary, _FoldedFrames):
            frames = f"{frame_summary.count} frame{'s' if frame_summary.count > 1 else ''}"
            return f"  ({frames} of stubwright_runtime; --log-level debug shows them)\n"
        return super().format_frame_summary(frame_summary, **options)
