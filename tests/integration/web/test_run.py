import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compensation.domain.states import OrderingModel
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import links_of, text_of
from tests.support import definitions
from tests.support.stage import Stage, committed, failed

ACTS = ("start", "cancel", "pause", "resume", "terminate")


def test_the_picture_joins_each_effect_with_its_inverse(asking: Stage, visit: Visit) -> None:
    run = asking.fail("a", "b")
    asking.work()
    answer = visit(asking.home.viewer).get("run", run.pk)
    picture = answer.context["picture"]
    assert [(row.ordinal, row.node_id, row.entry["position"]) for row in picture.rows] == [(1, "a", 2), (2, "b", 1)]
    words = text_of(answer)
    assert "Needs approval" in words
    assert "blocked by b" in words
    assert "Here it turned back: a step failed" in words


def test_what_would_stay_if_it_stopped_now_is_said_in_words(asking: Stage, visit: Visit) -> None:
    run = asking.fail("a", "b")
    asking.work()
    asking.approve(run)
    asking.work()
    words = text_of(visit(asking.home.viewer).get("run", run.pk))
    assert "1 of 2 committed effects is undone: b." in words
    assert "partly undone partial" in words
    assert "a stays done; its inverse would not run (now: needs approval)" in words


def test_late_effects_stand_beside_the_rollup(unwinding: Stage, visit: Visit) -> None:
    """CMP-205, 504."""
    run = unwinding.fail("a")
    unwinding.report(run, committed("b"))
    words = text_of(visit(unwinding.home.viewer).get("run", run.pk))
    assert "1 late effect not covered by the plan" in words
    assert "Not in the plan" in words


def test_what_is_waited_for_is_drawn_in_a_dependency_graph(stage: Stage, visit: Visit) -> None:
    stage.register("undo")
    nodes = [definitions.node(name, "undo") for name in ("a", "b", "c")]
    stage.workflow(nodes, pairs=[("a", "b"), ("a", "c")], policy={"orderingModel": OrderingModel.DEPENDENCY_GRAPH})
    run = stage.fail("a", "b", "c")
    picture = visit(stage.home.viewer).get("run", run.pk).context["picture"]
    assert picture.branching
    assert len(picture.arcs) == 2


def test_a_failed_mint_names_the_reference(stage: Stage, visit: Visit) -> None:
    """CMP-112."""
    stage.register("undo")
    stage.chain("a")
    run = stage.begin()
    stage.report(run, committed("a", output={}), failed("end"))
    answer = visit(stage.home.operator).get("run", run.pk)
    assert "The plan could not be made, so nothing was undone" in text_of(answer)
    assert "${nodes.a.output.id}" in text_of(answer)
    assert any(link.endswith("/retry/") for link in links_of(answer))


def test_under_a_failed_mint_only_what_came_late_is_late(stage: Stage, visit: Visit) -> None:
    """CMP-112, 205."""
    stage.register("undo")
    stage.chain("a", "b")
    run = stage.begin()
    stage.report(run, committed("a", output={}), failed("end"))
    stage.report(run, committed("b"))
    answer = visit(stage.home.viewer).get("run", run.pk)
    assert [(row.node_id, row.kind) for row in answer.context["picture"].rows] == [("a", "unplanned"), ("b", "late")]
    assert "Not planned the plan could not be made" in text_of(answer)


def test_fully_undone_is_not_said_beside_late_effects(unwinding: Stage, visit: Visit) -> None:
    """CMP-504."""
    run = unwinding.fail("a")
    unwinding.work()
    unwinding.report(run, committed("b"))
    assert unwinding.rollup(run) == "completed"
    visitor = visit(unwinding.home.viewer)
    for page in (visitor.get("run", run.pk), visitor.get("runs")):
        assert "Undone, except 1 late completed" in text_of(page)
        assert "Fully undone completed" not in text_of(page)


def test_given_up_with_an_unknown_effect_never_reads_not_undone(unwinding: Stage, visit: Visit) -> None:
    """CMP-405, 406: only what surely had no effect is not undone."""
    unwinding.fault("undo", "drop_after")
    run = unwinding.fail("a")
    unwinding.work()
    entry = unwinding.entry(run, "a")
    assert (entry.state, entry.attempts) == ("failed", 3)
    visitor = visit(unwinding.home.lead)
    for page in (
        visitor.get("run", run.pk),
        visitor.get("entry", run.pk, entry.effect_id),
        visitor.get("inbox"),
    ):
        words = text_of(page)
        assert "Failed, effect unknown" in words
        assert "exhausted after 3 attempts" in words
        assert "Not undone" not in words


def test_what_was_surely_refused_reads_not_undone(unwinding: Stage, visit: Visit) -> None:
    """CMP-402."""
    unwinding.fault("undo", "reject")
    run = unwinding.fail("a")
    unwinding.work()
    words = text_of(visit(unwinding.home.lead).get("run", run.pk))
    assert "Not undone failed" in words
    assert "definitely refused by the other system (HTTP 422)" in words


def test_a_last_refusal_does_not_prove_the_attempts_before_it(unwinding: Stage, visit: Visit) -> None:
    """CMP-405."""
    unwinding.fault("undo", "drop_after", times=1)
    unwinding.fault("undo", "reject")
    run = unwinding.fail("a")
    unwinding.work()
    assert [each.outcome for each in unwinding.attempts(run, "a")] == ["unknown", "failed"]
    words = text_of(visit(unwinding.home.lead).get("run", run.pk))
    assert "Failed, effect unknown failed" in words
    assert "(HTTP 422); an earlier attempt may have taken effect" in words


def test_the_number_of_queries_does_not_grow_with_the_entries(stage: Stage, visit: Visit) -> None:
    stage.register("undo", retry={"maxAttempts": 1, "backoffMs": 5})  # few failures: the breaker stays closed
    stage.chain("a", "b", "c", policy={"orderingModel": OrderingModel.DEPENDENCY_GRAPH})
    stage.fault("undo", "drop_after")
    few, many = stage.fail("a"), stage.fail("a", "b", "c")
    stage.work()
    visitor = visit(stage.home.viewer)
    visitor.get("run", few.pk)
    counts = []
    for run in (few, many):
        with CaptureQueriesContext(connection) as queries:
            visitor.get("run", run.pk)
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", ["viewer", "auditor", "approver"])
def test_who_may_not_act_sees_no_live_button_and_reads_why(asking: Stage, visit: Visit, name: str) -> None:
    """CMP-612: read-only people are offered nothing, each act with its reason."""
    run = asking.fail("a", "b")
    answer = visit(getattr(asking.home, name)).get("run", run.pk)
    assert not any(link.endswith(f"/{act}/") for act in ACTS for link in links_of(answer))
    assert "You may not terminate an unwind (terminate)." in text_of(answer)


def test_on_a_closed_run_who_may_do_nothing_sees_no_button_at_all(unwinding: Stage, visit: Visit) -> None:
    """CMP-612."""
    run = unwinding.fail("a")
    unwinding.work()
    effect = unwinding.entry(run, "a").effect_id
    for name, buttons in (("viewer", False), ("operator", True)):
        visitor = visit(getattr(unwinding.home, name))
        for page in (visitor.get("run", run.pk), visitor.get("entry", run.pk, effect)):
            assert ("disabled" in page.content.decode()) == buttons
            assert ("you may read it only" in text_of(page)) != buttons


def test_the_lead_is_offered_what_the_api_would_accept(asking: Stage, visit: Visit) -> None:
    """CMP-612."""
    run = asking.fail("a", "b")
    answer = visit(asking.home.lead).get("run", run.pk)
    offered = {act for act in ACTS for link in links_of(answer) if link.endswith(f"/{act}/")}
    assert offered == {"cancel", "pause", "terminate"}
    assert "The run already has a plan." in text_of(answer)


def test_inputs_take_a_permission(asking: Stage, visit: Visit) -> None:
    run = asking.fail("a", "b")
    assert "Inputs of the run" not in text_of(visit(asking.home.viewer).get("run", run.pk))
    assert "Inputs of the run" in text_of(visit(asking.home.auditor).get("run", run.pk))


def test_the_live_part_asks_again_while_anything_can_happen_and_then_stops(asking: Stage, visit: Visit) -> None:
    run = asking.fail("a")
    asking.work()
    visitor = visit(asking.home.viewer)
    page = visitor.get("run", run.pk).content.decode()
    found = re.search(r"seen=(\w+)", page)
    assert found is not None
    assert "every 2s" in page
    assert visitor.get_part("run", run.pk, seen=found.group(1)).status_code == 204
    asking.approve(run)
    asking.work()
    part = visitor.get_part("run", run.pk, seen=found.group(1)).content.decode()
    assert "every 2s" not in part
    assert "Fully undone" in part
    assert "csrfmiddlewaretoken" not in part


def test_a_long_picture_is_folded_and_never_loses_what_is_open(stage: Stage, visit: Visit) -> None:
    names = [f"n{number}" for number in range(80)]
    stage.register("undo")
    stage.workflow([definitions.node(name, "undo", requiresApproval=name == "n0") for name in names])
    run = stage.fail(*names)
    stage.work()
    answer = visit(stage.home.viewer).get("run", run.pk)
    picture = answer.context["picture"]
    assert (len(picture.rows), picture.folded) == (60, 20)
    assert picture.rows[0].node_id == "n0"
    assert len(answer.content) < 400_000


def test_the_whole_log_is_paged_newest_first(asking: Stage, visit: Visit) -> None:
    """CMP-502."""
    run = asking.fail("a", "b")
    answer = visit(asking.home.viewer).get("events", run.pk)
    sequences = [event["sequence"] for event in answer.context["events"]]
    assert sequences == sorted(sequences, reverse=True)
    assert sequences[-1] == 1
