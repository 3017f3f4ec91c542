"""Recording a wave in SQL leaves exactly what bringing each plan forward by itself would (CMP-320 … 322, 601, §5)."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals.models import Interrupt
from compensation.domain.states import OUTCOME_OF_STATE, ObligationState
from compensation.models import Attention, Obligation, Plan, Run, RunEvent, Work
from compensation.operations import asking, rollup
from compensation.runner import record
from compensation.runner.claims import Claimed
from compensation.runner.results import Done, Order
from compensation.runner.specs import spec_of
from tests.support.calls import answered
from tests.support.definitions import manual_type, node
from tests.support.stage import Stage

S = ObligationState
SETTLED = (S.COMPLETED, S.FAILED, S.SKIPPED)
OPEN = (S.WAITING, S.AWAITING_APPROVAL, S.UNCERTAIN, S.HELD)
NODES = ("first", "second", "asked", "by-hand", "last")
BEFORE = st.sampled_from((*SETTLED * 3, *OPEN))
AFTER = st.sampled_from((*SETTLED, *OPEN, *[S.WAITING] * 10))


@dataclass(frozen=True)
class Scene:
    """One plan in the middle of its unwind: the states of its entries in order, one of them in flight, and what is
    open or held around them."""

    states: tuple[ObligationState, ...]
    running: int
    approved: bool
    delayed: bool
    held: bool
    parent_paused: bool
    manual: bool
    question: bool
    terminated: bool


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    running = draw(st.integers(0, len(NODES) - 1))
    states = [draw(BEFORE if place < running else AFTER) for place in range(len(NODES))]
    states[running] = S.RUNNING
    flags = {name: draw(st.booleans()) for name in ("approved", "delayed", "question")}
    rare = {name: draw(st.integers(0, 3)) == 0 for name in ("held", "parent_paused", "manual", "terminated")}
    return Scene(states=tuple(states), running=running, **flags, **rare)


@pytest.fixture(params=["reverse-completion", "dependency-graph"])
def run(stage: Stage, request: pytest.FixtureRequest) -> tuple[Stage, Run]:
    stage.register("undo")
    stage.register_document(manual_type("by-hand"))
    asked, by_hand = node("asked", "undo", requiresApproval=True), node("by-hand", "by-hand")
    nodes = [node("last", "undo"), by_hand, asked, node("second", "undo"), node("first", "undo")]
    pairs = [("last", "by-hand"), ("last", "asked"), ("by-hand", "second"), ("asked", "second"), ("second", "first")]
    stage.workflow(nodes, pairs=pairs, policy={"orderingModel": request.param})
    return stage, stage.fail(*reversed(NODES))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scene=scenes())
def test_a_wave_in_sql_leaves_what_advance_would(run: tuple[Stage, Run], scene: Scene) -> None:
    stage, played = run
    with transaction.atomic():
        done = enact(stage, played, scene)
        quickly = left_by(played, lambda: record.record_successes([done]))
        slowly = left_by(played, lambda: one_by_one(done))
        transaction.set_rollback(True)
    assert quickly == slowly


def one_by_one(done: Done) -> None:
    """The same without the plain cases: complete the entry, then `advance`."""
    record.lock_runs([done.claimed.run_id])
    with connection.cursor() as cursor:
        cursor.execute(record.SUCCESSES, {"done": json.dumps([record._row(done)])})
        ((entry_id, plan_id, *_),) = cursor.fetchall()
    record._supersede_questions([entry_id])
    record._advance(plan_id)


def left_by(played: Run, act: Any) -> dict[str, Any]:
    """What an act leaves; it is rolled back. The stored rollup must be the derived one."""
    with transaction.atomic():
        act()
        left = picture(played)
        transaction.set_rollback(True)
    assert left["status"] == left["derived"]
    return left


def picture(played: Run) -> dict[str, Any]:
    plan, fresh = Plan.objects.get(run=played), Run.objects.get(pk=played.pk)
    entries = Obligation.objects.filter(run=played).order_by("position")
    return {
        "entries": [(e.node_id, e.state, e.outcome, e.reason, e.finished_at is None, e.receipt) for e in entries],
        "work": sorted(Work.objects.filter(run=played).values_list("obligation_id", "kind", "token")),
        "events": list(
            RunEvent.objects.filter(run=played).order_by("sequence").values_list("sequence", "type", "node_id")
        ),
        "payloads": list(
            RunEvent.objects.filter(run=played, type__startswith="compensation.").values_list("payload", flat=True)
        ),
        "plan": (plan.closed_at is None, plan.terminated, plan.parent_paused, plan.held_at is None),
        "status": fresh.compensation_status,
        "derived": rollup.derive(plan),
        "sequence": fresh.last_sequence,
        "questions": sorted(Interrupt.objects.filter(context_id=played.pk).values_list("handler", "state", "node_key")),
        "attention": sorted(Attention.objects.filter(run=played, resolved_at=None).values_list("kind", "cause")),
    }


def enact(stage: Stage, played: Run, scene: Scene) -> Done:
    """Bring the plan to the scene, past the walls where only many acts would lead there, and return its result."""
    with connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")
    plan = Plan.objects.get(run=played)
    entries = list(Obligation.objects.select_related("node_type_version").filter(run=played).order_by("position"))
    Work.objects.filter(run=played).delete()
    for entry, state in zip(entries, scene.states, strict=True):
        settle(entry, state, scene)
    terminated = {"terminated": True, "closed_at": Now()} if scene.terminated else {}
    held_at = Now() if scene.held else None
    Plan.objects.filter(pk=plan.pk).update(
        started_at=Now(), held_at=held_at, parent_paused=scene.parent_paused, **terminated
    )
    around(stage, played, plan, entries[scene.running], scene)
    Run.objects.filter(pk=played.pk).update(compensation_status=rollup.derive(Plan.objects.get(pk=plan.pk)))
    with connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = origin")
    return in_flight(stage, played, entries[scene.running])


def settle(entry: Obligation, state: ObligationState, scene: Scene) -> None:
    """An entry in its state; in a terminated plan what is not in flight has ended."""
    if scene.terminated and state in OPEN:
        state = S.TERMINATED
    outcome = OUTCOME_OF_STATE.get(state)
    delay = Now() if scene.delayed and state == S.WAITING else None
    Obligation.objects.filter(pk=entry.pk).update(
        state=state, outcome=outcome, finished_at=Now() if outcome else None, next_attempt_at=delay
    )


def around(stage: Stage, played: Run, plan: Plan, running: Obligation, scene: Scene) -> None:
    """Approvals given, questions open, and a call for a person."""
    if scene.approved:
        asked = Obligation.objects.get(run=played, node_id="asked")
        Interrupt.objects.create(
            tenant=stage.home.tenant,
            handler=asking.RUN_IT,
            subject_id=asked.pk,
            subject_version=1,
            context_id=played.pk,
            artifact="{}",
            digest=asked.digest,
            state="approved",
            resolved_at=Now(),
        )
    if scene.question:
        asking.ask_to_waive(
            played,
            plan,
            [running],
            act="skip",
            justification="because",
            requested_by=stage.home.lead.user.pk,  # type: ignore[union-attr]
        )
    if scene.manual:
        Attention.objects.create(tenant=stage.home.tenant, run=played, plan=plan, kind="manual", cause="parent-cancel")


def in_flight(stage: Stage, played: Run, entry: Obligation) -> Done:
    """The success of an entry that is leased and called."""
    version = entry.node_type_version
    assert version is not None
    token = uuid.uuid4()
    Work.objects.create(
        obligation=entry,
        tenant=stage.home.tenant,
        run=played,
        node_type_id=version.node_type_id,
        due_at=Now(),
        token=token,
    )
    claimed = Claimed(
        obligation_id=entry.pk,
        token=token,
        kind="attempt",
        run_id=played.pk,
        tenant_id=stage.home.tenant.pk,
        key=entry.idempotency_key,
        input="{}",
        node_type_version_id=version.pk,
        timeout_ms=1_000,
        tenant=stage.name,
        egress_allow=(),
    )
    return Done(order=Order(claimed=claimed, spec=spec_of(version.pk), secrets={}, send_by=0), result=answered(201))
