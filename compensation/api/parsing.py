"""Bodies: I-JSON of at most 1 MiB, read to their end before they are refused."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from rest_framework.exceptions import APIException
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from audit.errors import PayloadTooLarge, ValidationFailed
from compensation.domain.canonical import IJsonError, parse_ijson
from compensation.domain.problems import to_wire
from compensation.queries.discovery import MAX_BODY_BYTES

DRAINED_AT_MOST: Final = 64 * 1024 * 1024
_CHUNK: Final = 64 * 1024


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class IJsonParser(BaseParser):
    """JSON that has one meaning (RFC 7493); anything else is refused with a pointer to what has none."""

    media_type = "application/json"

    def parse(
        self, stream: Readable, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        raw = _read(stream)
        try:
            return parse_ijson(raw)
        except IJsonError as error:
            raise ValidationFailed(
                "The request body is not I-JSON; nothing was changed.", to_wire(error.errors)
            ) from None


class LengthRequired(APIException):
    """A body that does not say how long it is would be taken for none: the web server hands on counted bodies only."""

    status_code = 411
    default_detail = "A body needs a Content-Length; nothing was changed."


def refuse_uncounted(request: Request) -> None:
    """Refuse a chunked body instead of reading it as empty."""
    if request.headers.get("Transfer-Encoding") and not request.headers.get("Content-Length"):
        raise LengthRequired


def drain(stream: Readable) -> None:
    """Read what is left of a body, so that a client that is still sending sees the answer and not a cut connection.

    A sender of more than 64 MiB is cut off all the same.
    """
    left = DRAINED_AT_MOST
    while left > 0 and (chunk := stream.read(_CHUNK)):
        left -= len(chunk)


def _read(stream: Readable) -> bytes:
    raw = stream.read(MAX_BODY_BYTES + 1)
    while 0 < len(raw) <= MAX_BODY_BYTES and (more := stream.read(MAX_BODY_BYTES + 1 - len(raw))):
        raw += more
    if len(raw) > MAX_BODY_BYTES:
        drain(stream)
        raise PayloadTooLarge(f"The body is larger than {MAX_BODY_BYTES} bytes; nothing was changed.")
    return raw
