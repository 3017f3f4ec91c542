"""How often one key (or one person) may call: a fixed window of a minute, counted in this process.

Every web process counts for itself, so a host with n processes admits up to n times the limit. That bounds what a
runaway script costs, which is all it is for; no request pays a write for it.
"""

import threading
import time
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from audit.principals import Principal

WINDOW_S = 60


class Windows:
    """Calls of each caller in the present window. Safe between threads; forgets everybody when a window ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._window = 0
        self._calls: dict[str, int] = {}

    def count(self, caller: str, *, now: float) -> int:
        """This call's number in the window of ``now`` (monotonic seconds)."""
        window = int(now // WINDOW_S)
        with self._lock:
            if window != self._window:
                self._window, self._calls = window, {}
            self._calls[caller] = self._calls.get(caller, 0) + 1
            return self._calls[caller]

    def clear(self) -> None:
        with self._lock:
            self._calls = {}


WINDOWS = Windows()


class PerCaller(BaseThrottle):
    """`settings.RATE_LIMIT_PER_MINUTE` calls a minute for each key, and for each person of a session."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, Principal):
            return True
        self.now = time.monotonic()
        return WINDOWS.count(request.auth.label, now=self.now) <= settings.RATE_LIMIT_PER_MINUTE

    def wait(self) -> float:
        """Seconds until the window ends."""
        return WINDOW_S - self.now % WINDOW_S
