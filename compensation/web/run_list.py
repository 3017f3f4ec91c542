"""What the list of runs can be asked, as it stands in the URL."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.db.models import Min, Q, QuerySet
from django.http import QueryDict

from approvals.models import Interrupt, InterruptState
from compensation.models import Obligation, Plan, Run
from compensation.queries.access import as_uuid
from compensation.queries.snapshots import WAITING_APPROVAL


@dataclass(frozen=True, slots=True)
class RunFilter:
    """``search`` is any id: of a run, a compensation, an effect, an interrupt, or a downstream key."""

    search: str = ""
    status: str = ""
    rollup: str = ""
    workflow: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        return cls(
            search=query.get("q", "").strip(),
            status=query.get("status", ""),
            rollup=query.get("rollup", ""),
            workflow=query.get("workflow", ""),
        )

    @property
    def narrowed(self) -> bool:
        return bool(self.search or self.status or self.rollup or self.workflow)

    def among(self, runs: QuerySet[Run]) -> QuerySet[Run]:
        """The runs of an already restricted set that match; a value no run can have matches nothing."""
        if self.search:
            runs = runs.filter(_named(self.search))
        if self.status == WAITING_APPROVAL:
            runs = runs.filter(pk__in=Interrupt.objects.filter(state=InterruptState.OPEN).values("context_id"))
        elif self.status:
            runs = runs.filter(status=self.status)
        if self.rollup:
            runs = runs.filter(compensation_status=self.rollup)
        if self.workflow:
            runs = runs.filter(workflow_version__workflow__workflow_id=self.workflow)
        return runs


def next_attempts(runs: Sequence[Run]) -> dict[str, datetime]:
    """When the next attempt of each run is due, for those that wait for one: one query."""
    due = Obligation.objects.filter(run__in=[run.pk for run in runs], next_attempt_at__isnull=False)
    return {str(run): at for run, at in due.values_list("run").annotate(Min("next_attempt_at"))}


def _named(search: str) -> Q:
    key = as_uuid(search.lower())
    if key is not None:
        return _by_uuid(key)
    owed = Obligation.objects.filter(Q(effect_id=search) | Q(idempotency_key=search))
    return Q(pk__in=owed.values("run")) | Q(tags__contains=[search])


def _by_uuid(key: uuid.UUID) -> Q:
    plans = Plan.objects.filter(pk=key).values("run")
    questions = Interrupt.objects.filter(pk=key).values("context_id")
    return Q(pk=key) | Q(pk__in=plans) | Q(pk__in=questions)
