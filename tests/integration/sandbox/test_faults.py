"""Every fault does what it says, as a client sees it and as the ledger tells it."""

import http.client
import threading
import time
from typing import Any

import pytest

from tests.support.sandbox import SandboxProcess

REFUND = {"chargeId": "ch_1"}
PATH = "/payments/refund"


def _requests(sandbox: SandboxProcess, key: str) -> int:
    return int(sandbox.stats(key=key)["byKey"][key]["requests"])


@pytest.mark.parametrize(
    ("mode", "asked", "answered"),
    [("fail", None, 503), ("fail", 401, 401), ("reject", None, 422), ("reject", 410, 410)],
)
def test_an_error_answer_applies_nothing_and_is_counted(
    sandbox: SandboxProcess, mode: str, asked: int | None, answered: int
) -> None:
    sandbox.faults(PATH, mode, times=1, status=asked)
    refused = sandbox.post(PATH, REFUND, key="k")
    assert (refused.status, refused.json["error"]) == (answered, "injected_fault")
    assert sandbox.effect("k") is None
    assert sandbox.post(PATH, REFUND, key="k").status == 201
    assert _requests(sandbox, "k") == 2


def test_throttle_says_when_to_come_back(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "throttle", times=1, ms=2500)
    answer = sandbox.post(PATH, REFUND, key="k")
    assert (answer.status, answer.headers["retry-after"]) == (429, "3")
    assert sandbox.effect("k") is None


def test_delay_answers_as_usual_only_later(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "delay", times=1, ms=300)
    started = time.monotonic()
    assert sandbox.post(PATH, REFUND, key="k").status == 201
    assert time.monotonic() - started >= 0.3


def test_drop_before_cuts_the_line_and_applies_nothing(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "drop_before", times=1)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        sandbox.post(PATH, REFUND, key="k")
    assert sandbox.effect("k") is None
    assert _requests(sandbox, "k") == 1


def test_drop_after_cuts_the_line_but_the_effect_stands_even_through_a_kill(sandbox: SandboxProcess) -> None:
    """CMP-405: the case in which a client cannot know, and re-presenting the key must find the first effect."""
    sandbox.faults(PATH, "drop_after", times=1)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        sandbox.post(PATH, REFUND, key="k")
    sandbox.kill()
    sandbox.restart()
    stands = sandbox.effect("k")
    assert stands is not None
    assert sandbox.post(PATH, REFUND, key="k").json["receiptId"] == stands["receiptId"]
    assert sandbox.stats()["byKey"]["k"] == {"requests": 2, "effects": 1, "duplicates": 1}


def test_garbage_applies_and_answers_what_nobody_can_read(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "garbage", times=1)
    answer = sandbox.post(PATH, REFUND, key="k")
    assert answer.status == 200
    with pytest.raises(ValueError, match="Unterminated"):
        _ = answer.json
    assert sandbox.effect("k") is not None


def test_hang_holds_on_for_its_bound_and_applies_nothing(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "hang", times=1, ms=300)
    started = time.monotonic()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        sandbox.post(PATH, REFUND, key="k")
    assert time.monotonic() - started >= 0.3
    assert sandbox.effect("k") is None


def test_a_readback_can_be_faulted_too(sandbox: SandboxProcess) -> None:
    """CMP-405: `unknown` is an answer a readback gives as well."""
    sandbox.post(PATH, REFUND, key="k")
    sandbox.faults("/effects/k", "fail", times=1, status=500)
    assert sandbox.request("GET", "/effects/k").status == 500
    assert sandbox.request("GET", "/effects/k").status == 200
    assert _requests(sandbox, "k") == 1


def test_other_paths_stay_well(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "fail")
    assert sandbox.post("/payments/charge", {}, key="k").status == 201
    assert sandbox.post("/travel/cancel", REFUND, key="k-2").status == 201


def test_of_several_faults_the_oldest_acts_until_it_is_used_up(sandbox: SandboxProcess) -> None:
    sandbox.faults("/payments", "fail", times=2, status=500)
    sandbox.faults(PATH, "reject", times=1)
    statuses = [sandbox.post(PATH, REFUND, key="k").status for _ in range(4)]
    assert statuses == [500, 500, 422, 201]
    assert sandbox.request("GET", "/faults").json == {"faults": []}


def test_faults_are_listed_with_what_is_left_and_cleared_at_once(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "fail", times=3)
    sandbox.post(PATH, REFUND, key="k")
    expected = {"id": 1, "match": PATH, "mode": "fail", "times": 2, "ms": 0, "status": 503, "hits": 1}
    assert sandbox.request("GET", "/faults").json == {"faults": [expected]}
    sandbox.clear_faults()
    assert sandbox.post(PATH, REFUND, key="k").status == 201


@pytest.mark.parametrize(
    ("asked", "pointers"),
    [
        ({}, ["/match", "/mode"]),
        ({"match": "", "mode": "fail"}, ["/match"]),
        ({"match": 7, "mode": "explode"}, ["/match", "/mode"]),
        ({"match": "/", "mode": ["fail"]}, ["/mode"]),
        ({"match": "/", "mode": "fail", "times": 0}, ["/times"]),
        ({"match": "/", "mode": "fail", "times": True}, ["/times"]),
        ({"match": "/", "mode": "delay", "ms": -1}, ["/ms"]),
        ({"match": "/", "mode": "delay", "ms": 1.5}, ["/ms"]),
        ({"match": "/", "mode": "fail", "status": 200}, ["/status"]),
        ({"match": "/", "mode": "reject", "status": 503}, ["/status"]),
        ({"match": "/", "mode": "fail", "colour": "red", "until": 1}, ["/colour", "/until"]),
    ],
)
def test_a_fault_that_is_none_is_refused_with_every_field_named(
    shared: SandboxProcess, asked: dict[str, Any], pointers: list[str]
) -> None:
    answer = shared.request("POST", "/faults", body=asked)
    assert (answer.status, answer.json["error"]) == (400, "validation_error")
    assert [error["pointer"] for error in answer.json["details"]["errors"]] == pointers
    assert shared.request("GET", "/faults").json == {"faults": []}


@pytest.mark.parametrize(("method", "path"), [("POST", "/faults"), ("DELETE", "/faults"), ("POST", "/faults/clear")])
def test_another_site_cannot_touch_the_faults(sandbox: SandboxProcess, method: str, path: str) -> None:
    sandbox.faults(PATH, "fail")
    body = {"match": "/", "mode": "hang"}
    answer = sandbox.request(method, path, body=body, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403
    assert [fault["mode"] for fault in sandbox.request("GET", "/faults").json["faults"]] == ["fail"]


def test_it_stops_within_two_seconds_although_requests_hang(sandbox: SandboxProcess) -> None:
    sandbox.faults(PATH, "hang")
    sandbox.faults("/mail/send", "delay", ms=60_000)
    lost: list[str] = []

    def call(path: str) -> None:
        try:
            sandbox.post(path, REFUND, key=path)
        except (http.client.HTTPException, OSError):
            lost.append(path)

    callers = [threading.Thread(target=call, args=(path,)) for path in (PATH, "/mail/send")]
    for caller in callers:
        caller.start()
    while sum(fault["hits"] for fault in sandbox.request("GET", "/faults").json["faults"]) < len(callers):
        assert all(caller.is_alive() for caller in callers)
    started = time.monotonic()
    assert sandbox.stop() == 0
    assert time.monotonic() - started < 2
    for caller in callers:
        caller.join(5)
    assert sorted(lost) == ["/mail/send", PATH]
    sandbox.restart()
    assert sandbox.effects() == []
