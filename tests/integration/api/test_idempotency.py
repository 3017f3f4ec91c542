"""`Idempotency-Key`: one effect and one answer for each key (wire.md, Conventions)."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from audit.models import Decision
from compensation.api import idempotency, plans
from compensation.models import IdempotencyRecord, Run
from tests.integration.api.conftest import Hall
from tests.support.callers import Caller, Reply, differences, row_counts
from tests.support.stage import WHY
from tests.support.world import user_of


def new_run(caller: Caller, key: str, **more: Any) -> Reply:
    return caller.post("/v1/runs", {"workflowId": "flow", **more}, Idempotency_Key=key)


@pytest.fixture
def ready(hall: Hall) -> Hall:
    """A hall with the workflow `flow`."""
    hall.stage.register("undo")
    hall.stage.chain("a", "b")
    return hall


def test_the_same_request_gets_the_same_answer_and_has_one_effect(ready: Hall) -> None:
    first = new_run(ready.us.service, "k", tags=["x"])
    before = row_counts()
    again = new_run(ready.us.service, "k", tags=["x"])
    assert (again.status, again.text) == (first.status, first.text) == (201, first.text)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert differences(before, row_counts()) == {}


def test_the_same_meaning_written_otherwise_is_the_same_request(ready: Hall) -> None:
    first = ready.us.service.post("/v1/runs", b'{"workflowId":"flow","tags":["x"]}', Idempotency_Key="k")
    again = ready.us.service.post("/v1/runs", b'{ "tags": ["\\u0078"], "workflowId": "flow" }', Idempotency_Key="k")
    assert again.json == first.json


@pytest.mark.parametrize("other", ["body", "path", "query"])
def test_another_request_under_the_same_key_is_refused(ready: Hall, other: str) -> None:
    run = new_run(ready.us.service, "k").json["runId"]
    before = row_counts()
    replies = {
        "body": lambda: new_run(ready.us.service, "k", tags=["other"]),
        "path": lambda: ready.us.service.post(f"/v1/runs/{run}/cancel", {"workflowId": "flow"}, Idempotency_Key="k"),
        "query": lambda: ready.us.service.post("/v1/runs?x=1", {"workflowId": "flow"}, Idempotency_Key="k"),
    }
    reply = replies[other]()
    assert (reply.status, reply.code) == (409, "idempotency_key_mismatch")
    assert differences(before, row_counts()) == {}


def test_keys_of_different_people_and_tenants_do_not_meet(ready: Hall) -> None:
    first = new_run(ready.us.service, "k")
    theirs = ready.them.service.post("/v1/runs", {"workflowId": "flow"}, Idempotency_Key="k")
    assert (first.status, theirs.status) == (201, 404)
    assert (
        ready.us.operator.post(f"/v1/runs/{first.json['runId']}/compensation:pause", {}, Idempotency_Key="k").status
        == 404
    )


def test_two_keys_of_one_person_share_their_idempotency_keys(ready: Hall) -> None:
    first = new_run(ready.us.service, "k")
    second_key = ready.us.key("service", ["runs:create"])
    assert new_run(second_key, "k").json == first.json


def test_a_refusal_for_good_is_replayed_even_when_it_would_now_succeed(ready: Hall) -> None:
    """The first final answer stands: a 4xx is one, and what it had begun was taken back."""
    before = row_counts()
    first = ready.us.service.post("/v1/runs", {"workflowId": "later"}, Idempotency_Key="k")
    assert first.status == 404
    assert differences(before, row_counts()) == {"compensation_idempotencyrecord": 1}
    ready.stage.register_document({"nodeTypeId": "by-hand", "kind": "manual"})
    again = ready.us.service.post("/v1/runs", {"workflowId": "later"}, Idempotency_Key="k")
    assert (again.status, again.text) == (404, first.text)
    assert again.headers["Idempotent-Replayed"] == "true"


def test_a_conflict_is_replayed_with_its_details(ready: Hall) -> None:
    run = ready.stage.fail("a", "b")
    body = ready.act(run, "b", justification=WHY, expectedPlanVersion=7)
    path = f"/v1/runs/{run.pk}/compensation:skip"
    first = ready.us.lead.post(path, body, Idempotency_Key="k")
    again = ready.us.lead.post(path, body, Idempotency_Key="k")
    assert (first.status, first.code) == (409, "version_conflict")
    assert again.text == first.text
    assert Decision.objects.filter(run_id=run.pk, action="compensation:skip").count() == 0


def test_a_403_is_recorded_and_not_kept(ready: Hall) -> None:
    """CMP-606: the denied row commits although the request is under a key; with the authority it then goes through."""
    run = ready.stage.fail("a", "b")
    body = ready.act(run, "b", justification=WHY)
    path = f"/v1/runs/{run.pk}/compensation:skip"
    narrow = ready.us.key("lead", ["runs:read"])
    assert narrow.post(path, body, Idempotency_Key="k").status == 403
    assert Decision.objects.filter(run_id=run.pk, action="compensation:skip", allowed=False).count() == 1
    assert not IdempotencyRecord.objects.filter(tenant=ready.stage.home.tenant).exists()
    assert ready.us.lead.post(path, body, Idempotency_Key="k").status == 200


def test_a_fault_of_ours_is_not_kept_and_leaves_nothing(ready: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """The act and the kept answer are one transaction: with the answer lost, the act is undone and may be repeated."""
    run = ready.stage.fail("a", "b")
    body = ready.act(run, "b", justification=WHY)
    path = f"/v1/runs/{run.pk}/compensation:skip"
    before = row_counts()
    with monkeypatch.context() as broken:
        broken.setattr(plans, "plan_projection", None)
        assert ready.us.lead.post(path, body, Idempotency_Key="k").status == 500
    assert differences(before, row_counts()) == {}
    assert ready.stage.entry(run, "b").state != "skipped"
    assert ready.us.lead.post(path, body, Idempotency_Key="k").status == 200


def test_an_answer_is_kept_for_a_day(ready: Hall) -> None:
    first = new_run(ready.us.service, "k")
    IdempotencyRecord.objects.filter(tenant=ready.stage.home.tenant).update(
        created_at=timezone.now() - idempotency.KEPT_FOR - timedelta(seconds=1)
    )
    assert new_run(ready.us.service, "k").json["runId"] != first.json["runId"]
    assert IdempotencyRecord.objects.filter(tenant=ready.stage.home.tenant).count() == 1


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "clé"])
def test_a_key_that_is_none(ready: Hall, key: str) -> None:
    reply = new_run(ready.us.service, key)
    assert (reply.status, reply.code) == (400, "validation_error")


def test_the_second_of_two_at_once_is_told_to_come_back(ready: Hall) -> None:
    principal = ready.stage.home.service
    with transaction.atomic():
        idempotency._lock(principal, "k")
        replies: list[Reply] = []
        other = threading.Thread(target=lambda: _elsewhere(lambda: replies.append(new_run(ready.us.service, "k"))))
        other.start()
        other.join(timeout=20)
    [reply] = replies
    assert (reply.status, reply.code) == (409, "idempotency_in_flight")
    assert reply.json["details"]["retriable"] is True
    assert int(reply.headers["Retry-After"]) >= 1
    assert new_run(ready.us.service, "k").status == 201


def test_many_at_once_make_one_run(ready: Hall) -> None:
    """Real connections, one barrier: one effect, and nobody gets another answer than that or "in flight"."""
    racers, replies = 6, []
    start = threading.Barrier(racers)

    def race() -> None:
        start.wait(timeout=20)
        replies.append(new_run(Caller(ready.us.service.key), "k"))

    threads = [threading.Thread(target=lambda: _elsewhere(race)) for _ in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(replies) == racers
    done = [reply for reply in replies if reply.status == 201]
    assert len({reply.text for reply in done}) == 1
    assert {reply.code for reply in replies if reply.status != 201} <= {"idempotency_in_flight"}
    assert Run.objects.filter(tenant=ready.stage.home.tenant).count() == 1
    assert IdempotencyRecord.objects.filter(user=user_of(ready.stage.home.service)).count() == 1


def _elsewhere(work: Any) -> None:
    """Run on a connection of this thread's own, and give it back."""
    try:
        work()
    finally:
        connections.close_all()


def test_every_post_of_the_api_honours_the_key() -> None:
    from compensation.api import approvals, registry, runs, tenant

    posts = [
        view.post
        for module in (approvals, plans, registry, runs, tenant)
        for view in vars(module).values()
        if isinstance(view, type) and hasattr(view, "post")
    ]
    assert len(posts) >= 20
    for post in posts:
        assert post.__closure__ is not None, post
        assert "_once" in post.__code__.co_names, post
