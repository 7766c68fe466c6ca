"""Counts the tokens in a string: its cost for a model.

Tokens are counted with OpenAI's encoding `o200k_base` if `tiktoken` is installed and has cached its table, which is
never downloaded. Otherwise, the count is estimated from the number of characters, and labelled as an estimate. Other
models count differently.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from stubwright_runtime.values import tokens

_TABLE: Final = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_CACHES: Final = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")


def count(definition: Mapping[str, Any]) -> int:
    """Count the tokens in a definition as compact JSON, as in `tools/list`."""
    return count_text(json.dumps(definition, ensure_ascii=False, separators=(",", ":")))


def count_text(text: str) -> int:
    """Count or estimate the tokens in a string."""
    encode = _encoder()
    return tokens.estimate(len(text)) if encode is None else len(encode(text))


def name_unit() -> str:
    """Return the unit for messages, which shows whether counts are estimates."""
    return "tokens, estimated" if _encoder() is None else "tokens of o200k_base"


@lru_cache(1)
def _encoder() -> Callable[[str], list[int]] | None:
    """Return the encoder, or None if loading the encoder would require a download."""
    name = hashlib.sha1(_TABLE.encode(), usedforsecurity=False).hexdigest()
    folders = [os.environ[key] for key in _CACHES if os.environ.get(key)]
    folders = folders[:1] or [f"{tempfile.gettempdir()}/data-gym-cache"]
    if not Path(folders[0], name).is_file() or find_spec("tiktoken") is None:
        return None
    encoding: Any = importlib.import_module("tiktoken").get_encoding("o200k_base")
    return lambda text: encoding.encode(text, disallowed_special=())
