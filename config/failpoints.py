"""Named points at which a test kills the process, to prove that dying there loses nothing.

Inert unless the environment names one, which only the dev and test settings read.
"""

import os
import signal

from django.conf import settings

_seen: dict[str, int] = {}


def hit(name: str) -> None:
    """Die here by SIGKILL if this point is the one that was armed: ``name`` or ``name:N`` for its Nth passing."""
    armed = settings.FAILPOINT
    if not armed:
        return
    wanted, _, count = armed.partition(":")
    if wanted != name:
        return
    _seen[name] = _seen.get(name, 0) + 1
    if _seen[name] >= int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
