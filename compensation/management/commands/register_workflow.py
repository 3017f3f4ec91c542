"""`manage.py register_workflow FILE --tenant acme --as anna`."""

from argparse import ArgumentParser
from typing import Any

from audit.commands import Command as OurCommand
from compensation.management import definitions
from compensation.operations import registration


class Command(OurCommand):
    help = "Register a workflow as its next version; one that equals the newest version stays as it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        definitions.add_arguments(parser)

    def run(self, **options: Any) -> None:
        document = definitions.read(options["file"])
        version, created = registration.register_workflow(actor=definitions.principal_of(options), document=document)
        name = version.workflow.workflow_id
        machine = {"workflowId": name, "version": version.number, "created": created}
        text = f"'{name}' version {version.number}" + (" registered." if created else " was already registered.")
        self.say(text, machine, as_json=options["as_json"])
