"""`manage.py grant --tenant acme --user anna --role lead`."""

from argparse import ArgumentParser
from typing import Any

from audit import provisioning
from audit.commands import Command as OurCommand
from audit.commands import add_json, add_tenant, find_tenant, find_user
from audit.permissions import ROLES


class Command(OurCommand):
    help = "Give somebody a role in a tenant; they become a member of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant(parser)
        parser.add_argument("--user", required=True, help="the username")
        parser.add_argument("--role", required=True, choices=list(ROLES))
        add_json(parser)

    def run(self, **options: Any) -> None:
        tenant, user, role = find_tenant(options["tenant"]), find_user(options["user"]), options["role"]
        provisioning.give_role(tenant=tenant, user=user, role=role)
        machine = {"tenant": tenant.slug, "username": user.username, "role": role}
        self.say(f"'{user.username}' is now {role} in '{tenant.slug}'.", machine, as_json=options["as_json"])
