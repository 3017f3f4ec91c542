"""`manage.py create_user anna --tenant acme --role approver`, the password on stdin or in a file."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from audit import provisioning
from audit.commands import Command as OurCommand
from audit.commands import add_json, add_tenant, find_tenant
from audit.models import User
from audit.permissions import ROLES


class Command(OurCommand):
    help = "Create a person in a tenant, with the password read from stdin; with --service, a service without one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        add_tenant(parser)
        parser.add_argument("--role", action="append", default=[], choices=list(ROLES), help="repeatable")
        parser.add_argument("--service", action="store_true", help="it signs in nowhere and acts through API keys")
        add_json(parser)

    def run(self, **options: Any) -> None:
        username, tenant = options["username"], find_tenant(options["tenant"])
        if User.objects.filter(username=username).exists():
            raise CommandError(f"There is already somebody with the username '{username}'.")
        password = None if options["service"] else _password()
        user = provisioning.create_person(
            tenant=tenant, username=username, password=password, roles=options["role"], is_service=options["service"]
        )
        roles = ", ".join(options["role"]) or "no role"
        machine = {"username": username, "userId": user.pk, "tenant": tenant.slug, "roles": options["role"]}
        self.say(f"Created '{username}' in '{tenant.slug}' with {roles}.", machine, as_json=options["as_json"])


def _password() -> str:
    """From a prompt, or the first line of stdin when it is no terminal: never an argument that others can read."""
    given = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    try:
        validate_password(given)
    except ValidationError as error:
        raise CommandError("The password is refused: " + " ".join(error.messages)) from None
    return given
