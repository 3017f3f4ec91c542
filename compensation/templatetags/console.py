"""How templates say things: states, times, ids, JSON. All markup lives in templates/partials."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.template import Library
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html
from django.utils.safestring import SafeString

from compensation.domain.canonical import canonical
from compensation.web import words

register = Library()

LARGE_JSON = 4_000
SHORT = 14
_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000


@register.inclusion_tag("partials/_state.html")
def state(kind: str, wire: str | None, *, plain: bool = False) -> dict[str, Any]:
    """A state by its vocabulary: word, shape, tone, and the wire's word beside it unless ``plain``."""
    return {"word": words.word(kind, wire), "plain": plain}


@register.inclusion_tag("partials/_state.html")
def rollup(wire: str | None, late: int) -> dict[str, Any]:
    """An unwind as a whole, beside how many late effects it does not cover."""
    return {"word": words.rollup_word(wire, late), "plain": False}


@register.simple_tag
def word(kind: str, wire: str | None) -> words.Word:
    """The word itself, for a template that draws it in its own way."""
    return words.word(kind, wire)


@register.simple_tag
def when(moment: datetime | str | None, *, none: str = "—", age: bool = True) -> SafeString:
    """A moment in UTC; the page's script turns it into the reader's zone and, with ``age``, a ticking age.

    Not a partial, since sentences go on right behind it and a file ends with a line break.
    """
    parsed = parse_datetime(moment) if isinstance(moment, str) else moment
    if parsed is None:
        return format_html('<span class="faint">{}</span>', none)
    utc = parsed.astimezone(UTC)
    return format_html(
        '<time class="nowrap" datetime="{}" title="{} UTC" data-show="{}">{} UTC</time>',
        utc.isoformat(timespec="milliseconds"),
        f"{utc:%Y-%m-%d %H:%M:%S}",
        "age" if age else "clock",
        f"{utc:%b %d, %H:%M:%S}",
    )


@register.inclusion_tag("partials/_id.html")
def ident(value: object, *, href: str = "", label: str = "id") -> dict[str, Any]:
    """A short id with a button that copies the whole of it."""
    text = str(value)
    return {"value": text, "short": short(text), "href": href, "label": label}


@register.inclusion_tag("partials/_copy.html")
def copy(value: object, label: str = "text") -> dict[str, Any]:
    """A button that copies ``value``; hidden where there is no script."""
    return {"value": str(value), "label": label}


@register.inclusion_tag("partials/_json.html")
def json_block(value: object, label: str) -> dict[str, Any]:
    """JSON for reading, with its exact canonical bytes; folded when large."""
    pretty = json.dumps(value, indent=2, ensure_ascii=False)
    return {"pretty": pretty, "raw": canonical(value).decode(), "label": label, "large": len(pretty) > LARGE_JSON}


@register.inclusion_tag("partials/_icon.html")
def icon(name: str, *, size: int = 16) -> dict[str, Any]:
    """An icon of the page's sprite; always beside a word, so hidden from screen readers."""
    return {"name": name, "size": size}


@register.filter
def short(value: object) -> str:
    """The ends of a long id. The tail is kept since ids made in the same moment share their head."""
    text = str(value)
    return text if len(text) <= SHORT else f"{text[:4]}…{text[-6:]}"


@register.filter
def phrase(wire: str) -> str:
    return words.phrase(wire)


@register.filter
def milliseconds(value: int) -> str:
    """A duration for people: 500 ms, 30 s, 15 min, 2 h."""
    for unit, name in ((_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value} ms"


@register.filter
def item(mapping: Mapping[str, Any], key: str) -> Any:
    return mapping.get(key)


@register.filter
def as_line(value: object) -> str:
    """A small JSON value on one line, such as a receipt."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@register.filter
def named(label: str | None, names: Mapping[str, str]) -> str:
    """The name of a principal; its label when nobody of that name is left."""
    return names.get(label or "", label or "")


@register.filter
def distinct(holds: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Each hold once, however many calls for a person say the same."""
    return list({(hold["scope"], hold["reason"]): hold for hold in holds}.values())
