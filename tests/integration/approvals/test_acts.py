"""The four acts on outcomes: on what they are, on what was seen, and what they leave (CMP-604, CMP-609, CMP-610)."""

import pytest

from audit.errors import InterruptAlreadyResolved, NotFound, ValidationFailed, VersionConflict
from compensation.connectors.http import CallResult
from compensation.models import Obligation, Run
from compensation.operations import acts
from compensation.operations.substitution import Replacement
from tests.support.calls import answered, cut, give_back, take
from tests.support.definitions import node
from tests.support.stage import WHY, Stage

RETRYABLE = {"uncertain", "held", "failed"}
SETTLED = {"completed", "skipped", "terminated", "irreversible"}


def _waiting(stage: Stage) -> Run:
    stage.chain("a", "b")
    return stage.fail("a", "b")


def _awaiting_approval(stage: Stage) -> Run:
    stage.chain("a", requiresApproval=True, waiveRequiresApproval=False)
    return stage.fail("a")


def _ready(stage: Stage) -> Run:
    stage.chain("a")
    return stage.fail("a")


def _running(stage: Stage) -> Run:
    run = _ready(stage)
    assert len(take()) == 1
    return run


def _retry_scheduled(stage: Stage) -> Run:
    stage.fault("undo", "fail", times=1)
    stage.chain("a", retry={"maxAttempts": 2, "backoffMs": 60_000})
    return _worked(stage)


def _uncertain(stage: Stage) -> Run:
    stage.register("undo", idempotency={"header": "Idempotency-Key", "honoured": False})
    stage.fault("undo", "drop_before", times=1)
    stage.chain("a")
    return _worked(stage)


def _held(stage: Stage) -> Run:
    stage.fault("undo", "reject", status=401, times=1)
    stage.chain("a")
    return _worked(stage)


def _completed(stage: Stage) -> Run:
    stage.chain("a")
    return _worked(stage)


def _failed(stage: Stage) -> Run:
    stage.fault("undo", "reject", times=1)
    stage.chain("a")
    return _worked(stage)


def _skipped(stage: Stage) -> Run:
    run = _waiting(stage)
    stage.skip(run, "a")
    return run


def _terminated(stage: Stage) -> Run:
    run = _waiting(stage)
    stage.terminate(run)
    return run


def _irreversible(stage: Stage) -> Run:
    stage.workflow([node("a", irreversibleEffect=True), node("b", "undo")])
    return stage.fail("a", "b")


def _worked(stage: Stage) -> Run:
    run = stage.fail("a")
    stage.work()
    return run


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.register("undo")
    stage.register("other")
    return stage


BROUGHT_TO = {
    "waiting": _waiting,
    "awaiting_approval": _awaiting_approval,
    "ready": _ready,
    "running": _running,
    "retry_scheduled": _retry_scheduled,
    "uncertain": _uncertain,
    "held": _held,
    "completed": _completed,
    "failed": _failed,
    "skipped": _skipped,
    "terminated": _terminated,
    "irreversible": _irreversible,
}
"""Each brings entry `a` of a new run into a state, by what really leads there."""


def refused(stage: Stage, run: Run, act: str) -> bool:
    """Whether the act on entry `a`, as it is seen now, is a version conflict; then nothing was changed."""
    pictured, rows = list(Obligation.objects.filter(run=run).values()), len(stage.decisions())
    try:
        _act(stage, run, stage.entry(run, "a").effect_id, act, stage.seen(run, "a"))
    except VersionConflict:
        unchanged = list(Obligation.objects.filter(run=run).values()), len(stage.decisions())
        return unchanged == (pictured, rows)
    return False


@pytest.mark.parametrize("state", BROUGHT_TO)
@pytest.mark.parametrize("act", ["retry", "skip", "substitute"])
def test_cmp_609_each_act_is_for_certain_states(ready: Stage, act: str, state: str) -> None:
    run = BROUGHT_TO[state](ready)
    assert ready.states(run)["a"] == state
    allowed = RETRYABLE if act == "retry" else set(BROUGHT_TO) - SETTLED - {"running"}
    assert refused(ready, run, act) == (state not in allowed)


@pytest.mark.parametrize("act", ["retry", "skip", "substitute", "terminate"])
def test_cmp_609_what_was_seen_must_still_be_so(ready: Stage, act: str) -> None:
    run = _failed(ready)
    entry, plan = ready.entry(run, "a"), ready.plan(run)
    for seen in (acts.Seen(plan_version=2, state="failed"), acts.Seen(plan_version=1, state="uncertain")):
        if act == "terminate" and seen.plan_version == 1:
            continue
        with pytest.raises(VersionConflict) as told:
            _act(ready, run, entry.effect_id, act, seen)
        assert told.value.details["planVersion"] == plan.plan_version
        assert told.value.status == 409
    assert ready.states(run) == {"a": "failed"}
    assert ready.decisions(action=f"compensation:{act}") == []


def _act(stage: Stage, run: Run, effect_id: str, act: str, seen: acts.Seen, why: str = WHY) -> object:
    lead = stage.home.lead
    if act == "retry":
        return acts.retry(actor=lead, run_id=run.pk, seen=seen, effect_id=effect_id)
    if act == "skip":
        return acts.skip(actor=lead, run_id=run.pk, seen=seen, effect_id=effect_id, justification=why)
    if act == "terminate":
        return acts.terminate(actor=lead, run_id=run.pk, seen=seen, justification=why)
    other = Replacement(node_type_id="other")
    return acts.substitute(
        actor=lead, run_id=run.pk, seen=seen, effect_id=effect_id, justification=why, replacement=other
    )


@pytest.mark.parametrize("act", ["skip", "substitute", "terminate"])
@pytest.mark.parametrize("why", ["", "   ", "too short", "x" * 4001])
def test_cmp_609_a_justification_is_required(ready: Stage, act: str, why: str) -> None:
    run = _failed(ready)
    seen = acts.Seen(plan_version=1, state="failed")
    with pytest.raises(ValidationFailed) as told:
        _act(ready, run, ready.entry(run, "a").effect_id, act, seen, why)
    assert told.value.details["errors"][0]["pointer"] == "/justification"
    assert ready.states(run) == {"a": "failed"}


@pytest.mark.parametrize("act", ["retry", "skip", "substitute", "terminate"])
def test_cmp_609_acts_need_a_plan(ready: Stage, act: str) -> None:
    ready.chain("a")
    run = ready.commit("a")
    with pytest.raises(NotFound):
        _act(ready, run, "0" * 64, act, acts.Seen(plan_version=1, state="failed"))


@pytest.mark.parametrize("act", ["retry", "skip", "substitute"])
def test_cmp_609_the_same_act_twice_is_one_effect_and_one_conflict(ready: Stage, act: str) -> None:
    run = _failed(ready)
    effect_id, seen = ready.entry(run, "a").effect_id, acts.Seen(plan_version=1, state="failed")
    _act(ready, run, effect_id, act, seen)
    with pytest.raises(VersionConflict):
        _act(ready, run, effect_id, act, seen)
    assert len(ready.decisions(action=f"compensation:{act}")) == 1


@pytest.mark.parametrize("act", ["retry", "skip", "substitute", "terminate"])
def test_cmp_604_each_act_is_one_row_bound_to_its_plan_version_and_in_the_log(ready: Stage, act: str) -> None:
    run = _failed(ready)
    effect_id = ready.entry(run, "a").effect_id
    _act(ready, run, effect_id, act, acts.Seen(plan_version=1, state="failed"))
    (row,) = ready.decisions(action=f"compensation:{act}")
    assert (row.allowed, row.run_id, row.principal) == (True, run.pk, ready.home.lead.label)
    assert row.plan_version == (2 if act == "substitute" else 1)
    assert row.effect_id == ("" if act == "terminate" else effect_id)
    assert row.justification == ("" if act == "retry" else WHY)
    logged = ready.payloads(run, "authorization.decided")[-1]
    assert (logged["action"], logged["resource"]) == (row.action, row.resource_id)
    assert f"/plan/v{row.plan_version}" in row.resource_id


def test_cmp_609_skip_is_final_did_not_complete_and_lets_the_rest_go_on(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.fail("a", "b")
    ready.skip(run, "b")
    assert ready.states(run) == {"b": "skipped", "a": "ready"}
    ready.work()
    assert (ready.rollup(run), ready.effects(run)) == ("partial", {"b": 0, "a": 1})
    assert "failed" not in ready.events(run)


def test_cmp_609_skip_withdraws_what_was_asked_about_the_entry(ready: Stage) -> None:
    run = _awaiting_approval(ready)
    question = ready.question(run)
    ready.skip(run, "a")
    question.refresh_from_db()
    assert (question.state, ready.states(run)) == ("withdrawn", {"a": "skipped"})
    assert ready.payloads(run, "interrupt.resolved")[-1]["state"] == "withdrawn"
    assert ready.rollup(run) == "failed"


def test_cmp_609_terminate_asks_when_any_remaining_entry_is_not_to_be_waived_alone(ready: Stage) -> None:
    ready.workflow([node("a", "undo", waiveRequiresApproval=True), node("b", "undo")])
    run = ready.fail("a", "b")
    asked = ready.terminate(run).interrupt
    assert asked is not None
    assert ready.states(run) == {"b": "ready", "a": "waiting"}
    ready.answer(asked)
    assert (ready.states(run), ready.rollup(run)) == ({"b": "terminated", "a": "terminated"}, "failed")
    assert ready.plan(run).terminated
    rows = {row.action for row in ready.decisions(run_id=run.pk, allowed=True)}
    assert rows == {"compensation:terminate", "approvals:respond"}


def test_cmp_610_a_terminate_question_does_not_outlive_a_retry_of_what_it_did_not_cover(ready: Stage) -> None:
    ready.workflow([node("a", "undo", requiresApproval=True), node("b", "undo")])
    ready.fault("undo", "reject", times=1)
    run = ready.fail("a", "b")
    ready.work()
    asked = ready.terminate(run).interrupt
    assert asked is not None
    assert ready.states(run) == {"b": "failed", "a": "awaiting_approval"}
    ready.retry(run, "b")
    asked.refresh_from_db()
    assert asked.state == "void"
    with pytest.raises(InterruptAlreadyResolved):
        ready.answer(asked)
    assert ready.states(run) == {"b": "ready", "a": "awaiting_approval"}


def test_cmp_610_a_terminate_question_does_not_outlive_a_substitution(ready: Stage) -> None:
    ready.workflow([node("a", "undo", waiveRequiresApproval=True), node("b", "undo")])
    run = ready.fail("a", "b")
    asked = ready.terminate(run).interrupt
    assert asked is not None
    ready.substitute(run, "b", "other")
    asked.refresh_from_db()
    assert (asked.state, ready.plan(run).terminated) == ("void", False)


def test_cmp_609_terminate_lets_a_call_in_flight_finish_and_records_it_truthfully(ready: Stage) -> None:
    ready.chain("a", "b")
    run = ready.fail("a", "b")
    calls = take()
    ready.terminate(run)
    assert ready.states(run) == {"b": "running", "a": "terminated"}
    give_back(*calls)
    assert ready.states(run) == {"b": "completed", "a": "terminated"}
    assert (ready.rollup(run), ready.plan(run).terminated) == ("partial", True)


@pytest.mark.parametrize(
    ("result", "state", "reason"),
    [(answered(422), "failed", "retries-exhausted"), (cut(), "terminated", "operator-terminated")],
)
def test_cmp_609_nothing_is_presented_again_in_a_terminated_plan(
    ready: Stage, result: CallResult, state: str, reason: str
) -> None:
    ready.chain("a", "b", policy={"exhaustedDisposition": "manual-intervention"})
    run = ready.fail("a", "b")
    calls = take()
    ready.terminate(run)
    give_back(*calls, result=result)
    entry = ready.entry(run, "b")
    assert (entry.state, entry.reason) == (state, reason)
    assert (ready.rollup(run), ready.work()) == ("failed", 0), "nobody could resolve a call for a person any more"
