"""Handlers that return their arguments, and strings that are difficult for generated code."""

from __future__ import annotations

import json
from typing import Any

HOSTILE = 'Ends in """ and \\ and {{ x }} ${y} {% z %} \' " # */ \u202e \t\r\n  "quoted" \\N{DASH} \\'


class Echo:
    """Returns the arguments of each call as JSON text."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        async def answer(args: Any, ctx: Any) -> str:
            return json.dumps(args.model_dump(mode="json"))

        return answer
