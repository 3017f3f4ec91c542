"""Runs: begin, list, read, report facts, cancel, and follow the log."""

import time
import uuid
from typing import Any, Final

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from audit.errors import CapabilityRequired, NotFound
from compensation.api import bodies, request_schemas, schemas
from compensation.api.docs import described
from compensation.api.endpoint import Endpoint
from compensation.api.idempotency import once
from compensation.api.requests import PAGING, actor, body, choice, paging, query, traceparent, whole, words
from compensation.domain.states import RollupStatus, RunStatus
from compensation.models import Run
from compensation.operations import facts, runs
from compensation.operations.reading import readable_run, require_scope
from compensation.queries import events
from compensation.queries.access import as_uuid, may, visible_runs
from compensation.queries.paging import page
from compensation.queries.snapshots import for_snapshots, run_snapshot, run_snapshots

MAX_WAIT_S: Final = 10
LOOK_EVERY_S: Final = 0.2
FILTERS: Final = {
    **PAGING,
    "status": choice(*(status.value for status in RunStatus)),
    "compensationStatus": choice(*(status.value for status in RollupStatus)),
    "workflowId": words,
    "tag": words,
}
_COLUMNS: Final = {
    "status": "status",
    "compensationStatus": "compensation_status",
    "workflowId": "workflow_version__workflow__workflow_id",
}


class Runs(Endpoint):
    @described(summary="Begin a run of the workflow's newest version", tag="runs", body=request_schemas.NEW_RUN,
               ok={201: schemas.RUN_CREATED}, errors=[422])  # fmt: skip
    @once
    def post(self, request: Request) -> Response:
        wanted = body(request, bodies.RUN)
        _refuse_hosted(wanted.get("mode"))
        run = runs.create_run(
            actor=actor(request),
            workflow_id=wanted["workflowId"],
            inputs=wanted.get("inputs", {}),
            tags=wanted.get("tags", ()),
            metadata=wanted.get("metadata"),
            traceparent=traceparent(request),
        )
        return Response(_created(run), status=201)

    @described(summary="The runs that may be seen, newest first", tag="runs", query=schemas.RUN_FILTERS,
               ok={200: schemas.page_of("runs", schemas.RUN)})  # fmt: skip
    def get(self, request: Request) -> Response:
        values = query(request, FILTERS)
        require_scope(actor=actor(request), action="runs:read")
        wanted = {column: values[name] for name, column in _COLUMNS.items() if name in values}
        if "tag" in values:
            wanted["tags__contains"] = [values["tag"]]
        found = page(for_snapshots(visible_runs(actor(request)).filter(**wanted)), **paging(values))
        return Response({"runs": run_snapshots(found.rows), "nextCursor": found.next_cursor})


class RunDetail(Endpoint):
    @described(summary="The snapshot of one run", tag="runs", ok={200: schemas.RUN})
    def get(self, request: Request, run_id: str) -> Response:
        query(request, {})
        principal, run = actor(request), readable(request, run_id)
        return Response(run_snapshot(run, with_inputs=may(principal, "see_inputs", run)))


class Facts(Endpoint):
    @described(summary="Report facts of a run that another engine executes; each is answered by itself", tag="runs",
               body=schemas.FACTS, ok={200: schemas.FACT_RESULTS})  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        reported = body(request, bodies.FACTS)["facts"]
        results = facts.report_facts(actor=actor(request), run_id=known(run_id), facts=reported)
        return Response({"results": results})


class Cancel(Endpoint):
    @described(summary="Cancel a run, or act on the plan that is under way (CMP-201, 407)", tag="runs",
               body=request_schemas.CANCEL, ok={200: schemas.RUN_STATUS}, errors=[409])  # fmt: skip
    @once
    def post(self, request: Request, run_id: str) -> Response:
        body(request, bodies.CANCEL)
        run = runs.cancel_run(actor=actor(request), run_id=known(run_id))
        return Response({"runId": str(run.pk), "status": run.status})


class Events(Endpoint):
    @described(summary="The run's log after a sequence; waits up to `timeout` seconds for something new", tag="runs",
               query=schemas.POLLING, ok={200: schemas.EVENTS})  # fmt: skip
    def get(self, request: Request, run_id: str) -> HttpResponseBase:
        values = query(request, {"lastSequence": whole(0), "timeout": whole(0, 3600)})
        run = readable(request, run_id)
        return Response(_wait(run, after=values.get("lastSequence", 0), seconds=values.get("timeout", 0)))


def known(run_id: str) -> uuid.UUID:
    """The id for an operation, which answers itself whether the run is there for this tenant."""
    key = as_uuid(run_id)
    if key is None:
        raise NotFound
    return key


def readable(request: Request, run_id: str) -> Run:
    """A run that the caller may read."""
    return readable_run(actor=actor(request), run_id=as_uuid(run_id))


def _wait(run: Run, *, after: int, seconds: int) -> dict[str, Any]:
    """At once when there is something to say, else after a while; at most 10 s, since a thread is kept waiting."""
    until = time.monotonic() + min(seconds, MAX_WAIT_S)
    while True:
        answer = events.poll(run, after=after)
        if answer["events"] or answer["isComplete"] or time.monotonic() >= until:
            return answer
        time.sleep(LOOK_EVERY_S)


def _created(run: Run) -> dict[str, Any]:
    status_url = f"/v1/runs/{run.pk}"
    return {
        "runId": str(run.pk),
        "status": run.status,
        "mode": run.mode,
        "eventsUrl": f"{status_url}/events",
        "statusUrl": status_url,
    }


def _refuse_hosted(mode: str | None) -> None:
    if mode == "hosted":
        raise CapabilityRequired(
            "This host does not execute runs yet; nothing was created. Allowed: mode 'reported', also when absent.",
            details={"requiredCapability": "hosted"},
        )
