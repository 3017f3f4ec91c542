"""`manage.py unwind RUN --tenant acme --as anna`: an operator-request."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from audit.commands import MISUSED, add_json, add_tenant, find_tenant, find_user
from audit.commands import Command as OurCommand
from audit.principals import Principal
from compensation.operations import acts
from compensation.queries.access import as_uuid


class Command(OurCommand):
    help = "Start the unwind of a run that has ended and has no plan yet (CMP-201)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", help="the run's id")
        add_tenant(parser)
        parser.add_argument("--as", dest="principal", required=True, help="the username of somebody who may start it")
        parser.add_argument("--justification", default="", help="why; kept in the record")
        add_json(parser)

    def run(self, **options: Any) -> None:
        run_id = as_uuid(options["run"])
        if run_id is None:
            raise CommandError(f"'{options['run']}' is not the id of a run.", returncode=MISUSED)
        actor = Principal(tenant=find_tenant(options["tenant"]), user=find_user(options["principal"]))
        result = acts.start(actor=actor, run_id=run_id, justification=options["justification"])
        plan = str(result.plan.pk) if result.plan else None
        machine = {"runId": str(run_id), "compensationId": plan}
        self.say(f"The unwind of {run_id} has started (plan {plan}).", machine, as_json=options["as_json"])
