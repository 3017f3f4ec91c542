"""The restricted querysets: grants on the tenant, a workflow or a plan, now and unexpired (CMP-605)."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils import timezone

from audit.models import Membership, Tenant, TenantGrant, User
from audit.principals import Principal
from compensation.models import Plan, PlanGrant, Run, Workflow, WorkflowGrant
from compensation.queries import access
from compensation.queries.inbox import inbox, waiting_count
from tests.integration.api.conftest import Hall
from tests.support.stage import committed

GRANTS = {Tenant: TenantGrant, Workflow: WorkflowGrant, Plan: PlanGrant}


def newcomer(hall: Hall, name: str = "newcomer", tenant: Tenant | None = None) -> Principal:
    """A member without any grant."""
    user = User.objects.create(username=f"{hall.stage.name}-{name}")
    home = tenant or hall.stage.home.tenant
    Membership.objects.create(tenant=home, user=user)
    return Principal(tenant=home, user=user)


def give(principal: Principal, codename: str, place: models.Model, *, hours: int = 1) -> None:
    """Grant to a group of their own, until some hours from now."""
    assert principal.user is not None
    group, _ = Group.objects.get_or_create(name=f"only-{principal.user.username}")
    principal.user.groups.add(group)
    content_type = ContentType.objects.get_for_model(type(place))
    permission = Permission.objects.get(content_type=content_type, codename=codename)
    GRANTS[type(place)].objects.create(
        group=group, permission=permission, content_object=place, expires_at=timezone.now() + timedelta(hours=hours)
    )


def seen(principal: Principal) -> set[Run]:
    return set(access.visible_runs(principal))


def test_nothing_is_seen_without_a_grant(hall: Hall) -> None:
    run = hall.unwinding(requiresApproval=True)
    nobody = newcomer(hall)
    assert seen(nobody) == set()
    assert not access.visible_workflows(nobody).exists()
    assert not access.visible_node_types(nobody).exists()
    assert not access.visible_interrupts(nobody).exists()
    assert waiting_count(nobody) == 0
    assert not access.may(nobody, "view", run)


def test_a_grant_on_a_workflow_shows_its_runs_only(hall: Hall) -> None:
    run = hall.unwinding()
    hall.stage.register_document({"nodeTypeId": "other", "kind": "manual"})
    someone = newcomer(hall)
    give(someone, "view", run.workflow_version.workflow)
    assert seen(someone) == {run}
    assert access.may(someone, "view", run)
    assert not access.may(someone, "see_inputs", run)
    assert list(access.visible_workflows(someone)) == [run.workflow_version.workflow]


def test_a_grant_on_a_plan_shows_that_run_only(hall: Hall) -> None:
    run, other = hall.unwinding(), hall.stage.fail("a", "b")
    someone = newcomer(hall)
    give(someone, "view", hall.stage.plan(run))
    assert seen(someone) == {run}
    assert access.may(someone, "view", run, hall.stage.plan(run))
    assert not access.may(someone, "view", other, hall.stage.plan(other))


def test_an_expired_grant_is_none(hall: Hall) -> None:
    run = hall.unwinding()
    someone = newcomer(hall)
    for place in (hall.stage.home.tenant, run.workflow_version.workflow, hall.stage.plan(run)):
        give(someone, "view", place, hours=-1)
    assert seen(someone) == set()


def test_a_grant_in_another_tenant_is_none_here(hall: Hall) -> None:
    """CMP-605: neither a grant elsewhere, nor one elsewhere looked at from here, nor superuser-ness."""
    run = hall.unwinding()
    someone = newcomer(hall)
    give(someone, "view", hall.them.home.tenant)
    assert seen(someone) == set()
    from_there = Principal(tenant=hall.them.home.tenant, user=someone.user)
    give(from_there, "view", run.workflow_version.workflow)
    assert seen(from_there) == set()
    assert someone.user is not None
    User.objects.filter(pk=someone.user.pk).update(is_superuser=True, is_staff=True)
    fresh = Principal(tenant=hall.them.home.tenant, user=User.objects.get(pk=someone.user.pk))
    assert not access.may(fresh, "view", run)


def test_the_inbox_shows_each_kind_to_those_it_concerns(hall: Hall) -> None:
    asked = hall.unwinding(requiresApproval=True, waiveRequiresApproval=False)
    dead = hall.stage.fail("a", "b")
    hall.stage.reject(dead)
    hall.stage.report(dead, committed("a", factId="late", logicalInvocationId="a:2"))
    hall.us.lead.post("/v1/node-types/undo:hold", {"justification": "closed"})
    hall.us.operator.post(f"/v1/runs/{asked.pk}/compensation:pause", {})
    home = hall.stage.home
    approver, operator = inbox(home.approver), inbox(home.operator)
    assert {each.context_id for each in approver.approvals} == {asked.pk, dead.pk}
    assert list(operator.approvals) == []
    assert {held.scope for held in operator.held} == {"node-type", "plan"}
    assert [each.run_id for each in operator.dead_letters] == [dead.pk]
    assert [each.run_id for each in operator.uncompensated] == [dead.pk]
    shown = operator.held, operator.dead_letters, operator.uncompensated, operator.approvals
    assert operator.count == sum(len(each) for each in shown)
    assert waiting_count(home.approver) == approver.count
    assert inbox(hall.them.home.approver).count == 0


def test_an_answered_question_leaves_the_inbox_of_who_answered(hall: Hall) -> None:
    run = hall.unwinding(requiresApproval=True)
    assert len(inbox(hall.stage.home.approver).approvals) == 1
    hall.stage.approve(run)
    assert inbox(hall.stage.home.approver).approvals == []
