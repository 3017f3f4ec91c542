import pytest

from compensation.models import Run
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import form_of, text_of
from tests.support.stage import Stage, committed
from tests.support.stage import failed as failed_for_good

WHY = "the supplier has mended it"


@pytest.fixture
def failed(unwinding: Stage) -> Run:
    """A run whose only inverse was refused; the fault is gone."""
    unwinding.fault("undo", "reject", times=1)
    run = unwinding.fail("a")
    unwinding.work()
    assert unwinding.states(run) == {"a": "failed"}
    return run


def test_the_consequence_and_the_same_identity_are_read_before_typing(
    unwinding: Stage, failed: Run, visit: Visit
) -> None:
    """CMP-311, 609."""
    entry = unwinding.entry(failed, "a")
    words = text_of(visit(unwinding.home.operator).get("retry", failed.pk, entry.effect_id))
    assert "The next attempt is number 2" in words
    assert f"It sends the same key as before, {entry.idempotency_key}" in words
    assert "plan version 1" in words


def test_a_retry_is_done_recorded_and_told(unwinding: Stage, failed: Run, visit: Visit) -> None:
    effect = unwinding.entry(failed, "a").effect_id
    visitor = visit(unwinding.home.operator)
    answer = visitor.send("retry", failed.pk, effect, justification=WHY)
    assert answer["Location"] == visitor.path("entry", failed.pk, effect)
    unwinding.work()
    assert unwinding.states(failed) == {"a": "completed"}
    assert unwinding.applied(unwinding.entry(failed, "a")) == 1
    recorded = unwinding.decisions(action="compensation:retry")
    assert [each.justification for each in recorded] == [WHY]
    assert f"decision {recorded[0].seq} of the record" in text_of(visitor.get("entry", failed.pk, effect))


def test_the_second_of_two_clicks_changes_nothing_and_is_told_what_happened(
    unwinding: Stage, failed: Run, visit: Visit
) -> None:
    """CMP-609: two clicks, one effect, the second told."""
    effect = unwinding.entry(failed, "a").effect_id
    visitor = visit(unwinding.home.operator)
    sent = form_of(visitor.get("retry", failed.pk, effect)) | {"justification": WHY}
    visitor.post("retry", failed.pk, effect, **sent)
    loser = visitor.post("retry", failed.pk, effect, **sent)
    assert loser.status_code == 409
    words = text_of(loser)
    assert "not 'failed'; nothing was changed" in words
    assert f"Last on this run: {unwinding.home.operator.user} , retry" in words
    assert WHY in words
    assert len(unwinding.decisions(action="compensation:retry", allowed=True)) == 1


def test_a_stale_version_is_a_409_in_the_dialog_with_the_present_one(
    unwinding: Stage, failed: Run, visit: Visit
) -> None:
    effect = unwinding.entry(failed, "a").effect_id
    visitor = visit(unwinding.home.operator)
    sent = form_of(visitor.get("retry", failed.pk, effect)) | {"plan_version": "9", "justification": WHY}
    answer = visitor.post_part("retry", failed.pk, effect, **sent)
    assert answer.status_code == 409
    assert "<html" not in answer.content.decode()
    assert form_of(answer)["plan_version"] == "1"
    assert form_of(answer)["justification"] == WHY


def test_in_a_dialog_the_answer_stays_where_the_finger_was(unwinding: Stage, failed: Run, visit: Visit) -> None:
    effect = unwinding.entry(failed, "a").effect_id
    visitor = visit(unwinding.home.operator)
    sent = form_of(visitor.get_part("retry", failed.pk, effect)) | {"justification": WHY}
    answer = visitor.post_part("retry", failed.pk, effect, **sent)
    assert answer.status_code == 200
    assert "Retry a: done." in text_of(answer)
    assert "recourse:changed" in answer["HX-Trigger"]


@pytest.mark.parametrize("name", ["viewer", "auditor", "approver"])
def test_who_may_not_retry_sees_no_form_and_a_forced_post_is_refused(
    unwinding: Stage, failed: Run, visit: Visit, name: str
) -> None:
    """CMP-606, 612."""
    effect = unwinding.entry(failed, "a").effect_id
    visitor = visit(getattr(unwinding.home, name))
    page = visitor.get("retry", failed.pk, effect)
    assert form_of(page) == {}
    assert "You may not retry an inverse action (retry)." in text_of(page)
    forced = visitor.post("retry", failed.pk, effect, plan_version=1, state="failed", justification=WHY)
    assert forced.status_code == 403
    assert unwinding.states(failed) == {"a": "failed"}
    assert [each.allowed for each in unwinding.decisions(action="compensation:retry")] == [False]


def test_a_retry_after_a_denial_announces_the_second_person(asking: Stage, visit: Visit) -> None:
    """CMP-603, 608, 614."""
    run = asking.fail("a")
    asking.work()
    asking.reject(run)
    visitor, effect = visit(asking.home.operator), asking.entry(run, "a").effect_id
    words = text_of(visitor.get("retry", run.pk, effect))
    assert "A second person is needed." in words
    assert "It was rejected before" in words
    visitor.send("retry", run.pk, effect, justification=WHY)
    assert asking.question(run).state == "open"


def test_a_failed_mint_is_made_again(stage: Stage, visit: Visit) -> None:
    """CMP-112."""
    stage.register("undo")
    stage.chain("a")
    run = stage.begin()
    stage.report(run, committed("a", output={}), failed_for_good("end"))
    visitor = visit(stage.home.operator)
    assert "same compensation id" in text_of(visitor.get("retry_mint", run.pk))
    assert visitor.send("retry_mint", run.pk).status_code == 302
    assert [each.action for each in stage.decisions(allowed=True, run_id=run.pk)] == ["compensation:retry"]
