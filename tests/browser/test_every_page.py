"""Every page: axe-clean in both themes, no sideways scrolling at any width, nothing refused by the CSP, nothing fetched
from elsewhere."""

from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page

from compensation.models import Run
from tests.browser.conftest import Open, work
from tests.support.stage import Stage, committed

pytestmark = pytest.mark.browser

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PHONE, DESK = {"width": 320, "height": 700}, {"width": 1280, "height": 900}
WIDTHS = (1366, 1280, 1024, 900, 768, 360)
BUDGET_BYTES = 150_000
TOO_WIDE = """() => [
    ...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []),
    ...[...document.querySelectorAll(".card table")]
        .filter(table => table.offsetWidth > table.closest(".card").clientWidth)
        .map(table => table.caption?.textContent),
]"""


@pytest.fixture
def busy(stage: Stage) -> tuple[Stage, Run]:
    """A tenant where something waits, something failed, something came late and something is held."""
    stage.register("undo")
    stage.chain("a", "b", requiresApproval=True)
    run = stage.fail("a", "b")
    work(stage)
    stage.reject(run)
    work(stage)
    stage.report(run, committed("a", factId="late", logicalInvocationId="a:2"))
    return stage, run


def paths(stage: Stage, run: Run) -> list[str]:
    home = f"/t/{stage.home.tenant.slug}/"
    of_run = f"{home}runs/{run.pk}/"
    of_entry = f"{of_run}entries/{stage.entry(run, 'b').effect_id}/"
    acts = [f"{of_run}{act}/" for act in ("start", "terminate")] + [
        f"{of_entry}{act}/" for act in ("retry", "substitute")
    ]
    return [
        home,
        f"{home}runs/",
        of_run,
        of_entry,
        *acts,
        f"{home}approvals/{stage.question(run).pk}/",
        f"{home}workflows/flow/",
        f"{home}node-types/",
        f"{home}node-types/undo/",
        f"{home}node-types/undo/hold/",
        f"{home}help/",
        f"{home}decisions/",  # as a lead: the 403 page
        f"{of_run}events/",
        "/nowhere/",
    ]


def violations(page: Page) -> list[str]:
    page.evaluate(AXE)
    found = page.evaluate("tags => axe.run(document, {runOnly: tags})", STANDARDS)
    return [f"{each['id']}: {node['target']}" for each in found["violations"] for node in each["nodes"]]


@pytest.mark.parametrize(("theme", "viewport"), [("light", PHONE), ("dark", DESK)], ids=["light phone", "dark desk"])
def test_pages_are_clean(
    busy: tuple[Stage, Run], open_as: Open, troubles: list[str], theme: str, viewport: dict[str, int]
) -> None:
    stage, run = busy
    page = open_as(stage.home.lead, "/", viewport=viewport, color_scheme=theme)
    for path in paths(stage, run):
        page.goto(path)
        assert violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], path
    assert troubles == []


def test_nothing_is_wider_than_its_place(busy: tuple[Stage, Run], open_as: Open) -> None:
    stage, run = busy
    for person in (stage.home.lead, stage.home.auditor):
        page = open_as(person, "/")
        for path in paths(stage, run):
            page.goto(path)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate(TOO_WIDE) == [], f"{path} at {width}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_record_and_the_sign_in_page_are_clean(
    busy: tuple[Stage, Run], open_as: Open, troubles: list[str], theme: str
) -> None:
    stage, _ = busy
    record = open_as(stage.home.auditor, f"/t/{stage.home.tenant.slug}/decisions/", viewport=PHONE, color_scheme=theme)
    assert violations(record) == []
    assert record.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    record.locator("td a").first.click()
    assert violations(record) == []
    assert violations(open_as(None, "/login/", color_scheme=theme)) == []
    assert troubles == []


def test_an_open_dialog_is_clean(busy: tuple[Stage, Run], open_as: Open, troubles: list[str]) -> None:
    stage, run = busy
    page = open_as(stage.home.lead, paths(stage, run)[3], viewport=PHONE)
    page.get_by_role("link", name="Skip…").click()
    page.get_by_role("dialog").get_by_label("Why").wait_for()
    assert violations(page) == []
    assert troubles == []


def test_a_page_weighs_little_and_asks_nobody_else(busy: tuple[Stage, Run], open_as: Open, server: str) -> None:
    stage, run = busy
    page = open_as(stage.home.lead, "/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(paths(stage, run)[2])
    weights = [page.request.get(url).body() for url in asked if url.endswith((".js", ".css"))]
    assert sum(map(len, weights)) < BUDGET_BYTES
    assert [url for url in asked if not url.startswith((server, "data:"))] == []


def test_the_policy_allows_no_inline_script(stage: Stage, open_as: Open, troubles: list[str]) -> None:
    page = open_as(stage.home.viewer, f"/t/{stage.home.tenant.slug}/")
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.injected = true";
            document.body.append(script);
        }"""
    )
    assert page.evaluate("window.injected") is None
    assert any("Content Security Policy" in trouble for trouble in troubles)
