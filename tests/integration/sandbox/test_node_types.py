"""The registry documents describe the sandbox that is really there, for everything the examples call."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest

from compensation.domain.node_type import check_node_type
from tests.support.sandbox import REPOSITORY, SandboxProcess

EXAMPLES = sorted((REPOSITORY / "tests" / "examples").glob("*.json"))
VALUES: dict[str, Any] = {
    "quantity": 2, "amount": 12.5, "trip": {"from": "BER"}, "invoice": {"id": "inv-1"}, "kind": "flight",
}  # fmt: skip


def _sample(document: dict[str, Any]) -> dict[str, Any]:
    return {port: VALUES.get(port, "text") for port in document["inputSchema"]["properties"]}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_type_an_example_names_has_a_document_that_takes_its_ports(shared: SandboxProcess, example: Path) -> None:
    """CMP-104: an inverse type must be in the registry; its schema must take what the mapping makes."""
    documents = {document["nodeTypeId"]: document for document in shared.node_types()}
    for node in json.loads(example.read_text())["nodes"]:
        ports = set(documents[node["typeId"]]["inputSchema"]["required"])
        assert ports <= set(node["inputs"])
        if "compensation" in node:
            inverse = documents[node["compensation"]["nodeTypeId"]]["inputSchema"]
            mapped = set(node["compensation"]["inputMapping"])
            assert set(inverse["required"]) <= mapped <= set(inverse["properties"])


def test_every_document_can_be_registered(shared: SandboxProcess) -> None:
    """CMP-104: the registry finds no fault with any of them, and no two share an id."""
    documents = shared.node_types()
    assert {document["nodeTypeId"]: check_node_type(document) for document in documents} == {
        document["nodeTypeId"]: [] for document in documents
    }
    assert len({document["nodeTypeId"] for document in documents}) == len(documents)


def test_every_http_type_is_answered_as_its_document_says(shared: SandboxProcess) -> None:
    for document in shared.node_types():
        if document["kind"] == "manual":
            continue
        body = _sample(document)
        jsonschema.validate(body, document["inputSchema"])
        key = f"k:{document['nodeTypeId']}"
        answer = shared.post(urlsplit(document["request"]["url"]).path, body, key=key)
        assert answer.status in document["success"]["status"]
        assert answer.json[document["receipt"].removeprefix("$.")]
        if "readback" in document:
            path = urlsplit(document["readback"]["url"]).path
            read = shared.request("GET", path.replace("{key}", key))
            assert read.status in document["readback"]["applied"]["status"]
            assert read.json["state"] == document["readback"]["applied"]["equals"]
            absent = shared.request("GET", path.replace("{key}", "absent"))
            assert absent.status in document["readback"]["notApplied"]["status"]


def test_one_type_can_leave_an_effect_unknown_and_one_is_done_by_a_person(shared: SandboxProcess) -> None:
    """CMP-405 and CMP-615 need a type without any promise and a manual one."""
    documents = {document["nodeTypeId"]: document for document in shared.node_types()}
    unsure = [name for name, document in documents.items() if not document.get("idempotency", {}).get("honoured", True)]
    assert unsure == ["sandbox.mail.recall"]
    assert "readback" not in documents["sandbox.mail.recall"]
    assert documents["sandbox.manual.done"]["kind"] == "manual"
    assert "request" not in documents["sandbox.manual.done"]
