import pytest
from django.test import RequestFactory

from compensation.web.views.errors import server_error
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import text_of
from tests.support.stage import Stage

ODD = ("\x00", "%00", "'", "🙂", "-1", "9" * 40, "a" * 5000, "<script>")


@pytest.mark.parametrize("value", ODD)
def test_odd_values_in_the_url_never_break_a_page(asking: Stage, visit: Visit, value: str) -> None:
    run = asking.fail("a")
    reader, auditor = visit(asking.home.viewer), visit(asking.home.auditor)
    answers = [
        *(reader.get("runs", **{name: value}) for name in ("q", "status", "rollup", "workflow", "cursor", "seen")),
        *(auditor.get("decisions", **{name: value}) for name in ("run", "principal", "action", "outcome", "cursor")),
        reader.get("workflow", "flow", version=value),
        reader.get("node_type", "undo", version=value),
        reader.client.get(f"{reader.path('workflows')}{value}/"),
        reader.client.get(f"{reader.path('run', run.pk)}entries/{value}/"),
    ]
    assert {answer.status_code for answer in answers} <= {200, 400, 404}


@pytest.mark.parametrize("field", ["plan_version", "state", "justification"])
@pytest.mark.parametrize("value", ODD)
def test_odd_values_in_a_form_change_nothing(asking: Stage, visit: Visit, field: str, value: str) -> None:
    run = asking.fail("a")
    before = asking.states(run)
    sent = {"plan_version": 1, "state": "waiting", "justification": "", field: value}
    answer = visit(asking.home.lead).post("skip", run.pk, asking.entry(run, "a").effect_id, **sent)
    assert answer.status_code in (400, 409)
    assert asking.states(run) == before


def test_a_500_has_a_number_and_says_what_was_not_done() -> None:
    answer = server_error(RequestFactory().get("/t/acme/"))
    words = text_of(answer)
    assert answer.status_code == 500
    assert "What you asked for was not done" in words
    assert any(len(word) == 32 for word in words.split())


def test_every_page_carries_a_strict_policy_and_is_kept_by_no_cache(stage: Stage, visit: Visit) -> None:
    answer = visit(stage.home.viewer).get("inbox")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer["Cache-Control"] == "no-store"


def test_a_refusal_quotes_the_request_that_is_on_record(asking: Stage, visit: Visit) -> None:
    """CMP-606."""
    run = asking.fail("a")
    forced = visit(asking.home.viewer).post("pause", run.pk, plan_version=1, state="", justification="let me")
    assert asking.decisions(action="compensation:pause")[0].request_id in text_of(forced)
