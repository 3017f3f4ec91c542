"""What the sandbox promises to those who call it: one effect per key, ids that follow from the key, strict reading."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from compensation.sandbox.catalogue import VERBS, Verb
from tests.support.sandbox import SandboxProcess


@pytest.mark.parametrize("verb", [verb for verb in VERBS.values() if not verb.inverse], ids=lambda verb: verb.name)
def test_a_forward_verb_answers_the_id_that_its_inverse_maps(shared: SandboxProcess, verb: Verb) -> None:
    answer = shared.post(f"/{verb.system}/{verb.name}", {"amount": 12.5, "currency": "EUR"}, key=f"verb-{verb.name}")
    assert answer.status == 201
    assert answer.json["state"] == "applied"
    assert answer.json["receiptId"].startswith("rcpt_")
    assert answer.json[verb.port].startswith(f"{verb.prefix}_")
    assert (answer.json["system"], answer.json["verb"]) == (verb.system, verb.name)
    assert (answer.json["amount"], answer.json["currency"]) == (12.5, "EUR")


def test_a_repeated_key_gets_the_first_answer_and_applies_nothing(sandbox: SandboxProcess) -> None:
    """CMP-311: one identity on every attempt is worth something only if the downstream keeps it."""
    first = sandbox.post("/payments/refund", {"chargeId": "ch_1", "amount": 5}, key="k-1")
    again = sandbox.post("/payments/refund", {"amount": 5, "chargeId": "ch_1"}, key="k-1")
    assert (again.status, again.json) == (first.status, first.json)
    assert [effect["receiptId"] for effect in sandbox.effects()] == [first.json["receiptId"]]
    assert sandbox.stats()["byKey"] == {"k-1": {"requests": 2, "effects": 1, "duplicates": 1}}


def test_fifty_at_once_under_one_key_are_one_effect(sandbox: SandboxProcess) -> None:
    """CMP-311 under concurrency: forty-nine of fifty are repeats, and all read the same receipt."""
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: sandbox.post("/payments/refund", {"chargeId": "ch_1"}, key="k-1"), range(50)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["receiptId"] for answer in answers}) == 1
    assert sandbox.stats() | {"byKeyComplete": True} == {
        "requests": 50,
        "effects": 1,
        "duplicates": 49,
        "byKey": {"k-1": {"requests": 50, "effects": 1, "duplicates": 49}},
        "byKeyComplete": True,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [("/payments/refund", {"chargeId": "ch_2"}), ("/payments/recall", {"chargeId": "ch_1"})],
    ids=["another body", "another verb"],
)
def test_a_key_reused_for_another_request_is_a_conflict(
    shared: SandboxProcess, path: str, body: dict[str, str]
) -> None:
    key = f"reused-{path}"
    first = shared.post("/payments/refund", {"chargeId": "ch_1"}, key=key)
    answer = shared.post(path, body, key=key)
    assert (answer.status, answer.json["error"]) == (409, "idempotency_key_mismatch")
    assert [effect["receiptId"] for effect in shared.effects(key=key)] == [first.json["receiptId"]]
    assert shared.stats(key=key)["byKey"][key] == {"requests": 2, "effects": 1, "duplicates": 0}


def test_without_a_key_every_request_is_an_effect(sandbox: SandboxProcess) -> None:
    receipts = {sandbox.post("/mail/recall", {"messageId": "msg_1"}).json["receiptId"] for _ in range(3)}
    assert len(receipts) == 3
    assert [effect["key"] for effect in sandbox.effects()] == [None, None, None]
    assert sandbox.stats() == {"requests": 3, "effects": 3, "duplicates": 0, "byKey": {}, "byKeyComplete": True}


def test_readback_tells_applied_from_not_applied(shared: SandboxProcess) -> None:
    """CMP-405: the readback of every sandbox node type is decided by these two answers."""
    shared.post("/travel/cancel", {"bookingId": "flt_1"}, key="e1:v2")
    applied, absent = shared.request("GET", "/effects/e1:v2"), shared.request("GET", "/effects/e2")
    assert (applied.status, applied.json["state"], applied.json["key"]) == (200, "applied", "e1:v2")
    assert (absent.status, absent.json["error"]) == (404, "not_found")


def test_effects_are_listed_newest_first_by_system_and_in_pages(sandbox: SandboxProcess) -> None:
    for number in range(5):
        sandbox.post("/ledger/hold" if number % 2 else "/mail/send", {"n": number}, key=f"k-{number}")
    assert [effect["key"] for effect in sandbox.effects()] == ["k-4", "k-3", "k-2", "k-1", "k-0"]
    assert [effect["key"] for effect in sandbox.effects(system="ledger")] == ["k-3", "k-1"]
    assert [effect["key"] for effect in sandbox.effects(key="k-2")] == ["k-2"]
    first = sandbox.request("GET", "/effects?limit=2").json
    second = sandbox.request("GET", f"/effects?limit=2&cursor={first['nextCursor']}").json
    assert [effect["key"] for effect in second["effects"]] == ["k-2", "k-1"]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/bank/refund", b"{}", 404, "not_found"),
        ("/payments/re-fund", b"{}", 404, "not_found"),
        ("/payments/Refund", b"{}", 404, "not_found"),
        ("/payments/refund/now", b"{}", 404, "not_found"),
        ("/payments/refund", b"", 400, "validation_error"),
        ("/payments/refund", b"{", 400, "validation_error"),
        ("/payments/refund", b"[]", 400, "validation_error"),
        ("/payments/refund", b'{"amount": NaN}', 400, "validation_error"),
        ("/payments/refund", b'{"amount": 1e999}', 400, "validation_error"),
        ("/payments/refund", rb'{"memo": "\ud800"}', 400, "validation_error"),
        ("/payments/refund", b'{"memo": "\xff"}', 400, "validation_error"),
        ("/payments/refund", b'{"a":' * 50_000, 400, "validation_error"),
        ("/payments/refund", b'{"a": "' + b"x" * 1_100_000 + b'"}', 413, "payload_too_large"),
    ],
)
def test_what_cannot_be_read_is_refused_and_applies_nothing(
    shared: SandboxProcess, path: str, body: bytes, status: int, error: str
) -> None:
    answer = shared.post(path, body, key="unreadable")
    assert (answer.status, answer.json["error"]) == (status, error)
    assert shared.effect("unreadable") is None


@pytest.mark.parametrize("key", ["", "has space", "k" * 256, "caf\xe9"])
def test_a_key_that_is_no_key_is_refused_by_name(shared: SandboxProcess, key: str) -> None:
    answer = shared.post("/payments/refund", {}, key=key)
    assert answer.status == 400
    assert answer.json["details"]["errors"][0]["pointer"] == "/headers/Idempotency-Key"


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "limit=%C2%B2", "cursor=-1", "cursor="])
def test_a_query_that_is_no_number_is_refused_by_name(shared: SandboxProcess, query: str) -> None:
    answer = shared.request("GET", f"/effects?{query}")
    assert answer.status == 400
    assert answer.json["details"]["errors"][0]["pointer"] == f"/query/{query.partition('=')[0]}"


def test_a_method_a_path_does_not_have_is_refused_in_json(shared: SandboxProcess) -> None:
    answer = shared.request("DELETE", "/payments/refund")
    assert (answer.status, answer.json["error"]) == (405, "method_not_allowed")
