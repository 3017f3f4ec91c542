import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compensation.models import Run
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import text_of
from tests.support.stage import Stage


def shown(response: Any, *runs: Run) -> list[Run]:
    """Which of these runs the page lists."""
    page = response.content.decode()
    return [run for run in runs if f'id="r-{run.pk}"' in page]


def test_status_and_rollup_stand_side_by_side_with_the_wires_words(unwinding: Stage, visit: Visit) -> None:
    run = unwinding.fail("a", "b")
    unwinding.work()
    page = visit(unwinding.home.viewer).get("runs")
    assert shown(page, run) == [run]
    words = text_of(page)
    assert "Failed failed" in words
    assert "Fully undone completed" in words


def test_the_list_starts_by_teaching(stage: Stage, visit: Visit) -> None:
    assert "POST /v1/runs" in text_of(visit(stage.home.viewer).get("runs"))


def test_filters_stand_in_the_url(unwinding: Stage, visit: Visit) -> None:
    done, going = unwinding.fail("a", "b"), unwinding.commit("a")
    unwinding.work()
    visitor = visit(unwinding.home.viewer)
    assert shown(visitor.get("runs", status="failed"), done, going) == [done]
    assert shown(visitor.get("runs", status="running"), done, going) == [going]
    assert shown(visitor.get("runs", rollup="completed"), done, going) == [done]
    assert shown(visitor.get("runs", workflow="flow"), done, going) == [done, going]
    assert shown(visitor.get("runs", workflow="none-such"), done, going) == []


def test_the_overlay_can_be_asked_for(asking: Stage, visit: Visit) -> None:
    """CMP-506: a run with an open question reads waiting-approval, and is found by that word."""
    waiting, going = asking.fail("a", "b"), asking.commit("a")
    asking.work()
    page = visit(asking.home.viewer).get("runs", status="waiting-approval")
    assert shown(page, waiting, going) == [waiting]
    assert "Waiting for approval" in text_of(page)


def test_any_id_of_a_run_finds_it(asking: Stage, visit: Visit) -> None:
    run, other = asking.fail("a", "b"), asking.fail("a", "b")
    asking.work()
    entry = asking.entry(run, "a")
    ids = [run.pk, asking.plan(run).pk, entry.effect_id, entry.idempotency_key, asking.question(run).pk]
    visitor = visit(asking.home.viewer)
    for id_ in ids:
        assert shown(visitor.get("runs", q=f" {id_} "), run, other) == [run], id_
    assert "No run matches" in text_of(visitor.get("runs", q=str(uuid.uuid4())))


def test_an_id_of_another_tenant_finds_nothing(unwinding: Stage, visit: Visit) -> None:
    """CMP-606."""
    foreign = Stage(unwinding.sandbox)
    foreign.register("undo")
    foreign.chain("a")
    run = foreign.fail("a")
    page = visit(unwinding.home.lead).get("runs", q=foreign.entry(run, "a").effect_id)
    foreign.close()
    assert shown(page, run) == []


def test_paging_neither_repeats_nor_drops_a_row(unwinding: Stage, visit: Visit) -> None:
    runs = [unwinding.begin() for _ in range(53)]
    visitor = visit(unwinding.home.viewer)
    first = visitor.get("runs")
    newer = unwinding.begin()
    second = visitor.get("runs", cursor=first.context["next_cursor"])
    assert shown(first, *runs) == runs[3:]
    assert shown(second, newer, *runs) == runs[:3]


@pytest.mark.parametrize("cursor", ["nonsense", "LWlkOjE", "é"])
def test_a_bad_cursor_is_a_calm_page(stage: Stage, visit: Visit, cursor: str) -> None:
    answer = visit(stage.home.viewer).get("runs", cursor=cursor)
    assert answer.status_code == 400
    assert "is not a cursor of this list" in text_of(answer)


def test_a_refresh_sends_the_rows_alone(unwinding: Stage, visit: Visit) -> None:
    run = unwinding.commit("a")
    part = visit(unwinding.home.viewer).get_part("runs")
    assert part.content.decode().startswith("<tbody")
    assert shown(part, run) == [run]


def test_the_number_of_queries_does_not_grow_with_the_rows(unwinding: Stage, visit: Visit) -> None:
    """CMP-504."""
    visitor = visit(unwinding.home.viewer)
    visitor.get("runs")  # the first look also notes which tenant it was
    counts = []
    for more in (1, 5):
        for _ in range(more):
            unwinding.fail("a", "b")
        with CaptureQueriesContext(connection) as queries:
            visitor.get("runs")
        counts.append(len(queries))
    assert counts[0] == counts[1]
