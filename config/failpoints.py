"""Named points at which a test kills or stops the process, to prove that nothing is lost there.

Inert unless the environment names one, which only the dev and test settings read.
"""

import os
import signal
import threading

from django.conf import settings

_seen = 0
_counting = threading.Lock()


def hit(name: str) -> None:
    """Die here by SIGKILL if this point is the one that was armed: ``name``, or ``name:N`` for its Nth passing.

    ``name:N:STOP`` stops the process there instead, until somebody continues it.
    """
    wanted, *how = settings.FAILPOINT.split(":")
    if wanted != name:
        return
    nth, sent = [*how, *("1", "KILL")[len(how) :]]
    if _passing() == int(nth):
        os.kill(os.getpid(), signal.Signals[f"SIG{sent}"])


def _passing() -> int:
    """Which passing of the armed point this is, over all threads."""
    global _seen  # noqa: PLW0603 - one point is armed for the life of a process
    with _counting:
        _seen += 1
        return _seen
