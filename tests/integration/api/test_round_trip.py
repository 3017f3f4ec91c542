"""What a registration accepts, it keeps (CMP-107): register, read back, equal as JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from compensation.domain.canonical import canonical
from tests.integration.api.conftest import Hall
from tests.support import definitions
from tests.support.world import EXAMPLE_NAMES, example, register_sandbox
from tests.unit.domain.documents import INVERSES, WORKFLOWS


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=WORKFLOWS)
def test_every_accepted_field_of_a_workflow_survives(hall: Hall, document: dict[str, Any]) -> None:
    for name in INVERSES:
        hall.stage.register_document(definitions.manual_type(name))
    registered = hall.us.service.post("/v1/workflows", document)
    assert registered.status in {200, 201}, registered.text
    read = hall.us.service.get(f"/v1/workflows/{document['id']}?version={registered.json['version']}")
    assert canonical(read.json["workflow"]) == canonical(document)


def test_the_examples_register_as_they_are_and_a_change_is_a_version(hall: Hall) -> None:
    register_sandbox(hall.stage.home, hall.stage.sandbox.url)
    for name in EXAMPLE_NAMES:
        document = example(name)
        first = hall.us.service.post("/v1/workflows", document)
        assert (first.status, first.json["version"]) == (201, 1)
        again = hall.us.service.post("/v1/workflows", document)
        assert (again.status, again.json["version"]) == (200, 1)
        changed = hall.us.service.post("/v1/workflows", {**document, "name": "Another name"})
        assert (changed.status, changed.json["version"]) == (201, 2)
        assert hall.us.service.get(f"/v1/workflows/{name}?version=1").json["workflow"] == document
        assert hall.us.service.get(f"/v1/workflows/{name}").json["version"] == 2
        assert hall.us.service.get(f"/v1/workflows/{name}?version=3").status == 404
