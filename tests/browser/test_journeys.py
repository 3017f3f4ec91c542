"""The approver's and the operator's way through the console, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from compensation.models import Run
from tests.browser.conftest import Open, work
from tests.support.stage import Stage
from tests.support.world import user_of

pytestmark = pytest.mark.browser

REASON = "the customer cancelled the order"
PASSWORD = "a long enough one"


def inbox(stage: Stage) -> str:
    return f"/t/{stage.home.tenant.slug}/"


def run_path(stage: Stage, run: Run) -> str:
    return f"{inbox(stage)}runs/{run.pk}/"


def entry_path(stage: Stage, run: Run, node_id: str) -> str:
    return f"{run_path(stage, run)}entries/{stage.entry(run, node_id).effect_id}/"


def waiting(stage: Stage) -> Run:
    """A run whose inverses wait for approval."""
    stage.register("undo")
    stage.chain("a", "b", requiresApproval=True)
    run = stage.fail("a", "b")
    work(stage)
    return run


def refused(stage: Stage) -> Run:
    """A run whose only inverse was refused once; the fault is gone."""
    stage.register("undo")
    stage.chain("a")
    stage.fault("undo", "reject", times=1)
    run = stage.fail("a")
    work(stage)
    return run


@pytest.mark.parametrize("scripts", [True, False])
def test_an_approver_signs_in_reads_and_accepts(
    stage: Stage, open_as: Open, troubles: list[str], *, scripts: bool
) -> None:
    """CMP-602: with and without JavaScript, what is shown is what is signed."""
    run = waiting(stage)
    approver = user_of(stage.home.approver)
    approver.set_password(PASSWORD)
    approver.save()
    page = open_as(None, "/", java_script_enabled=scripts)
    page.get_by_label("User name").fill(approver.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Run an inverse action: b").click()
    expect(page.locator("#artifact")).to_have_text(stage.question(run).artifact)
    if scripts:
        expect(page.get_by_text("Your browser computed the same digest")).to_be_visible()
    page.get_by_label("Reason").fill(REASON)
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Decided: approved.")).to_be_visible()
    work(stage)
    assert stage.states(run) == {"b": "completed", "a": "awaiting_approval"}
    assert stage.decisions(action="approvals:respond")[-1].justification == REASON
    assert troubles == []


def test_a_rejection_from_one_browser_reaches_the_other_in_words(stage: Stage, open_as: Open) -> None:
    """CMP-603: the second of two is told by whom it was decided, and keeps what they typed."""
    run = waiting(stage)
    path = f"{inbox(stage)}approvals/{stage.question(run).pk}/"
    first, second = open_as(stage.home.approver, path), open_as(stage.home.second_approver, path)
    second.get_by_label("Reason").fill(REASON)
    first.get_by_role("button", name="Reject").click()
    expect(first.get_by_text("Decided: rejected.")).to_be_visible()
    second.get_by_role("button", name="Accept").click()
    expect(second.get_by_text("This question was already rejected; nothing was decided now.")).to_be_visible()
    expect(second.get_by_text(f"{stage.home.approver.user}: reject")).to_be_visible()
    expect(second.get_by_label("What you typed, to copy")).to_have_value(REASON)
    assert stage.states(run)["b"] == "failed"


def test_an_operator_retries_in_the_dialog_and_the_page_follows(
    stage: Stage, open_as: Open, troubles: list[str]
) -> None:
    """CMP-609: the result stands where the finger was, and the page behind changes by itself."""
    run = refused(stage)
    page = open_as(stage.home.operator, entry_path(stage, run, "a"))
    page.get_by_role("link", name="Retry…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("The next attempt is number 2")).to_be_visible()
    dialog.get_by_label("Why").fill(REASON)
    dialog.get_by_role("button", name="Retry").click()
    expect(dialog.get_by_text("Retry a: done.")).to_be_visible()
    dialog.get_by_role("button", name="Close").last.click()
    work(stage)
    expect(page.get_by_text("Attempt 2")).to_be_visible()
    assert stage.applied(stage.entry(run, "a")) == 1
    assert troubles == []


def test_a_retry_without_scripts(stage: Stage, open_as: Open) -> None:
    run = refused(stage)
    page = open_as(stage.home.operator, entry_path(stage, run, "a"), java_script_enabled=False)
    page.get_by_role("link", name="Retry…").click()
    page.get_by_label("Why").fill(REASON)
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Retry a: done.")).to_be_visible()
    work(stage)
    page.reload()
    expect(page.get_by_text("Undone").first).to_be_visible()


def test_a_double_click_is_one_act(stage: Stage, open_as: Open) -> None:
    run = refused(stage)
    page = open_as(stage.home.operator, f"{entry_path(stage, run, 'a')}retry/")
    page.get_by_role("button", name="Retry").dblclick()
    expect(page.get_by_text("Retry a: done.")).to_be_visible()
    assert len(stage.decisions(action="compensation:retry")) == 1


def test_of_two_tabs_the_second_is_told_in_its_dialog(stage: Stage, open_as: Open) -> None:
    """CMP-609: 409 where the finger was, with who did what, and the typed reason kept."""
    run = refused(stage)
    first, second = (open_as(stage.home.operator, entry_path(stage, run, "a")) for _ in range(2))
    for page in (first, second):
        page.get_by_role("link", name="Retry…").click()
        page.get_by_role("dialog").get_by_label("Why").fill(REASON)
    first.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(first.get_by_text("Retry a: done.")).to_be_visible()
    second.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(second.get_by_role("dialog").get_by_text("nothing was changed")).to_be_visible()
    expect(second.get_by_role("dialog").get_by_text("Last on this run:")).to_be_visible()
    expect(second.get_by_role("dialog").get_by_label("What you typed")).to_have_value(REASON)
    assert len(stage.decisions(action="compensation:retry", allowed=True)) == 1


def test_a_change_elsewhere_appears_without_a_reload_and_unfolded_rows_stay(stage: Stage, open_as: Open) -> None:
    run = waiting(stage)
    page = open_as(stage.home.viewer, run_path(stage, run))
    page.locator("#standing > summary").click()
    expect(page.locator("#standing")).to_have_attribute("open", "")
    stage.approve(run)
    work(stage)
    expect(page.locator(f"#p-{stage.entry(run, 'b').effect_id}")).to_contain_text("Undone")
    expect(page.locator("#standing")).to_have_attribute("open", "")


def test_a_typed_reason_survives_the_end_of_the_session(stage: Stage, open_as: Open) -> None:
    run = refused(stage)
    operator = user_of(stage.home.operator)
    operator.set_password(PASSWORD)
    operator.save()
    page = open_as(stage.home.operator, f"{entry_path(stage, run, 'a')}retry/")
    page.get_by_label("Why").fill(REASON)
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Retry").click()
    sign_in_again(page, operator.username)
    expect(page.get_by_label("Why")).to_have_value(REASON)
    assert stage.states(run) == {"a": "failed"}


def sign_in_again(page: Page, username: str) -> None:
    expect(page).to_have_url(re.compile("/login/"))
    page.get_by_label("User name").fill(username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
