"""What the API reads of a request, each part closed: a member that is not known is refused by name."""

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from rest_framework.request import Request

from audit.errors import ValidationFailed
from audit.principals import Principal
from compensation.domain.facts import check_time
from compensation.domain.problems import Problem, preview, to_wire
from compensation.domain.shapes import MAX_STORED_INTEGER, Check
from compensation.queries.paging import DEFAULT_LIMIT, MAX_LIMIT

Reader = Callable[[str], Any]
"""Turns the text of a query parameter into a value, or raises ValueError saying what is allowed."""

MAX_PARAMETER: Final = 512
_REQUEST_ID: Final = "recourse.request_id"
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def request_id(request: HttpRequest | Request) -> str:
    """The id of this request: made here once, in its answer, its log lines and its decisions."""
    made: str = request.META.setdefault(_REQUEST_ID, uuid.uuid4().hex)
    return made


def traceparent(request: HttpRequest | Request) -> str:
    """The caller's W3C trace context; "" when there is none that is valid, as that standard has it."""
    given = request.headers.get("traceparent", "")
    return given if _TRACEPARENT.fullmatch(given) else ""


def actor(request: Request) -> Principal:
    """Who is acting. Every endpoint that is not public has refused a request without one."""
    if not isinstance(request.auth, Principal):
        raise TypeError("a public endpoint has no actor")
    return request.auth


def body(request: Request, check: Check) -> dict[str, Any]:
    """The JSON body, or `ValidationFailed` with every problem at once. No body at all is an empty object."""
    document = request.data
    problems = check(document, "")
    if problems:
        raise ValidationFailed(
            f"The request body has {len(problems)} problem(s); nothing was changed.", to_wire(problems)
        )
    return dict(document)


def query(request: Request, known: Mapping[str, Reader]) -> dict[str, Any]:
    """The query parameters that were given, read; unknown, repeated or unreadable ones are refused."""
    problems, values = [], {}
    for name, given in request.query_params.lists():
        try:
            values[name] = _read(known, name, given)
        except ValueError as error:
            problems.append(Problem(f"/{name}", f"query parameter: {error}", given[-1][:MAX_PARAMETER]))
    if problems:
        raise ValidationFailed("The query is not valid.", to_wire(problems))
    return values


def _read(known: Mapping[str, Reader], name: str, given: list[str]) -> Any:
    if name not in known:
        raise ValueError(f"is not known; allowed: {', '.join(sorted(known)) or 'none'}")
    if len(given) != 1:
        raise ValueError("is repeated; allowed: once")
    return known[name](given[0])


def words(text: str) -> str:
    if not 1 <= len(text) <= MAX_PARAMETER or "\0" in text:
        raise ValueError(f"must have 1 to {MAX_PARAMETER} characters, none of them NUL")
    return text


def whole(least: int, most: int = MAX_STORED_INTEGER) -> Reader:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def choice(*allowed: str) -> Reader:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return read


def flag(text: str) -> bool:
    return bool(choice("true", "false")(text) == "true")


def time(text: str) -> datetime:
    problems = check_time(text, "")
    if problems:
        raise ValueError(problems[0].text)
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text.upper()))


PAGING: Final[Mapping[str, Reader]] = {"cursor": words, "limit": whole(1, MAX_LIMIT)}


def paging(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `page` among read query parameters."""
    return {"cursor": values.get("cursor", ""), "limit": values.get("limit", DEFAULT_LIMIT)}


def refuse_header(name: str, value: str, allowed: str) -> ValidationFailed:
    message = f"header {name} (got {preview(value)}); allowed: {allowed}"
    return ValidationFailed("A header is not valid.", [{"pointer": "", "message": message}])
