"""The ledger page: what was done, what was undone, whether anything was undone twice, and the active faults."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from compensation.sandbox import reading
from compensation.sandbox.catalogue import VERBS, past_tense
from compensation.sandbox.faults import MAX_MATCH, MAX_MS, MAX_TIMES, MODES, Fault
from compensation.sandbox.markup import Html, document, element, join
from compensation.sandbox.reading import Effect, Movement, Totals

LIVE_SECONDS = 3
PAGE_EFFECTS = 50


@dataclass(frozen=True)
class View:
    """What one page shows. `older` is the sequence to go on from, None at the end of the ledger."""

    totals: Totals
    undone: int
    undone_twice: list[str]
    movements: list[Movement]
    older: int | None
    before: int | None


def gather(db: sqlite3.Connection, *, before: int | None) -> View:
    """Read everything a page shows, the check for things undone twice over the whole ledger, not only this page."""
    effects = reading.newest_effects(db, limit=PAGE_EFFECTS + 1, before=before)
    shown = effects[:PAGE_EFFECTS]
    found = reading.movements(db, effects=shown)
    return View(
        totals=reading.totals(db),
        undone=reading.undone_count(db),
        undone_twice=reading.undone_twice(db),
        # A thing whose newest effect is on a newer page was shown there, undone; here it would look doubled.
        movements=[movement for movement in found if before is None or movement.newest.seq < before],
        older=shown[-1].seq if len(effects) > PAGE_EFFECTS else None,
        before=before,
    )


def render(view: View, *, faults: list[Fault], live: bool, notice: str = "") -> str:
    """The whole page as text."""
    refresh = element("meta", http_equiv="refresh", content=str(LIVE_SECONDS)) if live else Html()
    head = join(
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        refresh,
        element("title", "Sandbox ledger"),
        element("link", rel="stylesheet", href="/ledger.css"),
    )
    alert = element("p", notice, class_="notice", role="alert") if notice else Html()
    main = element("main", alert, _verdict(view), _faults(faults), _ledger(view))
    return document(head=head, body=join(_header(live=live), main))


def _header(*, live: bool) -> Html:
    follow = element("a", "Stop following", href="/") if live else element("a", "Follow live", href="/?live=1")
    return element(
        "header",
        element("h1", "Sandbox ledger"),
        element("p", "A make-believe downstream. Every effect here came in over real HTTP."),
        element("nav", follow, element("a", "Refresh", href="/"), element("a", "Stats as JSON", href="/stats")),
    )


def _verdict(view: View) -> Html:
    twice = view.undone_twice
    words = "Nothing was undone twice" if not twice else f"{_counted(len(twice), 'thing')} undone twice"
    explained = (
        f"{_counted(view.undone, 'inverse effect')} checked, each on a thing of its own."
        if not twice
        else "Each of these has more than one inverse effect:"
    )
    names = element("ul", *(element("li", _code(name)) for name in twice)) if twice else Html()
    figures = element(
        "dl",
        _figure("requests", view.totals.requests),
        _figure("effects", view.totals.effects),
        _figure("of them inverse", view.undone),
        _figure("repeats answered, not applied", view.totals.duplicates),
        class_="figures",
    )
    mark = element("span", "✕ " if twice else "✓ ", aria_hidden="true")
    body = (element("h2", mark, words), element("p", explained), names, figures)
    return element("section", *body, class_=f"verdict {'bad' if twice else 'good'}")


def _figure(label: str, number: int) -> Html:
    return element("div", element("dt", label), element("dd", f"{number:,}"))


def _faults(faults: list[Fault]) -> Html:
    none = element("p", "No fault is active: every system answers as it should.", class_="quiet")
    active = element("ul", *(_fault(fault) for fault in faults), class_="faults") if faults else none
    clear_all = _clear_form("Clear all faults") if len(faults) > 1 else Html()
    return element("section", element("h2", f"Active faults ({len(faults)})"), active, clear_all, _inject_form())


def _fault(fault: Fault) -> Html:
    left = "until cleared" if fault.times is None else f"{_counted(fault.times, 'time')} more"
    details = [left, f"hit {_counted(fault.hits, 'time')}"]
    details += [f"{fault.ms:,} ms"] if fault.ms else []
    details += [f"status {fault.status}"] if fault.mode in ("fail", "reject") else []
    words = element(
        "span", element("strong", fault.mode), " on ", _code(fault.match), element("br"), " · ".join(details)
    )
    return element("li", words, _clear_form("Clear", fault=fault))


def _clear_form(label: str, *, fault: Fault | None = None) -> Html:
    which = element("input", type="hidden", name="fault", value=str(fault.id)) if fault else Html()
    named = f"Clear {fault.mode} on {fault.match}" if fault else label
    return element(
        "form", which, element("button", label, type="submit", aria_label=named), method="post", action="/faults/clear"
    )


def _inject_form() -> Html:
    modes = [element("option", f"{mode}: {words}", value=mode) for mode, words in MODES.items()]
    paths = [element("option", value=f"/{system}/{verb}") for system, verb in VERBS] + [
        element("option", value="/effects/")
    ]
    fields = (
        _field("Path contains", element("input", name="match", list="paths", required=True, maxlength=str(MAX_MATCH))),
        _field("What happens", element("select", *modes, name="mode")),
        _field("Times (empty: until cleared)", _number_input("times", 1, MAX_TIMES)),
        _field("Milliseconds", _number_input("ms", 0, MAX_MS)),
        _field("Status (fail, reject)", _number_input("status", 400, 599)),
    )
    form = element(
        "form", *fields, element("datalist", *paths, id="paths"), element("button", "Inject", type="submit"),
        method="post", action="/faults/inject", class_="inject",
    )  # fmt: skip
    return element("details", element("summary", "Inject a fault"), form)


def _field(label: str, control: Html) -> Html:
    return element("label", element("span", label), control)


def _number_input(name: str, low: int, high: int) -> Html:
    return element("input", name=name, type="number", inputmode="numeric", min=str(low), max=str(high))


def _ledger(view: View) -> Html:
    title = element("h2", "Effects, newest first" if view.before is None else "Older effects")
    if not view.movements:
        empty = "Nothing has happened yet. POST to /payments/charge with an Idempotency-Key to see the first effect."
        return element("section", title, element("p", empty, class_="quiet"))
    by_correlation: dict[str | None, list[Movement]] = {}
    for movement in view.movements:
        by_correlation.setdefault(movement.correlation, []).append(movement)
    groups = [_group(name, listed, alone=len(by_correlation) == 1) for name, listed in by_correlation.items()]
    older = element("a", "Older effects", href=f"/?before={view.older}") if view.older else Html()
    return element("section", title, *groups, older)


def _group(correlation: str | None, listed: list[Movement], *, alone: bool) -> Html:
    """The movements of one run; those that name none get a heading only where it tells them from a run's."""
    named = element("h3", "Run ", _code(correlation)) if correlation else element("h3", "Without a run's name")
    heading = Html() if alone and not correlation else named
    return element("div", heading, element("ol", *map(_movement, listed), class_="movements"))


def _movement(movement: Movement) -> Html:
    kind, mark, words = _standing(movement)
    made = _effect(movement.made) if movement.made else _made_elsewhere(movement)
    undone = [element("div", _effect(effect), class_="inverse") for effect in movement.undone_by]
    badge = element("span", element("span", f"{mark} ", aria_hidden="true"), words, class_=f"badge {kind}")
    return element("li", badge, made, *undone, class_=kind)


def _standing(movement: Movement) -> tuple[str, str, str]:
    times = len(movement.undone_by)
    if times > 1:
        return "twice", "✕", f"undone {times} times"
    if times == 1:
        return "undone", "↩", f"undone by {movement.undone_by[0].verb.replace('_', ' ')}"
    return "stands", "●", "stands"


def _made_elsewhere(movement: Movement) -> Html:
    return element("p", _code(_id_of(movement.subject)), " was not made in this sandbox", class_="quiet")


def _effect(effect: Effect) -> Html:
    shown = f"{effect.system} · {past_tense(effect.system, effect.verb)}"
    at = element("time", effect.at.strftime("%Y-%m-%d %H:%M:%S UTC"), datetime=effect.at.isoformat())
    line = element("p", element("strong", shown), " ", _code(_id_of(effect.subject)), _money(effect), " ", at)
    repeats = f"{_counted(effect.duplicates, 'repeat')} answered, not applied" if effect.duplicates else ""
    return element("div", line, element("p", repeats, class_="trail") if repeats else Html(), _details(effect))


def _details(effect: Effect) -> Html:
    key = _code(effect.key) if effect.key else element("em", "none")
    return element(
        "details",
        element("summary", "Receipt, key and request"),
        element("p", "receipt ", _code(str(effect.answer["receiptId"])), class_="trail"),
        element("p", "key ", key, class_="trail"),
        element("pre", json.dumps(effect.input, indent=2, ensure_ascii=False)),
    )


def _money(effect: Effect) -> str:
    parts = [str(effect.answer[name]) for name in ("amount", "currency") if name in effect.answer]
    return f" {' '.join(parts)}" if parts else ""


def _id_of(subject: str | None) -> str:
    return subject.partition(":")[2] if subject else ""


def _code(text: str) -> Html:
    return element("code", text) if text else Html()


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
