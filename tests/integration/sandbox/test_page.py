"""The ledger page: what a person sees, escaped, and the forms that inject and clear faults."""

import re
from urllib.parse import urlencode

import pytest

from tests.support.sandbox import Answer, SandboxProcess

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ATTACK = "<script>alert('x')</script>\"&"


def _page(sandbox: SandboxProcess, query: str = "") -> str:
    answer = sandbox.request("GET", f"/{query}")
    assert answer.status == 200
    return answer.text


def _submit(sandbox: SandboxProcess, path: str, **fields: str) -> Answer:
    return sandbox.request("POST", path, body=urlencode(fields).encode(), headers=FORM)


def _charge_and_refund(sandbox: SandboxProcess, name: str) -> str:
    charge = str(sandbox.post("/payments/charge", {"amount": 12, "currency": "EUR"}, key=f"c-{name}").json["chargeId"])
    sandbox.post("/payments/refund", {"chargeId": charge}, key=f"r-{name}")
    return charge


def test_an_empty_ledger_says_how_to_get_the_first_effect(sandbox: SandboxProcess) -> None:
    assert "Nothing has happened yet" in _page(sandbox)


def test_a_charge_stands_beside_the_refund_that_undid_it(sandbox: SandboxProcess) -> None:
    charge = _charge_and_refund(sandbox, "1")
    sandbox.post("/shipping/book", {"orderId": "o-1"}, key="s-1")
    page = _page(sandbox)
    items = re.findall(r"<li class=\"(\w+)\">(.*?)</li>", page, re.DOTALL)
    assert [kind for kind, _ in items] == ["stands", "undone"]
    assert items[1][1].count(charge) >= 2
    assert "undone by refund" in items[1][1]
    assert "Nothing was undone twice" in page


def test_two_refunds_of_one_charge_are_said_in_big_words(sandbox: SandboxProcess) -> None:
    """The check is computed over the ledger: different keys, same charge, which no key can prevent."""
    charge = _charge_and_refund(sandbox, "1")
    sandbox.post("/payments/refund", {"chargeId": charge}, key="r-2")
    page = _page(sandbox)
    assert "Nothing was undone twice" not in page
    assert re.search(r"<h2><span[^>]*>✕ </span>1 thing undone twice</h2>", page)
    assert f"<code>chargeId:{charge}</code>" in page
    assert "undone 2 times" in page


def test_a_repeat_under_one_key_is_not_undoing_twice(sandbox: SandboxProcess) -> None:
    _charge_and_refund(sandbox, "1")
    _charge_and_refund(sandbox, "1")
    page = _page(sandbox)
    assert "Nothing was undone twice" in page
    assert "1 repeat answered, not applied" in page


def test_the_check_reaches_beyond_the_page(sandbox: SandboxProcess) -> None:
    sandbox.post("/payments/refund", {"chargeId": "ch_old"}, key="r-1")
    sandbox.post("/payments/refund", {"chargeId": "ch_old"}, key="r-2")
    for number in range(55):
        sandbox.post("/mail/send", {"to": "a@example.test"}, key=f"m-{number}")
    page = _page(sandbox)
    assert page.count("undone 2 times") == 0
    assert "1 thing undone twice" in page
    older = re.search(r'href="/(\?before=\d+)"', page)
    assert older is not None
    assert "undone 2 times" in _page(sandbox, older[1])


def test_what_was_made_long_ago_and_undone_just_now_is_shown_once(sandbox: SandboxProcess) -> None:
    charge = sandbox.post("/payments/charge", {}, key="c").json["chargeId"]
    for number in range(55):
        sandbox.post("/mail/send", {}, key=f"m-{number}")
    sandbox.post("/payments/refund", {"chargeId": charge}, key="r")
    newest = _page(sandbox)
    older = re.search(r'href="/(\?before=\d+)"', newest)
    assert older is not None
    assert "payments · charged" in newest
    assert charge not in _page(sandbox, older[1])


def test_effects_of_one_correlation_stand_together(sandbox: SandboxProcess) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for key, headers in (
        ("a", {"X-Correlation-Id": "run-1"}),
        ("b", {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}),
    ):
        sandbox.request("POST", "/mail/send", body={}, headers={"Idempotency-Key": key, **headers})
    sandbox.request("POST", "/ledger/post", body={}, headers={"Idempotency-Key": "c", "X-Correlation-Id": "run-1"})
    sandbox.post("/mail/send", {}, key="d")
    headings = re.findall(r"<h3>(.*?)</h3>", _page(sandbox))
    assert headings == ["Without a run&#x27;s name", "Run <code>run-1</code>", f"Run <code>{trace}</code>"]


def test_everything_from_outside_is_escaped(sandbox: SandboxProcess) -> None:
    body = {"chargeId": ATTACK, "amount": ATTACK, "currency": ATTACK, ATTACK: ATTACK}
    headers = {"Idempotency-Key": "<b>key</b>", "X-Correlation-Id": "<i>run</i>"}
    assert sandbox.request("POST", "/payments/refund", body=body, headers=headers).status == 201
    assert sandbox.request("POST", "/payments/refund", body=body, headers={}).status == 201
    sandbox.faults(ATTACK, "fail")
    refused = _submit(sandbox, "/faults/inject", match="/", mode=ATTACK, **{ATTACK: ATTACK})
    assert refused.status == 400
    for page in (_page(sandbox), refused.text):
        assert "&lt;script&gt;" in page
        assert not re.search(r"<(script|b|i)[ >]", page)


def test_the_page_allows_no_script_and_no_frame(shared: SandboxProcess) -> None:
    policy = shared.request("GET", "/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert shared.request("GET", "/ledger.css").headers["content-type"].startswith("text/css")


def test_the_form_injects_a_fault_and_comes_back(sandbox: SandboxProcess) -> None:
    answer = _submit(sandbox, "/faults/inject", match="/payments", mode="fail", times="2", ms="", status="500")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert "2 times more" in _page(sandbox)
    assert sandbox.post("/payments/refund", {}, key="k").status == 500


@pytest.mark.parametrize(("field", "value"), [("times", "0"), ("times", "many"), ("status", "200"), ("ms", "-5")])
def test_a_form_with_a_wrong_field_says_which(shared: SandboxProcess, field: str, value: str) -> None:
    answer = _submit(shared, "/faults/inject", match="/payments", mode="fail", **{field: value})
    assert answer.status == 400
    assert f"/{field}: must be a whole number" in answer.text
    assert "Active faults (0)" in answer.text


def test_one_fault_or_all_are_cleared_from_the_page(sandbox: SandboxProcess) -> None:
    for path in ("/payments", "/mail", "/travel"):
        sandbox.faults(path, "fail")
    assert _submit(sandbox, "/faults/clear", fault="2").status == 303
    assert [fault["match"] for fault in sandbox.request("GET", "/faults").json["faults"]] == ["/payments", "/travel"]
    assert _submit(sandbox, "/faults/clear").status == 303
    assert sandbox.request("GET", "/faults").json == {"faults": []}


def test_following_live_is_a_choice(shared: SandboxProcess) -> None:
    assert 'http-equiv="refresh"' not in _page(shared)
    assert 'http-equiv="refresh"' in _page(shared, "?live=1")


def test_a_page_that_is_no_number_is_refused(shared: SandboxProcess) -> None:
    assert shared.request("GET", "/?before=x").status == 400
