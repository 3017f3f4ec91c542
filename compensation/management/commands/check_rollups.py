"""`manage.py check_rollups`: every stored rollup against a fresh fold (CMP §5)."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from audit.commands import Command as OurCommand
from audit.commands import add_json
from compensation.models import Plan, Run
from compensation.operations import rollup

SHOWN = 20


class Command(OurCommand):
    help = "Fold every run's rollup again and compare it with the stored one; exit code 1 when any differs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json(parser)

    def run(self, **options: Any) -> None:
        checked, wrong = 0, []
        for run_id in Run.objects.order_by("pk").values_list("pk", flat=True).iterator():
            checked += 1
            if (difference := _difference(run_id)) is not None:
                wrong.append(difference)
        machine = {"checked": checked, "differences": wrong}
        self.say(f"{checked} run(s) checked, {len(wrong)} rollup(s) differ.", machine, as_json=options["as_json"])
        if wrong:
            raise CommandError("\n".join(f"  {each}" for each in wrong[:SHOWN]))


def _difference(run_id: Any) -> dict[str, str] | None:
    """Under the run's lock, so that a plan which moves meanwhile is not called wrong."""
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        derived = rollup.derive(Plan.objects.filter(tenant_id=run.tenant_id, run=run).first())
    if derived == run.compensation_status:
        return None
    return {"runId": str(run_id), "stored": run.compensation_status, "derived": str(derived)}
