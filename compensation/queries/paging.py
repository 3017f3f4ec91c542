"""Keyset paging: a page starts after the last row of the one before, however much was written in between."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet

from audit.errors import ValidationFailed

MAX_LIMIT: Final = 200
DEFAULT_LIMIT: Final = 50

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Generic[Row]):
    """Rows in order, and where the next page starts; None when there is none."""

    rows: Sequence[Row]
    next_cursor: str | None


def page(queryset: QuerySet[Row], *, cursor: str = "", limit: int = DEFAULT_LIMIT, order: str = "-id") -> Page[Row]:
    """One page of at most ``limit`` (<= 200) rows by a unique column, ``-`` first for descending.

    A cursor that is not ours, or is of another order, is a `ValidationFailed` and never an empty page.
    """
    name, descending = order.removeprefix("-"), order.startswith("-")
    if cursor:
        place = _decoded(queryset, cursor, order)
        queryset = queryset.filter(**{f"{name}__{'lt' if descending else 'gt'}": place})
    rows = list(queryset.order_by(order)[: limit + 1])
    more = len(rows) > limit
    last = getattr(rows[limit - 1], name) if more else None
    return Page(rows=rows[:limit], next_cursor=_encoded(order, last) if more else None)


def _encoded(order: str, place: object) -> str:
    return base64.urlsafe_b64encode(f"{order}:{place}".encode()).decode().rstrip("=")


def _decoded(queryset: QuerySet[Any], cursor: str, order: str) -> Any:
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode("ascii")
        given, place = text.split(":", 1)
        field = queryset.model._meta.get_field(order.removeprefix("-"))  # noqa: SLF001 - Django's documented API
        value = field.to_python(place)
    except (ValueError, binascii.Error, ValidationError):
        raise _unknown_cursor() from None
    if given != order or _encoded(order, value) != cursor:
        raise _unknown_cursor()
    return value


def _unknown_cursor() -> ValidationFailed:
    message = "is not a cursor of this list; allowed: the `nextCursor` of its page before, as it was given"
    return ValidationFailed("The page cannot be found.", [{"pointer": "/cursor", "message": message}])
