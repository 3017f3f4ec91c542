"""Whole numbers that arrive as text."""

from __future__ import annotations

_LONGEST = 18


def whole(text: str) -> int | None:
    """The number of 1 to 18 ASCII digits, None for anything else (signs, spaces, other scripts' digits)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else None
