import pytest

from compensation.models import Run
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import form_of, text_of
from tests.support.stage import Stage

WHY = "the supplier has already credited us"


@pytest.fixture
def failed(unwinding: Stage) -> Run:
    unwinding.fault("undo", "reject", times=1)
    run = unwinding.fail("a", "b")
    unwinding.work()
    return run


def test_the_consequence_is_said_with_the_rollup_it_leads_to(unwinding: Stage, failed: Run, visit: Visit) -> None:
    words = text_of(visit(unwinding.home.lead).get("skip", failed.pk, unwinding.entry(failed, "b").effect_id))
    assert "What b did stays done." in words
    assert "1 of 2 committed effects is undone: a." in words
    assert "partly undone (partial)" in words


def test_a_skip_leaves_the_entry_for_ever(unwinding: Stage, failed: Run, visit: Visit) -> None:
    effect = unwinding.entry(failed, "b").effect_id
    visit(unwinding.home.lead).send("skip", failed.pk, effect, justification=WHY)
    assert unwinding.states(failed)["b"] == "skipped"
    assert unwinding.decisions(action="compensation:skip")[-1].justification == WHY


@pytest.mark.parametrize("typed", ["", "too short"])
def test_a_short_justification_is_a_400_that_keeps_what_was_typed(
    unwinding: Stage, failed: Run, visit: Visit, typed: str
) -> None:
    """CMP-609: the reason is required in every channel."""
    effect = unwinding.entry(failed, "b").effect_id
    answer = visit(unwinding.home.lead).send("skip", failed.pk, effect, justification=typed)
    assert answer.status_code == 400
    assert form_of(answer)["justification"] == typed
    assert "expected 10 to 4000 characters" in text_of(answer)
    assert unwinding.states(failed)["b"] == "failed"


def test_where_a_waive_needs_approval_that_is_announced_and_only_asked(asking: Stage, visit: Visit) -> None:
    """CMP-609, 610."""
    run = asking.fail("a")
    asking.work()
    effect = asking.entry(run, "a").effect_id
    visitor = visit(asking.home.lead)
    assert "Another person must approve leaving this undone." in text_of(visitor.get("skip", run.pk, effect))
    visitor.send("skip", run.pk, effect, justification=WHY)
    assert asking.states(run) == {"a": "awaiting_approval"}
    words = text_of(visitor.get("entry", run.pk, effect))
    assert "Another person must approve it first; until then nothing changes." in words
    assert "Another person has already been asked to approve this." in words


def test_an_operator_may_not_skip(unwinding: Stage, failed: Run, visit: Visit) -> None:
    effect = unwinding.entry(failed, "b").effect_id
    visitor = visit(unwinding.home.operator)
    assert "You may not skip an inverse action (skip)." in text_of(visitor.get("skip", failed.pk, effect))
    assert visitor.post("skip", failed.pk, effect, plan_version=1, state="failed", justification=WHY).status_code == 403
    assert unwinding.states(failed)["b"] == "failed"
