import pytest

from compensation.models import NodeType
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import form_of, links_of, text_of
from tests.support.stage import Stage


def test_a_policy_reads_in_words(asking: Stage, visit: Visit) -> None:
    visitor = visit(asking.home.viewer)
    assert "flow" in text_of(visitor.get("workflows"))
    words = text_of(visitor.get("workflow", "flow"))
    assert "An unwind starts when" in words
    assert "the newest first" in words
    assert visitor.get("workflow", "none-such").status_code == 404


def test_an_older_version_stays_readable(asking: Stage, visit: Visit) -> None:
    """CMP-107."""
    asking.chain("a", policy={"exhaustedDisposition": "manual-intervention"})
    visitor = visit(asking.home.viewer)
    assert "stops until an operator acts" in text_of(visitor.get("workflow", "flow"))
    older = text_of(visitor.get("workflow", "flow", version="1"))
    assert "version 1 of 2" in older
    assert "the unwind goes on" in older
    assert visitor.get("workflow", "flow", version="3").status_code == 404


def test_node_types_say_what_an_unknown_answer_means(stage: Stage, visit: Visit) -> None:
    """CMP-405."""
    stage.register("undo", idempotency={"header": "Idempotency-Key", "honoured": False})
    words = text_of(visit(stage.home.viewer).get("node_type", "undo"))
    assert "an unknown attempt becomes uncertain" in words


def test_a_lead_holds_and_releases_with_a_reason(unwinding: Stage, visit: Visit) -> None:
    """CMP-409."""
    visitor = visit(unwinding.home.lead)
    assert visitor.post("hold_node_type", "undo", reason="").status_code == 400
    assert NodeType.objects.get(tenant=unwinding.home.tenant, node_type_id="undo").held_at is None
    visitor.send("hold_node_type", "undo", reason="they asked us to stop")
    assert "they asked us to stop" in text_of(visitor.get("node_types"))
    assert "they asked us to stop" in text_of(visitor.get("node_type", "undo"))
    visitor.send("release_node_type", "undo", reason="they are back")
    assert NodeType.objects.get(tenant=unwinding.home.tenant, node_type_id="undo").held_at is None
    held = unwinding.decisions(action__startswith="node-types:", resource_id="undo", justification__gt="")
    assert [each.justification for each in held] == ["they asked us to stop", "they are back"]


def test_holding_everything_is_seen_on_every_page(unwinding: Stage, visit: Visit) -> None:
    """CMP-409."""
    visit(unwinding.home.lead).send("hold_tenant", reason="an incident")
    for name in ("inbox", "runs", "workflows", "node_types"):
        assert "is on hold" in text_of(visit(unwinding.home.viewer).get(name)), name
    visit(unwinding.home.lead).send("release_tenant", reason="it is over")
    assert "is on hold" not in text_of(visit(unwinding.home.viewer).get("inbox"))


@pytest.mark.parametrize("name", ["viewer", "operator", "approver", "auditor"])
def test_others_see_no_hold_button_and_a_forced_hold_is_refused(unwinding: Stage, visit: Visit, name: str) -> None:
    """CMP-606, 612."""
    visitor = visit(getattr(unwinding.home, name))
    assert not any("hold" in link for link in links_of(visitor.get("node_types")))
    assert not any("/hold/" in link for link in links_of(visitor.get("node_type", "undo")))
    assert form_of(visitor.get("hold_node_type", "undo")) == {}
    forced = visitor.post("hold_node_type", "undo", reason="because I can")
    assert forced.status_code == 403
    assert "because I can" not in [each.held_reason for each in NodeType.objects.filter(node_type_id="undo")]


def test_help_names_every_state_with_its_wire_word(stage: Stage, visit: Visit) -> None:
    words = text_of(visit(stage.home.viewer).get("help"))
    for wire in ("awaiting_approval", "retry_scheduled", "irreversible", "waiting-approval", "superseded", "timed_out"):
        assert wire in words
