import pytest

from compensation.models import Run
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import form_of, text_of
from tests.support import definitions
from tests.support.stage import Stage

WHY = "the old endpoint was switched off"


@pytest.fixture
def failed(unwinding: Stage) -> Run:
    unwinding.fault("undo", "reject")
    run = unwinding.fail("a")
    unwinding.work()
    unwinding.register("other")
    return run


def test_another_node_type_makes_the_next_plan_version(unwinding: Stage, failed: Run, visit: Visit) -> None:
    """CMP-305, 311, 609."""
    effect = unwinding.entry(failed, "a").effect_id
    visitor = visit(unwinding.home.lead)
    assert "The plan becomes version 2" in text_of(visitor.get("substitute", failed.pk, effect))
    visitor.send("substitute", failed.pk, effect, node_type_id="other", justification=WHY)
    unwinding.work()
    assert unwinding.states(failed) == {"a": "completed"}
    words = text_of(visitor.get("run", failed.pk))
    assert "undo v1 → other v1" in words
    assert f"by {unwinding.home.lead.user}" in words


def test_an_unknown_node_type_is_refused_and_everything_typed_is_kept(
    unwinding: Stage, failed: Run, visit: Visit
) -> None:
    effect = unwinding.entry(failed, "a").effect_id
    typed = {"node_type_id": "nope", "receipt": "r-1", "evidence": "see the mail", "justification": WHY}
    answer = visit(unwinding.home.lead).send("substitute", failed.pk, effect, **typed)
    assert answer.status_code == 400
    assert {name: form_of(answer)[name] for name in typed} == typed
    assert "is no node type (or version) registered for this tenant" in text_of(answer)


def test_what_was_done_outside_needs_a_second_person(unwinding: Stage, failed: Run, visit: Visit) -> None:
    """CMP-615."""
    unwinding.register_document(definitions.manual_type("by-hand"))
    effect = unwinding.entry(failed, "a").effect_id
    typed = {"node_type_id": "by-hand", "receipt": "r-1", "evidence": "see the mail", "justification": WHY}
    visit(unwinding.home.lead).send("substitute", failed.pk, effect, **typed)
    assert unwinding.states(failed) == {"a": "failed"}
    question = unwinding.question(failed)
    approver = visit(unwinding.home.approver)
    words = text_of(approver.get("approval", question.pk))
    assert "you attest that this was done outside" in words
    assert "r-1" in words
    approver.send("approval", question.pk, action="accept")
    assert unwinding.states(failed) == {"a": "completed"}
    done = text_of(approver.get("entry", failed.pk, effect))
    assert f"Done elsewhere by {unwinding.home.lead.user}" in done


def test_an_unproven_entry_announces_the_attestation(stage: Stage, visit: Visit) -> None:
    """CMP-405, 609."""
    stage.register("undo", idempotency={"header": "Idempotency-Key", "honoured": False})
    stage.chain("a")
    stage.fault("undo", "drop_after", times=1)
    run = stage.fail("a")
    stage.work()
    effect = stage.entry(run, "a").effect_id
    assert stage.states(run) == {"a": "uncertain"}
    visitor = visit(stage.home.lead)
    assert "Nothing proves that the earlier attempts had no effect" in text_of(
        visitor.get("substitute", run.pk, effect)
    )
    assert "Nobody knows whether the last attempt took effect" in text_of(visitor.get("entry", run.pk, effect))
