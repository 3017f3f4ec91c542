import hashlib

from approvals.models import Interrupt, InterruptState
from compensation.models import Run
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import form_of, text_of
from tests.support.stage import Stage

REASON = "the customer cancelled the order"


def waiting(stage: Stage) -> tuple[Run, Interrupt]:
    run = stage.fail("a", "b")
    stage.work()
    return run, stage.question(run)


def test_the_frozen_entry_is_shown_byte_for_byte_with_its_digest_recomputed(asking: Stage, visit: Visit) -> None:
    """CMP-602."""
    _, question = waiting(asking)
    answer = visit(asking.home.approver).get("approval", question.pk)
    words = text_of(answer)
    assert question.artifact in words
    assert hashlib.sha256(question.artifact.encode()).hexdigest() == question.digest
    assert "Recomputed for this page: the same" in words
    assert form_of(answer)["digest"] == question.digest
    assert form_of(answer)["plan_version"] == "1"


def test_it_says_what_each_answer_and_no_answer_will_do(asking: Stage, visit: Visit) -> None:
    _, question = waiting(asking)
    words = text_of(visit(asking.home.approver).get("approval", question.pk))
    for said in ("Accept:", "Reject:", "No answer:", "0 of 1", "What will run"):
        assert said in words


def test_accepting_decides_once_and_says_by_whom(asking: Stage, visit: Visit) -> None:
    """CMP-601, 604."""
    run, question = waiting(asking)
    visitor = visit(asking.home.approver)
    sent = form_of(visitor.get("approval", question.pk)) | {"action": "accept", "feedback": REASON}
    assert visitor.post("approval", question.pk, **sent).status_code == 302
    again = visitor.post("approval", question.pk, **sent)
    assert again.status_code == 409
    assert "already approved" in text_of(again)
    assert asking.home.approver.user is not None
    assert f"{asking.home.approver.user}: accept" in text_of(again)
    assert REASON in text_of(again)
    asking.work()
    assert asking.states(run)["b"] == "completed"
    assert len(asking.decisions(action="approvals:respond", allowed=True)) == 1


def test_rejecting_is_recorded_with_its_reason(asking: Stage, visit: Visit) -> None:
    """CMP-603."""
    run, question = waiting(asking)
    visit(asking.home.approver).send("approval", question.pk, action="reject", feedback=REASON)
    question.refresh_from_db()
    assert question.state == InterruptState.REJECTED
    assert asking.states(run)["b"] == "failed"
    assert asking.decisions(action="approvals:respond")[-1].justification == REASON


def test_a_stale_page_is_a_409_with_the_difference_and_keeps_the_typed_reason(asking: Stage, visit: Visit) -> None:
    """CMP-602: drift decides nothing."""
    _, question = waiting(asking)
    visitor = visit(asking.home.approver)
    stale = form_of(visitor.get("approval", question.pk)) | {"plan_version": "7", "digest": "0" * 64}
    answer = visitor.post("approval", question.pk, **stale | {"action": "accept", "feedback": REASON})
    words = text_of(answer)
    assert answer.status_code == 409
    assert "Nothing was decided" in words
    assert "0" * 64 in words
    assert question.digest in words
    assert form_of(answer)["feedback"].strip() == REASON
    assert form_of(answer)["plan_version"] == "1"
    question.refresh_from_db()
    assert question.state == InterruptState.OPEN


def test_an_answer_without_digest_or_version_is_refused(asking: Stage, visit: Visit) -> None:
    """CMP-602."""
    _, question = waiting(asking)
    answer = visit(asking.home.approver).post("approval", question.pk, action="accept", feedback=REASON)
    assert answer.status_code == 400
    question.refresh_from_db()
    assert question.state == InterruptState.OPEN


def test_who_may_not_answer_reads_why_and_a_forced_post_is_refused_and_recorded(asking: Stage, visit: Visit) -> None:
    """CMP-606, 612."""
    _, question = waiting(asking)
    operator = visit(asking.home.operator)
    page = operator.get("approval", question.pk)
    assert "Not you: you may not approve or reject an inverse action (approve_inverse)" in text_of(page)
    assert form_of(page) == {}
    forced = operator.post("approval", question.pk, action="accept", digest=question.digest, plan_version=1)
    assert forced.status_code == 403
    assert [each.allowed for each in asking.decisions(action="approvals:respond")] == [False]


def test_whoever_asked_may_not_approve_and_is_named(asking: Stage, visit: Visit) -> None:
    """CMP-608: a waive needs another person, and the page says who is barred and why."""
    run, _ = waiting(asking)
    question = asking.skip(run, "b").interrupt
    assert question is not None
    words = text_of(visit(asking.home.approver).get("approval", question.pk))
    assert (
        f"May not decide, because they asked, started it by hand, retried a denial or substituted the action: "
        f"{asking.home.lead.user}" in words
    )
    assert "What would stay not undone" in words
    assert "the supplier confirmed it by telephone" in words


def test_those_without_inputs_see_the_digest_and_not_the_text(asking: Stage, visit: Visit) -> None:
    _, question = waiting(asking)
    words = text_of(visit(asking.home.viewer).get("approval", question.pk))
    assert question.artifact not in words
    assert question.digest in words
