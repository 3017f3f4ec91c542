"""`manage.py create_tenant acme --name "Acme Ltd"`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from audit import provisioning
from audit.commands import MISUSED, add_json
from audit.commands import Command as OurCommand
from audit.models import Tenant


class Command(OurCommand):
    help = "Create a tenant with a group and its grants for every role."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", help="its id for ever: lower-case letters, digits and dashes")
        parser.add_argument("--name", help="its name; the id when absent")
        parser.add_argument("--colour", default="indigo", help="its colour in the console")
        add_json(parser)

    def run(self, **options: Any) -> None:
        slug = options["id"]
        if Tenant.objects.filter(slug=slug).exists():
            raise CommandError(f"There is already a tenant '{slug}'.")
        problem = provisioning.slug_problem(slug)
        if problem:
            raise CommandError(problem, returncode=MISUSED)
        provisioning.create_tenant(slug=slug, name=options["name"] or slug, colour=options["colour"])
        self.say(f"Created the tenant '{slug}'.", {"tenant": slug}, as_json=options["as_json"])
