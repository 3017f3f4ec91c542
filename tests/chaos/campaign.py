"""The long fault campaign: `python -m tests.chaos.campaign [--seconds N] [--seed N] [--only NAME …]`.

Round after round, runs of the three example workflows unwind while processes die and stand still, messages vanish, the
database goes away and the other systems misbehave, by a seed that is printed. Each round must end, and with the verdict
that the tests hold it to. Everything lives in a temporary folder. Exit code 1 when something was not as it must be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("kill", "stop", "continue", "messages", "database", "fault")
DELAY_MS: Final = 150  # of every call, so that much is in flight when something happens


def main() -> int:
    asked = _arguments()
    _say(seed=asked.seed, seconds=asked.seconds, only=asked.only)
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        return _campaign(Path(folder), seconds=asked.seconds, chance=random.Random(asked.seed), only=asked.only)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="campaign", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--seconds", type=float, default=600, help="begin rounds for so long (default: 600)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31), help="repeat a campaign")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="what may happen (default: all)")
    return parser.parse_args()


def _campaign(folder: Path, *, seconds: float, chance: random.Random, only: list[str]) -> int:
    _set_up(folder)
    from tests.chaos.rounds import Round  # needs Django set up
    from tests.support.processes import Site
    from tests.support.sandbox import SandboxProcess

    until, number, failed = time.monotonic() + seconds, 0, 0
    with SandboxProcess(delay_ms=DELAY_MS) as sandbox, Site(folder) as site:
        site.beat()
        while number == 0 or time.monotonic() < until:
            number += 1
            outcome = Round(site, sandbox, chance, only).play()
            failed += bool(outcome["problems"])
            _say(round=number, **outcome)
    _say(rounds=number, failed=failed)
    return 1 if failed else 0


def _set_up(folder: Path) -> None:
    """Django on an embedded database of its own, migrated."""
    os.environ.update(DJANGO_SETTINGS_MODULE="config.settings.test", DATA_DIR=str(folder), DATABASE_URL="")
    import django
    from django.core.management import call_command

    django.setup()
    from config.services import ensure_database

    ensure_database()
    call_command("migrate", verbosity=0)


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    sys.exit(main())
