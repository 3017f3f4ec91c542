"""Lists: keyset pages that hold under concurrent writes, in a constant number of queries (wire.md; CMP-504)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.errors import ValidationFailed
from compensation.models import Run
from compensation.queries.paging import page
from tests.integration.api.conftest import Hall
from tests.support import definitions
from tests.support.callers import Caller
from tests.support.stage import Stage, committed


def walk(caller: Caller, path: str, plural: str, limit: int) -> list[Any]:
    """Every row of a list, page by page."""
    rows, cursor = [], ""
    for _ in range(50):
        joined = f"{path}{'&' if '?' in path else '?'}limit={limit}{cursor}"
        shown = caller.get(joined).json
        assert len(shown[plural]) <= limit
        rows += shown[plural]
        if shown["nextCursor"] is None:
            return rows
        cursor = f"&cursor={shown['nextCursor']}"
    raise AssertionError("the pages do not end")


@pytest.fixture
def ready(hall: Hall) -> Hall:
    hall.stage.register("undo")
    hall.stage.chain("a")
    return hall


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 200])
def test_pages_are_the_list(ready: Hall, limit: int) -> None:
    made = [str(ready.stage.begin().pk) for _ in range(7)]
    shown = [each["runId"] for each in walk(ready.us.operator, "/v1/runs", "runs", limit)]
    assert shown == sorted(made, reverse=True)
    decisions = [
        each["seq"] for each in walk(ready.us.auditor, "/v1/decisions", "decisions", limit if limit > 1 else 7)
    ]
    assert decisions == list(range(len(decisions), 0, -1))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 4), arriving=st.lists(st.integers(0, 2), max_size=8))
def test_pages_hold_still_while_rows_arrive(ready: Hall, limit: int, arriving: list[int]) -> None:
    """What was there at the first page is shown once each, in order, whatever is written between the pages."""
    before = [ready.stage.begin().pk for _ in range(4)]
    expected = sorted(Run.objects.filter(tenant=ready.stage.home.tenant).values_list("pk", flat=True), reverse=True)
    assert set(before) <= set(expected)
    runs, cursor, seen = Run.objects.filter(tenant=ready.stage.home.tenant), "", []
    pauses = iter(arriving)
    while True:
        shown = page(runs, cursor=cursor, limit=limit)
        seen += [row.pk for row in shown.rows]
        for _ in range(next(pauses, 0)):
            ready.stage.begin()
        if shown.next_cursor is None:
            break
        cursor = shown.next_cursor
    assert seen == expected


@given(cursor=st.text(min_size=1, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_made_up_cursor_is_refused(db: None, cursor: str) -> None:
    with pytest.raises(ValidationFailed):
        page(Run.objects.all(), cursor=cursor)


def test_a_cursor_of_another_list_is_refused(ready: Hall) -> None:
    for _ in range(2):
        ready.stage.begin()
    of_decisions = ready.us.auditor.get("/v1/decisions?limit=1").json["nextCursor"]
    reply = ready.us.auditor.get(f"/v1/runs?cursor={of_decisions}")
    assert (reply.status, reply.pointers) == (400, ["/cursor"])


def queries(caller: Caller, path: str) -> int:
    caller.get(path)
    with CaptureQueriesContext(connection) as captured:
        assert caller.get(path).status == 200
    return len(captured)


LISTS = {
    "/v1/runs": "operator",
    "/v1/interrupts": "approver",
    "/v1/interrupts?state=open": "operator",
    "/v1/workflows": "service",
    "/v1/node-types": "service",
    "/v1/decisions": "auditor",
}


def grow(stage: Stage, times: int) -> None:
    """More of everything that lists show."""
    for _ in range(times):
        name = stage.register(f"undo{uuid.uuid4().hex[:6]}")
        stage.chain("a", requiresApproval=True)
        run = stage.fail("a")
        stage.report(run, committed("a", factId="late", logicalInvocationId="a:2"))
        stage.register_document(definitions.manual_type(f"m{name}"))


@pytest.mark.parametrize("path", LISTS)
def test_a_list_costs_the_same_number_of_queries_whatever_its_length(ready: Hall, path: str) -> None:
    caller = getattr(ready.us, LISTS[path])
    grow(ready.stage, 1)
    few = queries(caller, path)
    grow(ready.stage, 4)
    assert queries(caller, path) == few


def test_a_plan_costs_the_same_number_of_queries_whatever_its_size(ready: Hall) -> None:
    small = ready.stage.fail("a")
    nodes = [f"n{number}" for number in range(12)]
    ready.stage.chain(*nodes, requiresApproval=True)
    large = ready.stage.fail(*nodes)
    counts = {queries(ready.us.operator, f"/v1/runs/{run.pk}/compensation") for run in (small, large)}
    assert len(counts) == 1


def test_filters_narrow_and_never_widen(ready: Hall) -> None:
    failed, running = ready.stage.fail("a"), ready.stage.begin()
    ready.us.service.post("/v1/runs", {"workflowId": "flow", "tags": ["blue", "big"]})

    def ids(query: str) -> set[str]:
        return {each["runId"] for each in ready.us.operator.get(f"/v1/runs?{query}").json["runs"]}

    assert ids("status=failed") == {str(failed.pk)}
    assert str(running.pk) in ids("status=running&workflowId=flow")
    assert ids("compensationStatus=pending") == {str(failed.pk)}
    assert len(ids("tag=blue")) == 1
    assert ids("tag=blu") == ids("workflowId=other") == set()


def test_the_record_is_filtered(ready: Hall) -> None:
    run = ready.stage.fail("a")
    ready.us.operator.post(f"/v1/runs/{run.pk}/compensation:pause", {})
    ready.us.auditor.post(f"/v1/runs/{run.pk}/compensation:pause", {})

    def shown(query: str) -> list[tuple[str, bool]]:
        rows = ready.us.auditor.get(f"/v1/decisions?{query}").json["decisions"]
        return [(row["action"], row["allowed"]) for row in rows]

    assert shown(f"runId={run.pk}") == [("compensation:pause", False), ("compensation:pause", True)]
    assert shown(f"runId={run.pk}&allowed=true") == [("compensation:pause", True)]
    assert shown(f"runId={run.pk}&action=compensation:skip") == []
    assert shown(f"runId={run.pk}&until=2020-01-01T00:00:00Z") == []
    assert len(shown(f"runId={run.pk}&since=2020-01-01T00:00:00.000%2B02:00")) == 2
