import uuid

import pytest

from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import links_of, text_of
from tests.support.stage import WHY, Stage
from tests.support.world import user_of


@pytest.fixture
def told(unwinding: Stage, visit: Visit) -> Stage:
    """One skip that was done and one that was refused."""
    unwinding.fault("undo", "reject")
    run = unwinding.fail("a", "b")
    unwinding.work()
    unwinding.skip(run, "a")
    forced = {"plan_version": 1, "state": "failed", "justification": "let me do it as well"}
    visit(unwinding.home.operator).post("skip", run.pk, unwinding.entry(run, "b").effect_id, **forced)
    return unwinding


def sequences(answer: object) -> list[int]:
    return [each["seq"] for each in answer.context["decisions"]]  # type: ignore[attr-defined]


def test_the_record_names_people_acts_and_refusals(told: Stage, visit: Visit) -> None:
    """CMP-604, 606."""
    page = visit(told.home.auditor).get("decisions")
    words = text_of(page)
    assert sequences(page) == sorted(sequences(page), reverse=True)
    assert f"{told.home.lead.user} Skip" in words
    assert f"{told.home.operator.user} Skip compensation:skip Refused no authority to do it" in words
    assert WHY in words


def test_filters(told: Stage, visit: Visit) -> None:
    visitor = visit(told.home.auditor)
    skips = [each.seq for each in told.decisions(action="compensation:skip")][::-1]
    assert sequences(visitor.get("decisions", action="compensation:skip")) == skips
    assert sequences(visitor.get("decisions", outcome="denied")) == skips[:1]
    lead = f"user:{user_of(told.home.lead).pk}"
    assert sequences(visitor.get("decisions", principal=lead, outcome="allowed")) == skips[1:]
    run = told.decisions(action="compensation:skip")[0].run_id
    assert set(skips) <= set(sequences(visitor.get("decisions", run=str(run))))
    assert sequences(visitor.get("decisions", run=str(uuid.uuid4()))) == []
    assert sequences(visitor.get("decisions", run="no id")) == []


def test_a_decision_is_shown_whole(told: Stage, visit: Visit) -> None:
    done = told.decisions(action="compensation:skip", allowed=True)[0]
    visitor = visit(told.home.auditor)
    words = text_of(visitor.get("decision", done.seq))
    for shown in (WHY, done.resource_id, done.effect_id, done.request_id, str(done.run_id)):
        assert shown in words
    assert visitor.get("decision", 10_000_000).status_code == 404


@pytest.mark.parametrize("name", ["viewer", "operator", "lead", "approver", "admin"])
def test_the_record_is_for_those_who_may_read_it_and_a_refusal_is_on_it(told: Stage, visit: Visit, name: str) -> None:
    """CMP-606."""
    visitor = visit(getattr(told.home, name))
    assert visitor.get("decisions").status_code == 403
    assert visitor.path("decisions") not in links_of(visitor.get("inbox"))
    assert visitor.get("decision", 1).status_code == 403
    refused = told.decisions(action="audit:read")
    assert [each.allowed for each in refused] == [False, False]
