"""`manage.py create_api_key --tenant acme --principal anna --scope runs:read` prints the key and nothing else."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.utils import timezone

from audit import provisioning
from audit.commands import Command as OurCommand
from audit.commands import add_tenant, find_tenant, find_user
from audit.permissions import SCOPES


class Command(OurCommand):
    help = "Issue an API key for a member of a tenant. Only the key is printed; it cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant(parser)
        parser.add_argument("--principal", required=True, help="the username of its owner")
        parser.add_argument("--scope", action="append", required=True, choices=sorted(SCOPES), help="repeatable")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument("--days", type=int, help="until it expires; absent = it does not")

    def run(self, **options: Any) -> None:
        days = options["days"]
        key = provisioning.issue_key(
            tenant=find_tenant(options["tenant"]),
            owner=find_user(options["principal"]),
            scopes=options["scope"],
            name=options["name"],
            expires_at=None if days is None else timezone.now() + timedelta(days=days),
        )
        self.stdout.write(key)
