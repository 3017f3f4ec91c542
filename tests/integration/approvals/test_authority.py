"""Authority is what is held now, in the plan's tenant, by another person (CMP-605 … 608)."""

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db.models.functions import Now
from django.utils import timezone

from approvals.models import Answer
from audit.errors import Forbidden, InterruptAlreadyResolved, NotFound
from audit.models import Decision, TenantGrant, User
from audit.principals import Principal
from compensation.models import NodeType, Run
from compensation.operations import acts, approving, facts, holds, runs
from compensation.operations.substitution import Replacement
from tests.support.definitions import node
from tests.support.stage import WHY, Stage, committed
from tests.support.world import user_of

Act = Callable[[Stage, Run, Principal], object]


def _retry(stage: Stage, run: Run, actor: Principal) -> object:
    return stage.retry(run, "b", actor=actor)


def _skip(stage: Stage, run: Run, actor: Principal) -> object:
    return stage.skip(run, "b", actor=actor)


def _substitute(stage: Stage, run: Run, actor: Principal) -> object:
    return acts.substitute(
        actor=actor,
        run_id=run.pk,
        seen=stage.seen(run, "b"),
        effect_id=stage.entry(run, "b").effect_id,
        justification=WHY,
        replacement=Replacement(node_type_id="other"),
    )


def _terminate(stage: Stage, run: Run, actor: Principal) -> object:
    return acts.terminate(actor=actor, run_id=run.pk, seen=stage.seen(run), justification=WHY)


def _pause(stage: Stage, run: Run, actor: Principal) -> object:
    return holds.pause_plan(actor=actor, run_id=run.pk)


def _cancel(stage: Stage, run: Run, actor: Principal) -> object:
    return runs.cancel_run(actor=actor, run_id=run.pk)


def _start(stage: Stage, run: Run, actor: Principal) -> object:
    return acts.start(actor=actor, run_id=run.pk)


def _report(stage: Stage, run: Run, actor: Principal) -> object:
    return facts.report_facts(actor=actor, run_id=run.pk, facts=[committed("c")])


def _answer(stage: Stage, run: Run, actor: Principal) -> object:
    return stage.answer(stage.question(run), actor=actor)


ACTS: dict[str, Act] = {
    "compensation:retry": _retry,
    "compensation:skip": _skip,
    "compensation:substitute": _substitute,
    "compensation:terminate": _terminate,
    "compensation:pause": _pause,
    "compensation:start": _start,
    "runs:cancel": _cancel,
    "facts:write": _report,
    "approvals:respond": _answer,
}
EACH_ACT = pytest.mark.parametrize("action", ACTS)


@pytest.fixture
def plan(stage: Stage) -> tuple[Stage, Run]:
    """b failed and may be acted upon; a waits for an approval."""
    stage.register("undo")
    stage.register("other")
    stage.workflow([node("a", "undo", requiresApproval=True), node("b", "undo"), node("c")])
    stage.fault("undo", "reject", times=1)
    run = stage.fail("a", "b")
    stage.work()
    assert stage.states(run) == {"b": "failed", "a": "awaiting_approval"}
    return stage, run


def picture(stage: Stage, run: Run) -> object:
    """All that an act might change."""
    run.refresh_from_db()
    return stage.states(run), stage.rollup(run), stage.plan(run).plan_version, stage.attention(run), run.status


@EACH_ACT
def test_cmp_605_without_the_permission_nothing_changes_and_the_refusal_is_on_record(
    plan: tuple[Stage, Run], action: str
) -> None:
    stage, run = plan
    before = picture(stage, run)
    with pytest.raises(Forbidden):
        ACTS[action](stage, run, stage.home.viewer)
    assert picture(stage, run) == before
    (row,) = stage.decisions(action=action, allowed=False)
    assert (row.principal, row.reason, row.run_id) == (stage.home.viewer.label, "authority-denied", run.pk)
    if action != "facts:write":
        assert stage.payloads(run, "authorization.decided")[-1]["allowed"] is False


@EACH_ACT
def test_cmp_606_607_another_tenants_run_does_not_exist_and_leaves_no_row(plan: tuple[Stage, Run], action: str) -> None:
    stage, run = plan
    stranger = Stage(stage.sandbox)
    before, rows = picture(stage, run), Decision.objects.count()
    for actor in (stranger.home.lead, stranger.home.approver, stranger.home.service):
        with pytest.raises(NotFound) as there:
            ACTS[action](stage, run, actor)
        assert there.value.message == NotFound().message
    assert (picture(stage, run), Decision.objects.count()) == (before, rows)
    stranger.close()


def test_cmp_607_an_effect_of_another_run_is_not_of_this_one(plan: tuple[Stage, Run]) -> None:
    stage, run = plan
    other = stage.fail("b")
    foreign = stage.entry(other, "b").effect_id
    for effect_id in (foreign, "0" * 64):
        with pytest.raises(NotFound):
            acts.retry(actor=stage.home.operator, run_id=run.pk, seen=stage.seen(run, "b"), effect_id=effect_id)
    with pytest.raises(NotFound):
        acts.retry(actor=stage.home.operator, run_id=uuid.uuid4(), seen=stage.seen(run, "b"), effect_id=foreign)
    assert stage.decisions(action="compensation:retry") == []


def as_superuser(stage: Stage) -> Principal:
    return Principal(tenant=stage.home.tenant, user=User.objects.create_superuser(f"{stage.name}-root"))


def with_model_level_grant(stage: Stage) -> Principal:
    user = User.objects.create(username=f"{stage.name}-model")
    user.user_permissions.set(Permission.objects.filter(codename="retry"))
    return Principal(tenant=stage.home.tenant, user=user)


def expired(stage: Stage) -> Principal:
    grants = TenantGrant.objects.filter(content_object=stage.home.tenant, permission__codename="retry")
    grants.update(expires_at=Now() - timedelta(seconds=1))
    return stage.home.operator


def inactive(stage: Stage) -> Principal:
    User.objects.filter(pk=user_of(stage.home.operator).pk).update(is_active=False)
    return stage.home.operator


def elsewhere(stage: Stage) -> Principal:
    """An operator, of another tenant only."""
    other = Stage(stage.sandbox)
    return Principal(tenant=stage.home.tenant, user=other.home.operator.user)


def nobody(stage: Stage) -> Principal:
    return Principal(tenant=stage.home.tenant, user=None)


def key_without_scope(stage: Stage) -> Principal:
    return stage.home.key_of(stage.home.operator, ["runs:read", "compensation:skip"])


def key_beyond_its_owner(stage: Stage) -> Principal:
    return stage.home.key_of(stage.home.viewer, ["compensation:retry"])


@pytest.mark.parametrize(
    "who",
    [
        as_superuser,
        with_model_level_grant,
        expired,
        inactive,
        elsewhere,
        nobody,
        key_without_scope,
        key_beyond_its_owner,
    ],
)
def test_cmp_605_authority_by_accident_denies(plan: tuple[Stage, Run], who: Callable[[Stage], Principal]) -> None:
    stage, run = plan
    actor = who(stage)
    with pytest.raises(Forbidden):
        stage.retry(run, "b", actor=actor)
    assert stage.states(run)["b"] == "failed"
    assert [row.allowed for row in stage.decisions(action="compensation:retry")] == [False]


def test_cmp_605_an_unexpired_grant_and_a_key_with_the_scope_allow(plan: tuple[Stage, Run]) -> None:
    stage, run = plan
    grants = TenantGrant.objects.filter(content_object=stage.home.tenant, permission__codename="retry")
    grants.update(expires_at=timezone.now() + timedelta(hours=1))
    key = stage.home.key_of(stage.home.operator, ["compensation:retry"])
    stage.retry(run, "b", actor=key)
    (row,) = stage.decisions(action="compensation:retry")
    owner = f"user:{user_of(stage.home.operator).pk}"
    assert (row.allowed, row.principal, row.principal_kind, row.on_behalf_of) == (True, key.label, "api_key", owner)


# -- separation of duties


def both(stage: Stage) -> None:
    """Every approver is also an operator and a lead: the role is not what bars."""
    for person in (stage.home.approver, stage.home.operator, stage.home.lead):
        for role in ("approver", "operator", "lead"):
            group = TenantGrant.objects.filter(group__name=f"{stage.name}:{role}").values_list("group", flat=True)[0]
            user_of(person).groups.add(group)


def test_cmp_608_who_started_the_unwind_by_hand_cannot_approve_it(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", requiresApproval=True)
    both(stage)
    run = stage.commit("a")
    stage.report(run, {"factId": "done", "type": "run.completed"})
    acts.start(actor=stage.home.operator, run_id=run.pk)
    refuse_then_accept(stage, run, stage.home.operator)


def test_cmp_608_who_cancelled_the_run_cannot_approve_its_unwind(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", requiresApproval=True)
    both(stage)
    run = stage.commit("a")
    runs.cancel_run(actor=stage.home.operator, run_id=run.pk)
    refuse_then_accept(stage, run, stage.home.operator)


def test_cmp_608_who_retried_after_a_denial_cannot_approve(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", requiresApproval=True)
    both(stage)
    run = stage.fail("a")
    stage.reject(run)
    stage.retry(run, "a", actor=stage.home.operator)
    refuse_then_accept(stage, run, stage.home.operator)


def test_cmp_608_who_substituted_cannot_approve(stage: Stage) -> None:
    stage.register("undo")
    stage.register("other")
    stage.chain("a", requiresApproval=True)
    both(stage)
    run = stage.fail("a")
    stage.substitute(run, "a", "other")
    refuse_then_accept(stage, run, stage.home.lead)


def test_cmp_608_who_asked_to_waive_cannot_approve_that(stage: Stage) -> None:
    stage.register("undo")
    stage.chain("a", waiveRequiresApproval=True)
    both(stage)
    run = stage.fail("a")
    stage.skip(run, "a")
    refuse_then_accept(stage, run, stage.home.lead)
    assert stage.states(run) == {"a": "skipped"}


def refuse_then_accept(stage: Stage, run: Run, barred: Principal) -> None:
    """Neither the person nor an API key of theirs; then somebody else."""
    question, before = stage.question(run), stage.states(run)
    for actor in (barred, stage.home.key_of(barred, ["approvals:respond"])):
        with pytest.raises(Forbidden, match="may not answer"):
            stage.answer(question, actor=actor)
    rows = stage.decisions(action="approvals:respond", allowed=False)
    assert [row.reason for row in rows] == ["separation-of-duties"] * 2
    assert (stage.states(run), question.votes.count()) == (before, 0)
    stage.answer(question)
    question.refresh_from_db()
    assert question.state == "approved"


def test_cmp_608_quorum_counts_distinct_people_each_once(stage: Stage) -> None:
    stage.register("undo")
    NodeType.objects.filter(tenant=stage.home.tenant, node_type_id="undo").update(quorum=2)
    stage.chain("a", requiresApproval=True)
    run = stage.fail("a")
    question = stage.approve(run)
    assert (question.quorum, question.state, stage.states(run)) == (2, "open", {"a": "awaiting_approval"})
    for again in (stage.home.approver, stage.home.key_of(stage.home.approver, ["approvals:respond"])):
        with pytest.raises(InterruptAlreadyResolved):
            stage.answer(question, actor=again)
    assert stage.work() == 0
    stage.answer(question, actor=stage.home.second_approver)
    assert stage.states(run) == {"a": "ready"}
    assert len(stage.decisions(action="approvals:respond", allowed=True)) == 2
    assert stage.events(run, "approval.") == ["granted"]


def test_cmp_608_one_rejection_rejects_whatever_the_quorum(stage: Stage) -> None:
    stage.register("undo")
    NodeType.objects.filter(tenant=stage.home.tenant, node_type_id="undo").update(quorum=2)
    stage.chain("a", requiresApproval=True)
    run = stage.fail("a")
    question = stage.approve(run)
    stage.answer(question, Answer.REJECT, actor=stage.home.second_approver)
    assert stage.states(run) == {"a": "failed"}


def test_cmp_608_each_holds_the_authority_when_the_quorum_closes(stage: Stage) -> None:
    stage.register("undo")
    NodeType.objects.filter(tenant=stage.home.tenant, node_type_id="undo").update(quorum=2)
    stage.chain("a", requiresApproval=True)
    run = stage.fail("a")
    question = stage.approve(run)
    user_of(stage.home.approver).groups.clear()
    stage.answer(question, actor=stage.home.second_approver)
    question.refresh_from_db()
    assert (question.state, stage.states(run)) == ("open", {"a": "awaiting_approval"})


def test_cmp_602_a_reply_to_no_question_is_not_found(stage: Stage) -> None:
    reply = approving.Reply(answer=Answer.ACCEPT, digest="0" * 64, plan_version=1)
    with pytest.raises(NotFound):
        approving.resolve_interrupt(actor=stage.home.approver, interrupt_id=uuid.uuid4(), reply=reply)
