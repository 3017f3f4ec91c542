"""A process that dies in the midst of a person's act has done all of it or nothing of it (CMP-301, 404, 604)."""

import json
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest

from approvals.models import Interrupt
from audit.models import Decision
from compensation.models import Obligation, Plan, Run
from compensation.operations import facts
from tests.chaos.scene import END_S, STORIES, Scene
from tests.chaos.verdict import problems_of
from tests.support.processes import Program, Site
from tests.waiting import eventually

pytestmark = pytest.mark.chaos

STORY = STORIES["order-fulfilment"]


def begun(scene: Scene) -> Run:
    """A run that did all it should and has not failed yet."""
    run = scene.begin("order-fulfilment")
    facts.report_facts(actor=scene.home.service, run_id=run.pk, facts=STORY.facts[:-1])
    return run


def finished(scene: Scene) -> Run:
    """A run that ended well."""
    run = begun(scene)
    done = {"factId": "done", "type": "run.completed"}
    facts.report_facts(actor=scene.home.service, run_id=run.pk, facts=[done])
    return run


def asking(scene: Scene) -> Run:
    """A run whose unwinding has come to the refund, which an approver is asked about."""
    run = scene.fail("order-fulfilment")
    eventually(lambda: states(run)["charge-card"] == "awaiting_approval", timeout=END_S)
    return run


def refused(scene: Scene) -> Run:
    """The same, but the cancellation before it was rejected by the other system."""
    scene.sandbox.faults("/shipping/cancel", "reject", times=1)
    return asking(scene)


def replaceable(scene: Scene) -> Run:
    """A run at the refund, and a newer version of what is to release the stock after it."""
    run = asking(scene)
    (document,) = (each for each in scene.sandbox.node_types() if each["nodeTypeId"] == "sandbox.inventory.release")
    scene.register({**document, "title": "Release stock, as of now"})
    return run


@dataclass(frozen=True, kw_only=True)
class Case:
    """Where a process dies, doing what, and how the entries of the plan end after all."""

    failpoint: str
    prepare: Callable[[Scene], Run]
    act: str
    person: str
    how: Mapping[str, Any] = field(default_factory=dict)
    ends: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.act}-{self.failpoint}"


CASES = [
    Case(
        failpoint="mint-before-events", prepare=begun, act="report", person="service", how={"facts": STORY.facts[-1:]}
    ),
    Case(
        failpoint="mint-before-commit", prepare=begun, act="report", person="service", how={"facts": STORY.facts[-1:]}
    ),
    Case(failpoint="mint-before-commit", prepare=begun, act="cancel", person="service"),
    Case(failpoint="act-before-commit", prepare=finished, act="start", person="operator"),
    Case(
        failpoint="approval-before-commit",
        prepare=asking,
        act="approve",
        person="approver",
        how={"nodeId": "charge-card", "answer": "accept"},
    ),
    Case(
        failpoint="approval-before-commit",
        prepare=asking,
        act="approve",
        person="second_approver",
        how={"nodeId": "charge-card", "answer": "reject"},
        ends={"charge-card": "failed"},
    ),
    Case(
        failpoint="substitute-before-commit",
        prepare=replaceable,
        act="substitute",
        person="lead",
        how={"nodeId": "reserve-inventory", "nodeTypeId": "sandbox.inventory.release"},
    ),
    Case(
        failpoint="act-before-commit", prepare=refused, act="retry", person="operator", how={"nodeId": "book-shipment"}
    ),
    Case(
        failpoint="act-before-commit",
        prepare=asking,
        act="skip",
        person="lead",
        how={"nodeId": "charge-card"},
        ends={"charge-card": "skipped"},
    ),
    Case(
        failpoint="act-before-commit",
        prepare=asking,
        act="terminate",
        person="lead",
        ends={"charge-card": "terminated", "reserve-inventory": "terminated"},
    ),
]


def states(run: Run) -> dict[str, str]:
    """State by node id."""
    return dict(Obligation.objects.filter(run=run).values_list("node_id", "state"))


def picture(run: Run) -> dict[str, Any]:
    """All of a run that an act could change."""
    return {
        "run": Run.objects.filter(pk=run.pk).values().get(),
        "plan": Plan.objects.filter(run=run).values().first(),
        "entries": list(Obligation.objects.filter(run=run).order_by("position").values()),
        "questions": list(Interrupt.objects.filter(context_id=run.pk).order_by("pk").values()),
        "decisions": list(Decision.objects.filter(tenant=run.tenant).order_by("seq").values_list("seq", "action")),
    }


def do(site: Site, run: Run, case: Case, *, failpoint: str = "") -> Program:
    """The act as a process of its own, over when this returns."""
    what = [case.act, run.tenant.slug, case.person, str(run.pk), json.dumps(case.how)]
    process = site.start("-m", "tests.chaos.acting", *what, failpoint=failpoint)
    process.wait()
    return process


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cmp_604_an_act_whose_process_dies_before_its_commit_has_not_happened_and_can_be_done_again(
    site: Site, scene: Scene, relief: AbstractContextManager[Program], case: Case
) -> None:
    with relief:
        run = case.prepare(scene)
        before = picture(run)
        died = do(site, run, case, failpoint=case.failpoint)
        assert died.code == -signal.SIGKILL, died.said
        assert picture(run) == before
        again = do(site, run, case)
        assert again.code == 0, again.said
        scene.bring_to_an_end()
    assert problems_of(scene.home.tenant, scene.sandbox) == []
    undone = dict.fromkeys(("charge-card", "book-shipment", "reserve-inventory"), "completed")
    assert states(run) == {**undone, "send-receipt": "irreversible", **case.ends}


def test_cmp_604_an_answer_whose_process_dies_after_its_commit_has_happened_and_needs_nobody(
    site: Site, scene: Scene, relief: AbstractContextManager[Program]
) -> None:
    case = next(case for case in CASES if case.act == "approve")
    with relief:
        run = asking(scene)
        assert do(site, run, case, failpoint="approval-after-commit").code == -signal.SIGKILL
        assert not Interrupt.objects.filter(context_id=run.pk, state="open").exists()
        eventually(scene.all_ended, timeout=END_S)
    assert problems_of(scene.home.tenant, scene.sandbox) == []
    assert states(run)["charge-card"] == "completed"
