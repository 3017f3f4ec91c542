"""A person with a browser that runs no scripts: pages, forms and what they say."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.test import Client
from django.urls import reverse

from audit.principals import Principal
from tests.support.world import user_of

BACKEND = "django.contrib.auth.backends.ModelBackend"
HTMX = {"HX-Request": "true"}


class Visitor:
    """Pages are named as in the URLconf; the tenant's slug is added."""

    def __init__(self, slug: str, principal: Principal) -> None:
        self.slug = slug
        self.client = Client()
        self.client.force_login(user_of(principal), backend=BACKEND)

    def path(self, name: str, *args: object) -> str:
        return reverse(f"web:{name}", args=[self.slug, *args])

    def get(self, name: str, *args: object, **query: str) -> Any:
        return self.client.get(self.path(name, *args), query)

    def get_part(self, name: str, *args: object, **query: str) -> Any:
        """What htmx asks for."""
        return self.client.get(self.path(name, *args), query, headers=HTMX)

    def post(self, name: str, *args: object, **fields: Any) -> Any:
        return self.client.post(self.path(name, *args), fields)

    def post_part(self, name: str, *args: object, **fields: Any) -> Any:
        """What a form in a dialog sends."""
        return self.client.post(self.path(name, *args), fields, headers=HTMX)

    def send(self, name: str, *args: object, **typed: Any) -> Any:
        """Load the form, type, press the button: what was displayed goes back with it."""
        return self.post(name, *args, **{**form_of(self.get(name, *args)), **typed})


def text_of(response: Any) -> str:
    """The words of a page, white space folded."""
    reader = _Reader()
    reader.feed(response.content.decode())
    return " ".join(" ".join(reader.words).split())


def form_of(response: Any) -> dict[str, str]:
    """The fields of the page's own POST form (not of signing out) with their values."""
    reader = _Reader()
    reader.feed(response.content.decode())
    return reader.fields


def links_of(response: Any) -> list[str]:
    reader = _Reader()
    reader.feed(response.content.decode())
    return reader.links


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.fields: dict[str, str] = {}
        self.links: list[str] = []
        self._in_form = False
        self._textarea = ""
        self._select = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._in_form = given.get("method") == "post" and not given.get("action", "").endswith("/logout/")
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif self._in_form and tag == "select":
            self._select = given["name"]
            self.fields[self._select] = ""
        elif self._select and tag == "option" and "selected" in given:
            self.fields[self._select] = given["value"]
        elif self._in_form and tag == "input" and given.get("type") == "checkbox":
            self.fields |= {given["name"]: given["value"]} if "checked" in given else {}
        elif self._in_form and tag == "input" and "name" in given:
            self.fields[given["name"]] = given.get("value", "")
        elif self._in_form and tag == "textarea":
            self._textarea = given["name"]
            self.fields[self._textarea] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._in_form = False
        elif tag == "textarea":
            self._textarea = ""
        elif tag == "select":
            self._select = ""

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._textarea:
            self.fields[self._textarea] += data
