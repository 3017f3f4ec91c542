import re
from typing import Any

from compensation.operations import holds
from tests.integration.web.conftest import Visit
from tests.integration.web.visitor import text_of
from tests.support import definitions
from tests.support.stage import Stage, committed, failed


def badge(response: Any) -> int:
    found = re.search(r'id="badge".*?</span>\s*([\d,]+)', response.content.decode(), re.DOTALL)
    assert found is not None
    return int(found.group(1))


def listed(response: Any) -> int:
    """The rows of the sections that count: all but those that wait for somebody else."""
    page: str = response.content.decode()
    return page.split('id="others-title"', maxsplit=1)[0].count('<li class="task"')


def test_an_empty_inbox_teaches(stage: Stage, visit: Visit) -> None:
    page = visit(stage.home.operator).get("inbox")
    assert badge(page) == 0
    assert "Nothing needs you" in text_of(page)
    assert "The first one comes when" in text_of(page)


def test_the_badge_equals_the_list_and_is_the_same_on_every_page(asking: Stage, visit: Visit) -> None:
    first = asking.fail("a", "b")
    asking.work()
    asking.reject(first)
    asking.work()
    second = asking.fail("a", "b")
    asking.work()
    asking.report(second, committed("a", factId="late", logicalInvocationId="a:2"))
    holds.hold_node_type(actor=asking.home.lead, node_type_id="undo", reason="the supplier asked")
    for person in (asking.home.approver, asking.home.operator, asking.home.lead):
        page = visit(person).get("inbox")
        assert badge(page) == listed(page) > 0
        assert badge(visit(person).get("runs")) == badge(page)


def test_approvals_are_for_those_who_may_and_others_read_why_not(asking: Stage, visit: Visit) -> None:
    """CMP-612: what is not offered says why."""
    asking.fail("a", "b")
    asking.work()
    assert "Approvals for you to decide" in text_of(visit(asking.home.approver).get("inbox"))
    operator = text_of(visit(asking.home.operator).get("inbox"))
    assert "Approvals for you to decide" not in operator
    assert "Not you: you may not approve or reject an inverse action (approve_inverse)" in operator


def test_approvals_tell_what_they_are_about_to_those_who_may_see_inputs(stage: Stage, visit: Visit) -> None:
    stage.register("undo", amount="$.amount", currency="$.currency")
    mapping = {name: f"${{nodes.a.output.{name}}}" for name in ("amount", "currency", "memo")}
    stage.workflow([definitions.node("a", "undo", requiresApproval=True, inputMapping=mapping)])
    for number in (1, 2):
        run = stage.begin()
        output = {"amount": 10 * number, "currency": "EUR", "memo": f"order {number}"}
        stage.report(run, committed("a", output=output), failed("end"))
    stage.work()
    words = text_of(visit(stage.home.approver).get("inbox"))
    assert "10 EUR · order 1" in words
    assert "20 EUR · order 2" in words
    assert "order 1" not in text_of(visit(stage.home.viewer).get("inbox"))


def test_dead_letters_and_late_effects_are_listed_with_their_cause(asking: Stage, visit: Visit) -> None:
    """CMP-205, 406."""
    run = asking.fail("a", "b")
    asking.work()
    asking.reject(run)
    asking.report(run, committed("a", factId="late", logicalInvocationId="a:2"))
    words = text_of(visit(asking.home.lead).get("inbox"))
    assert "Dead letters" in words
    assert "approval-denied" in words
    assert "Late effects that no plan undoes" in words


def test_what_stands_still_is_not_a_dead_letter_as_well(stage: Stage, visit: Visit) -> None:
    """CMP-406: one thing to do, one row, one count."""
    stage.register("undo")
    stage.chain("a", policy={"exhaustedDisposition": "manual-intervention"})
    stage.fault("undo", "reject", times=1)
    run = stage.fail("a")
    stage.work()
    unmade = stage.begin()
    stage.report(unmade, committed("a", output={}), failed("end"))
    for each in (run, unmade):
        assert {kind for kind, _ in stage.attention(each)} == {"dead_letter", "manual"}
    page = visit(stage.home.lead).get("inbox")
    assert badge(page) == listed(page) == 2
    assert "Dead letters" not in text_of(page)


def test_a_refresh_that_says_nothing_new_swaps_nothing(asking: Stage, visit: Visit) -> None:
    asking.fail("a", "b")
    asking.work()
    visitor = visit(asking.home.approver)
    found = re.search(r"seen=(\w+)", visitor.get("inbox").content.decode())
    assert found is not None
    assert visitor.get_part("inbox", seen=found.group(1)).status_code == 204
    asking.fail("a", "b")
    asking.work()
    changed = visitor.get_part("inbox", seen=found.group(1))
    assert changed.status_code == 200
    assert 'hx-swap-oob="true"' in changed.content.decode()
    assert "<html" not in changed.content.decode()
