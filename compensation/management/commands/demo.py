"""`manage.py demo`: the whole product on one machine, with two example tenants and a stream of runs."""

from functools import partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from compensation.demo import handout, stack
from compensation.demo.seed import seed
from compensation.management.supervision import SupervisionError, Supervisor

START_TIMEOUT_S: Final = 90.0


class Command(BaseCommand):
    """Runs until SIGINT (Ctrl-C) or SIGTERM and stops all it started, exit code 0; 1 with the reason otherwise."""

    requires_system_checks = ()
    help = "Run the demo: web, worker, sandbox and a stream of runs. PORT, SANDBOX_PORT and DATA_DIR say where."

    def handle(self, *args: Any, **options: Any) -> None:
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
        try:
            with stack.sole_demo(settings.DATA_DIR):
                stack.require_free_ports()
                self._run()
        except (stack.CannotStart, SupervisionError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:  # later on the supervisor takes signals itself
            raise CommandError("Stopped before anything was started.") from None

    def _run(self) -> None:
        self._say("Preparing the database ...")
        call_command("migrate", verbosity=0)
        # What takes longest to come up starts first; the first page is there when everything behind it is.
        supervisor = Supervisor([stack.worker(), stack.sandbox()], grace_s=stack.GRACE_S, say=self.stderr.write)
        supervisor.run(when_started=self._open)
        self._say("Stopped. `make demo` goes on where this one was.")

    def _open(self, supervisor: Supervisor) -> None:
        """Seed, let people in, let the runs come, and say where to look."""
        self._say("Preparing tenants, people and workflows ...")
        given = seed(
            url=f"http://{stack.HOST}:{settings.PORT}",
            sandbox_url=f"http://{stack.HOST}:{settings.SANDBOX_PORT}",
            earlier=handout.read(settings.DATA_DIR),
        )
        path = handout.write(settings.DATA_DIR, given)
        if not _ready(supervisor, "sandbox", settings.SANDBOX_PORT, "/stats"):
            return
        supervisor.add(stack.web())
        if not _ready(supervisor, "web", settings.PORT, "/healthz"):
            return
        supervisor.add(stack.generator())
        if _ready(supervisor, "worker", settings.PORT, "/readyz"):
            self._say(_welcome(given, path))

    def _say(self, text: str) -> None:
        """At once, also into a pipe: whoever waits for these lines waits for no buffer to fill."""
        self.stdout.write(text)
        self.stdout.flush()


def _ready(supervisor: Supervisor, name: str, port: int, path: str) -> bool:
    return supervisor.wait_until_ready(name, partial(stack.answers, port, path), timeout_s=START_TIMEOUT_S)


def _welcome(given: handout.Handout, path: Path) -> str:
    lines = ["", f"  Console         {given['url']}/", f"  Sandbox ledger  {given['sandboxUrl']}/", ""]
    lines += [f"  {'sign in as':<18}{'password':<16}role"]
    for tenant in given["tenants"]:
        for login in tenant["users"]:
            lines.append(f"  {login['username']:<18}{login['password']:<16}{', '.join(login['roles'])}")
        lines.append("")
    lines += [f"  These and the API keys are in {path}", "  Ctrl-C stops everything that was started.", ""]
    return "\n".join(lines)
