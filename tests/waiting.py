"""Waiting for what other processes do: until a condition holds, never for a time that is hoped to be enough."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.02


def eventually(condition: Callable[[], T], *, timeout: float = 20.0) -> T:
    """The first true answer of `condition`; AssertionError with the last one after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"still {answer!r} after {timeout:g} s"
        time.sleep(POLL_S)
    return answer
