"""What our `manage.py` commands share: errors on stderr with a code, and `--json` where a program may read it."""

import json
from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from audit.errors import RecourseError, ValidationFailed
from audit.models import Tenant, User

REFUSED: Final = 1
MISUSED: Final = 2
"""Exit codes: 1 it was refused, 2 it was asked wrongly (as argparse has it)."""


class Command(BaseCommand):
    """A command whose refusals are messages on stderr and never a stack trace. Subclasses define `run`."""

    requires_system_checks: list[str] = []

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            self.run(**options)
        except RecourseError as error:
            raise CommandError(_text(error), returncode=REFUSED) from None

    def run(self, **options: Any) -> None:
        raise NotImplementedError

    def say(self, text: str, machine: dict[str, Any], *, as_json: bool) -> None:
        """A sentence for a person, or the same as one JSON object for a program."""
        self.stdout.write(json.dumps(machine) if as_json else text)


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", dest="as_json", help="answer with one JSON object")


def add_tenant(parser: ArgumentParser) -> None:
    parser.add_argument("--tenant", required=True, help="the tenant's id, such as acme")


def find_tenant(slug: str) -> Tenant:
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise CommandError(f"There is no tenant '{slug}'.", returncode=MISUSED)
    return tenant


def find_user(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is nobody with the username '{username}'.", returncode=MISUSED)
    return user


def _text(error: RecourseError) -> str:
    if not isinstance(error, ValidationFailed):
        return error.message
    problems = (f"  {problem['pointer'] or '/'}: {problem['message']}" for problem in error.details["errors"])
    return "\n".join([error.message, *problems])
