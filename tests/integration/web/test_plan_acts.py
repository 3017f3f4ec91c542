"""Start, cancel, pause, resume and terminate: the acts on a run and its plan."""

from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import form_of, text_of
from tests.support.stage import Stage

WHY = "it was settled by telephone"
DONE = {"factId": "done", "type": "run.completed"}


def test_start_shows_exactly_what_would_be_minted_and_bars_the_starter(asking: Stage, visit: Visit) -> None:
    """CMP-201, 608."""
    run = asking.commit("a", "b")
    asking.report(run, DONE)
    visitor = visit(asking.home.operator)
    page = visitor.get("start", run.pk)
    words = text_of(page)
    assert "you may not approve any of its inverses" in words
    assert words.index("1 b undo") < words.index("2 a undo")
    visitor.send("start", run.pk, justification=WHY)
    assert asking.home.operator.user is not None
    assert asking.question(run).excluded == [asking.home.operator.user.pk]
    second = visitor.post("start", run.pk, **form_of(page))
    assert second.status_code == 409
    assert "already has a plan" in text_of(second)


def test_start_says_why_not_while_the_run_goes_on(unwinding: Stage, visit: Visit) -> None:
    run = unwinding.commit("a")
    assert "The run is still 'running'." in text_of(visit(unwinding.home.operator).get("start", run.pk))


def test_cancel_says_what_the_policy_will_do_and_does_it(asking: Stage, visit: Visit) -> None:
    """CMP-407."""
    run = asking.commit("a")
    visitor = visit(asking.home.operator)
    assert "are undone, in order" in text_of(visitor.get("cancel", run.pk))
    assert visitor.send("cancel", run.pk).status_code == 302
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert asking.states(run) == {"a": "awaiting_approval"}


def test_pause_and_resume_delay_and_change_nothing(asking: Stage, visit: Visit) -> None:
    """CMP-409."""
    run = asking.fail("a", "b")
    visitor = visit(asking.home.operator)
    before = asking.states(run)
    visitor.send("pause", run.pk, justification="waiting for the supplier")
    assert asking.plan(run).held_reason == "waiting for the supplier"
    words = text_of(visitor.get("run", run.pk))
    assert "This unwind is paused: waiting for the supplier" in words
    assert "The plan is already held." in words
    assert asking.states(run) == before
    visitor.send("resume", run.pk)
    assert asking.plan(run).held_at is None


def test_terminate_lists_what_stays_and_needs_its_reason(unwinding: Stage, visit: Visit) -> None:
    """CMP-609."""
    unwinding.fault("undo", "reject")
    run = unwinding.fail("a", "b")
    unwinding.work()
    visitor = visit(unwinding.home.lead)
    words = text_of(visitor.get("terminate", run.pk))
    assert "None of 2 committed effects is undone." in words
    assert "nothing undone (failed)" in words
    assert visitor.send("terminate", run.pk, justification="no").status_code == 400
    assert not unwinding.plan(run).terminated
    assert visitor.send("terminate", run.pk, justification=WHY).status_code == 302
    assert unwinding.plan(run).terminated
    again = visitor.get("terminate", run.pk)
    assert form_of(again) == {}
    assert "terminated for ever" in text_of(again)


def test_terminate_announces_the_second_person(asking: Stage, visit: Visit) -> None:
    """CMP-609, 610."""
    run = asking.fail("a", "b")
    visitor = visit(asking.home.lead)
    assert "Another person must approve leaving b, a undone." in text_of(visitor.get("terminate", run.pk))
    visitor.send("terminate", run.pk, justification=WHY)
    assert not asking.plan(run).terminated
    assert "A question about the whole plan is open" in text_of(visitor.get("run", run.pk))


def test_a_viewer_may_do_none_of_them(asking: Stage, visit: Visit) -> None:
    """CMP-606, 612."""
    run = asking.fail("a", "b")
    visitor = visit(asking.home.viewer)
    for name in ("cancel", "pause", "resume", "terminate", "start"):
        assert form_of(visitor.get(name, run.pk)) == {}, name
        forced = visitor.post(name, run.pk, plan_version=1, state="", justification=WHY)
        assert forced.status_code == 403, name
    assert not any(each.allowed for each in asking.decisions(run_id=run.pk))
