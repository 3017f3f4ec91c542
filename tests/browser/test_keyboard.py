"""The keyboard: shortcuts, focus, and never a swallowed letter."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.support.stage import Stage

pytestmark = pytest.mark.browser


def runs_path(stage: Stage) -> str:
    return f"/t/{stage.home.tenant.slug}/runs/"


def two_runs(stage: Stage) -> list[str]:
    """Newest first, as the page lists them."""
    stage.register("undo")
    stage.chain("a")
    return [str(stage.commit("a").pk) for _ in range(2)][::-1]


def test_j_k_and_enter_walk_the_rows(stage: Stage, open_as: Open) -> None:
    newest, oldest = two_runs(stage)
    page = open_as(stage.home.viewer, runs_path(stage))
    page.keyboard.press("j")
    expect(page.locator(f"#r-{newest}")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(f"#r-{oldest}")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{runs_path(stage)}{newest}/")


def test_slash_searches_and_letters_that_are_typed_stay_letters(stage: Stage, open_as: Open) -> None:
    two_runs(stage)
    page = open_as(stage.home.viewer, runs_path(stage))
    page.keyboard.press("/")
    search = page.get_by_label("Find")
    expect(search).to_be_focused()
    page.keyboard.type("j/k?")
    expect(search).to_have_value("j/k?")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_help_opens_closes_and_gives_the_focus_back(stage: Stage, open_as: Open) -> None:
    page = open_as(stage.home.viewer, runs_path(stage))
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Help and words")
    expect(dialog.get_by_text("awaiting_approval")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#help-link")).to_be_focused()


def test_shortcuts_can_be_switched_off(stage: Stage, open_as: Open) -> None:
    newest, _ = two_runs(stage)
    page = open_as(stage.home.viewer, runs_path(stage))
    page.keyboard.press("?")
    page.get_by_label("Use single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator(f"#r-{newest}")).not_to_be_focused()
    page.reload()
    page.keyboard.press("/")
    expect(page.get_by_label("Find")).not_to_be_focused()


def test_the_first_tab_leads_to_the_content(stage: Stage, open_as: Open) -> None:
    page = open_as(stage.home.viewer, runs_path(stage))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
