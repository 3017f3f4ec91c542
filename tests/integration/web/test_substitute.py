import pytest

from compensation.models import Run
from compensation.web.views.substitute import ATTESTATION
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
    typed = {"receipt": "r-1", "evidence": "see the mail", "justification": WHY}
    answer = visit(unwinding.home.lead).send("substitute", failed.pk, effect, node_type_id="nope", **typed)
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
    words = text_of(visitor.get("substitute", run.pk, effect))
    assert "Nothing proves that the earlier attempts had no effect" in words
    assert "1 earlier attempt may have taken effect" in words
    assert "Nobody knows whether the last attempt took effect" in text_of(visitor.get("entry", run.pk, effect))


def test_only_what_takes_the_frozen_input_is_offered(unwinding: Stage, failed: Run, visit: Visit) -> None:
    """CMP-609: `validate_input` chooses; what a person does outside takes anything."""
    unwinding.register("unfit", inputSchema={"type": "object", "required": ["iban"]})
    unwinding.register_document(definitions.manual_type("by-hand"))
    page = visit(unwinding.home.lead).get("substitute", failed.pk, unwinding.entry(failed, "a").effect_id)
    words = text_of(page)
    assert "other (v1)" in words
    assert "by-hand (done outside, by a person)" in words
    assert "unfit" not in words
    assert "undo (v1)" not in words


def test_the_attestation_is_required_by_the_server_and_read_in_full_by_the_second_person(
    stage: Stage, visit: Visit
) -> None:
    """CMP-405, 609, 615."""
    stage.register("undo", amount="$.id", idempotency={"header": "Idempotency-Key", "honoured": False})
    stage.register("other")
    stage.chain("a")
    stage.fault("undo", "drop_after", times=1)
    run = stage.fail("a")
    stage.work()
    effect, visitor = stage.entry(run, "a").effect_id, visit(stage.home.lead)
    refused = visitor.send("substitute", run.pk, effect, node_type_id="other", justification=WHY)
    assert refused.status_code == 400
    assert "earlier attempts may have taken effect" in text_of(refused)
    assert form_of(refused)["node_type_id"] == "other"
    visitor.send("substitute", run.pk, effect, node_type_id="other", justification=WHY, attest="on")
    words = text_of(visit(stage.home.approver).get("approval", stage.question(run).pk))
    risk = "1 earlier attempt may have taken effect"
    for shown in (ATTESTATION, WHY, risk, '"id": "a-1"', "Amount a-1", "Attempt 1"):
        assert shown in words
