"""Whether what is stored of runs agrees with what it was folded from (CMP §5, CMP-502)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from django.db import connection, transaction
from django.db.models import Count, Max, QuerySet

from compensation.domain.states import RollupStatus
from compensation.models import Attention, Obligation, Plan, Run, RunEvent
from compensation.operations import rollup

BATCH: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One stored value of a run that is not what it should be."""

    run_id: str
    what: str
    stored: str
    derived: str

    def to_wire(self) -> dict[str, str]:
        return {"runId": self.run_id, "what": self.what, "stored": self.stored, "derived": self.derived}


def differences(runs: QuerySet[Run]) -> Iterator[Difference]:
    """Every difference in these runs, read in batches: stored rollups, and gaps or doubles in the run's log.

    All of it is read as it was at one instant, so runs that go on meanwhile differ from nothing.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read, read only")
        found = runs.order_by("pk").iterator(chunk_size=BATCH)
        while batch := list(islice(found, BATCH)):
            yield from _in_rollups(batch)
            yield from _in_logs(batch)


def _in_rollups(runs: list[Run]) -> Iterator[Difference]:
    plans = {plan.run_id: plan for plan in Plan.objects.filter(run__in=runs)}
    states: dict[object, list[str]] = defaultdict(list)
    for plan_id, state in Obligation.objects.filter(run__in=runs).values_list("plan_id", "state"):
        states[plan_id].append(state)
    manual = Attention.objects.filter(run__in=runs, kind="manual", resolved_at__isnull=True)
    held = set(manual.values_list("plan_id", flat=True))
    for run in runs:
        plan = plans.get(run.pk)
        derived = rollup.folded(plan, states[plan.pk], manual=plan.pk in held) if plan else RollupStatus.NONE
        if run.compensation_status != derived:
            yield _difference(run, "compensationStatus", run.compensation_status, derived)


def _in_logs(runs: list[Run]) -> Iterator[Difference]:
    events = RunEvent.objects.filter(run__in=runs).values("run_id").annotate(number=Count("pk"), last=Max("sequence"))
    logs = {row["run_id"]: (row["number"], row["last"]) for row in events}
    for run in runs:
        number, last = logs.get(run.pk, (0, 0))
        if not number == last == run.last_sequence:
            yield _difference(run, "lastSequence", f"{run.last_sequence}", f"{number} events, the last is {last}")


def _difference(run: Run, what: str, stored: str, derived: str) -> Difference:
    return Difference(run_id=str(run.pk), what=what, stored=str(stored), derived=str(derived))
