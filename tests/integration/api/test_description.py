"""The OpenAPI document says what is there: every path, its bodies and its answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from django.test import override_settings
from drf_spectacular.validation import validate_schema

from approvals.models import Interrupt
from compensation.api import discovery
from compensation.api.endpoint import Unknown
from compensation.api.urls import urlpatterns
from compensation.domain.states import OrderingModel
from compensation.operations.asking import RUN_IT
from compensation.queries.discovery import manifest
from tests.integration.api.conftest import Hall
from tests.support.callers import Caller, Reply
from tests.support.stage import WHY


def documented() -> dict[str, Any]:
    return discovery.document()


def api_paths() -> Iterator[tuple[str, Any]]:
    """(path as the document writes it, view class) of each endpoint."""
    for pattern in urlpatterns:
        view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
        if view is None or view is Unknown:
            continue
        yield "/" + re.sub(r"<str:(\w+)>", lambda match: "{" + _camel(match[1]) + "}", str(pattern.pattern)), view


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def test_the_document_is_valid() -> None:
    check: Any = validate_schema
    check(documented())


def test_every_method_of_every_endpoint_is_described() -> None:
    described = documented()["paths"]
    expected = {path: {name for name in ("get", "post", "put") if hasattr(view, name)} for path, view in api_paths()}
    assert len(expected) >= 34
    assert {path: set(methods) for path, methods in described.items()} == expected


def test_operations_have_unique_ids_errors_and_closed_bodies() -> None:
    operations = [each for methods in documented()["paths"].values() for each in methods.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
    for operation in operations:
        assert operation["summary"]
        assert {"401", "403", "429", "500"} <= set(operation["responses"])
        refusals = [answer for status, answer in operation["responses"].items() if status >= "400"]
        for answer in refusals:
            assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
            assert answer["description"]


def test_the_description_is_public_and_the_page_needs_no_script(db: None) -> None:
    nobody = Caller("")
    assert nobody.get("/v1/openapi.json").json == documented()
    page = nobody.get("/v1/docs")
    assert page.status == 200
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    for path in documented()["paths"]:
        assert path in page.text
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]


def schema_of(method: str, path: str, status: int) -> dict[str, Any]:
    answer = documented()["paths"][path][method]["responses"][str(status)]
    schema: dict[str, Any] = answer["content"]["application/json"]["schema"]
    return {**schema, "components": documented()["components"]}


def agrees(reply: Reply, method: str, path: str) -> None:
    """The answer is of the schema that the document gives it."""
    jsonschema.validate(reply.json, schema_of(method, path, reply.status))


def test_answers_are_as_described(hall: Hall) -> None:
    run = hall.unwinding(requiresApproval=True)
    us, r = hall.us, f"/v1/runs/{run.pk}"
    agrees(us.service.get("/v1/workflows"), "get", "/v1/workflows")
    agrees(us.service.get("/v1/workflows/flow"), "get", "/v1/workflows/{workflowId}")
    agrees(us.service.get("/v1/node-types"), "get", "/v1/node-types")
    agrees(us.service.get("/v1/node-types/undo"), "get", "/v1/node-types/{nodeTypeId}")
    agrees(us.service.post("/v1/runs", {"workflowId": "flow"}), "post", "/v1/runs")
    agrees(us.operator.get("/v1/runs"), "get", "/v1/runs")
    agrees(us.operator.get(r), "get", "/v1/runs/{runId}")
    agrees(us.operator.get(f"{r}/events/poll"), "get", "/v1/runs/{runId}/events/poll")
    agrees(us.operator.get(f"{r}/compensation"), "get", "/v1/runs/{runId}/compensation")
    agrees(us.operator.post(f"{r}/compensation:pause", {}), "post", "/v1/runs/{runId}/compensation:pause")
    agrees(us.operator.post(f"{r}/compensation:resume", {}), "post", "/v1/runs/{runId}/compensation:resume")
    agrees(us.operator.post(f"{r}/compensation:preview", {}), "post", "/v1/runs/{runId}/compensation:preview")
    agrees(us.approver.get("/v1/interrupts"), "get", "/v1/interrupts")
    inverse = Interrupt.objects.get(context_id=run.pk, handler=RUN_IT, state="open")
    hall.stage.answer(inverse)
    hall.stage.work()
    effect = hall.entry(run, "b")["effectId"]
    attempts = us.operator.get(f"{r}/compensation/{effect}/attempts")
    assert len(attempts.json["attempts"]) == 1
    agrees(attempts, "get", "/v1/runs/{runId}/compensation/{effectId}/attempts")
    agrees(us.operator.get(f"{r}/compensation"), "get", "/v1/runs/{runId}/compensation")
    agrees(us.auditor.get("/v1/decisions"), "get", "/v1/decisions")


def test_a_waive_is_asked_for_once_and_the_second_is_told_where(hall: Hall) -> None:
    """CMP-609: 202 with the approval that must first be given; asking again is `approval_required`."""
    run = hall.unwinding(requiresApproval=True)
    us, r = hall.us, f"/v1/runs/{run.pk}"
    asked = us.lead.post(f"{r}/compensation:skip", hall.act(run, "b", justification=WHY))
    assert asked.status == 202
    agrees(asked, "post", "/v1/runs/{runId}/compensation:skip")
    again = us.lead.post(f"{r}/compensation:skip", hall.act(run, "b", justification=WHY))
    assert (again.status, again.code) == (409, "approval_required")
    assert again.json["details"]["interruptId"] == asked.json["interrupt"]["interruptId"]
    agrees(again, "post", "/v1/runs/{runId}/compensation:skip")


def test_discovery_is_derived_from_what_the_engine_uses(db: None) -> None:
    """CMP §8."""
    shown = Caller("").get("/.well-known/openwop")
    jsonschema.validate(shown.json, schema_of("get", "/.well-known/openwop", 200))
    assert shown.json == manifest()
    assert shown.json["compensation"]["orderingModels"] == [model.value for model in OrderingModel]
    assert shown.json["authorization"]["failClosed"] is True
    for name in ("clarificationRounds", "schemaRounds", "envelopesPerTurn"):
        assert isinstance(shown.json["limits"][name], int)


def test_with_the_feature_off_nothing_tells_of_it(hall: Hall) -> None:
    """CMP §8: no advert, no rollup, and a policy is refused by name."""
    run = hall.unwinding()
    document = hall.us.service.get("/v1/workflows/flow").json["workflow"]
    with override_settings(COMPENSATION_ENABLED=False):
        assert "compensation" not in Caller("").get("/.well-known/openwop").json
        assert "compensationStatus" not in hall.us.operator.get(f"/v1/runs/{run.pk}").json
        assert all("compensationStatus" not in each for each in hall.us.operator.get("/v1/runs").json["runs"])
        refused = hall.us.service.post("/v1/workflows", {**document, "name": "again"})
    assert (refused.status, refused.code) == (422, "capability_required")
    assert refused.json["details"]["requiredCapability"] == "compensation"


@pytest.mark.parametrize("limit", [1, 3])
def test_a_caller_beyond_the_limit_is_told_when_to_come_back(hall: Hall, limit: int) -> None:
    with override_settings(RATE_LIMIT_PER_MINUTE=limit):
        statuses = [hall.us.operator.get("/v1/egress").status for _ in range(limit)]
        refused = hall.us.operator.get("/v1/egress")
        other = hall.us.lead.get("/v1/runs")
    assert set(statuses) == {403}
    assert (refused.status, refused.code, refused.json["details"]["retriable"]) == (429, "rate_limited", True)
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert other.status == 200
