"""Another inverse for the same frozen input, as a new plan version (CMP-305, 311, 609, 615)."""

import json

import pytest

from approvals.models import Answer, Interrupt
from audit.errors import Forbidden, InterruptAlreadyResolved, ValidationFailed, VersionConflict
from compensation.domain.plan import plan_digest
from compensation.models import NodeType, Obligation, PlanVersion, Run
from tests.support.definitions import manual_type, node, node_type
from tests.support.stage import Stage

NOT_HONOURED = {"header": "Idempotency-Key", "honoured": False}
DONE = {"receipt": "bank-77", "evidence": "statement of 3 March, line 12"}


@pytest.fixture
def ready(stage: Stage) -> Stage:
    """b's inverse is rejected once; `other` would do; `by-hand` is a person's."""
    stage.register("undo")
    stage.register("other")
    stage.register_document(manual_type("by-hand"))
    return stage


def rejected(stage: Stage, **policy: str) -> Run:
    stage.chain("a", "b", policy=policy)
    stage.fault("undo", "reject", times=1)
    run = stage.fail("a", "b")
    stage.work()
    return run


def test_cmp_305_311_substitution_makes_a_version_a_new_key_and_runs_the_same_input(ready: Stage) -> None:
    run = rejected(ready, exhaustedDisposition="manual-intervention")
    before = {each.node_id: each for each in ready.entries(run)}
    assert ready.substitute(run, "b", "other").interrupt is None
    entry, plan = ready.entry(run, "b"), ready.plan(run)
    assert (plan.plan_version, entry.entry_version, entry.state) == (2, 2, "ready")
    assert entry.idempotency_key == f"{entry.effect_id}:v2"
    assert (entry.effect_id, entry.input) == (before["b"].effect_id, before["b"].input)
    assert entry.digest != before["b"].digest
    other = ready.entry(run, "a")
    assert (other.idempotency_key, other.digest, other.entry_version) == (other.effect_id, before["a"].digest, 1)
    first, second = PlanVersion.objects.filter(plan=plan).order_by("number")
    assert (first.number, second.number) == (1, 2)
    assert second.by == ready.home.lead.label
    assert second.change == {
        "effectId": entry.effect_id,
        "from": {"nodeTypeId": "undo", "nodeTypeVersion": 1},
        "to": {"nodeTypeId": "other", "nodeTypeVersion": 1},
    }
    assert plan.digest == second.digest == plan_digest(each.digest for each in ready.entries(run))
    ready.work()
    assert ready.rollup(run) == "completed"
    keys = [row.idempotency_key for row in ready.attempts(run, "b")]
    assert keys == [entry.effect_id, f"{entry.effect_id}:v2"]
    assert len(ready.sandbox.effects(key=entry.effect_id)) == 0
    assert ready.effects(run) == {"b": 1, "a": 1}


def test_cmp_609_a_newer_version_of_the_same_type_may_replace_it_and_an_older_may_not(ready: Stage) -> None:
    run = rejected(ready)
    with pytest.raises(ValidationFailed, match="Nothing was substituted"):
        ready.substitute(run, "b", "undo")
    ready.register("undo", timeoutMs=2_500)
    ready.substitute(run, "b", "undo")
    entry = ready.entry(run, "b")
    assert entry.node_type_version is not None
    assert (entry.node_type_version.number, entry.timeout_ms) == (2, 3_000)
    ready.work()
    assert ready.states(run)["b"] == "completed"


@pytest.mark.parametrize(
    ("replacement", "pointer"),
    [
        ({"node_type_id": "nowhere"}, "/nodeTypeId"),
        ({"node_type_id": "other", "version": 9}, "/nodeTypeId"),
        ({"node_type_id": "strict"}, "/id"),
        ({"node_type_id": "by-hand"}, "/receipt"),
        ({"node_type_id": "by-hand", "receipt": "r"}, "/evidence"),
        ({"node_type_id": "other", "receipt": "r"}, "/receipt"),
    ],
)
def test_cmp_609_615_what_may_not_replace_says_why(ready: Stage, replacement: dict[str, str], pointer: str) -> None:
    ready.register("strict", inputSchema={"type": "object", "properties": {"id": {"type": "integer"}}})
    run = rejected(ready)
    with pytest.raises(ValidationFailed) as told:
        ready.substitute(run, "b", **replacement)
    assert told.value.details["errors"][0]["pointer"] == pointer
    assert (ready.plan(run).plan_version, ready.states(run)["b"]) == (1, "failed")


def test_cmp_609_a_node_type_of_another_tenant_is_none(ready: Stage) -> None:
    neighbour = Stage(ready.sandbox)
    neighbour.register("theirs")
    run = rejected(ready)
    with pytest.raises(ValidationFailed):
        ready.substitute(run, "b", "theirs")
    neighbour.close()


def test_cmp_609_approval_flags_and_quorum_only_rise(ready: Stage) -> None:
    ready.register("strict", requiresApproval=True)
    ready.register("loose")
    NodeType.objects.filter(tenant=ready.home.tenant, node_type_id="strict").update(quorum=2)
    run = rejected(ready)
    ready.substitute(run, "b", "strict")
    entry = ready.entry(run, "b")
    assert (entry.requires_approval, entry.quorum, entry.state) == (True, 2, "awaiting_approval")
    ready.substitute(run, "b", "loose")
    entry = ready.entry(run, "b")
    assert (entry.requires_approval, entry.quorum, ready.plan(run).plan_version) == (True, 2, 3)
    assert entry.idempotency_key.endswith(":v3")


def test_cmp_602_610_substitution_voids_open_approvals_and_outdates_given_ones(ready: Stage) -> None:
    ready.chain("a", "b", requiresApproval=True, waiveRequiresApproval=False)
    run = ready.fail("a", "b")
    question = ready.question(run)
    ready.substitute(run, "b", "other")
    question.refresh_from_db()
    assert question.state == "void"
    with pytest.raises(InterruptAlreadyResolved):
        ready.answer(question)
    second = ready.approve(run)
    assert json.loads(second.artifact)["idempotencyKey"].endswith(":v2")
    assert ready.states(run)["b"] == "ready"
    ready.register("third")
    ready.substitute(run, "b", "third")
    assert ready.states(run)["b"] == "awaiting_approval", "the approval of version 2 does not carry over"
    assert ready.work() == 0
    assert Interrupt.objects.filter(context_id=run.pk).count() == 3


def test_cmp_609_what_may_have_been_applied_needs_a_second_persons_word(ready: Stage) -> None:
    ready.register("blind", idempotency=NOT_HONOURED)
    ready.workflow([node("a", "blind")])
    ready.fault("blind", "drop_before")
    run = ready.fail("a")
    ready.work()
    assert ready.rollup(run) == "manual"
    asked = ready.substitute(run, "a", "other").interrupt
    assert asked is not None
    assert (ready.plan(run).plan_version, ready.states(run)) == (1, {"a": "uncertain"})
    with pytest.raises(Forbidden):
        ready.answer(asked, actor=ready.home.lead)
    ready.answer(asked)
    assert (ready.plan(run).plan_version, ready.states(run)) == (2, {"a": "ready"})
    ready.work()
    assert (ready.rollup(run), ready.effects(run)) == ("completed", {"a": 1})


def test_cmp_609_a_rejected_attestation_leaves_everything_as_it_was(ready: Stage) -> None:
    ready.register("blind", idempotency=NOT_HONOURED)
    ready.workflow([node("a", "blind")])
    ready.fault("blind", "drop_before", times=1)
    run = ready.fail("a")
    ready.work()
    asked = ready.substitute(run, "a", "other").interrupt
    assert asked is not None
    ready.answer(asked, Answer.REJECT)
    assert (ready.plan(run).plan_version, ready.states(run), ready.rollup(run)) == (1, {"a": "uncertain"}, "manual")


def test_cmp_615_done_elsewhere_completes_with_receipt_evidence_and_a_second_person(ready: Stage) -> None:
    run = rejected(ready, exhaustedDisposition="manual-intervention")
    asked = ready.substitute(run, "b", "by-hand", **DONE).interrupt
    assert asked is not None
    shown = json.loads(asked.artifact)
    assert {name: shown[name] for name in DONE} == DONE
    assert ready.states(run)["b"] == "failed"
    ready.answer(asked)
    entry = ready.entry(run, "b")
    assert (entry.state, entry.entry_version, entry.completed_by) == ("completed", 2, ready.home.lead.label)
    assert entry.receipt == {**DONE, "attestedBy": ready.home.approver.label}
    ready.work()
    assert (ready.rollup(run), ready.attention(run)) == ("completed", set())
    assert ready.effects(run) == {"b": 0, "a": 1}
    assert ready.events(run)[-1] == "completed"


def test_cmp_615_an_inverse_that_only_a_person_can_do_waits_for_one(ready: Stage) -> None:
    ready.workflow([node("a", "undo"), node("b", "by-hand")])
    run = ready.fail("a", "b")
    assert (ready.states(run), ready.rollup(run)) == ({"b": "held", "a": "waiting"}, "manual")
    assert ready.attention(run) == {("manual", "manual-action")}
    assert ready.work() == 0
    with pytest.raises(VersionConflict):
        ready.retry(run, "b")
    asked = ready.substitute(run, "b", "by-hand", **DONE).interrupt
    assert asked is not None
    ready.answer(asked)
    ready.work()
    assert (ready.states(run), ready.rollup(run)) == ({"b": "completed", "a": "completed"}, "completed")


def test_cmp_609_an_answer_about_an_entry_that_moved_on_decides_nothing(ready: Stage) -> None:
    run = rejected(ready)
    asked = ready.substitute(run, "b", "by-hand", **DONE).interrupt
    assert asked is not None
    ready.retry(run, "b")
    ready.work()
    assert ready.states(run)["b"] == "completed"
    asked.refresh_from_db()
    assert asked.state == "superseded"
    with pytest.raises(InterruptAlreadyResolved):
        ready.answer(asked)
    assert Obligation.objects.get(run=run, node_id="b").completed_by == ""


def test_cmp_107_305_registering_a_newer_type_leaves_frozen_entries_alone(ready: Stage) -> None:
    ready.chain("a")
    run = ready.fail("a")
    moved = node_type("undo", ready.sandbox.url + ready.path("elsewhere"))
    ready.register_document(moved)
    ready.work()
    assert ready.states(run) == {"a": "completed"}
    (effect,) = ready.sandbox.effects(key=ready.entry(run, "a").idempotency_key)
    assert effect["verb"] == f"{ready.name}_undo"
