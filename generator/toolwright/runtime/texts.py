"""Texts of JSON: whole characters, and the steps of JSON Pointers.

Takes and gives text; imports nothing.
"""

from __future__ import annotations


def joined(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate; two that make a pair become the character they stand for."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def steps(pointer: str) -> list[str]:
    """The steps of a JSON Pointer (RFC 6901)."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
