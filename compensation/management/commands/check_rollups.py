"""`manage.py check_rollups`: what is stored of every run against what it folds from (CMP §5, CMP-502)."""

from argparse import ArgumentParser
from itertools import islice
from typing import Any

from django.core.management.base import CommandError

from audit.commands import Command as OurCommand
from audit.commands import add_json, find_tenant
from compensation.models import Run
from compensation.queries.consistency import differences

REPORTED = 1_000


class Command(OurCommand):
    help = "Fold every run's rollup again and count its log; exit code 1 when a stored value differs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", help="only this tenant's runs; absent = all")
        add_json(parser)

    def run(self, **options: Any) -> None:
        runs = Run.objects.all()
        if options["tenant"]:
            runs = runs.filter(tenant=find_tenant(options["tenant"]))
        found = [each.to_wire() for each in islice(differences(runs), REPORTED)]
        machine = {"checked": runs.count(), "differences": found}
        text = f"{machine['checked']} run(s) checked, {len(found)} difference(s)."
        self.say(text, machine, as_json=options["as_json"])
        if found:
            raise CommandError("\n".join(f"  {each}" for each in found))
