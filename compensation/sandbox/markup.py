"""HTML that is escaped by construction: text becomes markup only through `element`."""

from __future__ import annotations

from html import escape

_VOID = frozenset({"br", "input", "link", "meta"})


class Html(str):
    """Text that is markup already; only this module makes it."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | bool) -> Html:
    """`<name …>children</name>`; plain strings are escaped. `class_` means class, True a bare attribute, False none."""
    opening = f"<{name}{''.join(_attribute(key, value=value) for key, value in attributes.items())}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Children side by side, plain strings escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def document(*, head: Html, body: Html) -> str:
    """A whole page in English."""
    return f"<!doctype html>\n{element('html', element('head', head), element('body', body), lang='en')}\n"


def _attribute(key: str, *, value: str | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{escape(value)}"'
